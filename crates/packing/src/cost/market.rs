//! Which offers are worth looking at? Those no other offer beats, grouped by who may use them.
//!
//! An offer is beaten by one that is open to all the pods it is open to, has at least as much of everything and costs
//! no more. Whatever can be packed on the former can be packed on the latter, so the former may be forgotten.

use std::collections::BTreeMap;

use model::bitset::BitSet;

use super::{
    item::{Kind, position},
    problem::{Amounts, Problem},
};

/// Offers that are open to the same pods, cheapest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Market {
    /// Which kinds of pods may use them.
    pub kinds: BitSet,
    /// The NodePool they all belong to when it has limits.
    pub limited_pool: Option<usize>,
    /// The offers.
    pub offers: Vec<Listing>,
    /// Positions of those a search looks at: of offers of nearly one size and ratio, one is enough.
    pub searched: Vec<usize>,
    /// The most of each resource among the offers up to each.
    most: Most,
}

/// The most of each resource among the first one, two, … of some offers: where to look for one that holds something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Most(Vec<Amounts>);

impl Most {
    fn of(offers: &[Listing]) -> Self {
        let mut most = Self::default();
        for offer in offers {
            most.push(offer);
        }
        most
    }

    fn push(&mut self, offer: &Listing) {
        let before = self.0.last().copied().unwrap_or(offer.allocatable);
        self.0.push(before.hull(&offer.allocatable));
    }

    /// No offer before this position holds it.
    fn first_for(&self, need: &Amounts) -> usize {
        self.0.partition_point(|most| !need.fits(most))
    }
}

/// An offer as the passes see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Listing {
    /// Position in [`Problem::offers`].
    pub offer: usize,
    /// Room for pods.
    pub allocatable: Amounts,
    /// What the passes take it to cost: pico-dollars per hour, surcharges included.
    pub price: u64,
}

impl Listing {
    fn beats(&self, other: &Self) -> bool {
        self.price <= other.price && other.allocatable.fits(&self.allocatable)
    }

    /// Whether it is at most a sixteenth smaller and, but for half a percent, no dearer for its size.
    fn is_nearly(&self, other: &Self) -> bool {
        let sizes = || self.allocatable.0.iter().zip(&other.allocatable.0);
        let is_near = sizes().all(|(mine, theirs)| *mine >= theirs - theirs / 16);
        let price = i128::from(self.price) * 1000;
        let is_no_dearer = |(mine, theirs): (&i64, &i64)| {
            *theirs <= 0 || price * i128::from(*theirs) <= i128::from(other.price) * 1005 * i128::from(*mine)
        };
        is_near && sizes().all(is_no_dearer)
    }
}

/// The offers worth looking at; `price` says what an offer counts as, none to leave it out.
pub(crate) fn markets(problem: &Problem, kinds: &[Kind], price: impl Fn(usize) -> Option<u64>) -> Vec<Market> {
    let mut grouped: BTreeMap<(BitSet, Option<usize>), Vec<Listing>> = BTreeMap::new();
    for (offer, it) in problem.offers.iter().enumerate() {
        let Some(price) = price(offer) else { continue };
        let signature = signature(kinds, |kind| kind.has_offer(problem, offer));
        if signature.is_empty() {
            continue;
        }
        let limited = problem.pools.get(it.pool).is_some_and(super::problem::Pool::is_limited);
        let listing = Listing {
            offer,
            allocatable: it.allocatable,
            price,
        };
        grouped
            .entry((signature, limited.then_some(it.pool)))
            .or_default()
            .push(listing);
    }
    let market = |((kinds, limited_pool), offers)| {
        let offers = unbeaten(offers);
        Market {
            kinds,
            limited_pool,
            searched: Vec::new(),
            most: Most::of(&offers),
            offers,
        }
    };
    let all: Vec<Market> = grouped.into_iter().map(market).collect();
    let mut markets = without_beaten_elsewhere(all);
    for market in &mut markets {
        market.searched = searched(&market.offers);
    }
    markets
}

/// The kinds for which something holds, as a set of their positions.
pub(crate) fn signature(kinds: &[Kind], holds: impl Fn(&Kind) -> bool) -> BitSet {
    let held = kinds.iter().enumerate().filter(|(_, kind)| holds(kind));
    held.map(|(at, _)| position(at)).collect()
}

fn unbeaten(mut offers: Vec<Listing>) -> Vec<Listing> {
    offers.sort_by_key(|o| (o.price, std::cmp::Reverse(o.allocatable), o.offer));
    let (mut kept, mut most) = (Vec::<Listing>::new(), Most::default());
    for offer in offers {
        let mut rivals = kept.iter().skip(most.first_for(&offer.allocatable));
        if !rivals.any(|better| better.beats(&offer)) {
            kept.push(offer);
            most.push(&offer);
        }
    }
    kept
}

/// Offers but for those that a smaller one is as good as: at most a sixteenth smaller, and no dearer for its size.
fn searched(offers: &[Listing]) -> Vec<usize> {
    let mut kept: Vec<usize> = Vec::new();
    for (at, offer) in offers.iter().enumerate() {
        let mut rivals = kept.iter().rev().map(|&rival| &offers[rival]);
        if !rivals.any(|rival| rival.is_nearly(offer)) {
            kept.push(at);
        }
    }
    kept
}

fn without_beaten_elsewhere(mut markets: Vec<Market>) -> Vec<Market> {
    let mut kept: Vec<Market> = Vec::new();
    // The widest markets first: of two that are alike, one must stay.
    markets.sort_by_key(|market| std::cmp::Reverse(market.kinds.len()));
    for mut market in markets {
        let rivals: Vec<&Market> = kept.iter().filter(|rival| rival.is_open_to_all_of(&market)).collect();
        market
            .offers
            .retain(|offer| !rivals.iter().any(|rival| rival.has_better(offer)));
        if !market.offers.is_empty() {
            market.most = Most::of(&market.offers);
            kept.push(market);
        }
    }
    kept
}

impl Market {
    fn is_open_to_all_of(&self, other: &Self) -> bool {
        let limits = self.limited_pool.is_none() || self.limited_pool == other.limited_pool;
        limits && other.kinds.is_subset(&self.kinds)
    }

    fn has_better(&self, offer: &Listing) -> bool {
        let mut rivals = self
            .that_may_hold(&offer.allocatable)
            .take_while(|mine| mine.price <= offer.price);
        rivals.any(|mine| mine.beats(offer))
    }

    /// The offers from the first on that may hold something, cheapest first.
    pub(crate) fn that_may_hold(&self, need: &Amounts) -> impl Iterator<Item = &Listing> {
        self.offers.iter().skip(self.most.first_for(need))
    }
}
