//! Kubelet settings as command-line flags, for the families whose bootstrap script takes those.

use std::{collections::BTreeMap, fmt::Display};

use super::Bootstrap;

/// The flags, in the contract's order. Maps are sorted, so that equal settings make equal user data.
pub(super) fn kubelet_flags(bootstrap: &Bootstrap) -> Vec<String> {
    let kubelet = &bootstrap.kubelet;
    let number = |flag: &str, value: Option<i32>| value.map(|value| format!("--{flag}={value}"));
    let all = [
        node_labels(bootstrap),
        Some(node_taints(bootstrap)),
        number("max-pods", kubelet.max_pods),
        number("pods-per-core", kubelet.pods_per_core),
        pairs("system-reserved", kubelet.system_reserved.as_ref(), "="),
        pairs("kube-reserved", kubelet.kube_reserved.as_ref(), "="),
        pairs("eviction-hard", kubelet.eviction_hard.as_ref(), "<"),
        pairs("eviction-soft", kubelet.eviction_soft.as_ref(), "<"),
        pairs(
            "eviction-soft-grace-period",
            kubelet.eviction_soft_grace_period.as_ref(),
            "=",
        ),
        number("eviction-max-pod-grace-period", kubelet.eviction_max_pod_grace_period),
        number("image-gc-high-threshold", kubelet.image_gc_high_threshold_percent),
        number("image-gc-low-threshold", kubelet.image_gc_low_threshold_percent),
        kubelet.cpu_cfs_quota.map(|quota| format!("--cpu-cfs-quota={quota}")),
    ];
    all.into_iter().flatten().collect()
}

/// `--node-labels`; none without labels.
pub(super) fn node_labels(bootstrap: &Bootstrap) -> Option<String> {
    pairs("node-labels", Some(&bootstrap.labels), "=")
}

fn node_taints(bootstrap: &Bootstrap) -> String {
    let taints: Vec<String> = bootstrap
        .taints
        .iter()
        .map(|taint| match &*taint.value {
            "" => format!("{}:{}", taint.key, taint.effect),
            value => format!("{}={value}:{}", taint.key, taint.effect),
        })
        .collect();
    format!("--register-with-taints={}", quoted(&taints.join(",")))
}

fn pairs(flag: &str, map: Option<&BTreeMap<String, impl Display>>, separator: &str) -> Option<String> {
    let pairs: Vec<String> = map?
        .iter()
        .map(|(key, value)| format!("{key}{separator}{value}"))
        .collect();
    (!pairs.is_empty()).then(|| format!("--{flag}={}", quoted(&pairs.join(","))))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
