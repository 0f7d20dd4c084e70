//! Which NodePools take part, in which order, with which instance types, and what their limits leave.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use api::labels::NODEPOOL;
use model::{
    instance_type::InstanceType,
    object::{InstanceTypeName, NodePool},
    resources::ResourceList,
    snapshot::Snapshot,
    vocabulary::Vocabulary,
};

use super::member::Member;

/// The NodePools of a run, heaviest first.
#[derive(Debug, Default)]
pub(super) struct Pools {
    offers: Vec<PoolOffer>,
}

/// A NodePool with the instance types its node class offers.
#[derive(Debug)]
pub(super) struct PoolOffer {
    pub(super) pool: Arc<NodePool>,
    /// In catalogue order.
    pub(super) types: Vec<Arc<InstanceType>>,
}

impl Pools {
    /// The pools that take part: dynamic, ready, and not being deleted. Heavier ones come first; of two equally heavy ones
    /// the one later in the alphabet.
    pub(super) fn of(snapshot: &Snapshot, vocabulary: &mut Vocabulary) -> Self {
        let pools = snapshot.objects().node_pools.iter();
        let mut pools: Vec<_> = pools.filter(|pool| takes_part(pool)).cloned().collect();
        pools.sort_by_key(|pool| Reverse((pool.spec.weight.unwrap_or(0), pool.metadata.name.clone())));
        let types = catalogue(snapshot, vocabulary);
        let offer = |pool: Arc<NodePool>| {
            let name = pool.name();
            let entries = snapshot.catalog().of_pool(&name);
            let types = entries.filter_map(|entry| types.get(&entry.name).cloned()).collect();
            PoolOffer { pool, types }
        };
        Self {
            offers: pools.into_iter().map(offer).collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.offers.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &PoolOffer> {
        self.offers.iter()
    }

    pub(super) fn get(&self, name: &str) -> Option<&PoolOffer> {
        self.iter().find(|offer| *offer.pool.metadata.name == *name)
    }

    /// Whether some pool puts a taint on its nodes that only asks to stay away.
    pub(super) fn have_preferred_taints(&self) -> bool {
        let mut taints = self.iter().flat_map(|offer| &offer.pool.spec.template.spec.taints);
        taints.any(|taint| *taint.effect == *"PreferNoSchedule")
    }
}

fn takes_part(pool: &NodePool) -> bool {
    !pool.is_static() && pool.is_ready() && !pool.metadata.is_deleting()
}

/// Every type once, for all pools that offer it.
fn catalogue(snapshot: &Snapshot, vocabulary: &mut Vocabulary) -> BTreeMap<InstanceTypeName, Arc<InstanceType>> {
    let entries = snapshot.catalog().instance_types.iter();
    entries
        .map(|entry| (entry.name.clone(), Arc::new(entry.instance_type(vocabulary))))
        .collect()
}

/// What a pool's limits leave beside the machines it has; none without limits.
pub(super) fn remaining(pool: &NodePool, staying: &[Member<'_>]) -> Option<ResourceList> {
    let limits = &pool.spec.limits;
    if limits.is_empty() {
        return None;
    }
    let is_of_pool = |member: &&Member<'_>| {
        let labels = member.labels();
        labels.get(NODEPOOL) == Some(&pool.metadata.name)
    };
    let of_pool = staying.iter().filter(is_of_pool);
    Some(of_pool.fold(limits.clone(), |left, member| left.subtract(&member.capacity())))
}
