//! With which flags does a kubelet start?

use std::collections::BTreeMap;

use api::azure::{CpuManagerPolicy, KubeletConfiguration, TopologyManagerPolicy};
use model::{object::Taint, snapshot::CatalogOverhead};

/// What the flags follow from.
pub(super) struct Kubelet<'a> {
    pub(super) minor: u64,
    pub(super) max_pods: i32,
    pub(super) dns_ip: &'a str,
    pub(super) overhead: &'a CatalogOverhead,
    pub(super) taints: &'a [Taint],
    pub(super) configuration: Option<&'a KubeletConfiguration>,
    pub(super) has_credential_provider: bool,
}

/// Flags of every AKS node.
const BASE: [(&str, &str); 29] = [
    ("--address", "0.0.0.0"),
    ("--anonymous-auth", "false"),
    ("--authentication-token-webhook", "true"),
    ("--authorization-mode", "Webhook"),
    ("--cgroups-per-qos", "true"),
    ("--client-ca-file", "/etc/kubernetes/certs/ca.crt"),
    ("--cloud-config", "/etc/kubernetes/azure.json"),
    ("--cloud-provider", "external"),
    ("--cluster-dns", "10.0.0.10"),
    ("--cluster-domain", "cluster.local"),
    ("--enforce-node-allocatable", "pods"),
    ("--event-qps", "0"),
    (
        "--eviction-hard",
        "memory.available<750Mi,nodefs.available<10%,nodefs.inodesFree<5%",
    ),
    ("--image-gc-high-threshold", "85"),
    ("--image-gc-low-threshold", "80"),
    ("--kubeconfig", "/var/lib/kubelet/kubeconfig"),
    ("--max-pods", "110"),
    ("--node-status-update-frequency", "10s"),
    (
        "--pod-infra-container-image",
        "mcr.microsoft.com/oss/kubernetes/pause:3.6",
    ),
    ("--pod-manifest-path", "/etc/kubernetes/manifests"),
    ("--pod-max-pids", "-1"),
    ("--protect-kernel-defaults", "true"),
    ("--read-only-port", "0"),
    ("--resolv-conf", "/run/systemd/resolve/resolv.conf"),
    ("--rotate-certificates", "true"),
    ("--streaming-connection-idle-timeout", "4h"),
    ("--tls-cert-file", "/etc/kubernetes/certs/kubeletserver.crt"),
    (
        "--tls-cipher-suites",
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,\
         TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,\
         TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305,TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,\
         TLS_RSA_WITH_AES_256_GCM_SHA384,TLS_RSA_WITH_AES_128_GCM_SHA256",
    ),
    ("--tls-private-key-file", "/etc/kubernetes/certs/kubeletserver.key"),
];

impl Kubelet<'_> {
    /// The flags, in the order of their names.
    pub(super) fn flags(&self) -> String {
        let mut flags: BTreeMap<&str, String> = BASE.iter().map(|(flag, value)| (*flag, (*value).to_owned())).collect();
        self.follow_version(&mut flags);
        if !self.taints.is_empty() {
            let taints: Vec<String> = self.taints.iter().map(written).collect();
            flags.insert("--register-with-taints", taints.join(","));
        }
        flags.insert("--max-pods", self.max_pods.to_string());
        let reserved = self.overhead.kube_reserved.iter();
        let reserved: Vec<String> = reserved.map(|(name, amount)| format!("{name}={amount}")).collect();
        flags.insert("--kube-reserved", reserved.join(","));
        let eviction = self.overhead.eviction_threshold.amount("memory");
        flags.insert("--eviction-hard", format!("memory.available<{eviction}"));
        flags.insert("--cluster-dns", self.dns_ip.to_owned());
        if let Some(configuration) = self.configuration {
            configure(configuration, &mut flags);
        }
        let flags: Vec<String> = flags.iter().map(|(flag, value)| format!("{flag}={value}")).collect();
        flags.join(" ")
    }

    fn follow_version(&self, flags: &mut BTreeMap<&str, String>) {
        if self.minor < 31 {
            flags.insert("--keep-terminated-pod-volumes", "false".to_owned());
        }
        if self.minor >= 34 {
            flags.remove("--cloud-config");
        }
        if self.minor >= 35 {
            flags.remove("--pod-infra-container-image");
        }
        let more: [(&str, &str); 2] = if self.has_credential_provider {
            [
                (
                    "--image-credential-provider-config",
                    "/var/lib/kubelet/credential-provider-config.yaml",
                ),
                (
                    "--image-credential-provider-bin-dir",
                    "/var/lib/kubelet/credential-provider",
                ),
            ]
        } else {
            [
                ("--feature-gates", "DisableKubeletCloudCredentialProviders=false"),
                ("--azure-container-registry-config", "/etc/kubernetes/azure.json"),
            ]
        };
        flags.extend(more.map(|(flag, value)| (flag, value.to_owned())));
    }
}

