//! `NodeClaim`: one node that was asked for, from launch to termination.

use kube::{CustomResource, KubeSchema};
use schemars::Schema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    NodeClassReference, NodeSelectorRequirementWithMinValues, Taint,
    requirement::{comparison_has_a_number, in_has_a_value, in_has_min_values},
    template::default_expire_after,
};
use crate::{
    condition::Condition,
    duration::{Duration, NillableDuration},
    pattern::{DURATION, DURATION_OR_NEVER},
    quantity::ResourceList,
    time::Time,
};

/// What kind of node is asked for. Cannot change.
#[derive(Clone, Debug, PartialEq, Eq, CustomResource, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodeClaim",
    plural = "nodeclaims",
    category = "karpenter",
    status = "NodeClaimStatus",
    derive = "PartialEq",
    printcolumn(
        name = "Type",
        type_ = "string",
        json_path = r".metadata.labels.node\.kubernetes\.io/instance-type"
    ),
    printcolumn(
        name = "Capacity",
        type_ = "string",
        json_path = r".metadata.labels.karpenter\.sh/capacity-type"
    ),
    printcolumn(
        name = "Zone",
        type_ = "string",
        json_path = r".metadata.labels.topology\.kubernetes\.io/zone"
    ),
    printcolumn(name = "Node", type_ = "string", json_path = ".status.nodeName"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "ImageID", type_ = "string", json_path = ".status.imageID", priority = 1),
    printcolumn(name = "ID", type_ = "string", json_path = ".status.providerID", priority = 1),
    printcolumn(
        name = "NodePool",
        type_ = "string",
        json_path = r".metadata.labels.karpenter\.sh/nodepool",
        priority = 1
    ),
    printcolumn(
        name = "NodeClass",
        type_ = "string",
        json_path = ".spec.nodeClassRef.name",
        priority = 1
    ),
    printcolumn(
        name = "Drifted",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Drifted")].status"#,
        priority = 1
    ),
    doc = "One node that was asked for. Made by a NodePool as a rule; its deletion drains and ends the node."
)]
#[x_kube(validation = Rule::new("self == oldSelf").message("spec is immutable"))]
pub struct NodeClaimSpec {
    /// Age at which the node is replaced, or Never. Counted from the NodeClaim's creation.
    #[serde(default = "default_expire_after")]
    #[schemars(extend("pattern" = DURATION_OR_NEVER))]
    pub expire_after: NillableDuration,
    /// The provider's settings to launch with.
    pub node_class_ref: NodeClassReference,
    /// Constraints on node labels the node must meet.
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
    /// Room the node must offer.
    #[serde(default, skip_serializing_if = "ResourceRequirements::is_empty")]
    pub resources: ResourceRequirements,
    /// Taints that a DaemonSet is expected to remove soon after the node starts. The node does not count as
    /// initialized while they are there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub startup_taints: Vec<Taint>,
    /// Taints of the node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub taints: Vec<Taint>,
    /// How long the node may take to drain once its deletion began. When it has passed, pods are deleted regardless
    /// of disruption budgets, do-not-disrupt and their own grace period. Without it, draining may take forever.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = DURATION))]
    pub termination_grace_period: Option<Duration>,
}

/// Room asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
pub struct ResourceRequirements {
    /// Least amounts the node must offer, by resource: its pods and daemons together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<ResourceList>,
}

impl ResourceRequirements {
    fn is_empty(&self) -> bool {
        self.requests.is_none()
    }
}

/// What was observed about the node.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimStatus {
    /// What pods may use of the node, by resource; an estimate until it registers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocatable: Option<ResourceList>,
    /// What the node holds, by resource; an estimate until it registers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<ResourceList>,
    /// Observed aspects of the node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = reason_may_be_empty)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// Image the node was started from.
    #[serde(default, rename = "imageID", skip_serializing_if = "String::is_empty")]
    pub image_id: String,
    /// When a pod was last bound to the node or left it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_pod_event_time: Option<Time>,
    /// Name of the Node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node_name: String,
    /// The provider's name for the machine. Joins NodeClaim and Node.
    #[serde(default, rename = "providerID", skip_serializing_if = "String::is_empty")]
    pub provider_id: String,
}

/// NodeClaims alone admit conditions without reason and message, as written by releases before v1.
fn reason_may_be_empty(schema: &mut Schema) {
    let Some(condition) = schema.pointer_mut("/items").and_then(|items| items.as_object_mut()) else {
        return;
    };
    condition.insert("required".to_owned(), json!(["lastTransitionTime", "status", "type"]));
    if let Some(reason) = condition
        .get_mut("properties")
        .and_then(|p| p.get_mut("reason")?.as_object_mut())
    {
        reason.remove("minLength");
        reason.insert(
            "pattern".to_owned(),
            json!("^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?|)$"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_claim_survives_a_round_trip() {
        let full = json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {"name": "default-x7k2p"},
            "spec": {
                "expireAfter": "720h",
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": [{"key": "karpenter.sh/nodepool", "operator": "In", "values": ["default"]}],
                "resources": {"requests": {"cpu": "1500m", "pods": "4"}},
                "startupTaints": [{"effect": "NoExecute", "key": "cni"}],
                "taints": [{"effect": "NoSchedule", "key": "dedicated", "value": "gpu"}],
                "terminationGracePeriod": "0s",
            },
            "status": {
                "allocatable": {"cpu": "1930m"},
                "capacity": {"cpu": "2"},
                "conditions": [{
                    "lastTransitionTime": "2026-01-02T03:04:05Z",
                    "message": "",
                    "observedGeneration": 1,
                    "reason": "Launched",
                    "status": "True",
                    "type": "Launched",
                }],
                "imageID": "ami-1",
                "lastPodEventTime": "2026-01-02T03:04:15Z",
                "nodeName": "ip-10-0-0-1",
                "providerID": "aws:///a/i-1",
            },
        });
        let claim: NodeClaim = serde_json::from_value(full.clone()).unwrap();
        assert_eq!(serde_json::to_value(claim).unwrap(), full);
    }

    #[test]
    fn a_condition_without_reason_and_message_can_be_read() {
        let status: NodeClaimStatus = serde_json::from_value(json!({
            "conditions": [{"lastTransitionTime": "2026-01-02T03:04:05Z", "status": "True", "type": "Launched"}],
            "lastPodEventTime": null,
        }))
        .unwrap();
        assert_eq!(
            (
                status.conditions[0].reason.as_str(),
                status.conditions[0].message.as_str()
            ),
            ("", "")
        );
        assert_eq!(status.last_pod_event_time, None);
    }
}
