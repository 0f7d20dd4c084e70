//! Does the proof hold to the last digit? The sums of [`super`] again, in integers, every rounding to the safe side.

use super::{
    ascent::Proof,
    need::Need,
    node::{Market, Node, Open, Prices},
};

/// Prices per unit are whole numbers of one part in 2²⁴ of a pico-dollar.
const FINE: i128 = 1 << 24;

/// The bound the values prove, scaled down by as much as the worst offer is overrun.
pub(super) fn certify(market: &Market, needs: &[Need], proof: &Proof) -> u64 {
    let values: Vec<i128> = proof.values.iter().map(|value| whole(*value, 1.0)).collect();
    let sum: i128 = needs
        .iter()
        .zip(&values)
        .map(|(need, value)| i128::from(need.count()) * value)
        .sum();
    let (mut price, mut worth) = (1, 1);
    for (node, prices) in market.offers.iter().zip(&proof.prices) {
        let held = most(market, node, &values, prices).max(1);
        let paid = i128::from(node.price) * FINE;
        // The worst offer so far: paid / held < price / worth.
        if paid < held && less(paid, held, price, worth) {
            (price, worth) = (paid, held);
        }
    }
    let rooms = market.rooms.iter().zip(&proof.room_prices);
    let taken: i128 = rooms
        .map(|((node, count), prices)| i128::from(*count) * most(market, node, &values, prices))
        .sum();
    let rest = sum - taken / FINE - 1;
    scaled(rest.max(0), price, worth)
}

/// Whether a/b < c/d, of positive numbers; by float first, which is enough unless they are nearly equal.
fn less(a: i128, b: i128, c: i128, d: i128) -> bool {
    match (a.checked_mul(d), c.checked_mul(b)) {
        (Some(left), Some(right)) => left < right,
        // Both ratios are close to one and the numbers large: compare with the lowest digits cut off.
        _ => (a >> 32).saturating_mul(d >> 32) <= (c >> 32).saturating_mul(b >> 32),
    }
}

/// `number * price / worth`, rounded down.
fn scaled(number: i128, price: i128, worth: i128) -> u64 {
    let (mut price, mut worth) = (price, worth);
    let mut exact = number.checked_mul(price);
    while exact.is_none() {
        // Cutting digits off rounds the ratio down: the upper number is cut, the lower one is cut and raised.
        (price, worth) = (price >> 1, (worth >> 1) + 1);
        exact = number.checked_mul(price);
    }
    exact.map_or(0, |exact| u64::try_from(exact / worth.max(1)).unwrap_or(u64::MAX))
}

/// U(λ, v) of the proof, in fine units.
fn most(market: &Market, node: &Node, values: &[i128], prices: &Prices) -> i128 {
    let prices = prices.map(|price| whole(price, 16_777_216.0));
    let cost = |amounts: &[i64]| -> i128 {
        prices
            .iter()
            .zip(amounts)
            .map(|(price, amount)| price.saturating_mul(i128::from(*amount)))
            .sum()
    };
    let costs: Vec<i128> = market.requests.iter().map(|requests| cost(&requests.0)).collect();
    let mut worth = cost(&node.allocatable.0.map(|amount| amount.max(0)));
    for (run, group) in node.runs() {
        let extra = |open: &Open| (values[open.need as usize] * FINE - costs[open.shape as usize]).max(0);
        let each: i128 = run.iter().map(|open| i128::from(open.most) * extra(open)).sum();
        let largest = run.iter().map(extra).max().unwrap_or(0);
        let shared = group.map(|group| largest * i128::from(market.group_max[group]));
        worth += shared.map_or(each, |shared| shared.min(each));
    }
    worth
}

/// A number that is not negative in whole units of `1 / scale`, rounded down.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the cast saturates, and any result is a valid price"
)]
fn whole(number: f64, scale: f64) -> i128 {
    i128::from((number.max(0.0) * scale).min(9e18) as i64)
}
