//! What is a pod worth? Its cheapest share of any node it may use; later, its share of the nodes a pass bought for it.
//!
//! Pods that may only use dear offers are thereby worth more and become first choice there, which keeps flexible pods
//! off those offers except as filler. No rule that splits capacity types is needed.

use super::{
    item::{Item, Kind, position},
    market::Market,
    problem::{Amounts, Problem, WIDTH},
    ratio_greedy::Bought,
    space::{Shape, Space, as_score, as_weights, inverse},
};

/// The value of each item of a space, in pico-dollars per hour; zero for those that fit nowhere.
pub(crate) fn values(space: &Space) -> Vec<f64> {
    let mut known: Vec<Option<f64>> = vec![None; space.shapes.len() * space.markets.len()];
    let value = |(at, item): (usize, &Item)| {
        let shape = space.shape_of[at];
        let open = space.markets.iter().enumerate();
        let open = open.filter(|(_, market)| market.kinds.contains(position(item.kind)));
        let shares = open.map(|(number, market)| {
            let place = &mut known[shape * space.markets.len() + number];
            *place.get_or_insert_with(|| share_of(market, &space.shapes[shape]))
        });
        finite(shares.fold(f64::MAX, f64::min))
    };
    space.items.iter().enumerate().map(value).collect()
}

/// The cheapest share of a market's offers for pods of a shape; the largest number when there is none.
fn share_of(market: &Market, shape: &Shape) -> f64 {
    let listings = market.that_may_hold(&shape.requests);
    let shares = listings
        .filter(|listing| shape.requests.fits(&listing.allocatable))
        .map(|listing| as_score(listing.price) * largest_share(&shape.weights, &inverse(&listing.allocatable)));
    shares.fold(f64::MAX, f64::min)
}

/// The cheapest shares of offers for a pod, zone by zone; the largest number where there is none.
/// `scales` holds one over what each offer has.
pub(crate) fn cheapest_shares(
    problem: &Problem,
    scales: &[[f64; WIDTH]],
    reach: usize,
    requests: &Amounts,
) -> Vec<f64> {
    let kind = Kind { reach, zone: None };
    let weights = as_weights(requests);
    let mut cheapest = vec![f64::MAX; problem.zones];
    let offers = problem.offers.iter().enumerate();
    let open = offers.filter(|(at, offer)| requests.fits(&offer.allocatable) && kind.has_offer(problem, *at));
    for (at, offer) in open {
        let share = as_score(offer.price) * largest_share(&weights, &scales[at]);
        cheapest[offer.zone] = cheapest[offer.zone].min(share);
    }
    cheapest
}

fn largest_share(weights: &[f64; WIDTH], scale: &[f64; WIDTH]) -> f64 {
    let shares = weights.iter().zip(scale).map(|(weight, scale)| weight * scale);
    shares.fold(0.0, f64::max)
}

fn finite(value: f64) -> f64 {
    if value < f64::MAX { value } else { 0.0 }
}

/// Values after a pass: halfway from the old ones to what the nodes bought for each item cost.
pub(crate) fn learn(values: &[f64], bought: &[Bought]) -> Vec<f64> {
    let mut paid = vec![(0.0, 0.0); values.len()];
    for node in bought {
        let worth: f64 = node
            .pods
            .iter()
            .map(|(item, count)| values[*item] * f64::from(*count))
            .sum();
        for (item, count) in &node.pods {
            let pods = f64::from(*count) * f64::from(node.copies);
            paid[*item].0 += pods * values[*item] * as_score(node.listing.price) / worth;
            paid[*item].1 += pods;
        }
    }
    let learnt = |(old, (sum, pods)): (&f64, (f64, f64))| if pods > 0.0 { 0.5 * old + 0.5 * sum / pods } else { *old };
    values.iter().zip(paid).map(learnt).collect()
}
