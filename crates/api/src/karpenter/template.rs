//! What a NodePool stamps on the NodeClaims it makes.

use std::collections::BTreeMap;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::{
    NodeSelectorRequirementWithMinValues, Taint,
    requirement::{comparison_has_a_number, in_has_a_value, in_has_min_values},
};
use crate::{
    duration::{Duration, NillableDuration},
    pattern::{DURATION, DURATION_OR_NEVER, label_values},
};

/// The mould for NodeClaims of a NodePool.
#[derive(Clone, Debug, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimTemplate {
    /// Labels and annotations put on every NodeClaim and its Node.
    #[serde(default, skip_serializing_if = "ObjectMeta::is_empty")]
    pub metadata: ObjectMeta,
    /// What the NodeClaims ask for.
    pub spec: NodeClaimTemplateSpec,
}

/// Labels and annotations of a NodeClaim.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectMeta {
    /// Annotations to put on every node of the pool.
    // Absent and empty are different here: the drift hash sees the difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = MapMerge::Granular)]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Labels to put on every node of the pool. Pods can select them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 100), transform = label_values)]
    #[x_kube(merge_strategy = MapMerge::Atomic)]
    pub labels: Option<BTreeMap<String, String>>,
}

impl ObjectMeta {
    fn is_empty(&self) -> bool {
        self.annotations.is_none() && self.labels.is_none()
    }
}

/// What every node of a pool has in common.
#[derive(Clone, Debug, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimTemplateSpec {
    /// Age at which a node is replaced, or Never. Counted from the NodeClaim's creation.
    #[serde(default = "default_expire_after")]
    #[schemars(extend("pattern" = DURATION_OR_NEVER))]
    pub expire_after: NillableDuration,
    /// The provider's settings to launch with. Group and kind cannot change later.
    #[x_kube(
        validation = Rule::new("self.group == oldSelf.group").message("nodeClassRef.group is immutable"),
        validation = Rule::new("self.kind == oldSelf.kind").message("nodeClassRef.kind is immutable")
    )]
    pub node_class_ref: NodeClassReference,
    /// Constraints on node labels every node must meet, such as instance type, zone, architecture and capacity type.
    #[schemars(extend("maxItems" = 100))]
    #[x_kube(
        merge_strategy = ListMerge::Atomic,
        validation = in_has_a_value(),
        validation = comparison_has_a_number(
            "requirements operator 'Gt', 'Lt', 'Gte', or 'Lte' must have a single positive integer value"
        ),
        validation = in_has_min_values()
    )]
    pub requirements: Vec<NodeSelectorRequirementWithMinValues>,
    /// Taints that a DaemonSet is expected to remove soon after a node starts. Pods need not tolerate them to get a
    /// node, and the node does not count as initialized while they are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub startup_taints: Option<Vec<Taint>>,
    /// Taints of every node of the pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub taints: Option<Vec<Taint>>,
    /// How long a node may take to drain once its deletion began. When it has passed, pods are deleted regardless of
    /// disruption budgets, do-not-disrupt and their own grace period. Without it, draining may take forever.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = DURATION))]
    pub termination_grace_period: Option<Duration>,
}

/// Thirty days, in the words of the published schema.
pub(super) fn default_expire_after() -> NillableDuration {
    NillableDuration::spelled(Duration::from_secs(720 * 3_600), "720h")
}

/// Names the object that holds a provider's settings.
#[derive(Clone, Debug, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeClassReference {
    /// API group of the node class, such as karpenter.k8s.aws.
    #[schemars(extend("pattern" = "^[^/]*$"))]
    #[x_kube(validation = Rule::new("self != ''").message("group may not be empty"))]
    pub group: String,
    /// Kind of the node class, such as EC2NodeClass.
    #[x_kube(validation = Rule::new("self != ''").message("kind may not be empty"))]
    pub kind: String,
    /// Name of the node class.
    #[x_kube(validation = Rule::new("self != ''").message("name may not be empty"))]
    pub name: String,
}
