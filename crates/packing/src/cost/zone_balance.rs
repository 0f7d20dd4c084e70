//! Which zone, when any will do? The emptiest of those where the same type costs as much or hardly more, lest all pods
//! without a say end up in the zone that is cheapest by a hair.

use super::{problem::Problem, ratio_greedy::Bought, space::Space};

/// Deals nodes to zones, counting what it dealt before.
#[derive(Debug)]
pub(crate) struct ZoneBalance {
    nodes: Vec<u32>,
    /// Permille of the price.
    tolerance: u64,
}

impl ZoneBalance {
    /// Starts from the nodes there are.
    pub(crate) fn new(problem: &Problem, tolerance: u64) -> Self {
        let mut nodes = vec![0; problem.zones];
        for room in &problem.rooms {
            nodes[room.zone] += 1;
        }
        Self { nodes, tolerance }
    }

    /// The offers such a node may be instead, itself first.
    pub(crate) fn twins(&self, space: &Space, node: &Bought) -> Vec<usize> {
        let problem = space.problem;
        let mine = &problem.offers[node.listing.offer];
        let most = u128::from(mine.price) * u128::from(1000 + self.tolerance);
        let is_open = |at: usize| {
            let mut kinds = node.pods.iter().map(|(item, _)| &space.kinds[space.items[*item].kind]);
            kinds.all(|kind| kind.has_offer(problem, at))
        };
        let same = problem.offers.iter().enumerate().filter(|(at, offer)| {
            *at != node.listing.offer
                && (offer.row, offer.pool, offer.is_spot) == (mine.row, mine.pool, mine.is_spot)
                && offer.allocatable == mine.allocatable
                && offer.zone != mine.zone
                && u128::from(offer.price) * 1000 <= most
                && is_open(*at)
        });
        std::iter::once(node.listing.offer)
            .chain(same.map(|(at, _)| at))
            .collect()
    }

    /// The twin in the emptiest zone, the cheapest of those; counts the node there.
    pub(crate) fn deal(&mut self, problem: &Problem, twins: &[usize]) -> Option<usize> {
        let offer = |at: usize| &problem.offers[at];
        let best = twins
            .iter()
            .copied()
            .min_by_key(|&at| (self.nodes[offer(at).zone], offer(at).price, at))?;
        self.nodes[offer(best).zone] += 1;
        Some(best)
    }
}

/// Whether the zone of a node is settled by one of its pods.
pub(crate) fn is_settled(space: &Space, node: &Bought) -> bool {
    let mut kinds = node.pods.iter().map(|(item, _)| space.items[*item].kind);
    kinds.any(|kind| space.kinds[kind].zone.is_some())
}
