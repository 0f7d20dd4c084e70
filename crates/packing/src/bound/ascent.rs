//! Which values prove most? A search that mends given values, and then lifts what can be lifted.
//!
//! Mending never lowers the bound of values that are right already, so rounds of it climb. Only the prices of offers
//! that hold some value down are worth improving.

use super::{
    need::Need,
    node::{Market, Node, Prices, dot},
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
const ROUNDS: usize = 12;
/// Offers whose prices are improved in a round: those that hold most value down.
const IMPROVED: usize = 6;
/// Halvings in a search along a line.
const HALVINGS: usize = 8;

/// The best proof found.
pub(super) fn ascend(market: &Market, needs: &[Need], starts: &[Vec<f64>]) -> Proof {
    let plain = vec![0.0; needs.len()];
    let mut best = Climb::new(market, needs, plain).run();
    for start in starts {
        let values = per_need(needs, start);
        let found = Climb::new(market, needs, values).run();
        if found.bound > best.bound {
            best = found;
        }
    }
    best.proof
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

struct Found {
    bound: f64,
    proof: Proof,
}

struct Climb<'a> {
    market: &'a Market,
    needs: &'a [Need],
    values: Vec<f64>,
    prices: Vec<Prices>,
}

impl<'a> Climb<'a> {
    fn new(market: &'a Market, needs: &'a [Need], values: Vec<f64>) -> Self {
        let first = |node: &Node| cheapest(market, node, &values, single_prices(node));
        let prices = market.offers.iter().map(first).collect();
        Self {
            market,
            needs,
            values,
            prices,
        }
    }

    fn run(mut self) -> Found {
        for _ in 0..ROUNDS {
            let holders = self.mend();
            for &(_, offer) in holders.iter().take(IMPROVED) {
                self.improve(offer);
            }
        }
        self.mend();
        let room_prices = self.room_prices();
        let bound = self.bound(&room_prices);
        Found {
            bound,
            proof: Proof {
                values: self.values,
                prices: self.prices,
                room_prices,
            },
        }
    }

    /// Makes the values right for every offer, as large as the prices allow; tells which offers hold values down, and
    /// the values of how many pods, most first.
    fn mend(&mut self) -> Vec<(f64, usize)> {
        let mut mended = vec![(f64::MAX, usize::MAX); self.values.len()];
        for (at, node) in self.market.offers.iter().enumerate() {
            let prices = &mut self.prices[at];
            let (worth, _) = node.worth(self.market, &self.values, prices);
            let scale = as_score(node.price) / worth;
            for price in prices.iter_mut() {
                *price *= scale;
            }
            for open in &node.open {
                let value = (scale * self.values[open.need]).max(dot(prices, &self.market.weights[open.need]));
                if value < mended[open.need].0 {
                    mended[open.need] = (value, at);
                }
            }
        }
        let value = |(value, at): &(f64, usize)| if *at == usize::MAX { 0.0 } else { *value };
        self.values = mended.iter().map(value).collect();
        self.holders(&mended)
    }

    fn holders(&self, mended: &[(f64, usize)]) -> Vec<(f64, usize)> {
        let mut held = vec![0.0; self.market.offers.len()];
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

    /// Looks for better prices of an offer, and tries them on all others.
    fn improve(&mut self, offer: usize) {
        let node = &self.market.offers[offer];
        let found = better_prices(self.market, node, &self.values, self.prices[offer]);
        self.prices[offer] = found;
        for (node, prices) in self.market.offers.iter().zip(&mut self.prices) {
            *prices = cheapest(self.market, node, &self.values, vec![*prices, found]);
        }
    }

    fn room_prices(&self) -> Vec<Prices> {
        let better = |(node, _): &(Node, u32)| {
            let first = cheapest(self.market, node, &self.values, single_prices(node));
            better_prices(self.market, node, &self.values, first)
        };
        self.market.rooms.iter().map(better).collect()
    }

    fn bound(&self, room_prices: &[Prices]) -> f64 {
        let pods = self.needs.iter().zip(&self.values);
        let values: f64 = pods.map(|(need, value)| as_score(need.count()) * value).sum();
        let rooms = self.market.rooms.iter().zip(room_prices);
        let taken =
            rooms.map(|((node, count), prices)| f64::from(*count) * node.worth(self.market, &self.values, prices).0);
        values - taken.sum::<f64>()
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
fn cheapest(market: &Market, node: &Node, values: &[f64], candidates: Vec<Prices>) -> Prices {
    let worth = |prices: &Prices| node.worth(market, values, prices).0;
    let best = candidates
        .into_iter()
        .map(|prices| (worth(&prices), prices))
        .min_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or([0.0; WIDTH], |(_, prices)| prices)
}

/// Prices by which the node holds less: a few searches along lines from the prices given.
fn better_prices(market: &Market, node: &Node, values: &[f64], mut prices: Prices) -> Prices {
    for _ in 0..2 {
        for direction in directions(node, &prices) {
            prices = along(market, node, values, prices, &direction);
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
fn along(market: &Market, node: &Node, values: &[f64], prices: Prices, direction: &Prices) -> Prices {
    let money = dot(&prices, &node.room);
    let unit = dot(&direction.map(f64::abs), &node.room);
    if money <= 0.0 || unit <= 0.0 {
        return prices;
    }
    let at = |step: f64| -> Prices { std::array::from_fn(|r| (prices[r] + step * direction[r]).max(0.0)) };
    let falls = |step: f64| {
        let (_, slope) = node.worth(market, values, &at(step));
        dot(&slope, direction) < 0.0
    };
    let reach = money / unit;
    let (mut low, mut high) = if falls(0.0) { (0.0, reach) } else { (-reach, 0.0) };
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if falls(middle) { low = middle } else { high = middle }
    }
    let candidates = [prices, at(low), at(high)];
    let worth = |prices: &Prices| node.worth(market, values, prices).0;
    let best = candidates
        .iter()
        .map(|prices| (worth(prices), prices))
        .min_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or(prices, |(_, best)| *best)
}
