//! The kubelet settings an `AKSNodeClass` may give its nodes: a subset of the kubelet's own configuration, with its names.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::{duration::Duration, open_enum::open_enum};

/// Settings for the kubelet of provisioned nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeletConfiguration {
    /// Whether guaranteed pods may get CPU cores of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "none"))]
    pub cpu_manager_policy: Option<CpuManagerPolicy>,
    /// Whether CPU limits of containers are enforced.
    #[serde(rename = "cpuCFSQuota", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = true))]
    pub cpu_cfs_quota: Option<bool>,
    /// The period over which CPU limits are enforced, between 1 ms and 1 s.
    #[serde(rename = "cpuCFSQuotaPeriod", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "100ms"))]
    pub cpu_cfs_quota_period: Option<Duration>,
    /// The disk usage, in percent, above which unused images are always removed. Must be above
    /// `imageGCLowThresholdPercent`.
    #[serde(rename = "imageGCHighThresholdPercent", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub image_gc_high_threshold_percent: Option<i32>,
    /// The disk usage, in percent, at which removal of unused images stops.
    #[serde(rename = "imageGCLowThresholdPercent", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub image_gc_low_threshold_percent: Option<i32>,
    /// How closely CPUs and devices of a pod are kept to one NUMA node.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "none"))]
    pub topology_manager_policy: Option<TopologyManagerPolicy>,
    /// Unsafe sysctls pods may set, by name or by a pattern that ends in `*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_unsafe_sysctls: Option<Vec<String>>,
    /// The size at which a container's log file is rotated, such as `5Mi`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = r"^\d+(E|P|T|G|M|K|Ei|Pi|Ti|Gi|Mi|Ki)$", "default" = "50Mi"))]
    pub container_log_max_size: Option<String>,
    /// How many log files are kept per container.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2), extend("default" = 5))]
    pub container_log_max_files: Option<i32>,
    /// The most processes a pod may have. Unset or -1, no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_pids_limit: Option<i64>,
    /// Whether the kubelet refuses to start on a node with swap. Must be false for `linuxOSConfig.swapFileSize`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_swap_on: Option<bool>,
}

impl KubeletConfiguration {
    /// With the schema's defaults, which hold only where `kubelet` is given.
    pub(super) fn defaulted(mut self) -> Self {
        self.cpu_manager_policy.get_or_insert(CpuManagerPolicy::None);
        self.cpu_cfs_quota.get_or_insert(true);
        self.cpu_cfs_quota_period
            .get_or_insert(Duration::from_nanos(100_000_000));
        self.topology_manager_policy.get_or_insert(TopologyManagerPolicy::None);
        self.container_log_max_size.get_or_insert_with(|| "50Mi".to_owned());
        self.container_log_max_files.get_or_insert(5);
        self
    }
}

open_enum! {
    /// Whether guaranteed pods may get CPU cores of their own.
    CpuManagerPolicy {
        /// They share all cores.
        None = "none",
        /// Those with whole CPU requests do.
        Static = "static",
    }
}

open_enum! {
    /// How closely CPUs and devices of a pod are kept to one NUMA node.
    TopologyManagerPolicy {
        /// Pods that cannot be aligned well are refused.
        Restricted = "restricted",
        /// Alignment is preferred.
        BestEffort = "best-effort",
        /// Alignment is not considered.
        None = "none",
        /// Pods that do not fit on one NUMA node are refused.
        SingleNumaNode = "single-numa-node",
    }
}
