//! User data compared by what it means: parts of archives, YAML and TOML are read again.

#![allow(
    clippy::needless_pass_by_value,
    clippy::redundant_closure_for_method_calls,
    reason = "a test's helpers are called with literals, and the SDK's paths are longer than its calls"
)]

use serde_json::{Value, json};

use super::*;

fn taint(key: &str, value: &str, effect: &str) -> Taint {
    Taint {
        key: key.into(),
        value: value.into(),
        effect: effect.into(),
        time_added: None,
    }
}

fn bootstrap() -> Bootstrap {
    Bootstrap {
        cluster_name: "eks-cluster-dev".to_owned(),
        cluster_endpoint: "https://api.example".to_owned(),
        ca_bundle: Some("Y2EtYnVuZGxl".to_owned()),
        cluster_cidr: Some("10.100.0.0/16".to_owned()),
        kubelet: serde_json::from_value(json!({
            "clusterDNS": ["10.100.0.10"],
            "maxPods": 29,
            "podsPerCore": 4,
            "systemReserved": {"memory": "100Mi", "cpu": "100m"},
            "kubeReserved": {"cpu": "200m"},
            "evictionHard": {"memory.available": "5%"},
            "evictionSoft": {"memory.available": "10%"},
            "evictionSoftGracePeriod": {"memory.available": "90s"},
            "evictionMaxPodGracePeriod": 60,
            "imageGCHighThresholdPercent": 85,
            "imageGCLowThresholdPercent": 80,
            "cpuCFSQuota": false,
        }))
        .unwrap(),
        taints: vec![
            taint("team", "a", "NoSchedule"),
            taint("team", "a", "NoExecute"),
            taint("karpenter.sh/unregistered", "", "NoExecute"),
        ],
        labels: [("b", "2"), ("a", "1")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        ..Bootstrap::default()
    }
}

fn archive(family: AmiFamily, bootstrap: &Bootstrap) -> Vec<mime::Part> {
    let text = render(&family, bootstrap).unwrap();
    assert!(!text.contains('\r'), "carriage returns confuse cloud-init");
    mime::read(&text).unwrap()
}

/// The words of a shell command, its quotes taken off and its lines joined.
fn words(script: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in script.replace("\\\n", " ").chars() {
        match (c, quote) {
            ('\'', None) => quote = Some('\''),
            ('\'', Some('\'')) => quote = None,
            (c, None) if c.is_whitespace() => words.extend(Some(std::mem::take(&mut word)).filter(|it| !it.is_empty())),
            (c, _) => word.push(c),
        }
    }
    words.extend(Some(word).filter(|it| !it.is_empty()));
    words
}

/// The value after an option.
fn after<'a>(words: &'a [String], option: &str) -> Option<&'a str> {
    let at = words.iter().position(|word| word == option)?;
    words.get(at + 1).map(String::as_str)
}

const FLAGS: &str = "--node-labels=\"a=1,b=2\" \
     --register-with-taints=\"team=a:NoSchedule,team=a:NoExecute,karpenter.sh/unregistered:NoExecute\" \
     --max-pods=29 --pods-per-core=4 --system-reserved=\"cpu=100m,memory=100Mi\" --kube-reserved=\"cpu=200m\" \
     --eviction-hard=\"memory.available<5%\" --eviction-soft=\"memory.available<10%\" \
     --eviction-soft-grace-period=\"memory.available=1m30s\" --eviction-max-pod-grace-period=60 \
     --image-gc-high-threshold=85 --image-gc-low-threshold=80 --cpu-cfs-quota=false";

#[test]
fn al2_calls_the_bootstrap_script_with_every_setting() {
    let parts = archive(AmiFamily::AL2, &bootstrap());
    assert_eq!(parts.len(), 1);
    assert_eq!(parts[0].content_type(), "text/x-shellscript; charset=\"us-ascii\"");
    let body = &parts[0].body;
    assert!(body.starts_with("#!/bin/bash -xe\n"), "{body}");
    let command = &body[body.find("/etc/eks/bootstrap.sh").unwrap()..];
    let words = words(command);
    assert_eq!(words[..2], ["/etc/eks/bootstrap.sh", "eks-cluster-dev"]);
    assert_eq!(after(&words, "--apiserver-endpoint"), Some("https://api.example"));
    assert_eq!(after(&words, "--b64-cluster-ca"), Some("Y2EtYnVuZGxl"));
    assert_eq!(after(&words, "--dns-cluster-ip"), Some("10.100.0.10"));
    assert_eq!(after(&words, "--use-max-pods"), Some("false"));
    assert_eq!(after(&words, "--kubelet-extra-args"), Some(FLAGS));
    assert_eq!(after(&words, "--ip-family"), None);
    assert_eq!(after(&words, "--local-disks"), None);
}

