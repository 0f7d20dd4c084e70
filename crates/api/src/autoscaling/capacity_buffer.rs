//! `CapacityBuffer`: room kept free for pods that have not come yet.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::{condition::Condition, quantity::ResourceList};

/// The strategy that keeps running nodes ready, and the default.
pub const ACTIVE_CAPACITY: &str = "buffer.x-k8s.io/active-capacity";

/// How much room to keep free, in units of one pod.
#[derive(Clone, Debug, PartialEq, Eq, CustomResource, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "autoscaling.x-k8s.io",
    version = "v1beta1",
    kind = "CapacityBuffer",
    plural = "capacitybuffers",
    namespaced,
    shortname = "cb",
    category = "autoscaling",
    status = "CapacityBufferStatus",
    derive = "PartialEq",
    printcolumn(
        name = "Strategy",
        type_ = "string",
        json_path = ".spec.provisioningStrategy",
        description = "How room is kept free."
    ),
    printcolumn(
        name = "PodTemplate",
        type_ = "string",
        json_path = ".status.podTemplateRef.name",
        description = "PodTemplate that gives the size of one unit."
    ),
    printcolumn(
        name = "Replicas",
        type_ = "integer",
        json_path = ".status.replicas",
        description = "Units of room kept free."
    ),
    printcolumn(
        name = "ConditionsType",
        type_ = "string",
        json_path = ".status.conditions[*].type",
        description = "Names of all conditions."
    ),
    printcolumn(
        name = "ConditionsStatus",
        type_ = "string",
        json_path = ".status.conditions[*].status",
        description = "Status of each condition."
    ),
    printcolumn(
        name = "ConditionsReason",
        type_ = "string",
        json_path = ".status.conditions[*].reason",
        description = "Reason of each condition."
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Time since creation."
    ),
    doc = "Keeps room free on nodes, so that new pods start without waiting for a machine."
)]
#[x_kube(
    validation = Rule::new("!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)")
        .message("If podTemplateRef is set, replicas or limits must also be set"),
    validation = Rule::new("!(has(self.podTemplateRef) && has(self.scalableRef))")
        .message("You must define either PodTemplateRef or ScalableRef, but not both")
)]
pub struct CapacityBufferSpec {
    /// Most the buffer may hold in total, by resource. Alone, as many units as fit are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<ResourceList>,
    /// Units to keep, in percent of the replicas of scalableRef, rounded up and at least 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub percentage: Option<i32>,
    /// PodTemplate in the same namespace that gives the size of one unit. Excludes scalableRef.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_template_ref: Option<LocalObjectRef>,
    /// How room is kept free. The default keeps running nodes.
    #[serde(default = "active_capacity", skip_serializing_if = "Option::is_none")]
    pub provisioning_strategy: Option<String>,
    /// Units to keep. With percentage as well, the smaller number counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// Workload in the same namespace whose pods give the size of one unit. Excludes podTemplateRef.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scalable_ref: Option<ScalableRef>,
}

#[allow(clippy::unnecessary_wraps)] // the default of an optional field
fn active_capacity() -> Option<String> {
    Some(ACTIVE_CAPACITY.to_owned())
}

/// Names an object in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
pub struct LocalObjectRef {
    /// Name of the object.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// Names a workload in the same namespace that can be scaled.
#[derive(Clone, Debug, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScalableRef {
    /// API group of the workload; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_group: String,
    /// Kind of the workload: Deployment, StatefulSet or ReplicaSet.
    #[schemars(length(min = 1))]
    pub kind: String,
    /// Name of the workload.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// What was observed about the buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CapacityBufferStatus {
    /// Observed aspects of the buffer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// Generation of the PodTemplate the buffer was sized by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_template_generation: Option<i64>,
    /// PodTemplate the buffer was sized by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_template_ref: Option<LocalObjectRef>,
    /// Strategy the buffer follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning_strategy: Option<String>,
    /// Units of room kept free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_full_buffer_survives_a_round_trip() {
        let full = json!({
            "apiVersion": "autoscaling.x-k8s.io/v1beta1",
            "kind": "CapacityBuffer",
            "metadata": {"name": "spare", "namespace": "web"},
            "spec": {
                "limits": {"cpu": "10"},
                "percentage": 20,
                "provisioningStrategy": "buffer.x-k8s.io/active-capacity",
                "replicas": 3,
                "scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "web"},
            },
            "status": {
                "podTemplateGeneration": 2,
                "podTemplateRef": {"name": "web"},
                "provisioningStrategy": "buffer.x-k8s.io/active-capacity",
                "replicas": 3,
            },
        });
        let buffer: CapacityBuffer = serde_json::from_value(full.clone()).unwrap();
        assert_eq!(serde_json::to_value(buffer).unwrap(), full);
    }
}
