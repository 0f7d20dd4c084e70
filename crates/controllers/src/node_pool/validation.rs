//! What the schema cannot say about a pool is said by its condition.

use api::{
    condition::names::nodepool,
    labels::{self, LabelRules},
    provider::Provider,
};
use async_trait::async_trait;
use cloud::{CloudProvider, NodeClassKind};
use jiff::Timestamp;
use model::object::{NodePool, Text};
use runtime::Settings;
use state::{Change, State};

use super::{StatusWriter, as_written, changed_pool};
use crate::{Cluster, Controller, Next, Problem, conditions, node_claim::Managed};

/// `nodepool.validation`
pub struct Validation {
    managed: Managed,
    rules: LabelRules,
    writer: StatusWriter,
}

impl Validation {
    /// For the pools that are ours, by the rules of the cloud.
    pub fn new(managed: Managed, cloud: &dyn CloudProvider, writer: StatusWriter) -> Self {
        let providers: Vec<Provider> = cloud.node_classes().iter().filter_map(provider).collect();
        let well_known = cloud.well_known_labels();
        let rules = LabelRules::new(&providers).with_well_known(well_known.iter().map(String::as_str));
        Self { managed, rules, writer }
    }
}

fn provider(kind: &NodeClassKind) -> Option<Provider> {
    match kind.group {
        labels::aws::GROUP => Some(Provider::Aws),
        labels::azure::GROUP => Some(Provider::Azure),
        labels::kwok::GROUP => Some(Provider::Kwok),
        _ => None,
    }
}

/// What is wrong with a pool.
fn faults(pool: &NodePool, rules: &LabelRules) -> Option<String> {
    match as_written(pool) {
        Ok(written) => written.runtime_validate(rules).err().map(|faults| faults.to_string()),
        Err(error) => Some(error.to_string()),
    }
}

fn judged(pool: &NodePool, faults: Option<&str>, now: Timestamp) -> NodePool {
    let kind = nodepool::VALIDATION_SUCCEEDED;
    let mut after = pool.clone();
    conditions::change(
        nodepool::TYPES,
        &pool.metadata,
        &mut after.status.conditions,
        now,
        |set| {
            match faults {
                Some(faults) => set.set_false(kind, nodepool::NODEPOOL_VALIDATION_FAILED, faults),
                None => set.set_true(kind),
            };
        },
    );
    after
}

#[async_trait]
impl Controller for Validation {
    type Key = Text;

    fn name(&self) -> &'static str {
        "nodepool.validation"
    }

    fn workers(&self, _: &Settings) -> usize {
        10
    }

    fn concerns(&self, change: &Change, _: &State) -> Vec<Text> {
        changed_pool(change, self.managed)
    }

    async fn reconcile(&self, cluster: &Cluster, name: &Text) -> Result<Next, Problem> {
        let now = cluster.now();
        let change = |pool: &NodePool| Some(judged(pool, faults(pool, &self.rules).as_deref(), now));
        self.writer.write(cluster, name, change).await
    }
}

#[cfg(test)]
#[allow(
    clippy::needless_pass_by_value,
    reason = "a literal reads better without a reference"
)]
mod tests {
    use model::object::condition;
    use serde_json::{Value, json};

    use super::*;

    fn pool(labels: Value) -> NodePool {
        let spec = json!({
            "requirements": [], "expireAfter": "720h",
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
        });
        serde_json::from_value(json!({
            "metadata": {"name": "default"},
            "spec": {"disruption": {"consolidateAfter": "0s"}, "template": {"metadata": {"labels": labels}, "spec": spec}},
        }))
        .unwrap()
    }

    #[test]
    fn the_condition_names_what_is_wrong() {
        let rules = LabelRules::new(&[Provider::Kwok]);
        let now = "2026-11-16T10:00:00Z".parse().unwrap();
        let shown = |pool: &NodePool| {
            let faults = faults(pool, &rules);
            let after = judged(pool, faults.as_deref(), now);
            let condition = condition::find(&after.status.conditions, "ValidationSucceeded")
                .cloned()
                .unwrap();
            (
                format!("{:?}", condition.status),
                condition.reason.to_string(),
                condition.message.to_string(),
            )
        };
        let fine = ("True".to_owned(), "ValidationSucceeded".to_owned(), String::new());
        assert_eq!(shown(&pool(json!({"team": "web"}))), fine);
        let (status, reason, message) = shown(&pool(json!({"karpenter.sh/nodepool": "x"})));
        assert_eq!(
            (status.as_str(), reason.as_str()),
            ("False", "NodePoolValidationFailed")
        );
        assert!(message.contains("karpenter.sh/nodepool"), "{message}");
    }
}
