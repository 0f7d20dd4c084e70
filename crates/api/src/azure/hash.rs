//! The drift hash of an `AKSNodeClass`, bit-equal to upstream's version v3: nodes whose recorded hash differs are
//! replaced.
//!
//! Fields are listed by Go name in Go's declaration order. Tags are left out, since a change of tags is applied in
//! place. In Go a zero value is skipped, but a pointer to zero and a present empty list are not zero.

use super::{
    AKSNodeClass, AKSNodeClassSpec, ArtifactStreaming, Gpu, KubeletConfiguration, LinuxOsConfiguration, LocalDns,
    LocalDnsZoneOverride, Security, SysctlConfiguration, TrustedLaunch,
};
use crate::{
    duration::{Duration, NillableDuration},
    hash::{self, Struct},
};

/// Says which algorithm made a recorded hash. Hashes of different versions are not compared.
pub const AKSNODECLASS_HASH_VERSION: &str = "v3";

impl AKSNodeClass {
    /// The hash of everything that a running virtual machine cannot change.
    pub fn hash(&self) -> String {
        self.spec.hash().to_string()
    }
}

impl AKSNodeClassSpec {
    fn hash(&self) -> u64 {
        Struct::new("AKSNodeClassSpec")
            .field("VNETSubnetID", self.vnet_subnet_id.as_deref().map(hash::string))
            .field("OSDiskSizeGB", self.os_disk_size_gb.map(hash::int32))
            .field(
                "ImageFamily",
                self.image_family.as_ref().map(|word| hash::string(word.as_str())),
            )
            .field(
                "FIPSMode",
                self.fips_mode.as_ref().map(|word| hash::string(word.as_str())),
            )
            .field("Kubelet", self.kubelet.as_ref().map(KubeletConfiguration::hash))
            .field("MaxPods", self.max_pods.map(hash::int32))
            .field("Security", self.security.as_ref().map(Security::hash))
            .field("LocalDNS", self.local_dns.as_ref().map(LocalDns::hash))
            .field("GPU", self.gpu.as_ref().map(Gpu::hash))
            .field(
                "ArtifactStreaming",
                self.artifact_streaming.as_ref().map(ArtifactStreaming::hash),
            )
            .field(
                "LinuxOSConfig",
                self.linux_os_config.as_ref().map(LinuxOsConfiguration::hash),
            )
            .done()
    }
}

impl KubeletConfiguration {
    fn hash(&self) -> u64 {
        let sysctls = self.allowed_unsafe_sysctls.as_ref();
        // Held by value in Go, so that a zero period counts as absent.
        let quota_period = self.cpu_cfs_quota_period.filter(|period| period.as_nanos() != 0);
        Struct::new("KubeletConfiguration")
            .field(
                "CPUManagerPolicy",
                self.cpu_manager_policy.as_ref().map(|word| hash::string(word.as_str())),
            )
            .field("CPUCFSQuota", self.cpu_cfs_quota.map(hash::boolean))
            .field("CPUCFSQuotaPeriod", quota_period.map(Duration::hash))
            .field(
                "ImageGCHighThresholdPercent",
                self.image_gc_high_threshold_percent.map(hash::int32),
            )
            .field(
                "ImageGCLowThresholdPercent",
                self.image_gc_low_threshold_percent.map(hash::int32),
            )
            .field(
                "TopologyManagerPolicy",
                self.topology_manager_policy
                    .as_ref()
                    .map(|word| hash::string(word.as_str())),
            )
            .field(
                "AllowedUnsafeSysctls",
                sysctls.map(|names| hash::set(names.iter().map(|name| hash::string(name)))),
            )
            .field(
                "ContainerLogMaxSize",
                self.container_log_max_size.as_deref().map(hash::string),
            )
            .field("ContainerLogMaxFiles", self.container_log_max_files.map(hash::int32))
            .field("PodPidsLimit", self.pod_pids_limit.map(hash::int64))
            .field("FailSwapOn", self.fail_swap_on.map(hash::boolean))
            .done()
    }
}

impl Security {
    fn hash(&self) -> u64 {
        Struct::new("Security")
            .field("EncryptionAtHost", self.encryption_at_host.map(hash::boolean))
            .field("TrustedLaunch", self.trusted_launch.as_ref().map(TrustedLaunch::hash))
            .done()
    }
}

impl TrustedLaunch {
    fn hash(&self) -> u64 {
        Struct::new("TrustedLaunch")
            .field("VTPM", self.vtpm.map(hash::boolean))
            .field("SecureBoot", self.secure_boot.map(hash::boolean))
            .done()
    }
}

impl LocalDns {
    fn hash(&self) -> u64 {
        let zones = |zones: &Vec<LocalDnsZoneOverride>| hash::set(zones.iter().map(LocalDnsZoneOverride::hash));
        Struct::new("LocalDNS")
            .field("Mode", self.mode.as_ref().map(|word| hash::string(word.as_str())))
            .field("VnetDNSOverrides", self.vnet_dns_overrides.as_ref().map(zones))
            .field("KubeDNSOverrides", self.kube_dns_overrides.as_ref().map(zones))
            .done()
    }
}

