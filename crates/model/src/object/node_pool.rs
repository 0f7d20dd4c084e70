//! A NodePool: what kinds of nodes may be made, how many, and when they may be disrupted.

use api::duration::{Duration, NillableDuration};
use serde::{Deserialize, Serialize};

use super::{
    Condition, Given, Labels, List, Metadata, NodeClassReference, NodePoolName, NodeSelectorRequirement, Object,
    Taints, Text, condition, given,
    metadata::{is_unset, is_zero},
};
use crate::{resources::ResourceList, sharing::Sharing};

/// A NodePool, complete.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodePool {
    /// Who it is.
    pub metadata: Metadata,
    /// What the user wants.
    pub spec: NodePoolSpec,
    /// What is.
    pub status: NodePoolStatus,
}

/// What the user wants of a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodePoolSpec {
    /// The shape of its NodeClaims.
    pub template: NodeClaimTemplate,
    /// When its nodes may go.
    pub disruption: Disruption,
    /// How much it may hold.
    #[serde(skip_serializing_if = "ResourceList::is_empty")]
    pub limits: ResourceList,
    /// Higher is tried first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<i32>,
    /// Set for a static pool: so many nodes, whatever the demand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i64>,
}

/// The shape of a pool's NodeClaims.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeClaimTemplate {
    /// Labels and annotations of the nodes.
    #[serde(skip_serializing_if = "TemplateMetadata::is_empty")]
    pub metadata: TemplateMetadata,
    /// The rest.
    pub spec: NodeClaimTemplateSpec,
}

/// Labels and annotations of a pool's nodes, all of them: they are part of the drift hash.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct TemplateMetadata {
    /// Labels.
    #[serde(with = "given::labels", skip_serializing_if = "Given::is_absent")]
    pub labels: Given<Labels>,
    /// Annotations.
    #[serde(with = "given::labels", skip_serializing_if = "Given::is_absent")]
    pub annotations: Given<Labels>,
}

impl TemplateMetadata {
    fn is_empty(&self) -> bool {
        self.labels.is_absent() && self.annotations.is_absent()
    }
}

/// The spec of a pool's NodeClaims.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeClaimTemplateSpec {
    /// Taints of the nodes.
    #[serde(skip_serializing_if = "Given::is_absent")]
    pub taints: Given<Taints>,
    /// Taints that something removes before a node counts as initialised.
    #[serde(skip_serializing_if = "Given::is_absent")]
    pub startup_taints: Given<Taints>,
    /// Conditions on the instances. Always written, because the API requires it.
    pub requirements: List<NodeSelectorRequirement>,
    /// How the machines are set up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_class_ref: Option<NodeClassReference>,
    /// The longest a drain may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination_grace_period: Option<Duration>,
    /// The longest a node may live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expire_after: Option<NillableDuration>,
}

/// When a pool's nodes may go.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Disruption {
    /// How long a node must be quiet before it is consolidated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consolidate_after: Option<NillableDuration>,
    /// `WhenEmpty`, `WhenEmptyOrUnderutilized` or `Balanced`.
    #[serde(skip_serializing_if = "is_unset")]
    pub consolidation_policy: Text,
    /// How many nodes may go at a time.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub budgets: List<Budget>,
}

/// How many nodes of a pool may go at a time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Budget {
    /// For these reasons; absent means for all, while an empty list means for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasons: Option<List<Text>>,
    /// A number or a percentage.
    pub nodes: Text,
    /// A cron expression: when the budget begins to apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Text>,
    /// For how long it then applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Duration>,
}

/// What is in a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodePoolStatus {
    /// The sum over its nodes.
    #[serde(skip_serializing_if = "ResourceList::is_empty")]
    pub resources: ResourceList,
    /// How many nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<i64>,
    /// The node class generation its health was judged by.
    #[serde(skip_serializing_if = "is_zero")]
    pub node_class_observed_generation: i64,
    /// Ready and what it derives from.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub conditions: List<Condition>,
}

impl NodePool {
    /// The pool's name.
    pub fn name(&self) -> NodePoolName {
        NodePoolName(self.metadata.name.clone())
    }

    /// True when the pool has a fixed number of nodes.
    pub fn is_static(&self) -> bool {
        self.spec.replicas.is_some()
    }

    /// True when the pool's `Ready` condition holds.
    pub fn is_ready(&self) -> bool {
        condition::holds(&self.status.conditions, "Ready")
    }
}

impl Object for NodePool {
    const API_VERSION: &'static str = "karpenter.sh/v1";
    const KIND: &'static str = "NodePool";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn share(&mut self, pool: &mut Sharing) {
        self.metadata.share(pool);
        pool.requirements(&mut self.spec.template.spec.requirements);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_remembers_which_empty_lists_were_written() {
        for json in [
            r#"{"metadata":{"labels":{}},"spec":{"taints":[],"requirements":[]}}"#,
            r#"{"metadata":{"annotations":{}},"spec":{"startupTaints":[],"requirements":[]}}"#,
            r#"{"spec":{"requirements":[]}}"#,
        ] {
            let template: NodeClaimTemplate = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&template).unwrap(), json);
        }
        let null: NodeClaimTemplate = serde_json::from_str(r#"{"spec":{"taints":null,"requirements":[]}}"#).unwrap();
        assert_eq!(serde_json::to_string(&null).unwrap(), r#"{"spec":{"requirements":[]}}"#);
    }
}