#[test]
fn al2_on_an_ipv6_cluster_with_local_disks_says_so() {
    let mut given = bootstrap();
    given.kubelet.cluster_dns = Some(vec!["fd01:99f0:d47b::a".to_owned()]);
    given.raid0 = true;
    given.ca_bundle = None;
    let parts = archive(AmiFamily::AL2, &given);
    let words = words(&parts[0].body);
    assert_eq!(after(&words, "--ip-family"), Some("ipv6"));
    assert_eq!(after(&words, "--local-disks"), Some("raid0"));
    assert_eq!(after(&words, "--b64-cluster-ca"), None);
}

#[test]
fn al2_runs_the_users_script_and_parts_first() {
    let mut given = bootstrap();
    given.custom = Some("#!/bin/bash\necho before".to_owned());
    let parts = archive(AmiFamily::AL2, &given);
    assert_eq!(parts.len(), 2);
    assert_eq!(parts[0].body, "#!/bin/bash\necho before");
    assert_eq!(parts[0].content_type(), mime::SHELL_SCRIPT);

    given.custom = Some(
        "MIME-Version: 1.0\r\nContent-Type: multipart/mixed;\r\n boundary=\"BOUNDARY\"\r\n\r\npreamble\r\n--BOUNDARY\r\nContent-Type: text/cloud-config; charset=\"us-ascii\"\r\nContent-Disposition: attachment; filename=\"x\"\r\n\r\na: 1\r\n\r\n--BOUNDARY\r\nContent-Type: text/x-shellscript\r\n\r\n#!/bin/sh\r\n--BOUNDARY--\r\n"
            .to_owned(),
    );
    let parts = archive(AmiFamily::AL2, &given);
    assert_eq!(parts.len(), 3);
    assert_eq!(
        (parts[0].content_type(), parts[0].body.trim()),
        ("text/cloud-config; charset=\"us-ascii\"", "a: 1")
    );
    assert_eq!(parts[0].headers.len(), 2, "{:?}", parts[0].headers);
    assert_eq!(
        (parts[1].content_type(), parts[1].body.trim()),
        ("text/x-shellscript", "#!/bin/sh")
    );
}

#[test]
fn an_archive_that_is_none_is_refused_with_the_reason() {
    let cases = [
        ("MIME-Version: 1.0\n\nx", "no Content-Type"),
        ("Content-Type: text/plain\n\nx", "text/plain"),
        ("Content-Type: multipart/mixed\n\nx", "boundary"),
        ("Content-Type: multipart/mixed; boundary=B\n\n--B\nA: b\n\nx", "--B--"),
    ];
    for (custom, expected) in cases {
        let mut given = bootstrap();
        given.custom = Some(custom.to_owned());
        for family in [AmiFamily::AL2, AmiFamily::AL2023] {
            let error = render(&family, &given).unwrap_err();
            assert!(
                matches!(&error, UserDataError::Mime(reason) if reason.contains(expected)),
                "{error}"
            );
        }
    }
}

fn node_config(part: &mime::Part) -> Value {
    assert_eq!(part.content_type(), "application/node.eks.aws");
    serde_saphyr::from_str(&part.body).unwrap()
}

#[test]
fn al2023_hands_nodeadm_the_cluster_and_the_kubelets_whole_configuration() {
    let parts = archive(AmiFamily::AL2023, &bootstrap());
    assert_eq!(parts.len(), 1);
    assert!(parts[0].body.starts_with("# Karpenter Generated NodeConfig\n"));
    let config = node_config(&parts[0]);
    assert_eq!(
        (&config["apiVersion"], &config["kind"]),
        (&json!("node.eks.aws/v1alpha1"), &json!("NodeConfig"))
    );
    assert_eq!(
        config["spec"]["cluster"],
        json!({
            "name": "eks-cluster-dev",
            "apiServerEndpoint": "https://api.example",
            "certificateAuthority": "Y2EtYnVuZGxl",
            "cidr": "10.100.0.0/16",
        })
    );
    let kubelet = &config["spec"]["kubelet"];
    assert_eq!(kubelet["flags"], json!(["--node-labels=\"a=1,b=2\""]));
    assert_eq!(kubelet["config"]["maxPods"], 29);
    assert_eq!(kubelet["config"]["clusterDNS"], json!(["10.100.0.10"]));
    assert_eq!(
        kubelet["config"]["evictionSoftGracePeriod"],
        json!({"memory.available": "1m30s"})
    );
    assert_eq!(kubelet["config"]["cpuCFSQuota"], false);
    assert_eq!(
        kubelet["config"]["registerWithTaints"],
        json!([
            {"key": "team", "value": "a", "effect": "NoSchedule"},
            {"key": "team", "value": "a", "effect": "NoExecute"},
            {"key": "karpenter.sh/unregistered", "effect": "NoExecute"},
        ])
    );
    assert_eq!(config["spec"]["instance"], Value::Null);
}