impl LocalDnsZoneOverride {
    fn hash(&self) -> u64 {
        Struct::new("LocalDNSZoneOverride")
            .field("Zone", self.zone.as_deref().map(hash::string))
            .field(
                "QueryLogging",
                self.query_logging.as_ref().map(|word| hash::string(word.as_str())),
            )
            .field(
                "Protocol",
                self.protocol.as_ref().map(|word| hash::string(word.as_str())),
            )
            .field(
                "ForwardDestination",
                self.forward_destination
                    .as_ref()
                    .map(|word| hash::string(word.as_str())),
            )
            .field(
                "ForwardPolicy",
                self.forward_policy.as_ref().map(|word| hash::string(word.as_str())),
            )
            .field("MaxConcurrent", self.max_concurrent.map(hash::int32))
            .field(
                "CacheDuration",
                self.cache_duration.as_ref().and_then(NillableDuration::hash),
            )
            .field(
                "ServeStaleDuration",
                self.serve_stale_duration.as_ref().and_then(NillableDuration::hash),
            )
            .field(
                "ServeStale",
                self.serve_stale.as_ref().map(|word| hash::string(word.as_str())),
            )
            .done()
    }
}

impl Gpu {
    fn hash(&self) -> u64 {
        Struct::new("GPU")
            .field("Mode", self.mode.as_ref().map(|word| hash::string(word.as_str())))
            .done()
    }
}

impl ArtifactStreaming {
    fn hash(&self) -> u64 {
        Struct::new("ArtifactStreaming")
            .field("Enabled", self.enabled.map(hash::boolean))
            .done()
    }
}

impl LinuxOsConfiguration {
    fn hash(&self) -> u64 {
        let (defrag, enabled) = (&self.transparent_huge_page_defrag, &self.transparent_huge_page_enabled);
        Struct::new("LinuxOSConfiguration")
            .field("SwapFileSize", self.swap_file_size.as_deref().map(hash::string))
            .field("Sysctls", self.sysctls.as_ref().map(SysctlConfiguration::hash))
            .field(
                "TransparentHugePageDefrag",
                defrag.as_ref().map(|word| hash::string(word.as_str())),
            )
            .field(
                "TransparentHugePageEnabled",
                enabled.as_ref().map(|word| hash::string(word.as_str())),
            )
            .done()
    }
}

impl SysctlConfiguration {
    fn hash(&self) -> u64 {
        Struct::new("SysctlConfiguration")
            .field("FsAioMaxNr", self.fs_aio_max_nr.map(hash::int32))
            .field("FsFileMax", self.fs_file_max.map(hash::int32))
            .field(
                "FsInotifyMaxUserWatches",
                self.fs_inotify_max_user_watches.map(hash::int32),
            )
            .field("FsNrOpen", self.fs_nr_open.map(hash::int32))
            .field("KernelThreadsMax", self.kernel_threads_max.map(hash::int32))
            .field(
                "NetCoreNetdevMaxBacklog",
                self.net_core_netdev_max_backlog.map(hash::int32),
            )
            .field("NetCoreOptmemMax", self.net_core_optmem_max.map(hash::int32))
            .field("NetCoreRmemDefault", self.net_core_rmem_default.map(hash::int32))
            .field("NetCoreRmemMax", self.net_core_rmem_max.map(hash::int32))
            .field("NetCoreSomaxconn", self.net_core_somaxconn.map(hash::int32))
            .field("NetCoreWmemDefault", self.net_core_wmem_default.map(hash::int32))
            .field("NetCoreWmemMax", self.net_core_wmem_max.map(hash::int32))
            .field(
                "NetIPv4IPLocalPortRange",
                self.net_ipv4_ip_local_port_range.as_deref().map(hash::string),
            )
            .field(
                "NetIPv4NeighDefaultGcThresh1",
                self.net_ipv4_neigh_default_gc_thresh1.map(hash::int32),
            )
            .field(
                "NetIPv4NeighDefaultGcThresh2",
                self.net_ipv4_neigh_default_gc_thresh2.map(hash::int32),
            )
            .field(
                "NetIPv4NeighDefaultGcThresh3",
                self.net_ipv4_neigh_default_gc_thresh3.map(hash::int32),
            )
            .field("NetIPv4TCPFinTimeout", self.net_ipv4_tcp_fin_timeout.map(hash::int32))
            .field(
                "NetIPv4TCPKeepaliveProbes",
                self.net_ipv4_tcp_keepalive_probes.map(hash::int32),
            )
            .field(
                "NetIPv4TCPKeepaliveTime",
                self.net_ipv4_tcp_keepalive_time.map(hash::int32),
            )
            .field(
                "NetIPv4TCPMaxSynBacklog",
                self.net_ipv4_tcp_max_syn_backlog.map(hash::int32),
            )
            .field(
                "NetIPv4TCPMaxTwBuckets",
                self.net_ipv4_tcp_max_tw_buckets.map(hash::int32),
            )
            .field("NetIPv4TCPTwReuse", self.net_ipv4_tcp_tw_reuse.map(hash::boolean))
            .field(
                "NetIPv4TCPKeepaliveIntvl",
                self.net_ipv4_tcp_keepalive_intvl.map(hash::int32),
            )
            .field(
                "NetNetfilterNfConntrackBuckets",
                self.net_netfilter_nf_conntrack_buckets.map(hash::int32),
            )
            .field(
                "NetNetfilterNfConntrackMax",
                self.net_netfilter_nf_conntrack_max.map(hash::int32),
            )
            .field("VMMaxMapCount", self.vm_max_map_count.map(hash::int32))
            .field("VMSwappiness", self.vm_swappiness.map(hash::int32))
            .field("VMVfsCachePressure", self.vm_vfs_cache_pressure.map(hash::int32))
            .done()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash_vectors;

    #[test]
    fn hashes_equal_those_of_upstream() {
        hash_vectors::check(include_str!("hash_vectors.json"), |spec, _| {
            AKSNodeClass::new("default", serde_json::from_value(spec).unwrap()).hash()
        });
    }
}
