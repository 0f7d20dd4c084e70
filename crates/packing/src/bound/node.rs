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
    /// Positions of the offers a search looks at; the others are nearly like one of them, and come in at its end.
    pub searched: Vec<usize>,
    /// Room there is, with how many nodes have it.
    pub rooms: Vec<(Node, u32)>,
    /// At most so many pods of each group on a node.
    pub group_max: Vec<u32>,
    /// What pods of each shape ask for.
    pub requests: Vec<Amounts>,
    /// The same, for the search.
    pub shapes: Vec<Prices>,
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
    /// Its shape.
    pub shape: usize,
    /// How many pods of it go on one node.
    pub most: u32,
    /// The group it shares a limit in.
    pub group: Option<usize>,
}

/// What a pod of each shape costs by some prices.
pub(super) type Costs = Vec<f64>;

impl Market {
    /// What is for sale and what there is.
    pub(super) fn new(problem: &Problem, needs: &[Need]) -> Self {
        let kinds: Vec<Kind> = (0..problem.reaches.len())
            .map(|reach| Kind { reach, zone: None })
            .collect();
        let shapes = Shapes::of(needs);
        let listed = markets(problem, &kinds, |offer| Some(problem.offers[offer].price));
        let (mut offers, mut searched) = (Vec::new(), Vec::new());
        for market in &listed {
            for (at, it) in market.offers.iter().enumerate() {
                let node = Node::new(needs, &shapes, &market.kinds, it.allocatable, it.price);
                if !node.open.is_empty() {
                    if market.searched.binary_search(&at).is_ok() {
                        searched.push(offers.len());
                    }
                    offers.push(node);
                }
            }
        }
        let mut rooms: BTreeMap<(BitSet, Amounts), u32> = BTreeMap::new();
        for (at, room) in problem.rooms.iter().enumerate() {
            let kinds = signature(&kinds, |kind| kind.has_room(problem, at));
            *rooms.entry((kinds, room.free)).or_default() += 1;
        }
        let rooms = rooms
            .into_iter()
            .map(|((kinds, free), count)| (Node::new(needs, &shapes, &kinds, free, 0), count));
        Self {
            offers,
            searched,
            rooms: rooms.filter(|(node, _)| !node.open.is_empty()).collect(),
            group_max: problem.groups.iter().map(|group| group.max).collect(),
            shapes: shapes.requests.iter().map(as_weights).collect(),
            requests: shapes.requests,
        }
    }

    /// What a pod of each shape costs by these prices.
    pub(super) fn costs(&self, prices: &Prices, costs: &mut Costs) {
        costs.clear();
        costs.extend(self.shapes.iter().map(|weights| dot(prices, weights)));
    }
}

/// The different requests of needs, and the needs in the order nodes list them.
struct Shapes {
    requests: Vec<Amounts>,
    /// Need, shape, group, and the most pods of it on one node.
    needs: Vec<(usize, usize, Option<usize>, u32)>,
}

impl Shapes {
    fn of(needs: &[Need]) -> Self {
        let mut numbers: BTreeMap<Amounts, usize> = BTreeMap::new();
        let mut requests = Vec::new();
        let listed = needs.iter().enumerate().map(|(at, need)| {
            let shape = *numbers.entry(need.requests).or_insert_with(|| {
                requests.push(need.requests);
                requests.len() - 1
            });
            let most = u32::try_from(need.count()).unwrap_or(u32::MAX).min(need.per_node);
            (at, shape, need.group, most)
        });
        let mut needs: Vec<_> = listed.collect();
        needs.sort_by_key(|(need, _, group, _)| (*group, *need));
        Self { requests, needs }
    }
}

impl Node {
    fn new(needs: &[Need], shapes: &Shapes, reaches: &BitSet, allocatable: Amounts, price: u64) -> Self {
        let times = |requests: &Amounts| {
            if requests.fits(&allocatable) {
                requests.times_in(&allocatable)
            } else {
                0
            }
        };
        let times: Vec<u32> = shapes.requests.iter().map(times).collect();
        let open = shapes.needs.iter().filter_map(|&(need, shape, group, most)| {
            let most = most.min(times[shape]);
            let is_reached = u32::try_from(needs[need].reach).is_ok_and(|reach| reaches.contains(reach));
            (most > 0 && is_reached).then_some(Open {
                need,
                shape,
                most,
                group,
            })
        });
        let open = open.collect();
        Self {
            allocatable,
            price,
            open,
            room: as_weights(&allocatable),
        }
    }

    /// The most the node can hold at these values by these prices, by which pods cost so much.
    pub(super) fn worth(&self, market: &Market, values: &[f64], prices: &Prices, costs: &Costs) -> f64 {
        let gains = self.runs().map(|run| Gain::of(market, run, values, costs).value);
        dot(prices, &self.room) + gains.sum::<f64>()
    }

    /// How that changes with the prices.
    pub(super) fn slope(&self, market: &Market, values: &[f64], costs: &Costs) -> Prices {
        let mut slope = self.room;
        for run in self.runs() {
            Gain::of(market, run, values, costs).bend(market, run, values, costs, &mut slope);
        }
        slope
    }

    fn runs(&self) -> impl Iterator<Item = &[Open]> {
        self.open.chunk_by(|a, b| a.group == b.group)
    }
}

/// What needs of one group, or needs without one, add to a node beyond the price of what they use.
struct Gain {
    value: f64,
    /// The group's limit holds, and is used up by the shape that gains most per pod: that shape, how many pods.
    limited: Option<(usize, f64)>,
}

impl Gain {
    fn of(market: &Market, run: &[Open], values: &[f64], costs: &Costs) -> Self {
        let (mut each, mut best) = (0.0, (0.0, 0));
        for open in run {
            let extra = values[open.need] - costs[open.shape];
            if extra > 0.0 {
                each += f64::from(open.most) * extra;
                best = if extra > best.0 { (extra, open.shape) } else { best };
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
    fn bend(&self, market: &Market, run: &[Open], values: &[f64], costs: &Costs, slope: &mut Prices) {
        let mut take = |shape: usize, pods: f64| {
            for (slope, weight) in slope.iter_mut().zip(&market.shapes[shape]) {
                *slope -= pods * weight;
            }
        };
        match self.limited {
            Some((shape, pods)) => take(shape, pods),
            None => {
                for open in run.iter().filter(|open| values[open.need] - costs[open.shape] > 0.0) {
                    take(open.shape, f64::from(open.most));
                }
            }
        }
    }
}

/// The price of some amounts.
pub(super) fn dot(prices: &Prices, amounts: &Prices) -> f64 {
    prices.iter().zip(amounts).map(|(price, amount)| price * amount).sum()
}
