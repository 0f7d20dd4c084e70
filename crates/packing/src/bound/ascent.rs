//! Which values prove most? A search that mends given values, and then lifts what can be lifted.
//!
//! Mending never lowers the bound of values that are right already, so rounds of it climb. Only the prices of offers
//! that hold some value down are worth improving. The search looks at a part of the offers, no two of which are nearly
//! alike; in the end values are mended by all of them.

use super::{
    need::Need,
    node::{Costs, Market, Node, Prices, dot},
};
use crate::cost::{WIDTH, as_score};

/// Values per need, and the prices that prove them.
#[derive(Debug, Clone)]
pub(super) struct Proof {
    /// Pico-dollars per pod.
    pub values: Vec<f64>,
    /// Per offer.
    pub prices: Vec<Prices>,
    /// Per room.
    pub room_prices: Vec<Prices>,
}

/// Rounds of mending from each start.
const FIRST_ROUNDS: usize = 2;
/// Rounds from the best of them, while they help.
const ROUNDS: usize = 12;
/// A round that lifts the bound by less than this share ends the search.
const LIFT: f64 = 5e-4;
/// Offers whose prices are improved in a round: those that hold most value down.
const IMPROVED: usize = 6;
/// Halvings in a search along a line.
const HALVINGS: usize = 8;

/// The best proof found.
pub(super) fn ascend(market: &Market, needs: &[Need], starts: &[Vec<f64>]) -> Proof {
    let plain = std::iter::once(vec![0.0; needs.len()]);
    let learnt = starts.iter().map(|start| per_need(needs, start));
    let mut best: Option<Climb<'_>> = None;
    for values in plain.chain(learnt) {
        let mut climb = Climb::new(market, needs, values);
        climb.rounds(FIRST_ROUNDS);
        if best.as_ref().is_none_or(|best| climb.sum() > best.sum()) {
            best = Some(climb);
        }
    }
    let mut best = best.unwrap_or_else(|| Climb::new(market, needs, Vec::new()));
    best.rounds(ROUNDS);
    best.finish()
}

/// The mean value of the pods of each need.
fn per_need(needs: &[Need], classes: &[f64]) -> Vec<f64> {
    let value = |need: &Need| {
        let sum: f64 = need
            .classes
            .iter()
            .map(|(class, count)| classes[*class] * f64::from(*count))
            .sum();
        let pods: f64 = need.classes.iter().map(|(_, count)| f64::from(*count)).sum();
        sum / pods
    };
    needs.iter().map(value).collect()
}

/// A search under way.
struct Climb<'a> {
    market: &'a Market,
    needs: &'a [Need],
    values: Vec<f64>,
    /// Positions of the offers looked at, and the prices of each.
    offers: Vec<usize>,
    prices: Vec<Prices>,
    costs: Costs,
}

impl<'a> Climb<'a> {
    fn new(market: &'a Market, needs: &'a [Need], values: Vec<f64>) -> Self {
        let mut costs = Costs::new();
        let offers = market.searched.clone();
        let first = |at: &usize| {
            let node = &market.offers[*at];
            cheapest(market, node, &values, &single_prices(node), &mut costs).1
        };
        let prices = offers.iter().map(first).collect();
        Self {
            market,
            needs,
            values,
            offers,
            prices,
            costs,
        }
    }

    /// Mends and improves, until it hardly helps any more.
    fn rounds(&mut self, most: usize) {
        let mut before = 0.0;
        for _ in 0..most {
            let holders = self.mend();
            let sum = self.sum();
            if sum <= before * (1.0 + LIFT) {
                return;
            }
            before = sum;
            self.improve(&holders);
        }
        self.mend();
    }

    /// All values together: the bound, if it were not for rooms.
    fn sum(&self) -> f64 {
        let pods = self.needs.iter().zip(&self.values);
        pods.map(|(need, value)| as_score(need.count()) * value).sum()
    }

    /// Takes the offers left out so far in, under prices of those looked at.
    fn finish(mut self) -> Proof {
        let known: Vec<Prices> = std::mem::take(&mut self.prices);
        let neighbours = |at: usize| {
            let next = self.offers.partition_point(|offer| *offer < at);
            known[next.saturating_sub(1)..known.len().min(next + 1)].to_vec()
        };
        let mut prices = Vec::with_capacity(self.market.offers.len());
        for (at, node) in self.market.offers.iter().enumerate() {
            let candidates = if let Ok(known_at) = self.offers.binary_search(&at) {
                vec![known[known_at]]
            } else {
                let mut candidates = neighbours(at);
                candidates.extend(single_prices(node));
                candidates
            };
            prices.push(cheapest(self.market, node, &self.values, &candidates, &mut self.costs).1);
        }
        self.offers = (0..self.market.offers.len()).collect();
        self.prices = prices;
        let holders = self.mend();
        self.improve(&holders);
        self.mend();
        let room_prices = self.room_prices();
        Proof {
            values: self.values,
            prices: self.prices,
            room_prices,
        }
    }

    /// Makes the values right for every offer, as large as the prices allow; tells which offers hold values down, and
    /// the values of how many pods, most first.
    fn mend(&mut self) -> Vec<(f64, usize)> {
        let mut mended = vec![(f64::MAX, usize::MAX); self.values.len()];
        for (at, offer) in self.offers.iter().enumerate() {
            let (node, prices) = (&self.market.offers[*offer], &mut self.prices[at]);
            self.market.costs(prices, &mut self.costs);
            let worth = node.worth(self.market, &self.values, prices, &self.costs);
            let scale = as_score(node.price) / worth;
            for price in prices.iter_mut() {
                *price *= scale;
            }
            for open in &node.open {
                let need = open.need as usize;
                let value = scale * self.values[need].max(self.costs[open.shape as usize]);
                if value < mended[need].0 {
                    mended[need] = (value, at);
                }
            }
        }
        let value = |(value, at): &(f64, usize)| if *at == usize::MAX { 0.0 } else { *value };
        self.values = mended.iter().map(value).collect();
        self.holders(&mended)
    }

