//! Pools with a fixed number of nodes.
//!
//! Two controllers, as upstream has them: one fills a pool up, within its limit on nodes; the other takes away what is too
//! much, the least painful first. Both count claims in the state, where our own writes are seen at once.

mod candidates;
mod deprovisioning;
mod provisioning;

use std::sync::Arc;

use model::object::{NodeClaim, NodePool, ObjectKey};
use state::{State, Transition};

pub use deprovisioning::StaticDeprovisioning;
pub use provisioning::StaticProvisioning;
pub(crate) use provisioning::granted;

/// The key of the pool of a claim, if it is a static one.
fn static_pool_of(claim: Option<&Arc<NodeClaim>>, state: &State) -> Vec<ObjectKey> {
    let name = claim.and_then(|claim| claim.node_pool());
    let key = name.map(|name| ObjectKey::cluster_scoped(name.as_str()));
    key.filter(|key| state.get::<NodePool>(key).is_some_and(|pool| pool.is_static()))
        .into_iter()
        .collect()
}

/// Whether a pool is new, or asks for another number of nodes.
fn changes_replicas(pool: &Transition<NodePool>) -> bool {
    let replicas = |pool: &Option<Arc<NodePool>>| pool.as_ref().and_then(|pool| pool.spec.replicas);
    pool.is_new() || replicas(&pool.before) != replicas(&pool.after)
}
