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
pub const AKS_NODE_CLASS_HASH_VERSION: &str = "v3";
/// Holds the hash, on the node class and on each NodeClaim launched from it.
pub const ANNOTATION_AKS_NODE_CLASS_HASH: &str = "karpenter.azure.com/aksnodeclass-hash";
/// Holds the hash's version, beside the hash.
pub const ANNOTATION_AKS_NODE_CLASS_HASH_VERSION: &str = "karpenter.azure.com/aksnodeclass-hash-version";

impl AKSNodeClass {
    /// The hash of everything that a running virtual machine cannot change.
    pub fn hash(&self) -> String {
        spec(&self.spec).to_string()
    }
}

fn spec(spec: &AKSNodeClassSpec) -> u64 {
    Struct::new("AKSNodeClassSpec")
        .field("VNETSubnetID", spec.vnet_subnet_id.as_deref().map(hash::string))
        .field("OSDiskSizeGB", spec.os_disk_size_gb.map(hash::int32))
        .field("ImageFamily", spec.image_family.as_ref().map(|word| hash::string(word.as_str())))
        .field("FIPSMode", spec.fips_mode.as_ref().map(|word| hash::string(word.as_str())))
        .field("Kubelet", spec.kubelet.as_ref().map(kubelet))
        .field("MaxPods", spec.max_pods.map(hash::int32))
        .field("Security", spec.security.as_ref().map(security))
        .field("LocalDNS", spec.local_dns.as_ref().map(local_dns))
        .field("GPU", spec.gpu.as_ref().map(gpu))
        .field("ArtifactStreaming", spec.artifact_streaming.as_ref().map(artifact_streaming))
        .field("LinuxOSConfig", spec.linux_os_config.as_ref().map(linux_os_configuration))
        .done()
}

fn kubelet(kubelet: &KubeletConfiguration) -> u64 {
    let sysctls = kubelet.allowed_unsafe_sysctls.as_ref();
    Struct::new("KubeletConfiguration")
        .field("CPUManagerPolicy", kubelet.cpu_manager_policy.as_ref().map(|word| hash::string(word.as_str())))
        .field("CPUCFSQuota", kubelet.cpu_cfs_quota.map(hash::boolean))
        .field("CPUCFSQuotaPeriod", kubelet.cpu_cfs_quota_period.and_then(duration))
        .field("ImageGCHighThresholdPercent", kubelet.image_gc_high_threshold_percent.map(hash::int32))
        .field("ImageGCLowThresholdPercent", kubelet.image_gc_low_threshold_percent.map(hash::int32))
        .field("TopologyManagerPolicy", kubelet.topology_manager_policy.as_ref().map(|word| hash::string(word.as_str())))
        .field("AllowedUnsafeSysctls", sysctls.map(|names| hash::set(names.iter().map(|name| hash::string(name)))))
        .field("ContainerLogMaxSize", kubelet.container_log_max_size.as_deref().map(hash::string))
        .field("ContainerLogMaxFiles", kubelet.container_log_max_files.map(hash::int32))
        .field("PodPidsLimit", kubelet.pod_pids_limit.map(hash::int64))
        .field("FailSwapOn", kubelet.fail_swap_on.map(hash::boolean))
        .done()
}

/// A `metav1.Duration` held by value: a struct around the nanoseconds, whose zero counts as absent.
fn duration(span: Duration) -> Option<u64> {
    let nanos = Some(span.as_nanos()).filter(|nanos| *nanos != 0)?;
    Some(Struct::new("Duration").field("Duration", hash::int64(nanos)).done())
}

/// A `NillableDuration`: a struct around a pointer to the nanoseconds. `Never` is its zero, and zero nanoseconds are not.
fn nillable_duration(span: &NillableDuration) -> Option<u64> {
    let nanos = span.span()?.as_nanos();
    Some(Struct::new("NillableDuration").field("Duration", hash::int64(nanos)).done())
}

