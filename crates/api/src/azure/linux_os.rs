//! The Linux settings an `AKSNodeClass` may give its nodes: swap, huge pages and sysctls, within the ranges AKS supports.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::open_enum::open_enum;

/// Settings of the Linux kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LinuxOsConfiguration {
    /// The size of the swap file, such as `2Gi`. Needs `kubelet.failSwapOn: false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = r"^\d+(E|P|T|G|M|K|Ei|Pi|Ti|Gi|Mi|Ki)$"))]
    pub swap_file_size: Option<String>,
    /// Kernel parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sysctls: Option<SysctlConfiguration>,
    /// When the kernel makes room for huge pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transparent_huge_page_defrag: Option<TransparentHugePageDefrag>,
    /// Which memory gets huge pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transparent_huge_page_enabled: Option<TransparentHugePageEnabled>,
}

open_enum! {
    /// When the kernel makes room for huge pages.
    TransparentHugePageDefrag {
        /// At once.
        Always = "always",
        /// In the background.
        Defer = "defer",
        /// At once for memory that asked, else in the background.
        DeferMadvise = "defer+madvise",
        /// At once for memory that asked.
        Madvise = "madvise",
        /// Never.
        Never = "never",
    }
}

open_enum! {
    /// Which memory gets huge pages.
    TransparentHugePageEnabled {
        /// All.
        Always = "always",
        /// That which asked.
        Madvise = "madvise",
        /// None.
        Never = "never",
    }
}

