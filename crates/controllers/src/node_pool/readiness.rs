//! Can the pool launch? It can when its node class is there, stays, and is Ready.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use api::condition::{ConditionSet, names::nodepool};
use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use model::object::{ConditionStatus, NodeClass, NodePool, ObjectKey, Text, condition};
use runtime::Settings;
use state::{Change, Kind, State};

use super::{StatusWriter, changed_with_class};
use crate::{Cluster, Controller, Next, Problem, conditions, node_claim::Managed};

/// How long the first list of node classes is waited for. After that a class that is not known counts as missing, so that
/// a pool says what is wrong when the server does not even know the kind.
const PATIENCE: SignedDuration = SignedDuration::from_secs(15);
const POLL: Duration = Duration::from_secs(1);

/// `nodepool.readiness`
pub struct Readiness {
    managed: Managed,
    writer: StatusWriter,
    began: Mutex<Option<Timestamp>>,
}

impl Readiness {
    /// For the pools that are ours.
    pub fn new(managed: Managed, writer: StatusWriter) -> Self {
        Self {
            managed,
            writer,
            began: Mutex::default(),
        }
    }

    fn is_patient(&self, now: Timestamp) -> bool {
        let mut began = self.began.lock().unwrap_or_else(PoisonError::into_inner);
        now.duration_since(*began.get_or_insert(now)) < PATIENCE
    }
}

/// The pool's NodeClassReady, from its node class.
fn judge(set: &mut ConditionSet<'_>, class: Option<&NodeClass>) {
    let kind = nodepool::NODE_CLASS_READY;
    let Some(class) = class else {
        set.set_false(kind, nodepool::NODE_CLASS_NOT_FOUND, "NodeClass not found on cluster");
        return;
    };
    if class.metadata.is_deleting() {
        set.set_false(kind, nodepool::NODE_CLASS_TERMINATING, "NodeClass is Terminating");
        return;
    }
    match (class.ready(), condition::find(&class.status.conditions, "Ready")) {
        (ConditionStatus::True, _) => set.set_true(kind),
        (ConditionStatus::False, Some(ready)) => set.set_false(kind, &ready.reason, &ready.message),
        _ => set.set_false(
            kind,
            nodepool::NODE_CLASS_READINESS_UNKNOWN,
            "Node Class Readiness Unknown",
        ),
    };
}

fn judged(pool: &NodePool, class: Option<&NodeClass>, now: Timestamp) -> NodePool {
    let mut after = pool.clone();
    conditions::change(
        nodepool::TYPES,
        &pool.metadata,
        &mut after.status.conditions,
        now,
        |set| judge(set, class),
    );
    after
}

#[async_trait]
impl Controller for Readiness {
    type Key = Text;

    fn name(&self) -> &'static str {
        "nodepool.readiness"
    }

    fn workers(&self, settings: &Settings) -> usize {
        settings.workers(10, 1000)
    }

    fn concerns(&self, change: &Change, state: &State) -> Vec<Text> {
        changed_with_class(change, state, self.managed)
    }

    async fn reconcile(&self, cluster: &Cluster, name: &Text) -> Result<Next, Problem> {
        let Some(pool) = cluster.get::<NodePool>(&ObjectKey::cluster_scoped(name)) else {
            return Ok(Next::Change);
        };
        let now = cluster.now();
        let (class, is_listed) = cluster.look(|state| {
            let reference = pool.spec.template.spec.node_class_ref.as_ref();
            let class = reference.and_then(|reference| state.node_class(reference).cloned());
            (class, state.is_listed(Kind::NodeClass))
        });
        if class.is_none() && !is_listed && self.is_patient(now) {
            return Ok(Next::After(POLL));
        }
        let change = |pool: &NodePool| Some(judged(pool, class.as_deref(), now));
        self.writer.write(cluster, name, change).await
    }
}

#[cfg(test)]
#[allow(
    clippy::needless_pass_by_value,
    reason = "a literal reads better without a reference"
)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn class(metadata: Value, conditions: Value) -> NodeClass {
        serde_json::from_value(json!({"metadata": metadata, "status": {"conditions": conditions}})).unwrap()
    }

    #[test]
    fn a_pool_is_ready_when_its_node_class_is_and_says_why_not() {
        let ready =
            |status: &str| json!([{"type": "Ready", "status": status, "reason": "NoAMI", "message": "none found"}]);
        let terminating = json!({"deletionTimestamp": "2026-11-16T10:00:00Z"});
        let cases = [
            (None, ("False", "NodeClassNotFound", "NodeClass not found on cluster")),
            (
                Some(class(terminating, ready("True"))),
                ("False", "NodeClassTerminating", "NodeClass is Terminating"),
            ),
            (Some(class(json!({}), ready("True"))), ("True", "NodeClassReady", "")),
            (Some(class(json!({}), ready("False"))), ("False", "NoAMI", "none found")),
            (
                Some(class(json!({}), ready("Unknown"))),
                ("False", "NodeClassReadinessUnknown", "Node Class Readiness Unknown"),
            ),
            (
                Some(class(json!({}), json!([]))),
                ("False", "NodeClassReadinessUnknown", "Node Class Readiness Unknown"),
            ),
        ];
        for (class, (status, reason, message)) in cases {
            let now = "2026-11-16T10:00:00Z".parse().unwrap();
            let pool = judged(&NodePool::default(), class.as_ref(), now);
            let condition = condition::find(&pool.status.conditions, "NodeClassReady").unwrap();
            let shown = (
                format!("{:?}", condition.status),
                &*condition.reason,
                &*condition.message,
            );
            assert_eq!(shown, (status.to_owned(), reason, message), "{class:?}");
        }
    }
}