#[test]
fn al2023_joins_local_disks_when_asked() {
    let given = Bootstrap {
        raid0: true,
        ..bootstrap()
    };
    let config = node_config(&archive(AmiFamily::AL2023, &given)[0]);
    assert_eq!(
        config["spec"]["instance"],
        json!({"localStorage": {"strategy": "RAID0"}})
    );
}

#[test]
fn al2023_keeps_the_users_part_before_ours_whatever_it_is() {
    let cases = [
        (
            "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {}\n",
            mime::NODE_CONFIG,
        ),
        ("#!/bin/bash\necho before\n", mime::SHELL_SCRIPT),
        (
            "Content-Type: multipart/mixed; boundary=B\n\n--B\nContent-Type: text/x-other\n\nbody\n--B--\n",
            "text/x-other",
        ),
    ];
    for (custom, kind) in cases {
        let given = Bootstrap {
            custom: Some(custom.to_owned()),
            ..bootstrap()
        };
        let parts = archive(AmiFamily::AL2023, &given);
        assert_eq!(parts.len(), 2, "{custom}");
        assert_eq!(parts[0].content_type(), kind, "{custom}");
        node_config(&parts[1]);
    }
}

#[test]
fn al2023_needs_the_clusters_addresses_and_a_readable_authority() {
    let given = Bootstrap {
        cluster_cidr: None,
        ..bootstrap()
    };
    assert_eq!(render(&AmiFamily::AL2023, &given), Err(UserDataError::NoClusterCidr));
    let given = Bootstrap {
        ca_bundle: Some("not base64!".to_owned()),
        ..bootstrap()
    };
    assert!(matches!(
        render(&AmiFamily::AL2023, &given),
        Err(UserDataError::CaBundle(_))
    ));
}

fn toml_value(bootstrap: &Bootstrap) -> Value {
    let text = render(&AmiFamily::Bottlerocket, bootstrap).unwrap();
    let table: toml::Table = text.parse().unwrap();
    serde_json::to_value(table).unwrap()
}

#[test]
fn bottlerocket_gets_every_setting_in_its_own_words() {
    let settings = toml_value(&bootstrap());
    assert_eq!(
        settings["settings"]["kubernetes"],
        json!({
            "cluster-name": "eks-cluster-dev",
            "api-server": "https://api.example",
            "cluster-certificate": "Y2EtYnVuZGxl",
            "cluster-dns-ip": "10.100.0.10",
            "max-pods": 29,
            "node-labels": {"a": "1", "b": "2"},
            "node-taints": {
                "team": ["a:NoSchedule", "a:NoExecute"],
                "karpenter.sh/unregistered": [":NoExecute"],
            },
            "system-reserved": {"cpu": "100m", "memory": "100Mi"},
            "kube-reserved": {"cpu": "200m"},
            "eviction-hard": {"memory.available": "5%"},
            "eviction-soft": {"memory.available": "10%"},
            "eviction-soft-grace-period": {"memory.available": "1m30s"},
            "eviction-max-pod-grace-period": 60,
            "image-gc-high-threshold-percent": "85",
            "image-gc-low-threshold-percent": "80",
            "cpu-cfs-quota-enforced": false,
        })
    );
}

#[test]
fn bottlerocket_keeps_the_users_settings_and_lays_ours_over_them() {
    let mut given = bootstrap();
    given.kubelet.eviction_hard = None;
    given.custom = Some(
        r#"
        [settings.kubernetes]
        cluster-name = "theirs"
        max-pods = 5
        kube-api-qps = 30
        misspelt-setting = 1
        [settings.kubernetes.node-labels]
        a = "theirs"
        c = "3"
        [settings.kubernetes.node-taints]
        gone = ["x:NoSchedule"]
        [settings.kubernetes.eviction-hard]
        "memory.available" = "12%"
        [settings.host-containers.admin]
        enabled = true
        "#
        .to_owned(),
    );
    let settings = toml_value(&given);
    let kubernetes = &settings["settings"]["kubernetes"];
    assert_eq!(kubernetes["cluster-name"], "eks-cluster-dev");
    assert_eq!(kubernetes["max-pods"], 29);
    assert_eq!(kubernetes["kube-api-qps"], 30);
    assert_eq!(kubernetes["misspelt-setting"], Value::Null);
    assert_eq!(kubernetes["node-labels"], json!({"a": "1", "b": "2", "c": "3"}));
    assert_eq!(kubernetes["node-taints"]["gone"], Value::Null);
    assert_eq!(kubernetes["eviction-hard"], json!({"memory.available": "12%"}));
    assert_eq!(
        settings["settings"]["host-containers"],
        json!({"admin": {"enabled": true}})
    );
}

