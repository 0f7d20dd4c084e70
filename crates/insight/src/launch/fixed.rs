//! Which NodePools with a fixed number of nodes have too few or too many, and what follows from it?

use model::{
    object::{NodePool, Object},
    price::Price,
    quantity::Quantity,
    resources::ResourceName,
    snapshot::Snapshot,
};
use packing::supply::members;
use serde::{Deserialize, Serialize};

use crate::{offer::offers, usd};

/// A NodePool with a fixed number of nodes that has another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FixedPool {
    /// Its name.
    pub node_pool: String,
    /// How many nodes it is to have.
    pub replicas: usize,
    /// How many it has, those on their way included and those that go left out.
    pub nodes: usize,
    /// How many it gets now.
    pub launches: usize,
    /// How many it loses now.
    pub removes: usize,
    /// What keeps the rest from coming.
    pub held_by: Option<Hold>,
    /// Whether the feature gate `StaticCapacity` is known to be on; without it nothing comes or goes.
    pub is_gate_on: bool,
    /// The cheapest launch; absent when nothing is launched, or nothing can be.
    pub instance_type: Option<String>,
    /// Its zone.
    pub zone: Option<String>,
    /// Its kind of capacity.
    pub capacity_type: Option<String>,
    /// What one costs an hour.
    #[serde(with = "usd::maybe")]
    pub usd_h: Option<Price>,
}

/// What keeps a NodePool from its number of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hold {
    /// The pool is not ready.
    NotReady,
    /// `limits.nodes` of the pool.
    Limit,
}

/// What nodes a pool has.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    staying: usize,
    leaving: usize,
}

/// The pools that have another number of nodes than they should, in the order of their names.
pub(super) fn pools(snapshot: &Snapshot) -> Vec<FixedPool> {
    let pools = snapshot.objects().node_pools.iter();
    let pools = pools.filter(|pool| !pool.metadata.is_deleting());
    pools.filter_map(|pool| of_pool(snapshot, pool)).collect()
}

fn of_pool(snapshot: &Snapshot, pool: &NodePool) -> Option<FixedPool> {
    let replicas = usize::try_from(pool.spec.replicas?).unwrap_or_default();
    let counts = counts(snapshot, pool);
    let lacking = replicas.saturating_sub(counts.staying);
    let surplus = counts.staying.saturating_sub(replicas);
    if lacking == 0 && surplus == 0 {
        return None;
    }
    let (launches, held_by) = match room(pool, counts) {
        // What is too much goes from a pool that is not ready, too.
        _ if lacking > 0 && !pool.is_ready() => (0, Some(Hold::NotReady)),
        room if room < lacking => (room, Some(Hold::Limit)),
        _ => (lacking, None),
    };
    let offers = if lacking > 0 {
        offers(snapshot, Some(pool), |_| true)
    } else {
        Vec::new()
    };
    let cheapest = offers.into_iter().find(|offer| offer.available);
    Some(FixedPool {
        node_pool: pool.metadata.name.to_string(),
        replicas,
        nodes: counts.staying,
        launches,
        removes: surplus,
        held_by,
        is_gate_on: snapshot.settings().feature_gates.static_capacity,
        usd_h: cheapest.as_ref().map(|offer| offer.usd_h.size()),
        zone: cheapest.as_ref().map(|offer| offer.zone.clone()),
        capacity_type: cheapest.as_ref().map(|offer| offer.capacity_type.clone()),
        instance_type: cheapest.map(|offer| offer.instance_type),
    })
}

fn counts(snapshot: &Snapshot, pool: &NodePool) -> Counts {
    let mut counts = Counts::default();
    for member in members(snapshot) {
        let Some(claim) = member.claim.filter(|claim| claim.node_pool() == Some(pool.name())) else {
            continue;
        };
        let goes = claim.metadata.is_deleting() || member.node.is_some_and(|node| node.metadata().is_deleting());
        *(if goes { &mut counts.leaving } else { &mut counts.staying }) += 1;
    }
    counts
}

/// For how many more nodes the pool's limit has room.
fn room(pool: &NodePool, counts: Counts) -> usize {
    let limit = pool.spec.limits.get(ResourceName::Nodes.as_str()).map(Quantity::value);
    limit.map_or(usize::MAX, |limit| {
        let limit = usize::try_from(limit).unwrap_or_default();
        limit.saturating_sub(counts.staying + counts.leaving)
    })
}