fn security(security: &Security) -> u64 {
    Struct::new("Security")
        .field("EncryptionAtHost", security.encryption_at_host.map(hash::boolean))
        .field("TrustedLaunch", security.trusted_launch.as_ref().map(trusted_launch))
        .done()
}

fn trusted_launch(launch: &TrustedLaunch) -> u64 {
    Struct::new("TrustedLaunch")
        .field("VTPM", launch.vtpm.map(hash::boolean))
        .field("SecureBoot", launch.secure_boot.map(hash::boolean))
        .done()
}

fn local_dns(dns: &LocalDns) -> u64 {
    let zones = |zones: &Vec<LocalDnsZoneOverride>| hash::set(zones.iter().map(zone_override));
    Struct::new("LocalDNS")
        .field("Mode", dns.mode.as_ref().map(|word| hash::string(word.as_str())))
        .field("VnetDNSOverrides", dns.vnet_dns_overrides.as_ref().map(zones))
        .field("KubeDNSOverrides", dns.kube_dns_overrides.as_ref().map(zones))
        .done()
}

fn zone_override(zone: &LocalDnsZoneOverride) -> u64 {
    Struct::new("LocalDNSZoneOverride")
        .field("Zone", zone.zone.as_deref().map(hash::string))
        .field("QueryLogging", zone.query_logging.as_ref().map(|word| hash::string(word.as_str())))
        .field("Protocol", zone.protocol.as_ref().map(|word| hash::string(word.as_str())))
        .field("ForwardDestination", zone.forward_destination.as_ref().map(|word| hash::string(word.as_str())))
        .field("ForwardPolicy", zone.forward_policy.as_ref().map(|word| hash::string(word.as_str())))
        .field("MaxConcurrent", zone.max_concurrent.map(hash::int32))
        .field("CacheDuration", zone.cache_duration.as_ref().and_then(nillable_duration))
        .field("ServeStaleDuration", zone.serve_stale_duration.as_ref().and_then(nillable_duration))
        .field("ServeStale", zone.serve_stale.as_ref().map(|word| hash::string(word.as_str())))
        .done()
}

fn gpu(gpu: &Gpu) -> u64 {
    Struct::new("GPU").field("Mode", gpu.mode.as_ref().map(|word| hash::string(word.as_str()))).done()
}

fn artifact_streaming(streaming: &ArtifactStreaming) -> u64 {
    Struct::new("ArtifactStreaming").field("Enabled", streaming.enabled.map(hash::boolean)).done()
}

fn linux_os_configuration(linux: &LinuxOsConfiguration) -> u64 {
    let (defrag, enabled) = (&linux.transparent_huge_page_defrag, &linux.transparent_huge_page_enabled);
    Struct::new("LinuxOSConfiguration")
        .field("SwapFileSize", linux.swap_file_size.as_deref().map(hash::string))
        .field("Sysctls", linux.sysctls.as_ref().map(sysctl_configuration))
        .field("TransparentHugePageDefrag", defrag.as_ref().map(|word| hash::string(word.as_str())))
        .field("TransparentHugePageEnabled", enabled.as_ref().map(|word| hash::string(word.as_str())))
        .done()
}

