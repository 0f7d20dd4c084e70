//! NodePools: readiness, validation, hash, counts, registration health.

pub mod counter;
pub mod hash;
mod health;
pub mod readiness;
pub mod registration_health;
pub mod validation;

use std::sync::Arc;

use model::object::{NodePool, ObjectKey, Text};
use state::{Change, State};
use tokio::sync::Mutex;

pub use health::{Health, RegistrationHealth};

use crate::{Cluster, Next, Problem, node_claim::Managed, patch::Lock};

/// Runs everything that concerns pools, until the future is dropped. Their health is shared with the life cycle of claims.
pub fn run(cluster: &Arc<Cluster>, health: Arc<RegistrationHealth>) -> impl Future<Output = ()> + Send + use<> {
    let (managed, writer) = (Managed::by(&**cluster.cloud()), StatusWriter::default());
    let hash = crate::run(Arc::new(hash::Hash::new(managed)), Arc::clone(cluster)).1;
    let readiness = crate::run(
        Arc::new(readiness::Readiness::new(managed, writer.clone())),
        Arc::clone(cluster),
    )
    .1;
    let validation = validation::Validation::new(managed, &**cluster.cloud(), writer.clone());
    let validation = crate::run(Arc::new(validation), Arc::clone(cluster)).1;
    let counter = crate::run(
        Arc::new(counter::Counter::new(managed, writer.clone())),
        Arc::clone(cluster),
    )
    .1;
    let registration = registration_health::RegistrationHealthController::new(managed, health, writer);
    let registration = crate::run(Arc::new(registration), Arc::clone(cluster)).1;
    async {
        tokio::join!(hash, readiness, validation, counter, registration);
    }
}

/// The name of the pool that changed, if it is ours.
fn changed_pool(change: &Change, managed: Managed) -> Vec<Text> {
    let Change::NodePool(pool) = change else {
        return Vec::new();
    };
    let ours = pool.latest().filter(|pool| managed.pool(pool));
    ours.map(|pool| pool.metadata.name.clone()).into_iter().collect()
}

/// The names of the pools that changed or whose node class did, if they are ours.
fn changed_with_class(change: &Change, state: &State, managed: Managed) -> Vec<Text> {
    let Change::NodeClass(class) = change else {
        return changed_pool(change, managed);
    };
    let Some(class) = class.latest().map(|class| class.reference()) else {
        return Vec::new();
    };
    let pools = state.all::<NodePool>().iter().filter(|pool| managed.pool(pool));
    let users = pools.filter(|pool| pool.spec.template.spec.node_class_ref.as_ref() == Some(&class));
    users.map(|pool| pool.metadata.name.clone()).collect()
}

/// The pool as its own API type. What is hashed and validated is written back word for word.
fn as_written(pool: &NodePool) -> Result<api::karpenter::NodePool, serde_json::Error> {
    serde_json::from_value(serde_json::to_value(pool)?)
}

/// Writes the status of pools, one at a time: all controllers of a pool wake up together, and each would be in the way of
/// the others. Clones take turns.
#[derive(Debug, Clone, Default)]
pub struct StatusWriter(Arc<Mutex<()>>);

impl StatusWriter {
    /// Changes a pool's status from what it is now; none leaves it. Whoever else wrote in between wins, and the pool is
    /// looked at again.
    async fn write(
        &self,
        cluster: &Cluster,
        name: &Text,
        change: impl FnOnce(&NodePool) -> Option<NodePool> + Send,
    ) -> Result<Next, Problem> {
        let _turn = self.0.lock().await;
        let Some(before) = cluster.get::<NodePool>(&ObjectKey::cluster_scoped(name)) else {
            return Ok(Next::Change);
        };
        let Some(after) = change(&before) else {
            return Ok(Next::Change);
        };
        match cluster.update_status(&*before, &after, Lock::Version).await {
            Err(error) if error.is_conflict() => Ok(Next::Again),
            Err(error) if !error.is_not_found() => Err(error.into()),
            _ => Ok(Next::Change),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn durations_keep_their_words_and_hash_by_their_span() {
        let pool = |expire: &str| -> NodePool {
            serde_json::from_value(json!({
                "metadata": {"name": "default"},
                "spec": {
                    "disruption": {"consolidateAfter": "0s"},
                    "template": {"spec": {
                        "requirements": [], "expireAfter": expire, "terminationGracePeriod": "90m",
                        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                    }},
                },
            }))
            .unwrap()
        };
        let written = |expire: &str| as_written(&pool(expire)).unwrap();
        let (days, same) = (written("720h"), written("720h0m0s"));
        let words = [&days, &same].map(|pool| pool.spec.template.spec.expire_after.to_string());
        assert_eq!(words, ["720h", "720h0m0s"]);
        assert_eq!(days.hash(), same.hash());
        assert_ne!(days.hash(), written("721h").hash());
    }
}
