//! What does a node class say of the kubelet, of Linux and of DNS, in the words of AKS? Both the machine API and the node
//! bootstrapping service take them; a script of our own can set a few of them only.

use std::collections::BTreeMap;

use api::{
    azure::{
        AKSNodeClass, KubeletConfiguration, LinuxOsConfiguration, LocalDns, LocalDnsMode, LocalDnsZoneOverride,
        SysctlConfiguration,
    },
    duration::NillableDuration,
};
use model::quantity::Quantity;
use serde_json::{Map, Value};

use crate::{
    arm::wire::aks::{KubeletConfig, LinuxOsConfig, LocalDnsOverride, LocalDnsProfile},
    class::Class,
};

/// The settings of the kubelet.
pub(super) fn kubelet(it: &KubeletConfiguration) -> KubeletConfig {
    let sysctls = it.allowed_unsafe_sysctls.clone().filter(|list| !list.is_empty());
    let period = it.cpu_cfs_quota_period.filter(|it| it.as_nanos() != 0);
    KubeletConfig {
        cpu_manager_policy: it.cpu_manager_policy.as_ref().and_then(|it| worded(it.as_str())),
        cpu_cfs_quota: it.cpu_cfs_quota,
        cpu_cfs_quota_period: period.map(|it| it.to_string()),
        image_gc_high_threshold: it.image_gc_high_threshold_percent,
        image_gc_low_threshold: it.image_gc_low_threshold_percent,
        topology_manager_policy: it.topology_manager_policy.as_ref().and_then(|it| worded(it.as_str())),
        allowed_unsafe_sysctls: sysctls,
        fail_swap_on: it.fail_swap_on,
        container_log_max_size_mb: it.container_log_max_size.as_deref().and_then(mebibytes),
        container_log_max_files: it.container_log_max_files,
        pod_max_pids: it.pod_pids_limit.map(pids),
    }
}