fn sysctl_configuration(sysctls: &SysctlConfiguration) -> u64 {
    Struct::new("SysctlConfiguration")
        .field("FsAioMaxNr", sysctls.fs_aio_max_nr.map(hash::int32))
        .field("FsFileMax", sysctls.fs_file_max.map(hash::int32))
        .field("FsInotifyMaxUserWatches", sysctls.fs_inotify_max_user_watches.map(hash::int32))
        .field("FsNrOpen", sysctls.fs_nr_open.map(hash::int32))
        .field("KernelThreadsMax", sysctls.kernel_threads_max.map(hash::int32))
        .field("NetCoreNetdevMaxBacklog", sysctls.net_core_netdev_max_backlog.map(hash::int32))
        .field("NetCoreOptmemMax", sysctls.net_core_optmem_max.map(hash::int32))
        .field("NetCoreRmemDefault", sysctls.net_core_rmem_default.map(hash::int32))
        .field("NetCoreRmemMax", sysctls.net_core_rmem_max.map(hash::int32))
        .field("NetCoreSomaxconn", sysctls.net_core_somaxconn.map(hash::int32))
        .field("NetCoreWmemDefault", sysctls.net_core_wmem_default.map(hash::int32))
        .field("NetCoreWmemMax", sysctls.net_core_wmem_max.map(hash::int32))
        .field("NetIPv4IPLocalPortRange", sysctls.net_ipv4_ip_local_port_range.as_deref().map(hash::string))
        .field("NetIPv4NeighDefaultGcThresh1", sysctls.net_ipv4_neigh_default_gc_thresh1.map(hash::int32))
        .field("NetIPv4NeighDefaultGcThresh2", sysctls.net_ipv4_neigh_default_gc_thresh2.map(hash::int32))
        .field("NetIPv4NeighDefaultGcThresh3", sysctls.net_ipv4_neigh_default_gc_thresh3.map(hash::int32))
        .field("NetIPv4TCPFinTimeout", sysctls.net_ipv4_tcp_fin_timeout.map(hash::int32))
        .field("NetIPv4TCPKeepaliveProbes", sysctls.net_ipv4_tcp_keepalive_probes.map(hash::int32))
        .field("NetIPv4TCPKeepaliveTime", sysctls.net_ipv4_tcp_keepalive_time.map(hash::int32))
        .field("NetIPv4TCPMaxSynBacklog", sysctls.net_ipv4_tcp_max_syn_backlog.map(hash::int32))
        .field("NetIPv4TCPMaxTwBuckets", sysctls.net_ipv4_tcp_max_tw_buckets.map(hash::int32))
        .field("NetIPv4TCPTwReuse", sysctls.net_ipv4_tcp_tw_reuse.map(hash::boolean))
        .field("NetIPv4TCPKeepaliveIntvl", sysctls.net_ipv4_tcp_keepalive_intvl.map(hash::int32))
        .field("NetNetfilterNfConntrackBuckets", sysctls.net_netfilter_nf_conntrack_buckets.map(hash::int32))
        .field("NetNetfilterNfConntrackMax", sysctls.net_netfilter_nf_conntrack_max.map(hash::int32))
        .field("VMMaxMapCount", sysctls.vm_max_map_count.map(hash::int32))
        .field("VMSwappiness", sysctls.vm_swappiness.map(hash::int32))
        .field("VMVfsCachePressure", sysctls.vm_vfs_cache_pressure.map(hash::int32))
        .done()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::{Map, Value};

    use super::*;

    /// Hashes that upstream's own code printed for these objects, among them all that its tests publish.
    #[derive(Deserialize)]
    struct Vectors {
        base: Value,
        vectors: Vec<Vector>,
    }

    #[derive(Deserialize)]
    struct Vector {
        name: String,
        start: String,
        patch: Value,
        hash: String,
    }

    #[test]
    fn hashes_equal_those_of_upstream() {
        let Vectors { base, vectors } = serde_json::from_str(include_str!("hash_vectors.json")).unwrap();
        let (mut expected, mut actual) = (BTreeMap::new(), BTreeMap::new());
        for Vector { name, start, patch, hash } in vectors {
            let start = if start == "base" { &base } else { &Value::Null };
            let spec: AKSNodeClassSpec = serde_json::from_value(merge(start, &patch)).unwrap();
            actual.insert(name.clone(), AKSNodeClass::new("default", spec).hash());
            expected.insert(name, hash);
        }
        assert_eq!(actual, expected);
        assert_eq!(actual.len(), 43);
    }

    /// RFC 7386.
    fn merge(target: &Value, patch: &Value) -> Value {
        let Value::Object(patch) = patch else { return patch.clone() };
        let mut merged = target.as_object().cloned().unwrap_or_else(Map::new);
        for (key, value) in patch {
            match value {
                Value::Null => drop(merged.remove(key)),
                value => drop(merged.insert(key.clone(), merge(merged.get(key).unwrap_or(&Value::Null), value))),
            }
        }
        merged.into()
    }
}
