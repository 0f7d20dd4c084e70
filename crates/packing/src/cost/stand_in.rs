//! How easily is an offer replaced? Spot capacity comes and goes, so a type should have others that hold the same.

use super::problem::Problem;

/// The spot offers of each market, cheapest first.
fn spot_by_market(problem: &Problem) -> Vec<Vec<usize>> {
    let markets = problem.offers.iter().map(|offer| offer.market + 1).max().unwrap_or(0);
    let mut grouped = vec![Vec::new(); markets];
    let spot = problem.offers.iter().enumerate().filter(|(_, offer)| offer.is_spot);
    for (at, offer) in spot {
        grouped[offer.market].push(at);
    }
    for market in &mut grouped {
        market.sort_by_key(|&at| (problem.offers[at].price, at));
    }
    grouped
}

/// Whether at least `wanted` offers of its market, itself among them, hold what each spot offer holds; all others do.
pub(crate) fn have_stand_ins(problem: &Problem, wanted: usize) -> Vec<bool> {
    let mut enough = vec![true; problem.offers.len()];
    for market in spot_by_market(problem) {
        for &offer in &market {
            // Those that hold much are dear, so from the dear end they are soon found for large offers and small ones.
            let mut holders = holders(problem, market.iter().rev(), offer);
            enough[offer] = holders.nth(wanted.saturating_sub(1)).is_some();
        }
    }
    enough
}

/// The mean price of the `count` cheapest offers of its market that hold what each spot offer holds; 0 for all others.
pub(crate) fn robust_prices(problem: &Problem, count: usize) -> Vec<u64> {
    let mut prices = vec![0; problem.offers.len()];
    for market in spot_by_market(problem) {
        for &offer in &market {
            let cheapest: Vec<u64> = holders(problem, market.iter(), offer)
                .take(count.max(1))
                .map(|at| problem.offers[at].price)
                .collect();
            prices[offer] = cheapest.iter().sum::<u64>() / cheapest.len().max(1) as u64;
        }
    }
    prices
}

fn holders<'a>(
    problem: &'a Problem,
    market: impl Iterator<Item = &'a usize> + 'a,
    offer: usize,
) -> impl Iterator<Item = usize> + 'a {
    let need = problem.offers[offer].allocatable;
    market
        .copied()
        .filter(move |&at| need.fits(&problem.offers[at].allocatable))
}
