//! May another claim of a pool be made? Room is set aside before a claim is created, so that claims created at the same
//! time cannot overdraw a limit together.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use model::{
    object::{NodeClaim, NodePool, Text},
    quantity::Quantity,
    resources::{ResourceList, ResourceName},
};
use state::State;

/// Room set aside for claims that are being made, or made and not launched.
#[derive(Debug, Default)]
pub struct Reservations {
    held: Mutex<BTreeMap<Text, Held>>,
}

#[derive(Debug)]
struct Held {
    pool: Text,
    most: ResourceList,
}

/// A limit that a claim would overdraw.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("resource usage exceeds limit (resource-name={resource}, usage={usage}, limit={limit})")]
pub struct LimitReached {
    resource: ResourceName,
    usage: Quantity,
    limit: Quantity,
}

impl Reservations {
    /// Sets aside the most a claim may take of its pool's limits.
    pub fn reserve(
        &self,
        state: &State,
        pool: &NodePool,
        claim: &str,
        most: &ResourceList,
    ) -> Result<(), LimitReached> {
        let mut held = self.lock();
        held.retain(|name, _| {
            state
                .claims_of_pool(&pool.metadata.name)
                .all(|it| it.metadata.name != *name || !is_launched(it))
        });
        let mut most = most.clone();
        most.set(ResourceName::Nodes, Quantity::from_units(1));
        let mut usage = used(state, pool, &held);
        usage.add(&most);
        for (name, limit) in pool.spec.limits.iter() {
            let usage = usage.amount(name.as_str());
            if usage > limit {
                let resource = name.clone();
                return Err(LimitReached { resource, usage, limit });
            }
        }
        let pool = pool.metadata.name.clone();
        held.insert(claim.into(), Held { pool, most });
        Ok(())
    }

    /// Gives back what was set aside for a claim that was not made.
    pub fn release(&self, claim: &str) {
        self.lock().remove(claim);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Text, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_launched(claim: &NodeClaim) -> bool {
    claim.status.provider_id.is_some()
}

/// What the pool's claims have, and what is set aside for those that are to come.
fn used(state: &State, pool: &NodePool, held: &BTreeMap<Text, Held>) -> ResourceList {
    let mut usage = ResourceList::default();
    for claim in state.claims_of_pool(&pool.metadata.name) {
        if held.contains_key(&claim.metadata.name) || claim.metadata.is_deleting() {
            continue;
        }
        usage.add(&claim.status.capacity);
        usage.add(&[(ResourceName::Nodes, Quantity::from_units(1))].into_iter().collect());
    }
    for held in held.values().filter(|held| held.pool == pool.metadata.name) {
        usage.add(&held.most);
    }
    usage
}