/// What the class says. Some of its settings have no flag, and act in other modes only.
fn configure(it: &KubeletConfiguration, flags: &mut BTreeMap<&str, String>) {
    let sysctls = it.allowed_unsafe_sysctls.as_ref().filter(|list| !list.is_empty());
    let asked = [
        (
            "--image-gc-high-threshold",
            it.image_gc_high_threshold_percent.map(|it| it.to_string()),
        ),
        (
            "--image-gc-low-threshold",
            it.image_gc_low_threshold_percent.map(|it| it.to_string()),
        ),
        ("--cpu-cfs-quota", it.cpu_cfs_quota.map(|it| it.to_string())),
        (
            "--cpu-manager-policy",
            it.cpu_manager_policy
                .as_ref()
                .map(CpuManagerPolicy::as_str)
                .map(str::to_owned),
        ),
        (
            "--topology-manager-policy",
            it.topology_manager_policy
                .as_ref()
                .map(TopologyManagerPolicy::as_str)
                .map(str::to_owned),
        ),
        ("--container-log-max-size", it.container_log_max_size.clone()),
        (
            "--container-log-max-files",
            it.container_log_max_files.map(|it| it.to_string()),
        ),
        ("--pod-max-pids", it.pod_pids_limit.map(|it| it.to_string())),
        ("--allowed-unsafe-sysctls", sysctls.map(|list| list.join(","))),
    ];
    flags.extend(
        asked
            .into_iter()
            .filter_map(|(flag, value)| Some((flag, value.filter(|it| !it.is_empty())?))),
    );
}

/// `key=value:effect`, or without a value.
pub(super) fn written(taint: &Taint) -> String {
    match &*taint.value {
        "" => format!("{}:{}", taint.key, taint.effect),
        value => format!("{}={value}:{}", taint.key, taint.effect),
    }
}

#[cfg(test)]
mod tests {
    use catalogue::azure::{Machine, overhead};

    use super::*;

    fn flags(minor: u64, configuration: Option<&str>, taints: &[Taint]) -> Vec<String> {
        let machine = Machine {
            name: "Standard_D4s_v5",
            family: "D",
            series: "Ds_v5",
            version: "5",
            vcpu: 4,
            memory_gib: 16.0,
            arch: "amd64",
            gpu_count: 0,
            gpu_name: "",
            gpu_manufacturer: "",
            has_accelerated_networking: true,
            has_premium_storage: true,
            ephemeral_os_gb: None,
            hyperv_generations: &[],
        };
        let configuration = configuration.map(|it| serde_json::from_str(it).unwrap());
        let kubelet = Kubelet {
            minor,
            max_pods: 250,
            dns_ip: "10.1.0.10",
            overhead: &overhead(&machine),
            taints,
            configuration: configuration.as_ref(),
            has_credential_provider: minor >= 30,
        };
        kubelet.flags().split(' ').map(str::to_owned).collect()
    }

    fn has(flags: &[String], flag: &str) -> bool {
        flags.iter().any(|it| it == flag || it.starts_with(&format!("{flag}=")))
    }

    #[test]
    fn flags_follow_the_machine_and_the_cluster() {
        let flags = flags(34, None, &[]);
        for flag in [
            "--max-pods=250",
            "--kube-reserved=cpu=140m,memory=2662Mi",
            "--eviction-hard=memory.available<750Mi",
            "--cluster-dns=10.1.0.10",
        ] {
            assert!(flags.iter().any(|it| it == flag), "{flag} in {flags:?}");
        }
    }

    #[test]
    fn flags_come_and_go_with_the_version() {
        let expected = [
            (29, "--keep-terminated-pod-volumes", true),
            (31, "--keep-terminated-pod-volumes", false),
            (33, "--cloud-config", true),
            (34, "--cloud-config", false),
            (34, "--pod-infra-container-image", true),
            (35, "--pod-infra-container-image", false),
            (29, "--image-credential-provider-config", false),
            (30, "--image-credential-provider-config", true),
            (29, "--azure-container-registry-config", true),
        ];
        for (minor, flag, is_there) in expected {
            assert_eq!(has(&flags(minor, None, &[]), flag), is_there, "{flag} in 1.{minor}");
        }
    }

    #[test]
    fn a_class_and_a_claim_are_heard() {
        let configuration = r#"{"cpuManagerPolicy": "static", "podPidsLimit": 42, "containerLogMaxSize": "10Mi",
            "allowedUnsafeSysctls": ["a", "b"], "imageGCHighThresholdPercent": 70, "cpuCFSQuota": false,
            "topologyManagerPolicy": "best-effort", "containerLogMaxFiles": 3}"#;
        let taints = [
            Taint {
                key: "a".into(),
                value: "b".into(),
                effect: "NoSchedule".into(),
                ..Taint::default()
            },
            Taint {
                key: "c".into(),
                effect: "NoExecute".into(),
                ..Taint::default()
            },
        ];
        let flags = flags(34, Some(configuration), &taints);
        for flag in [
            "--cpu-manager-policy=static",
            "--pod-max-pids=42",
            "--container-log-max-size=10Mi",
            "--container-log-max-files=3",
            "--allowed-unsafe-sysctls=a,b",
            "--image-gc-high-threshold=70",
            "--cpu-cfs-quota=false",
            "--topology-manager-policy=best-effort",
            "--register-with-taints=a=b:NoSchedule,c:NoExecute",
        ] {
            assert!(flags.iter().any(|it| it == flag), "{flag} in {flags:?}");
        }
    }
}
