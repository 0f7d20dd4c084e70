//! Bottlerocket: settings in TOML. The user's are kept, and ours are laid over them.

use std::{collections::BTreeMap, fmt::Display};

use toml::{Table, Value};

use super::{Bootstrap, UserDataError};

/// The settings under `settings.kubernetes` that the contract knows; others are dropped, and said to be.
const KNOWN: [&str; 49] = [
    "api-server",
    "cloud-provider",
    "cluster-certificate",
    "cluster-name",
    "cluster-dns-ip",
    "credential-providers",
    "node-labels",
    "node-taints",
    "max-pods",
    "static-pods",
    "eviction-hard",
    "eviction-soft",
    "eviction-soft-grace-period",
    "eviction-max-pod-grace-period",
    "kube-reserved",
    "system-reserved",
    "allowed-unsafe-sysctls",
    "server-tls-bootstrap",
    "registry-qps",
    "registry-burst",
    "event-qps",
    "event-burst",
    "kube-api-qps",
    "kube-api-burst",
    "container-log-max-size",
    "container-log-max-files",
    "cpu-manager-policy",
    "cpu-manager-policy-options",
    "cpu-manager-reconcile-period",
    "memory-manager-policy",
    "memory-manager-reserved-memory",
    "topology-manager-scope",
    "topology-manager-policy",
    "topology-manager-policy-options",
    "image-gc-high-threshold-percent",
    "image-gc-low-threshold-percent",
    "ids-per-pod",
    "cpu-cfs-quota-enforced",
    "shutdown-grace-period",
    "shutdown-grace-period-for-critical-pods",
    "cluster-domain",
    "seccomp-default",
    "pod-pids-limit",
    "device-ownership-from-security-context",
    "single-process-oom-kill",
    "container-log-max-workers",
    "container-log-monitor-interval",
    "hostname-override-source",
    "log-level",
];

/// What mounts local disks at every boot, before anything else runs.
const MOUNT_LOCAL_DISKS: &str = "000-mount-instance-storage";

pub(super) fn render(bootstrap: &Bootstrap) -> Result<String, UserDataError> {
    let custom = bootstrap.custom.as_deref().unwrap_or_default();
    let mut document: Table = custom
        .parse()
        .map_err(|error: toml::de::Error| UserDataError::Toml(error.to_string()))?;
    // Only settings are user data; other tables mean nothing to the image.
    document.retain(|key, _| key == "settings");
    let settings = table(&mut document, "settings", "settings")?;
    kubernetes(table(settings, "kubernetes", "settings.kubernetes")?, bootstrap)?;
    if bootstrap.raid0 {
        let commands = table(settings, "bootstrap-commands", "settings.bootstrap-commands")?;
        commands.insert(
            MOUNT_LOCAL_DISKS.to_owned(),
            mount_local_disks(bootstrap.has_default_mounts),
        );
    }
    toml::to_string(&document).map_err(|error| UserDataError::Write(error.to_string()))
}

fn table<'a>(parent: &'a mut Table, key: &str, path: &str) -> Result<&'a mut Table, UserDataError> {
    let value = parent.entry(key).or_insert_with(|| Value::Table(Table::new()));
    let kind = value.type_str();
    value
        .as_table_mut()
        .ok_or_else(|| UserDataError::Setting(format!("{path} must be a table, not a {kind}")))
}

fn kubernetes(settings: &mut Table, bootstrap: &Bootstrap) -> Result<(), UserDataError> {
    settings.retain(|key, _| {
        let is_known = KNOWN.contains(&key);
        if !is_known {
            tracing::error!(setting = %key, "Unknown parameter in userData K8s settings");
        }
        is_known
    });
    let labels = table(settings, "node-labels", "settings.kubernetes.node-labels")?;
    labels.extend(bootstrap.labels.iter().map(|(key, value)| (key.clone(), text(value))));
    if labels.is_empty() {
        settings.remove("node-labels");
    }
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            settings.insert(key.to_owned(), value);
        }
    };
    let kubelet = &bootstrap.kubelet;
    let number = |value: Option<i32>| value.map(|value| Value::Integer(value.into()));
    let percent = |value: Option<i32>| value.map(text);
    set("cluster-name", Some(text(&bootstrap.cluster_name)));
    set("api-server", Some(text(&bootstrap.cluster_endpoint)));
    set("cluster-certificate", bootstrap.ca_bundle.as_ref().map(text));
    set("max-pods", number(kubelet.max_pods));
    set("cluster-dns-ip", kubelet.cluster_dns.iter().flatten().next().map(text));
    set("system-reserved", kubelet.system_reserved.as_ref().map(texts));
    set("kube-reserved", kubelet.kube_reserved.as_ref().map(texts));
    set("eviction-hard", kubelet.eviction_hard.as_ref().map(texts));
    set("eviction-soft", kubelet.eviction_soft.as_ref().map(texts));
    set(
        "eviction-soft-grace-period",
        kubelet.eviction_soft_grace_period.as_ref().map(texts),
    );
    set(
        "eviction-max-pod-grace-period",
        number(kubelet.eviction_max_pod_grace_period),
    );
    set(
        "image-gc-high-threshold-percent",
        percent(kubelet.image_gc_high_threshold_percent),
    );
    set(
        "image-gc-low-threshold-percent",
        percent(kubelet.image_gc_low_threshold_percent),
    );
    set("cpu-cfs-quota-enforced", kubelet.cpu_cfs_quota.map(Value::Boolean));
    set("node-taints", Some(taints(bootstrap)));
    Ok(())
}

fn text(value: impl Display) -> Value {
    Value::String(value.to_string())
}

fn texts(map: &BTreeMap<String, impl Display>) -> Value {
    Value::Table(map.iter().map(|(key, value)| (key.clone(), text(value))).collect())
}

/// Key to `value:Effect`, several for a key that several taints have.
fn taints(bootstrap: &Bootstrap) -> Value {
    let mut by_key: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for taint in &bootstrap.taints {
        let entry = by_key.entry(taint.key.to_string()).or_default();
        entry.push(text(format!("{}:{}", taint.value, taint.effect)));
    }
    Value::Table(
        by_key
            .into_iter()
            .map(|(key, values)| (key, Value::Array(values)))
            .collect(),
    )
}

fn mount_local_disks(has_default_mounts: bool) -> Value {
    let words = |words: &[&str]| Value::Array(words.iter().map(text).collect());
    let bind: &[&str] = if has_default_mounts {
        &["apiclient", "ephemeral-storage", "bind"]
    } else {
        &[
            "apiclient",
            "ephemeral-storage",
            "bind",
            "--dirs",
            "/var/lib/containerd",
            "/var/lib/kubelet",
            "/var/log/pods",
        ]
    };
    let commands = vec![words(&["apiclient", "ephemeral-storage", "init"]), words(bind)];
    let entries = [
        ("commands", Value::Array(commands)),
        ("mode", text("always")),
        ("essential", Value::Boolean(true)),
    ];
    Value::Table(
        entries
            .map(|(key, value)| (key.to_owned(), value))
            .into_iter()
            .collect(),
    )
}