    fn holders(&self, mended: &[(f64, usize)]) -> Vec<(f64, usize)> {
        let mut held = vec![0.0; self.offers.len()];
        for (need, (value, at)) in self.needs.iter().zip(mended) {
            if let Some(held) = held.get_mut(*at) {
                *held += value * as_score(need.count());
            }
        }
        let mut holders: Vec<(f64, usize)> = held
            .into_iter()
            .enumerate()
            .filter(|(_, held)| *held > 0.0)
            .map(|(at, held)| (held, at))
            .collect();
        holders.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        holders
    }

    /// Looks for better prices of the offers that hold most down, and tries them on all others.
    fn improve(&mut self, holders: &[(f64, usize)]) {
        let Self {
            market,
            values,
            offers,
            prices,
            costs,
            ..
        } = self;
        let mut found = Vec::with_capacity(IMPROVED);
        for &(_, at) in holders.iter().take(IMPROVED) {
            let node = &market.offers[offers[at]];
            prices[at] = better_prices(market, node, values, prices[at], costs);
            found.push(prices[at]);
        }
        let of_found: Vec<Costs> = found
            .iter()
            .map(|prices| {
                market.costs(prices, costs);
                costs.clone()
            })
            .collect();
        for (offer, prices) in offers.iter().zip(prices) {
            let node = &market.offers[*offer];
            market.costs(prices, costs);
            let mut least = node.worth(market, values, prices, costs);
            for (rival, costs) in found.iter().zip(&of_found) {
                let worth = node.worth(market, values, rival, costs);
                if worth < least {
                    (least, *prices) = (worth, *rival);
                }
            }
        }
    }

    fn room_prices(&mut self) -> Vec<Prices> {
        let Self {
            market, values, costs, ..
        } = self;
        let better = |(node, _): &(Node, u32)| {
            let (_, first) = cheapest(market, node, values, &single_prices(node), costs);
            better_prices(market, node, values, first, costs)
        };
        market.rooms.iter().map(better).collect()
    }
}

/// The same money for each resource that any pod asks for.
fn even_prices(node: &Node) -> Prices {
    std::array::from_fn(|r| if node.room[r] > 0.0 { 1.0 / node.room[r] } else { 0.0 })
}

/// All money on one resource, for each of them, or on the first two by halves; by the money the node costs.
fn single_prices(node: &Node) -> Vec<Prices> {
    let even = even_prices(node);
    let price = as_score(node.price.max(1));
    let one = |r: usize| std::array::from_fn(|at| if at == r { even[r] * price } else { 0.0 });
    let mut prices: Vec<Prices> = (0..WIDTH).filter(|&r| even[r] > 0.0).map(one).collect();
    prices.push(std::array::from_fn(|r| if r < 2 { even[r] * price / 2.0 } else { 0.0 }));
    prices
}

/// The prices by which the node holds least for their own money: what counts is where prices lead once they are scaled.
fn cheapest(market: &Market, node: &Node, values: &[f64], candidates: &[Prices], costs: &mut Costs) -> (f64, Prices) {
    let mut best = (f64::INFINITY, [0.0; WIDTH]);
    for prices in candidates {
        market.costs(prices, costs);
        let worth = node.worth(market, values, prices, costs);
        if worth < best.0 {
            best = (worth, *prices);
        }
    }
    best
}

/// Prices by which the node holds less: a few searches along lines from the prices given.
fn better_prices(market: &Market, node: &Node, values: &[f64], mut prices: Prices, costs: &mut Costs) -> Prices {
    for _ in 0..2 {
        for direction in directions(node, &prices) {
            prices = along(market, node, values, prices, &direction, costs);
        }
    }
    prices
}

/// All prices together, money moved between two resources, and each price alone.
fn directions(node: &Node, prices: &Prices) -> Vec<Prices> {
    let unit = even_prices(node);
    let used: Vec<usize> = (0..WIDTH).filter(|&r| unit[r] > 0.0).collect();
    let mut directions = vec![*prices];
    for (at, &one) in used.iter().enumerate() {
        for &other in &used[at + 1..] {
            let mut swap = [0.0; WIDTH];
            (swap[one], swap[other]) = (unit[one], -unit[other]);
            directions.push(swap);
        }
        let mut alone = [0.0; WIDTH];
        alone[one] = unit[one];
        directions.push(alone);
    }
    directions
}

/// The lowest point on a line, by halving where the slope changes sign; what a node holds is convex in its prices.
fn along(
    market: &Market,
    node: &Node,
    values: &[f64],
    prices: Prices,
    direction: &Prices,
    costs: &mut Costs,
) -> Prices {
    let money = dot(&prices, &node.room);
    let unit = dot(&direction.map(f64::abs), &node.room);
    if money <= 0.0 || unit <= 0.0 {
        return prices;
    }
    let at = |step: f64| -> Prices { std::array::from_fn(|r| (prices[r] + step * direction[r]).max(0.0)) };
    let mut falls = |step: f64| {
        market.costs(&at(step), costs);
        dot(&node.slope(market, values, costs), direction) < 0.0
    };
    let reach = money / unit;
    let (mut low, mut high) = if falls(0.0) { (0.0, reach) } else { (-reach, 0.0) };
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if falls(middle) { low = middle } else { high = middle }
    }
    cheapest(market, node, values, &[prices, at(low), at(high)], costs).1
}
