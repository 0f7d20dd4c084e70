//! Is there a cheaper offer for the same pods? A filling rarely uses all of the node it was made for.

use model::bitset::BitSet;

use super::{
    item::position,
    market::{Listing, Market},
    problem::Amounts,
    ratio_greedy::Bought,
    space::Space,
};

/// Moves every node to the cheapest offer that holds its pods.
pub(crate) fn downsize(space: &Space, bought: &mut [Bought]) {
    for node in bought {
        let (need, kinds) = contents(space, node);
        for market in space.markets.iter().filter(|market| kinds.is_subset(&market.kinds)) {
            if let Some(offer) = cheaper(space, market, node, &need) {
                node.listing = offer;
            }
        }
    }
}

/// The cheapest offer of a market that costs less than the node's and holds as much. Limits were counted when the node
/// was bought: it may not move to another pool that has some, nor to a larger machine of one.
fn cheaper(space: &Space, market: &Market, node: &Bought, need: &Amounts) -> Option<Listing> {
    let mine = &space.problem.offers[node.listing.offer];
    if market.limited_pool.is_some_and(|pool| pool != mine.pool) {
        return None;
    }
    let keeps_limit = |offer: &Listing| {
        market.limited_pool.is_none() || space.problem.offers[offer.offer].capacity.fits(&mine.capacity)
    };
    let affordable = market
        .that_may_hold(need)
        .take_while(|offer| offer.price < node.listing.price);
    let mut enough = affordable.filter(|offer| need.fits(&offer.allocatable) && keeps_limit(offer));
    enough.next().copied()
}

/// What the pods of a node ask for together, and of which kinds they are.
fn contents(space: &Space, node: &Bought) -> (Amounts, BitSet) {
    let mut need = Amounts::default();
    for (item, count) in &node.pods {
        need.add(&space.items[*item].requests, *count);
    }
    let kinds = node
        .pods
        .iter()
        .map(|(item, _)| position(space.items[*item].kind))
        .collect();
    (need, kinds)
}
