//! A pool's health is judged anew when the pool or its node class changes, and outlives a restart in its condition.

use std::sync::Arc;

use api::condition::names::nodepool;
use async_trait::async_trait;
use jiff::Timestamp;
use model::object::{ConditionStatus, NodeClass, NodePool, ObjectKey, Text, condition};
use runtime::Settings;
use state::{Change, State};

use super::{Health, RegistrationHealth, StatusWriter, changed_with_class};
use crate::{Cluster, Controller, Next, Problem, conditions, node_claim::Managed};

/// `nodepool.registrationhealth`
pub struct RegistrationHealthController {
    managed: Managed,
    health: Arc<RegistrationHealth>,
    writer: StatusWriter,
}

impl RegistrationHealthController {
    /// For the pools that are ours.
    pub fn new(managed: Managed, health: Arc<RegistrationHealth>, writer: StatusWriter) -> Self {
        Self {
            managed,
            health,
            writer,
        }
    }
}

/// The health that a condition stands for, when nothing is known of the outcomes behind it.
fn assumed(pool: &NodePool) -> Health {
    match condition::find(&pool.status.conditions, nodepool::NODE_REGISTRATION_HEALTHY).map(|health| health.status) {
        Some(ConditionStatus::True) => Health::Healthy,
        Some(ConditionStatus::False) => Health::Unhealthy,
        _ => Health::Unknown,
    }
}

/// Whether what was judged is no more: any of
/// - nothing was judged;
/// - the node class has changed since;
/// - the pool has changed since.
fn is_outdated(pool: &NodePool, class: &NodeClass) -> bool {
    condition::find(&pool.status.conditions, nodepool::NODE_REGISTRATION_HEALTHY).is_none_or(|health| {
        pool.status.node_class_observed_generation != class.metadata.generation
            || health.observed_generation != pool.metadata.generation
    })
}

fn reset(pool: &NodePool, class: &NodeClass, now: Timestamp) -> NodePool {
    let mut after = pool.clone();
    after.status.node_class_observed_generation = class.metadata.generation;
    if is_outdated(pool, class) {
        conditions::change(
            nodepool::TYPES,
            &pool.metadata,
            &mut after.status.conditions,
            now,
            |set| {
                set.set_unknown(nodepool::NODE_REGISTRATION_HEALTHY);
            },
        );
    }
    after
}

#[async_trait]
impl Controller for RegistrationHealthController {
    type Key = Text;

    fn name(&self) -> &'static str {
        "nodepool.registrationhealth"
    }

    fn workers(&self, settings: &Settings) -> usize {
        settings.workers(10, 1000)
    }

    fn concerns(&self, change: &Change, state: &State) -> Vec<Text> {
        if let Change::NodePool(pool) = change
            && let Some(gone) = pool.before.as_ref().filter(|_| pool.is_gone())
        {
            self.health.forget(&gone.metadata.uid);
        }
        changed_with_class(change, state, self.managed)
    }

    async fn reconcile(&self, cluster: &Cluster, name: &Text) -> Result<Next, Problem> {
        let Some(pool) = cluster.get::<NodePool>(&ObjectKey::cluster_scoped(name)) else {
            return Ok(Next::Change);
        };
        let class = cluster.look(|state| {
            let reference = pool.spec.template.spec.node_class_ref.as_ref();
            reference.and_then(|reference| state.node_class(reference).cloned())
        });
        let Some(class) = class else { return Ok(Next::Change) };
        let now = cluster.now();
        let change = |pool: &NodePool| {
            let uid = &pool.metadata.uid;
            if self.health.of(uid) == Health::Unknown {
                self.health.assume(uid, assumed(pool));
            }
            if is_outdated(pool, &class) {
                self.health.assume(uid, Health::Unknown);
            }
            Some(reset(pool, &class, now))
        };
        self.writer.write(cluster, name, change).await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A pool of generation 2 with a condition judged for a generation of its own and of the class.
    fn pool(status: &str, of_pool: i64, of_class: i64) -> NodePool {
        let condition = json!({"type": "NodeRegistrationHealthy", "status": status, "observedGeneration": of_pool});
        serde_json::from_value(json!({
            "metadata": {"generation": 2},
            "status": {"nodeClassObservedGeneration": of_class, "conditions": [condition]},
        }))
        .unwrap()
    }

    fn class() -> NodeClass {
        serde_json::from_value(json!({"metadata": {"generation": 5}})).unwrap()
    }

    #[test]
    fn a_change_of_pool_or_class_makes_the_health_unknown() {
        let unjudged: NodePool = serde_json::from_value(json!({"metadata": {"generation": 2}})).unwrap();
        let cases = [
            (pool("True", 2, 5), ConditionStatus::True),
            (pool("False", 2, 5), ConditionStatus::False),
            (pool("True", 1, 5), ConditionStatus::Unknown),
            (pool("False", 2, 4), ConditionStatus::Unknown),
            (unjudged, ConditionStatus::Unknown),
        ];
        for (pool, expected) in cases {
            let now = "2026-11-16T10:00:00Z".parse().unwrap();
            let after = reset(&pool, &class(), now);
            let condition = condition::find(&after.status.conditions, "NodeRegistrationHealthy").unwrap();
            let shown = (condition.status, after.status.node_class_observed_generation);
            assert_eq!(shown, (expected, 5), "{pool:?}");
            assert_eq!(reset(&after, &class(), now), after);
        }
    }

    #[test]
    fn after_a_restart_the_condition_stands_for_the_outcomes() {
        let cases = [
            (pool("True", 2, 5), Health::Healthy),
            (pool("False", 2, 5), Health::Unhealthy),
            (pool("Unknown", 2, 5), Health::Unknown),
            (NodePool::default(), Health::Unknown),
        ];
        for (pool, expected) in cases {
            assert_eq!(assumed(&pool), expected, "{pool:?}");
        }
    }
}
