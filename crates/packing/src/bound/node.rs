//! How much can one node hold? An upper estimate of the value packed on it, from prices for its resources.

use std::collections::BTreeMap;

use model::bitset::BitSet;

use super::need::Need;
use crate::cost::{Amounts, Kind, Problem, WIDTH, as_weights, markets, signature};

/// Prices per unit of each resource of a node.
pub(super) type Prices = [f64; WIDTH];

/// Everything pods can be on.
#[derive(Debug)]
pub(super) struct Market {
    /// Offers.
    pub offers: Vec<Node>,
    /// Room there is, with how many nodes have it.
    pub rooms: Vec<(Node, u32)>,
    /// At most so many pods of each group on a node.
    pub group_max: Vec<u32>,
    /// What a pod of each need asks for.
    pub requests: Vec<Amounts>,
    /// The same, for the search.
    pub weights: Vec<Prices>,
}

/// A node and who may use it.
#[derive(Debug)]
pub(super) struct Node {
    /// Room for pods.
    pub allocatable: Amounts,
    /// Pico-dollars per hour.
    pub price: u64,
    /// Needs with the most pods of each that go on one node; those of a group are neighbours.
    pub open: Vec<Open>,
    /// The room again, for the search.
    pub room: Prices,
}

/// A need that may use a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    /// Its position.
    pub need: usize,
    /// How many pods of it go on one node.
    pub most: u32,
    /// The group it shares a limit in.
    pub group: Option<usize>,
}

impl Market {
    /// What is for sale and what there is.
    pub(super) fn new(problem: &Problem, needs: &[Need]) -> Self {
        let kinds: Vec<Kind> = (0..problem.reaches.len())
            .map(|reach| Kind { reach, zone: None })
            .collect();
        let listed = markets(problem, &kinds, |offer| Some(problem.offers[offer].price));
        let offers = listed.iter().flat_map(|market| {
            let node = |it: &crate::cost::Listing| Node::new(needs, &market.kinds, it.allocatable, it.price);
            market.offers.iter().map(node)
        });
        let mut rooms: BTreeMap<(BitSet, Amounts), u32> = BTreeMap::new();
        for (at, room) in problem.rooms.iter().enumerate() {
            let kinds = signature(&kinds, |kind| kind.has_room(problem, at));
            *rooms.entry((kinds, room.free)).or_default() += 1;
        }
        let rooms = rooms
            .into_iter()
            .map(|((kinds, free), count)| (Node::new(needs, &kinds, free, 0), count));
        Self {
            offers: offers.filter(|node| !node.open.is_empty()).collect(),
            rooms: rooms.filter(|(node, _)| !node.open.is_empty()).collect(),
            group_max: problem.groups.iter().map(|group| group.max).collect(),
            requests: needs.iter().map(|need| need.requests).collect(),
            weights: needs.iter().map(|need| as_weights(&need.requests)).collect(),
        }
    }
}

impl Market {
    /// What a pod is worth beyond the price of what it uses.
    fn extra(&self, open: &Open, values: &[f64], prices: &Prices) -> f64 {
        values[open.need] - dot(prices, &self.weights[open.need])
    }
}

impl Node {
    fn new(needs: &[Need], reaches: &BitSet, allocatable: Amounts, price: u64) -> Self {
        let open = |(at, need): (usize, &Need)| {
            let reached = u32::try_from(need.reach).is_ok_and(|reach| reaches.contains(reach));
            let fits = need.requests.fits(&allocatable);
            let most = need.requests.times_in(&allocatable).min(need.per_node);
            let most = most.min(u32::try_from(need.count()).unwrap_or(u32::MAX));
            (reached && fits && most > 0).then_some(Open {
                need: at,
                most,
                group: need.group,
            })
        };
        let mut open: Vec<Open> = needs.iter().enumerate().filter_map(open).collect();
        open.sort_by_key(|open| (open.group, open.need));
        Self {
            allocatable,
            price,
            open,
            room: as_weights(&allocatable),
        }
    }

    /// The most the node can hold at these values by these prices, and how that changes with the prices.
    pub(super) fn worth(&self, market: &Market, values: &[f64], prices: &Prices) -> (f64, Prices) {
        let (mut worth, mut slope) = (dot(prices, &self.room), self.room);
        for run in self.open.chunk_by(|a, b| a.group.is_some() && a.group == b.group) {
            let gain = Gain::of(market, run, values, prices);
            worth += gain.value;
            gain.bend(market, run, values, prices, &mut slope);
        }
        (worth, slope)
    }
}

/// What needs of one group, or a need without, add to a node beyond the price of what they use.
struct Gain {
    value: f64,
    /// The group's limit holds, and is used up by the need that gains most per pod: that need, how many pods.
    limited: Option<(usize, f64)>,
}

impl Gain {
    fn of(market: &Market, run: &[Open], values: &[f64], prices: &Prices) -> Self {
        let (mut each, mut best) = (0.0, (0.0, 0));
        for open in run {
            let extra = market.extra(open, values, prices);
            if extra > 0.0 {
                each += f64::from(open.most) * extra;
                best = if extra > best.0 { (extra, open.need) } else { best };
            }
        }
        let max = run
            .first()
            .and_then(|open| open.group)
            .map(|group| f64::from(market.group_max[group]));
        match max.filter(|max| max * best.0 < each) {
            Some(max) => Self {
                value: max * best.0,
                limited: Some((best.1, max)),
            },
            None => Self {
                value: each,
                limited: None,
            },
        }
    }

    /// Takes what the pods behind the gain use off the slope.
    fn bend(&self, market: &Market, run: &[Open], values: &[f64], prices: &Prices, slope: &mut Prices) {
        let mut take = |need: usize, pods: f64| {
            for (slope, weight) in slope.iter_mut().zip(&market.weights[need]) {
                *slope -= pods * weight;
            }
        };
        match self.limited {
            Some((need, pods)) => take(need, pods),
            None => {
                for open in run.iter().filter(|open| market.extra(open, values, prices) > 0.0) {
                    take(open.need, f64::from(open.most));
                }
            }
        }
    }
}

/// The price of some amounts.
pub(super) fn dot(prices: &Prices, amounts: &Prices) -> f64 {
    prices.iter().zip(amounts).map(|(price, amount)| price * amount).sum()
}
