//! The kubelet settings an `EC2NodeClass` may give its nodes: a subset of the kubelet's own configuration, with its names.

use std::collections::BTreeMap;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::duration::Duration;

/// Settings for the kubelet of provisioned nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeletConfiguration {
    /// Addresses of the cluster's DNS servers. Some image families use only the first.
    #[serde(rename = "clusterDNS", skip_serializing_if = "Option::is_none")]
    pub cluster_dns: Option<Vec<String>>,
    /// The most pods a node may run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_pods: Option<i32>,
    /// The most pods a node may run per CPU core; `maxPods` still caps the sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub pods_per_core: Option<i32>,
    /// Resources kept for the operating system's daemons.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("additionalProperties" = quantity()))]
    #[x_kube(
        validation = Rule::new("self.all(x, x=='cpu' || x=='memory' || x=='ephemeral-storage' || x=='pid')")
            .message("valid keys for systemReserved are ['cpu','memory','ephemeral-storage','pid']"),
        validation = Rule::new("self.all(x, !self[x].startsWith('-'))")
            .message("systemReserved value cannot be a negative resource quantity")
    )]
    pub system_reserved: Option<BTreeMap<String, String>>,
    /// Resources kept for Kubernetes' own daemons.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("additionalProperties" = quantity()))]
    #[x_kube(
        validation = Rule::new("self.all(x, x=='cpu' || x=='memory' || x=='ephemeral-storage' || x=='pid')")
            .message("valid keys for kubeReserved are ['cpu','memory','ephemeral-storage','pid']"),
        validation = Rule::new("self.all(x, !self[x].startsWith('-'))")
            .message("kubeReserved value cannot be a negative resource quantity")
    )]
    pub kube_reserved: Option<BTreeMap<String, String>>,
    /// Per signal, the amount or percentage below which pods are evicted at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("additionalProperties" = threshold()))]
    #[x_kube(
        validation = Rule::new("self.all(x, x in ['memory.available','nodefs.available','nodefs.inodesFree','imagefs.available','imagefs.inodesFree','pid.available'])")
            .message("valid keys for evictionHard are ['memory.available','nodefs.available','nodefs.inodesFree','imagefs.available','imagefs.inodesFree','pid.available']")
    )]
    pub eviction_hard: Option<BTreeMap<String, String>>,
    /// Per signal, the amount or percentage below which pods are evicted after a grace period.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("additionalProperties" = threshold()))]
    #[x_kube(
        validation = Rule::new("self.all(x, x in ['memory.available','nodefs.available','nodefs.inodesFree','imagefs.available','imagefs.inodesFree','pid.available'])")
            .message("valid keys for evictionSoft are ['memory.available','nodefs.available','nodefs.inodesFree','imagefs.available','imagefs.inodesFree','pid.available']")
    )]
    pub eviction_soft: Option<BTreeMap<String, String>>,
    /// Per signal of `evictionSoft`, how long it must hold before pods are evicted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(
        validation = Rule::new("self.all(x, x in ['memory.available','nodefs.available','nodefs.inodesFree','imagefs.available','imagefs.inodesFree','pid.available'])")
            .message("valid keys for evictionSoftGracePeriod are ['memory.available','nodefs.available','nodefs.inodesFree','imagefs.available','imagefs.inodesFree','pid.available']")
    )]
    pub eviction_soft_grace_period: Option<BTreeMap<String, Duration>>,
    /// The longest grace period, in seconds, of a pod that a soft eviction ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eviction_max_pod_grace_period: Option<i32>,
    /// The disk usage, in percent, above which unused images are always removed. Must be above
    /// `imageGCLowThresholdPercent`.
    #[serde(rename = "imageGCHighThresholdPercent", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub image_gc_high_threshold_percent: Option<i32>,
    /// The disk usage, in percent, at which removal of unused images stops.
    #[serde(rename = "imageGCLowThresholdPercent", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub image_gc_low_threshold_percent: Option<i32>,
    /// Whether CPU limits of containers are enforced.
    #[serde(rename = "cpuCFSQuota", skip_serializing_if = "Option::is_none")]
    pub cpu_cfs_quota: Option<bool>,
}

/// The schema of a resource quantity.
fn quantity() -> serde_json::Value {
    serde_json::json!({
        "type": "string",
        "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
    })
}

/// The schema of an eviction threshold: a percentage or a resource quantity.
fn threshold() -> serde_json::Value {
    serde_json::json!({
        "type": "string",
        "pattern": r"^((\d{1,2}(\.\d{1,2})?|100(\.0{1,2})?)%||(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?)$",
    })
}
