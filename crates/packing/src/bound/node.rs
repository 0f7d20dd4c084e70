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
    /// The same by resource, shape by shape.
    columns: [Vec<f64>; WIDTH],
    /// Resources beyond these nobody asks for.
    lanes: usize,
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
    /// Where in `open` the needs of each group end, and the group; one run for all that have none.
    runs: Vec<(u32, Option<u32>)>,
    /// The room again, for the search.
    pub room: Prices,
}

/// A need that may use a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    /// Its position.
    pub need: u32,
    /// Its shape.
    pub shape: u32,
    /// How many pods of it go on one node.
    pub most: u32,
}

impl Open {
    /// What a pod of the need is worth beyond the price of what it uses.
    #[inline]
    fn extra(&self, values: &[f64], costs: &Costs) -> f64 {
        values[self.need as usize] - costs[self.shape as usize]
    }
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
        let shapes_of_search: Vec<Prices> = shapes.requests.iter().map(as_weights).collect();
        let column = |lane: usize| shapes_of_search.iter().map(|weights| weights[lane]).collect::<Vec<_>>();
        let columns: [Vec<f64>; WIDTH] = std::array::from_fn(column);
        let is_asked = |lane: &usize| columns[*lane].iter().any(|weight| *weight != 0.0);
        Self {
            lanes: (0..WIDTH).rev().find(is_asked).map_or(0, |last| last + 1),
            columns,
            offers,
            searched,
            rooms: rooms.filter(|(node, _)| !node.open.is_empty()).collect(),
            group_max: problem.groups.iter().map(|group| group.max).collect(),
            shapes: shapes_of_search,
            requests: shapes.requests,
        }
    }

    /// What a pod of each shape costs by these prices.
    pub(super) fn costs(&self, prices: &Prices, costs: &mut Costs) {
        costs.clear();
        costs.resize(self.shapes.len(), 0.0);
        // No price changes the cost of what nobody asks for, unless it is no number.
        let is_finite = prices.iter().all(|price| price.is_finite());
        let lanes = if is_finite { self.lanes } else { WIDTH };
        for (price, column) in prices.iter().zip(&self.columns).take(lanes) {
            for (cost, weight) in costs.iter_mut().zip(column) {
                *cost += price * weight;
            }
        }
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
        let (mut open, mut runs) = (Vec::new(), Vec::<(u32, Option<u32>)>::new());
        for &(need, shape, group, most) in &shapes.needs {
            let most = most.min(times[shape]);
            let is_reached = u32::try_from(needs[need].reach).is_ok_and(|reach| reaches.contains(reach));
            if most == 0 || !is_reached {
                continue;
            }
            open.push(Open {
                need: need as u32,
                shape: shape as u32,
                most,
            });
            let (end, group) = (open.len() as u32, group.map(|group| group as u32));
            match runs.last_mut().filter(|(_, of)| *of == group) {
                Some((known, _)) => *known = end,
                None => runs.push((end, group)),
            }
        }
        Self {
            allocatable,
            price,
            open,
            runs,
            room: as_weights(&allocatable),
        }
    }

    /// The most the node can hold at these values by these prices, by which pods cost so much.
    pub(super) fn worth(&self, market: &Market, values: &[f64], prices: &Prices, costs: &Costs) -> f64 {
        let gains = self
            .runs()
            .map(|(run, group)| Gain::of(market, run, group, values, costs).value);
        dot(prices, &self.room) + gains.sum::<f64>()
    }

    /// How that changes with the prices.
    pub(super) fn slope(&self, market: &Market, values: &[f64], costs: &Costs) -> Prices {
        let mut slope = self.room;
        for (run, group) in self.runs() {
            Gain::of(market, run, group, values, costs).bend(market, run, values, costs, &mut slope);
        }
        slope
    }

    /// The needs that share a limit with each other, and the group whose it is.
    pub(super) fn runs(&self) -> impl Iterator<Item = (&[Open], Option<usize>)> {
        let mut from = 0;
        self.runs.iter().map(move |(end, group)| {
            let run = &self.open[from..*end as usize];
            from = *end as usize;
            (run, group.map(|group| group as usize))
        })
    }
}

/// What needs of one group, or needs without one, add to a node beyond the price of what they use.
struct Gain {
    value: f64,
    /// The group's limit holds, and is used up by the shape that gains most per pod: that shape, how many pods.
    limited: Option<(usize, f64)>,
}

impl Gain {
    fn of(market: &Market, run: &[Open], group: Option<usize>, values: &[f64], costs: &Costs) -> Self {
        let mut each = 0.0;
        for open in run {
            let extra = open.extra(values, costs);
            each += f64::from(open.most) * if extra > 0.0 { extra } else { 0.0 };
        }
        let limited = group.and_then(|group| {
            let max = f64::from(market.group_max[group]);
            let extra = |open: &Open| (open.extra(values, costs), open.shape as usize);
            let best = run.iter().map(extra);
            let best = best.fold((0.0, 0), |best, extra| if extra.0 > best.0 { extra } else { best });
            (max * best.0 < each).then_some((best, max))
        });
        match limited {
            Some((best, max)) => Self {
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
                for open in run.iter().filter(|open| open.extra(values, costs) > 0.0) {
                    take(open.shape as usize, f64::from(open.most));
                }
            }
        }
    }
}

/// The price of some amounts.
pub(super) fn dot(prices: &Prices, amounts: &Prices) -> f64 {
    prices.iter().zip(amounts).map(|(price, amount)| price * amount).sum()
}