fn worded(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Without a limit it is -1.
fn pids(limit: i64) -> i32 {
    if limit < 0 {
        return -1;
    }
    i32::try_from(limit).unwrap_or(i32::MAX)
}

/// A size in MiB, to the nearest one; what AKS calls megabytes.
fn mebibytes(text: &str) -> Option<i32> {
    const MEBIBYTE: i128 = (1 << 20) * 1_000_000_000;
    let size: Quantity = text.parse().ok()?;
    i32::try_from((size.nanos() + MEBIBYTE / 2) / MEBIBYTE).ok()
}

/// The settings of Linux.
pub(super) fn linux(it: &LinuxOsConfiguration) -> LinuxOsConfig {
    LinuxOsConfig {
        sysctls: it.sysctls.as_ref().map(sysctls).unwrap_or_default(),
        transparent_huge_page_enabled: it
            .transparent_huge_page_enabled
            .as_ref()
            .and_then(|it| worded(it.as_str())),
        transparent_huge_page_defrag: it
            .transparent_huge_page_defrag
            .as_ref()
            .and_then(|it| worded(it.as_str())),
        swap_file_size_mb: it.swap_file_size.as_deref().and_then(mebibytes),
    }
}

/// The same values; AKS spells the names of the protocols otherwise, and one of them in a way of its own.
fn sysctls(it: &SysctlConfiguration) -> Map<String, Value> {
    let Ok(Value::Object(all)) = serde_json::to_value(it) else {
        return Map::new();
    };
    let renamed = |name: String| match name.as_str() {
        "netIPv4TCPKeepaliveIntvl" => "netIpv4TcpkeepaliveIntvl".to_owned(),
        other => other
            .replace("netIPv4TCP", "netIpv4Tcp")
            .replace("netIPv4IP", "netIpv4Ip")
            .replace("netIPv4", "netIpv4"),
    };
    all.into_iter().map(|(name, value)| (renamed(name), value)).collect()
}

/// The DNS cache. A preference is decided on once, in the class's status: nobody is to decide on it again.
pub(super) fn local_dns(class: &AKSNodeClass) -> Option<LocalDnsProfile> {
    let LocalDns {
        mode,
        vnet_dns_overrides,
        kube_dns_overrides,
    } = class.spec.local_dns.as_ref()?;
    let mode = match mode {
        Some(LocalDnsMode::Preferred) if Class(class).is_local_dns_enabled() => Some("Required"),
        Some(LocalDnsMode::Preferred) => Some("Disabled"),
        other => other.as_ref().map(LocalDnsMode::as_str),
    };
    Some(LocalDnsProfile {
        mode: mode.map(str::to_owned),
        vnet_dns_overrides: zones(vnet_dns_overrides.as_deref()),
        kube_dns_overrides: zones(kube_dns_overrides.as_deref()),
    })
}

fn zones(overrides: Option<&[LocalDnsZoneOverride]>) -> BTreeMap<String, LocalDnsOverride> {
    let one = |it: &LocalDnsZoneOverride| LocalDnsOverride {
        query_logging: it.query_logging.as_ref().map(|it| it.as_str().to_owned()),
        protocol: it.protocol.as_ref().map(|it| it.as_str().to_owned()),
        forward_destination: it.forward_destination.as_ref().map(|it| it.as_str().to_owned()),
        forward_policy: it.forward_policy.as_ref().map(|it| it.as_str().to_owned()),
        max_concurrent: it.max_concurrent,
        cache_duration_in_seconds: it.cache_duration.as_ref().and_then(seconds),
        serve_stale_duration_in_seconds: it.serve_stale_duration.as_ref().and_then(seconds),
        serve_stale: it.serve_stale.as_ref().map(|it| it.as_str().to_owned()),
    };
    let all = overrides.unwrap_or_default().iter();
    all.filter_map(|it| Some((it.zone.clone()?, one(it)))).collect()
}

/// Whole seconds; none for never.
fn seconds(it: &NillableDuration) -> Option<i32> {
    let seconds = it.span()?.as_nanos() / 1_000_000_000;
    i32::try_from(seconds).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_kubelets_settings_have_aks_names_and_units() {
        let class: KubeletConfiguration = serde_json::from_value(json!({
            "cpuManagerPolicy": "static", "cpuCFSQuota": true, "cpuCFSQuotaPeriod": "100ms",
            "imageGCHighThresholdPercent": 85, "imageGCLowThresholdPercent": 80, "topologyManagerPolicy": "best-effort",
            "allowedUnsafeSysctls": ["net.core.somaxconn"], "containerLogMaxSize": "50Mi", "containerLogMaxFiles": 5,
            "podPidsLimit": 4096, "failSwapOn": false,
        }))
        .unwrap();
        assert_eq!(
            serde_json::to_value(kubelet(&class)).unwrap(),
            json!({"cpuManagerPolicy": "static", "cpuCfsQuota": true, "cpuCfsQuotaPeriod": "100ms",
                "imageGcHighThreshold": 85, "imageGcLowThreshold": 80, "topologyManagerPolicy": "best-effort",
                "allowedUnsafeSysctls": ["net.core.somaxconn"], "containerLogMaxSizeMB": 50, "containerLogMaxFiles": 5,
                "podMaxPids": 4096, "failSwapOn": false})
        );
        let nothing = kubelet(&KubeletConfiguration::default());
        assert_eq!(serde_json::to_value(nothing).unwrap(), json!({}));
    }

    #[test]
    fn sizes_are_rounded_to_mebibytes_and_nonsense_is_left_out() {
        let cases = [
            ("50Mi", Some(50)),
            ("1Gi", Some(1024)),
            ("100M", Some(95)),
            ("512Ki", Some(1)),
            ("511Ki", Some(0)),
            ("a lot", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(mebibytes(text), expected, "{text}");
        }
    }

    #[test]
    fn a_limit_of_processes_fits_into_32_bits() {
        let cases = [(4096, 4096), (-1, -1), (-7, -1), (i64::MAX, i32::MAX), (0, 0)];
        for (limit, expected) in cases {
            assert_eq!(pids(limit), expected, "{limit}");
        }
    }

    #[test]
    fn sysctls_keep_their_values_under_aks_names() {
        let class: LinuxOsConfiguration = serde_json::from_value(json!({
            "swapFileSize": "1500Mi", "transparentHugePageDefrag": "defer+madvise", "transparentHugePageEnabled": "madvise",
            "sysctls": {"netIPv4TCPKeepaliveIntvl": 30, "netIPv4TCPTwReuse": true, "vmSwappiness": 10,
                "netIPv4IPLocalPortRange": "32768 60999", "netIPv4NeighDefaultGcThresh1": 4096,
                "netNetfilterNfConntrackMax": 131_072},
        }))
        .unwrap();
        assert_eq!(
            serde_json::to_value(linux(&class)).unwrap(),
            json!({"swapFileSizeMB": 1500, "transparentHugePageDefrag": "defer+madvise",
                "transparentHugePageEnabled": "madvise",
                "sysctls": {"netIpv4TcpkeepaliveIntvl": 30, "netIpv4TcpTwReuse": true, "vmSwappiness": 10,
                    "netIpv4IpLocalPortRange": "32768 60999", "netIpv4NeighDefaultGcThresh1": 4096,
                    "netNetfilterNfConntrackMax": 131_072}})
        );
        assert_eq!(
            serde_json::to_value(linux(&LinuxOsConfiguration::default())).unwrap(),
            json!({})
        );
    }

    fn dns(mode: &str, state: &str) -> Option<Value> {
        let zone = json!({"zone": ".", "queryLogging": "Error", "protocol": "PreferUDP", "forwardDestination": "VnetDNS",
            "forwardPolicy": "Sequential", "maxConcurrent": 1000, "cacheDuration": "1h", "serveStaleDuration": "90s",
            "serveStale": "Immediate"});
        let class: AKSNodeClass = serde_json::from_value(json!({
            "apiVersion": "karpenter.azure.com/v1beta1", "kind": "AKSNodeClass", "metadata": {"name": "c"},
            "spec": {"localDNS": {"mode": mode, "vnetDNSOverrides": [zone], "kubeDNSOverrides": []}},
            "status": {"localDNSState": state},
        }))
        .unwrap();
        local_dns(&class).map(|it| serde_json::to_value(it).unwrap())
    }

    #[test]
    fn overrides_of_dns_are_told_by_zone_with_their_times_in_seconds() {
        assert_eq!(
            dns("Required", "Enabled").unwrap(),
            json!({"mode": "Required", "vnetDNSOverrides": {".": {"queryLogging": "Error", "protocol": "PreferUDP",
                "forwardDestination": "VnetDNS", "forwardPolicy": "Sequential", "maxConcurrent": 1000,
                "cacheDurationInSeconds": 3600, "serveStaleDurationInSeconds": 90, "serveStale": "Immediate"}}})
        );
        assert_eq!(local_dns(&AKSNodeClass::default()), None);
    }

    #[test]
    fn a_preference_for_dns_is_never_passed_on_undecided() {
        let mode = |mode: &str, state: &str| dns(mode, state).unwrap()["mode"].clone();
        assert_eq!(mode("Preferred", "Enabled"), "Required");
        assert_eq!(mode("Preferred", "Disabled"), "Disabled");
        assert_eq!(mode("Disabled", "Enabled"), "Disabled");
    }
}