/// Kernel parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.netCoreRmemDefault) && has(self.netCoreRmemMax) ? self.netCoreRmemDefault <= self.netCoreRmemMax : true")
        .message("netCoreRmemDefault must be <= netCoreRmemMax"),
    validation = Rule::new("has(self.netCoreWmemDefault) && has(self.netCoreWmemMax) ? self.netCoreWmemDefault <= self.netCoreWmemMax : true")
        .message("netCoreWmemDefault must be <= netCoreWmemMax"),
    validation = Rule::new("has(self.netIPv4NeighDefaultGcThresh1) && has(self.netIPv4NeighDefaultGcThresh2) ? self.netIPv4NeighDefaultGcThresh1 <= self.netIPv4NeighDefaultGcThresh2 : true")
        .message("netIPv4NeighDefaultGcThresh1 must be <= netIPv4NeighDefaultGcThresh2"),
    validation = Rule::new("has(self.netIPv4NeighDefaultGcThresh2) && has(self.netIPv4NeighDefaultGcThresh3) ? self.netIPv4NeighDefaultGcThresh2 <= self.netIPv4NeighDefaultGcThresh3 : true")
        .message("netIPv4NeighDefaultGcThresh2 must be <= netIPv4NeighDefaultGcThresh3"),
    validation = Rule::new("!has(self.netIPv4IPLocalPortRange) || (int(self.netIPv4IPLocalPortRange.split(' ')[0]) >= 1024 && int(self.netIPv4IPLocalPortRange.split(' ')[0]) <= 60999)")
        .message("netIPv4IPLocalPortRange first port must be in [1024, 60999]"),
    validation = Rule::new("!has(self.netIPv4IPLocalPortRange) || (int(self.netIPv4IPLocalPortRange.split(' ')[1]) >= 32768 && int(self.netIPv4IPLocalPortRange.split(' ')[1]) <= 65535)")
        .message("netIPv4IPLocalPortRange last port must be in [32768, 65535]"),
    validation = Rule::new("!has(self.netIPv4IPLocalPortRange) || int(self.netIPv4IPLocalPortRange.split(' ')[0]) <= int(self.netIPv4IPLocalPortRange.split(' ')[1])")
        .message("netIPv4IPLocalPortRange first port must be <= last port")
)]
pub struct SysctlConfiguration {
    /// Most asynchronous I/O requests under way (`fs.aio-max-nr`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 65_536, max = 6_553_500))]
    pub fs_aio_max_nr: Option<i32>,
    /// Most file handles of the node (`fs.file-max`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 8192, max = 12_000_500))]
    pub fs_file_max: Option<i32>,
    /// Most inotify watches per user (`fs.inotify.max_user_watches`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 781_250, max = 2_097_152))]
    pub fs_inotify_max_user_watches: Option<i32>,
    /// Most file handles per process (`fs.nr_open`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 8192, max = 20_000_500))]
    pub fs_nr_open: Option<i32>,
    /// Most threads of the node (`kernel.threads-max`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 20, max = 513_785))]
    pub kernel_threads_max: Option<i32>,
    /// Most received packets waiting for the kernel (`net.core.netdev_max_backlog`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1000, max = 3_240_000))]
    pub net_core_netdev_max_backlog: Option<i32>,
    /// Largest ancillary buffer per socket, in bytes (`net.core.optmem_max`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 20_480, max = 4_194_304))]
    pub net_core_optmem_max: Option<i32>,
    /// Default receive buffer of a socket, in bytes (`net.core.rmem_default`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 212_992, max = 134_217_728))]
    pub net_core_rmem_default: Option<i32>,
    /// Largest receive buffer of a socket, in bytes (`net.core.rmem_max`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 212_992, max = 134_217_728))]
    pub net_core_rmem_max: Option<i32>,
    /// Most connections waiting for a listening socket (`net.core.somaxconn`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 4096, max = 3_240_000))]
    pub net_core_somaxconn: Option<i32>,
    /// Default send buffer of a socket, in bytes (`net.core.wmem_default`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 212_992, max = 134_217_728))]
    pub net_core_wmem_default: Option<i32>,
    /// Largest send buffer of a socket, in bytes (`net.core.wmem_max`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 212_992, max = 134_217_728))]
    pub net_core_wmem_max: Option<i32>,
    /// First and last local port, such as `32768 60999` (`net.ipv4.ip_local_port_range`).
    #[serde(rename = "netIPv4IPLocalPortRange", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = r"^\d+ \d+$"))]
    pub net_ipv4_ip_local_port_range: Option<String>,
    /// ARP entries below which none is dropped (`net.ipv4.neigh.default.gc_thresh1`).
    #[serde(rename = "netIPv4NeighDefaultGcThresh1", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 128, max = 80_000))]
    pub net_ipv4_neigh_default_gc_thresh1: Option<i32>,
    /// ARP entries above which old ones are dropped soon (`net.ipv4.neigh.default.gc_thresh2`).
    #[serde(rename = "netIPv4NeighDefaultGcThresh2", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 512, max = 90_000))]
    pub net_ipv4_neigh_default_gc_thresh2: Option<i32>,
    /// Most ARP entries (`net.ipv4.neigh.default.gc_thresh3`).
    #[serde(rename = "netIPv4NeighDefaultGcThresh3", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1024, max = 100_000))]
    pub net_ipv4_neigh_default_gc_thresh3: Option<i32>,
    /// Seconds an orphaned connection waits for its end (`net.ipv4.tcp_fin_timeout`).
    #[serde(rename = "netIPv4TCPFinTimeout", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 5, max = 120))]
    pub net_ipv4_tcp_fin_timeout: Option<i32>,
    /// Unanswered keepalive probes that end a connection (`net.ipv4.tcp_keepalive_probes`).
    #[serde(rename = "netIPv4TCPKeepaliveProbes", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 15))]
    pub net_ipv4_tcp_keepalive_probes: Option<i32>,
    /// Idle seconds before the first keepalive probe (`net.ipv4.tcp_keepalive_time`).
    #[serde(rename = "netIPv4TCPKeepaliveTime", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 30, max = 432_000))]
    pub net_ipv4_tcp_keepalive_time: Option<i32>,
    /// Most connection requests waiting for an answer (`net.ipv4.tcp_max_syn_backlog`).
    #[serde(rename = "netIPv4TCPMaxSynBacklog", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 128, max = 3_240_000))]
    pub net_ipv4_tcp_max_syn_backlog: Option<i32>,
    /// Most sockets in TIME_WAIT (`net.ipv4.tcp_max_tw_buckets`).
    #[serde(rename = "netIPv4TCPMaxTwBuckets", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 8000, max = 1_440_000))]
    pub net_ipv4_tcp_max_tw_buckets: Option<i32>,
    /// Whether sockets in TIME_WAIT are used again (`net.ipv4.tcp_tw_reuse`).
    #[serde(rename = "netIPv4TCPTwReuse", skip_serializing_if = "Option::is_none")]
    pub net_ipv4_tcp_tw_reuse: Option<bool>,
    /// Seconds between keepalive probes (`net.ipv4.tcp_keepalive_intvl`).
    #[serde(rename = "netIPv4TCPKeepaliveIntvl", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 90))]
    pub net_ipv4_tcp_keepalive_intvl: Option<i32>,
    /// Size of the connection tracking table (`net.netfilter.nf_conntrack_buckets`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 65_536, max = 524_288))]
    pub net_netfilter_nf_conntrack_buckets: Option<i32>,
    /// Most tracked connections (`net.netfilter.nf_conntrack_max`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 131_072, max = 2_097_152))]
    pub net_netfilter_nf_conntrack_max: Option<i32>,
    /// Most memory map areas of a process (`vm.max_map_count`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 65_530, max = 262_144))]
    pub vm_max_map_count: Option<i32>,
    /// How readily memory is swapped out (`vm.swappiness`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub vm_swappiness: Option<i32>,
    /// How readily cached directory entries are dropped (`vm.vfs_cache_pressure`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub vm_vfs_cache_pressure: Option<i32>,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;

