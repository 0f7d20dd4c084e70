//! What a NodePool with a fixed number of nodes can do for a node of its that should go.

use std::collections::BTreeSet;

use api::labels::{CAPACITY_TYPE, CAPACITY_TYPE_RESERVED};
use model::{
    object::{Labels, NodePool, Text},
    requirement::UndefinedLabels,
    vocabulary::{KeyId, ValueId},
};
use packing::supply::template_requirements;

use crate::{facts::StaticCount, world::World};

/// A static pool, and how many of its nodes may be replaced first.
pub(crate) struct StaticPool<'w, 'a> {
    world: &'w World<'a>,
    pool: &'a NodePool,
    count: StaticCount,
}

/// What the pool's reservations have to offer.
pub(crate) enum Reservations {
    /// Something else can be launched, or a slot is free.
    Open,
    /// Nothing can be launched but in these reservations, and they are full.
    Full(BTreeSet<Text>),
}

impl<'w, 'a> StaticPool<'w, 'a> {
    pub(crate) fn of(world: &'w World<'a>, pool: &'a NodePool) -> Self {
        let known = world.facts.static_counts.get(&pool.name());
        Self {
            world,
            pool,
            count: known.copied().unwrap_or_else(|| counted(world, pool)),
        }
    }

    /// Whether it has more nodes than it should: what is too many goes first.
    pub(crate) fn is_overfull(&self) -> bool {
        let replicas = u64::try_from(self.pool.spec.replicas.unwrap_or(0)).unwrap_or(0);
        self.count.active + self.count.pending_disruption > replicas
    }

    /// How many of `wanted` replacements the node limit has room for.
    pub(crate) fn slots(&self, wanted: u64) -> u64 {
        let Some(limit) = self.pool.spec.limits.get("nodes") else {
            return wanted;
        };
        let StaticCount {
            active,
            deleting,
            pending_disruption,
            reserved,
        } = self.count;
        let limit = u64::try_from(limit.value()).unwrap_or(0);
        wanted.min(limit.saturating_sub(active + deleting + pending_disruption + reserved))
    }

    /// Whether nodes that went would be made up for: not while the pool is not ready or being deleted.
    pub(crate) fn refills(&self) -> bool {
        self.pool.is_ready() && !self.pool.metadata.is_deleting()
    }

    /// A pool without any compatible offering counts as full.
    pub(crate) fn reservations(&self) -> Reservations {
        let mut vocabulary = self.world.offered.vocabulary.clone();
        let template = template_requirements(self.pool, &mut vocabulary);
        let types = self.world.offered.types.get(&self.pool.name());
        let mut full = BTreeSet::new();
        for it in types.into_iter().flatten().map(|(_, it)| it) {
            if !template.is_compatible(&it.requirements, UndefinedLabels::AllowedIfWellKnown, &vocabulary) {
                continue;
            }
            for offering in it
                .offerings
                .iter()
                .filter(|it| it.is_compatible(&template, &vocabulary))
            {
                let is_reserved = offering.value(KeyId::CAPACITY_TYPE) == Some(ValueId::RESERVED);
                if !is_reserved || offering.is_launchable(&vocabulary) {
                    return Reservations::Open;
                }
                if offering.is_available {
                    let keys = offering.requirements.iter().map(model::requirement::Requirement::key);
                    let mut keys = keys.filter(|key| is_reservation_id(vocabulary.key_name(*key)));
                    let id = keys.find_map(|key| offering.value(key).map(|id| vocabulary.value_name(key, id)));
                    full.insert(id.unwrap_or_default().into());
                }
            }
        }
        Reservations::Full(full)
    }
}

/// The reservation whose slot a node holds.
pub(crate) fn reservation_of(labels: &Labels) -> Option<Text> {
    let is_reserved = labels
        .get(CAPACITY_TYPE)
        .is_some_and(|kind| **kind == *CAPACITY_TYPE_RESERVED);
    let id = labels.iter().find(|(key, id)| is_reservation_id(key) && !id.is_empty());
    id.filter(|_| is_reserved).map(|(_, id)| id.clone())
}

/// Each provider has its own label, all end alike.
fn is_reservation_id(key: &str) -> bool {
    key.ends_with("reservation-id")
}

fn counted(world: &World<'_>, pool: &NodePool) -> StaticCount {
    let mut count = StaticCount::default();
    for claim in world.snapshot.claims_of_pool(&pool.name()) {
        if claim.metadata.is_deleting() {
            count.deleting += 1;
        } else {
            count.active += 1;
        }
    }
    count
}