#[test]
fn bottlerocket_mounts_local_disks_as_its_release_knows_how() {
    let commands = |has_default_mounts| {
        let given = Bootstrap {
            raid0: true,
            has_default_mounts,
            ..bootstrap()
        };
        let settings = toml_value(&given);
        settings["settings"]["bootstrap-commands"]["000-mount-instance-storage"].clone()
    };
    let init = json!(["apiclient", "ephemeral-storage", "init"]);
    let (plain, explicit) = (commands(true), commands(false));
    assert_eq!(
        plain["commands"],
        json!([init, ["apiclient", "ephemeral-storage", "bind"]])
    );
    assert_eq!((&plain["mode"], &plain["essential"]), (&json!("always"), &json!(true)));
    let bind = [
        "apiclient",
        "ephemeral-storage",
        "bind",
        "--dirs",
        "/var/lib/containerd",
        "/var/lib/kubelet",
        "/var/log/pods",
    ];
    assert_eq!(explicit["commands"], json!([init, bind]));
}

#[test]
fn bottlerocket_keeps_the_users_bootstrap_commands_beside_ours() {
    let given = Bootstrap {
        raid0: true,
        custom: Some(
            "[settings.bootstrap-commands.mine]\ncommands = [[\"true\"]]\nmode = \"once\"\nessential = false"
                .to_owned(),
        ),
        ..bootstrap()
    };
    let commands = toml_value(&given)["settings"]["bootstrap-commands"].clone();
    assert_eq!(
        commands["mine"],
        json!({"commands": [["true"]], "mode": "once", "essential": false})
    );
    assert_eq!(commands["000-mount-instance-storage"]["essential"], true);
}

#[test]
fn bottlerocket_releases_from_1_46_on_know_their_mounts() {
    let cases = [
        ("latest", true),
        ("v1.46.0", true),
        ("1.50.1", true),
        ("v2.0.0", true),
        ("v1.45.9", false),
        ("1.9.0", false),
        ("x", false),
    ];
    for (version, expected) in cases {
        assert_eq!(bottlerocket_has_default_mounts(version), expected, "{version}");
    }
}

#[test]
fn bottlerocket_user_data_that_is_no_toml_or_of_the_wrong_shape_is_refused() {
    for (custom, expected) in [
        ("#!/bin/bash\necho", "TOML"),
        ("[settings]\nkubernetes = 3", "settings.kubernetes must be a table"),
    ] {
        let given = Bootstrap {
            custom: Some(custom.to_owned()),
            ..bootstrap()
        };
        let error = render(&AmiFamily::Bottlerocket, &given).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn windows_calls_its_script_after_the_users_lines() {
    for family in [AmiFamily::Windows2019, AmiFamily::Windows2022, AmiFamily::Windows2025] {
        let given = Bootstrap {
            custom: Some("Write-Host before".to_owned()),
            ..bootstrap()
        };
        let text = render(&family, &given).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            (lines[0], lines[1], lines[lines.len() - 1]),
            ("<powershell>", "Write-Host before", "</powershell>")
        );
        assert_eq!(
            lines[2],
            "[string]$EKSBootstrapScriptFile = \"$env:ProgramFiles\\Amazon\\EKS\\Start-EKSBootstrap.ps1\""
        );
        let words = words(lines[3]);
        assert_eq!(after(&words, "-EKSClusterName"), Some("eks-cluster-dev"));
        assert_eq!(after(&words, "-APIServerEndpoint"), Some("https://api.example"));
        assert_eq!(after(&words, "-Base64ClusterCA"), Some("Y2EtYnVuZGxl"));
        assert_eq!(after(&words, "-KubeletExtraArgs"), Some(FLAGS));
        assert_eq!(after(&words, "-DNSClusterIP"), Some("10.100.0.10"));
    }
}

#[test]
fn custom_user_data_is_handed_on_untouched() {
    let given = Bootstrap {
        custom: Some("anything\r\nat all".to_owned()),
        ..bootstrap()
    };
    assert_eq!(render(&AmiFamily::Custom, &given).unwrap(), "anything\r\nat all");
    assert_eq!(render(&AmiFamily::Custom, &Bootstrap::default()).unwrap(), "");
}