    /// The sysctls of AKS with the least and the most each may be.
    const RANGES: [(&str, i32, i32); 26] = [
        ("fsAioMaxNr", 65_536, 6_553_500),
        ("fsFileMax", 8_192, 12_000_500),
        ("fsInotifyMaxUserWatches", 781_250, 2_097_152),
        ("fsNrOpen", 8_192, 20_000_500),
        ("kernelThreadsMax", 20, 513_785),
        ("netCoreNetdevMaxBacklog", 1_000, 3_240_000),
        ("netCoreOptmemMax", 20_480, 4_194_304),
        ("netCoreRmemDefault", 212_992, 134_217_728),
        ("netCoreRmemMax", 212_992, 134_217_728),
        ("netCoreSomaxconn", 4_096, 3_240_000),
        ("netCoreWmemDefault", 212_992, 134_217_728),
        ("netCoreWmemMax", 212_992, 134_217_728),
        ("netIPv4NeighDefaultGcThresh1", 128, 80_000),
        ("netIPv4NeighDefaultGcThresh2", 512, 90_000),
        ("netIPv4NeighDefaultGcThresh3", 1_024, 100_000),
        ("netIPv4TCPFinTimeout", 5, 120),
        ("netIPv4TCPKeepaliveIntvl", 10, 90),
        ("netIPv4TCPKeepaliveProbes", 1, 15),
        ("netIPv4TCPKeepaliveTime", 30, 432_000),
        ("netIPv4TCPMaxSynBacklog", 128, 3_240_000),
        ("netIPv4TCPMaxTwBuckets", 8_000, 1_440_000),
        ("netNetfilterNfConntrackBuckets", 65_536, 524_288),
        ("netNetfilterNfConntrackMax", 131_072, 2_097_152),
        ("vmMaxMapCount", 65_530, 262_144),
        ("vmSwappiness", 0, 100),
        ("vmVfsCachePressure", 0, 100),
    ];

    #[test]
    fn every_sysctl_has_the_range_aks_supports() {
        let schema = schemars::schema_for!(SysctlConfiguration);
        let properties = schema.get("properties").and_then(Value::as_object).unwrap();
        let ranged = |(_, property): &(&String, &Value)| property.get("minimum").is_some();
        let actual: BTreeMap<_, _> = properties
            .iter()
            .filter(ranged)
            .map(|(name, property)| {
                (
                    name.as_str(),
                    (property["minimum"].clone(), property["maximum"].clone()),
                )
            })
            .collect();
        let expected: BTreeMap<_, _> = RANGES
            .into_iter()
            .map(|(name, least, most)| (name, (json!(least), json!(most))))
            .collect();
        assert_eq!(actual, expected);
    }

    #[test]
    fn sysctls_are_written_back_as_they_were_read() {
        let mut written: Value = RANGES
            .into_iter()
            .map(|(name, least, _)| (name.to_owned(), json!(least)))
            .collect();
        written["netIPv4IPLocalPortRange"] = json!("32768 60999");
        written["netIPv4TCPTwReuse"] = json!(true);
        let read: SysctlConfiguration = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), written);
    }
}
