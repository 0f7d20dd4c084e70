//! Are flags and variables read by upstream's rules?

use model::{
    object::TopologySpreadConstraint,
    snapshot::{FeatureGates, MinValuesPolicy, PreferencePolicy},
};

use super::*;

type Parsed = Result<(Settings, Vec<Notice>), SettingsError>;

fn parse(arguments: &[&str], environment: &[(&str, &str)]) -> Parsed {
    let variable = |name: &str| {
        let found = environment.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    Settings::parse(arguments.iter().map(|argument| (*argument).to_owned()), variable)
}

fn settings(arguments: &[&str], environment: &[(&str, &str)]) -> Settings {
    let (settings, notices) = parse(arguments, environment).unwrap();
    assert_eq!(notices, Vec::new());
    settings
}

fn fault(arguments: &[&str], environment: &[(&str, &str)]) -> String {
    parse(arguments, environment).unwrap_err().to_string()
}

fn told(arguments: &[&str], environment: &[(&str, &str)]) -> (Settings, Vec<String>) {
    let (settings, notices) = parse(arguments, environment).unwrap();
    (settings, notices.iter().map(ToString::to_string).collect())
}

#[test]
fn nothing_given_is_upstreams_defaults() {
    assert_eq!(settings(&[], &[]), Settings::default());
}

#[test]
fn variables_of_other_providers_are_not_ours_to_judge() {
    assert_eq!(
        settings(&[], &[("ARM_PROXY", "1"), ("SYSTEM_NAME", "kube-system")]),
        Settings::default()
    );
}

#[test]
fn every_option_can_be_set_by_its_flag_and_by_its_variable() {
    let expected = Settings {
        decisions: model::snapshot::Settings {
            preference_policy: PreferencePolicy::Ignore,
            min_values_policy: MinValuesPolicy::BestEffort,
            ignore_dra_requests: false,
            feature_gates: FeatureGates {
                node_repair: true,
                reserved_capacity: false,
                ..FeatureGates::default()
            },
            default_constraints: vec![TopologySpreadConstraint {
                max_skew: 1,
                topology_key: "topology.kubernetes.io/zone".into(),
                when_unsatisfiable: "ScheduleAnyway".into(),
                ..TopologySpreadConstraint::default()
            }]
            .into(),
        },
        metrics_port: 9000,
        health_probe_port: 9001,
        kube_client_qps: 10,
        kube_client_burst: 20,
        enable_profiling: false,
        disable_controller_warmup: false,
        disable_leader_election: true,
        disable_cluster_state_observability: true,
        leader_election_name: "lease".to_owned(),
        leader_election_namespace: "kube-system".to_owned(),
        memory_limit: 1_073_741_824,
        cpu_requests: 2500,
        log_level: "debug".to_owned(),
        log_output_paths: vec!["stderr".to_owned(), "log.json".to_owned()],
        log_error_output_paths: vec!["stdout".to_owned()],
        batch_max_duration: Duration::from_secs(90),
        batch_idle_duration: Duration::from_millis(1500),
        legacy_node_repair: true,
        instance_types_file_path: "types.json".to_owned(),
        metrics_profile: MetricsProfile::Full,
        steering: Steering::Pin,
        packing: Packing::Faithful,
        foresight: true,
        consolidation: Consolidation::Faithful,
        decision_records: false,
        decisions_file: "decisions.jsonl".to_owned(),
        flight_recorder: "flight".to_owned(),
        page_port: 8082,
        notify_url: "https://hooks.slack.com/services/x".to_owned(),
        notify_format: "teams".to_owned(),
        notify_on: "refused,kept".to_owned(),
        notify_every: Duration::from_mins(5),
        cloud: Cloud::Azure,
        aws: AwsSettings {
            cluster_name: "prod".to_owned(),
            cluster_endpoint: "https://abc.eks.amazonaws.com".to_owned(),
            cluster_ca_bundle: "LS0t".to_owned(),
            isolated_vpc: true,
            eks_control_plane: true,
            vm_memory_overhead_percent: 0.1,
            interruption_queue: "queue".to_owned(),
            interruption_cost: Duration::from_mins(30),
            reserved_enis: 1,
            disable_dry_run: true,
            enable_zonal_shift: true,
            ami_refresh_interval: Duration::from_mins(5),
            subnet_refresh_interval: Duration::from_mins(2),
        },
        azure: AzureSettings {
            cluster_name: "prod".to_owned(),
            cluster_endpoint: "https://abc.eks.amazonaws.com".to_owned(),
            cluster_ca_bundle: "LS0t".to_owned(),
            kubelet_bootstrap_token: "t.t".to_owned(),
            ssh_public_key: "ssh-rsa k".to_owned(),
            vnet_subnet_id: "/s".to_owned(),
            node_resource_group: "mc".to_owned(),
            linux_admin_username: "root".to_owned(),
            network_plugin: "none".to_owned(),
            network_plugin_mode: String::new(),
            network_policy: "cilium".to_owned(),
            network_dataplane: "azure".to_owned(),
            dns_service_ip: "10.1.0.10".to_owned(),
            vnet_guid: "00000000-0000-0000-0000-000000000001".to_owned(),
            kubelet_identity_client_id: "00000000-0000-0000-0000-000000000002".to_owned(),
            provision_mode: "aksmachineapi".to_owned(),
            node_bootstrapping_server_url: "nb".to_owned(),
            sig_access_token_server_url: "http://t".to_owned(),
            sig_subscription_id: "sig".to_owned(),
            disk_encryption_set_id:
                "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/diskEncryptionSets/d".to_owned(),
            aks_machines_pool_name: "pool".to_owned(),
            additional_tags: "a=b".to_owned(),
            cloud: "AzureChinaCloud".to_owned(),
            environment_filepath: "/f".to_owned(),
            location: "eastus".to_owned(),
            resource_group: "rg".to_owned(),
            tenant_id: "tenant".to_owned(),
            subscription_id: "sub".to_owned(),
            system_namespace: "kube-system".to_owned(),
            client_id: "client".to_owned(),
            federated_token_file: "/t".to_owned(),
            authority_host: "https://a".to_owned(),
            arm_endpoint: "https://m".to_owned(),
            static_token: "st".to_owned(),
            pricing_endpoint: "https://p".to_owned(),
            node_identities: vec!["/a".to_owned(), "/b".to_owned()],
            use_sig: true,
            manage_existing_aks_machines: true,
            batch_idle_duration: Duration::from_secs(2),
            batch_max_duration: Duration::from_secs(9),
            batch_max_size: 7,
            is_sdk_logged: false,
        },
    };
    let constraints = r#"{"podTopologySpread":{"defaultConstraints":[{"maxSkew":1,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"ScheduleAnyway"}]}}"#;
    let values = [
        ("karpenter-service", "webhook"),
        ("metrics-port", "9000"),
        ("health-probe-port", "9001"),
        ("kube-client-qps", "10"),
        ("kube-client-burst", "20"),
        ("enable-profiling", "false"),
        ("disable-controller-warmup", "false"),
        ("disable-leader-election", "true"),
        ("disable-cluster-state-observability", "true"),
        ("leader-election-name", "lease"),
        ("leader-election-namespace", "kube-system"),
        ("memory-limit", "1073741824"),
        ("cpu-requests", "2500"),
        ("log-level", "debug"),
        ("log-output-paths", "stderr,log.json"),
        ("log-error-output-paths", "stdout"),
        ("batch-max-duration", "1m30s"),
        ("batch-idle-duration", "1.5s"),
        ("preference-policy", "Ignore"),
        ("min-values-policy", "BestEffort"),
        ("ignore-dra-requests", "false"),
        ("legacy-node-repair", "true"),
        ("feature-gates", "NodeRepair=true,ReservedCapacity=false"),
        ("scheduler-config", constraints),
        ("instance-types-file-path", "types.json"),
        ("metrics-profile", "full"),
        ("steering", "pin"),
        ("packing", "faithful"),
        ("foresight", "true"),
        ("consolidation", "faithful"),
        ("decision-records", "false"),
        ("decisions-file", "decisions.jsonl"),
        ("flight-recorder", "flight"),
        ("page-port", "8082"),
        ("notify-url", "https://hooks.slack.com/services/x"),
        ("notify-format", "teams"),
        ("notify-on", "refused,kept"),
        ("notify-every", "5m"),
        ("cluster-ca-bundle", "LS0t"),
        ("cluster-name", "prod"),
        ("cluster-endpoint", "https://abc.eks.amazonaws.com"),
        ("isolated-vpc", "true"),
        ("eks-control-plane", "true"),
        ("vm-memory-overhead-percent", "0.1"),
        ("interruption-queue", "queue"),
        ("interruption-cost", "30m"),
        ("reserved-enis", "1"),
        ("disable-dry-run", "true"),
        ("enable-zonal-shift", "true"),
        ("ami-refresh-interval", "5m"),
        ("subnet-refresh-interval", "2m"),
        ("aws-feature-gates", "NodeClassCEL=false"),
        ("kubelet-bootstrap-token", "t.t"),
        ("ssh-public-key", "ssh-rsa k"),
        ("vnet-subnet-id", "/s"),
        ("node-resource-group", "mc"),
        ("linux-admin-username", "root"),
        ("network-plugin", "none"),
        ("network-plugin-mode", ""),
        ("network-policy", "cilium"),
        ("network-dataplane", "azure"),
        ("dns-service-ip", "10.1.0.10"),
        ("vnet-guid", "00000000-0000-0000-0000-000000000001"),
        ("kubelet-identity-client-id", "00000000-0000-0000-0000-000000000002"),
        ("provision-mode", "aksmachineapi"),
        ("nodebootstrapping-server-url", "nb"),
        ("sig-access-token-server-url", "http://t"),
        ("sig-subscription-id", "sig"),
        (
            "node-osdisk-diskencryptionset-id",
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/diskEncryptionSets/d",
        ),
        ("aks-machines-pool-name", "pool"),
        ("additional-tags", "a=b"),
        ("arm-cloud", "AzureChinaCloud"),
        ("azure-environment-filepath", "/f"),
        ("location", "eastus"),
        ("arm-resource-group", "rg"),
        ("arm-tenant-id", "tenant"),
        ("azure-tenant-id", "tenant"),
        ("arm-subscription-id", "sub"),
        ("azure-subscription-id", "sub"),
        ("system-namespace", "kube-system"),
        ("azure-client-id", "client"),
        ("azure-federated-token-file", "/t"),
        ("azure-authority-host", "https://a"),
        ("arm-endpoint", "https://m"),
        ("arm-static-token", "st"),
        ("azure-pricing-endpoint", "https://p"),
        ("node-identities", "/a, /b"),
        ("use-sig", "true"),
        ("manage-existing-aks-machines", "true"),
        ("provider-batch-idle-duration", "2s"),
        ("provider-batch-max-duration", "9s"),
        ("provider-batch-max-size", "7"),
        ("enable-azure-sdk-logging", "false"),
        ("cloud", "azure"),
    ];
    let flags: Vec<String> = values.iter().map(|(flag, value)| format!("--{flag}={value}")).collect();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let variables: Vec<String> = values
        .iter()
        .map(|(flag, _)| {
            let option = options::ALL.iter().find(|option| option.flag == *flag).unwrap();
            option.variable.to_owned()
        })
        .collect();
    let variables: Vec<(&str, &str)> = variables
        .iter()
        .zip(values)
        .map(|(name, (_, value))| (name.as_str(), value))
        .collect();
    assert_eq!(values.len(), options::ALL.len());
    assert_eq!(settings(&flags, &[]), expected);
    assert_eq!(settings(&[], &variables), expected);
}

#[test]
fn a_flag_wins_over_its_variable_which_wins_over_the_default() {
    let environment = [("METRICS_PORT", "1"), ("HEALTH_PROBE_PORT", "2")];
    let settings = settings(&["--metrics-port", "3"], &environment);
    assert_eq!((settings.metrics_port, settings.health_probe_port), (3, 2));
}

#[test]
fn flags_are_written_as_in_go() {
    let cases: [(&[&str], u16, bool); 6] = [
        (&["-metrics-port", "1", "-disable-leader-election"], 1, true),
        (&["--metrics-port=2", "--disable-leader-election=false"], 2, false),
        (&["--disable-leader-election", "--metrics-port", "3"], 3, true),
        (&["--metrics-port=4", "--metrics-port=5"], 5, false),
        (&["--metrics-port=0x10"], 16, false),
        (&["--metrics-port=1_000"], 1000, false),
    ];
    for (arguments, port, disabled) in cases {
        let settings = settings(arguments, &[]);
        assert_eq!(
            (settings.metrics_port, settings.disable_leader_election),
            (port, disabled),
            "{arguments:?}"
        );
    }
}

#[test]
fn what_follows_the_first_argument_that_is_no_flag_is_ignored_and_told() {
    let (settings, notices) = told(&["--metrics-port=1", "true", "--metrics-port=2"], &[]);
    assert_eq!(settings.metrics_port, 1);
    assert_eq!(
        notices,
        [r#"argument "true" is not a flag: it and all arguments after it are ignored"#]
    );
}

#[test]
fn switches_by_variable_are_read_as_go_reads_them() {
    for (text, on) in [
        ("1", true),
        ("T", true),
        ("TRUE", true),
        ("True", true),
        ("0", false),
        ("f", false),
        ("False", false),
    ] {
        assert_eq!(
            settings(&[], &[("DISABLE_LEADER_ELECTION", text)]).disable_leader_election,
            on,
            "{text}"
        );
    }
}

#[test]
fn variables_that_cannot_be_read_leave_the_default_and_are_told() {
    let environment = [
        ("METRICS_PORT", "http"),
        ("DISABLE_CONTROLLER_WARMUP", "yes"),
        ("BATCH_MAX_DURATION", "10"),
        ("MEMORY_LIMIT", "1Gi"),
    ];
    let (settings, notices) = told(&[], &environment);
    assert_eq!(settings, Settings::default());
    let expected = [
        r#"environment variable METRICS_PORT has the value "http", which is not a whole number; using the default 8080"#,
        r#"environment variable DISABLE_CONTROLLER_WARMUP has the value "yes", which is not true or false; using the default true"#,
        r#"environment variable MEMORY_LIMIT has the value "1Gi", which is not a whole number; using the default -1"#,
        r#"environment variable BATCH_MAX_DURATION has the value "10", which is not a duration such as 1m30s; using the default 10s"#,
    ];
    assert_eq!(notices, expected);
}

#[test]
fn values_out_of_bounds_become_what_upstream_makes_of_them() {
    let environment = [
        ("CPU_REQUESTS", "0"),
        ("KUBE_CLIENT_QPS", "0"),
        ("KUBE_CLIENT_BURST", "-1"),
        ("BATCH_IDLE_DURATION", "-1s"),
    ];
    let settings = settings(&[], &environment);
    let got = (
        settings.cpu_requests,
        settings.kube_client_qps,
        settings.kube_client_burst,
        settings.batch_idle_duration,
    );
    assert_eq!(got, (1000, 5, u32::MAX, Duration::ZERO));
}

#[test]
fn unknown_gates_are_ignored_and_told() {
    let (settings, notices) = told(
        &["--feature-gates", "NodeRepairs=true, StaticCapacity = true,Foo=false"],
        &[],
    );
    let gates = FeatureGates {
        static_capacity: true,
        ..FeatureGates::default()
    };
    assert_eq!(settings.decisions.feature_gates, gates);
    let expected = [
        r#"feature gate "NodeRepairs" is not known and is ignored; did you mean NodeRepair?"#,
        r#"feature gate "Foo" is not known and is ignored"#,
    ];
    assert_eq!(notices, expected);
}

#[test]
fn profiling_is_accepted_and_told_to_be_without_effect() {
    let (settings, notices) = told(&["--enable-profiling"], &[]);
    assert!(settings.enable_profiling);
    assert_eq!(
        notices,
        ["--enable-profiling has no effect: there is no Go profiler to serve"]
    );
}

#[test]
fn bad_flags_stop_the_start_with_a_text_that_names_the_fault() {
    let cases: [(&[&str], &str); 10] = [
        (
            &["--metric-port=1"],
            "parsing flags, flag provided but not defined: -metric-port; did you mean --metrics-port?",
        ),
        (
            &["--frobnicate"],
            "parsing flags, flag provided but not defined: -frobnicate",
        ),
        (&["---x"], "parsing flags, bad flag syntax: ---x"),
        (&["--=x"], "parsing flags, bad flag syntax: --=x"),
        (
            &["--metrics-port"],
            "parsing flags, flag needs an argument: -metrics-port",
        ),
        (
            &["--metrics-port=http"],
            r#"parsing flags, invalid value "http" for flag -metrics-port: parse error"#,
        ),
        (
            &["--batch-max-duration=10"],
            r#"parsing flags, invalid value "10" for flag -batch-max-duration: parse error"#,
        ),
        (
            &["--disable-leader-election=1"],
            r#"parsing flags, invalid boolean value "1" for -disable-leader-election: "1" is not a valid value, must be true or false"#,
        ),
        (
            &["--metrics-port=70000"],
            r#"validating cli flags / env vars, invalid METRICS_PORT "70000", must be a port, 0 to 65535"#,
        ),
        (&["-h"], "flag: help requested"),
    ];
    for (arguments, text) in cases {
        assert_eq!(fault(arguments, &[]), text);
    }
}

#[test]
fn choices_that_do_not_exist_stop_the_start() {
    let cases = [
        (
            "LOG_LEVEL",
            "warn",
            r#"validating cli flags / env vars, invalid LOG_LEVEL "warn", must be one of "debug", "info", "error""#,
        ),
        (
            "PREFERENCE_POLICY",
            "respect",
            r#"validating cli flags / env vars, invalid PREFERENCE_POLICY "respect", must be one of "Ignore", "Respect""#,
        ),
        (
            "MIN_VALUES_POLICY",
            "",
            r#"validating cli flags / env vars, invalid MIN_VALUES_POLICY "", must be one of "Strict", "BestEffort""#,
        ),
        (
            "STEERING",
            "on",
            r#"validating cli flags / env vars, invalid STEERING "on", must be one of "off", "release", "nominate", "pin""#,
        ),
        (
            "FEATURE_GATES",
            "NodeRepair",
            "parsing feature gates, malformed pair, expect string=bool",
        ),
        (
            "FEATURE_GATES",
            "NodeRepair=on",
            r#"parsing feature gates, invalid value of NodeRepair: on, err: strconv.ParseBool: parsing "on": invalid syntax"#,
        ),
    ];
    for (variable, value, text) in cases {
        assert_eq!(fault(&[], &[(variable, value)]), text);
    }
}

#[test]
fn an_empty_log_level_is_allowed() {
    assert_eq!(settings(&["--log-level="], &[]).log_level, "");
}

#[test]
fn a_scheduler_configuration_is_read_as_yaml_too() {
    let yaml = "podTopologySpread:\n  defaultConstraints:\n  - maxSkew: 2\n    topologyKey: kubernetes.io/hostname\n    whenUnsatisfiable: DoNotSchedule\n";
    let expected = TopologySpreadConstraint {
        max_skew: 2,
        topology_key: "kubernetes.io/hostname".into(),
        when_unsatisfiable: "DoNotSchedule".into(),
        ..TopologySpreadConstraint::default()
    };
    assert_eq!(
        *settings(&["--scheduler-config", yaml], &[])
            .decisions
            .default_constraints,
        [expected]
    );
    for empty in [
        "",
        "{}",
        "podTopologySpread: {}",
        "podTopologySpread:\n  defaultConstraints: []",
    ] {
        assert_eq!(
            settings(&["--scheduler-config", empty], &[]),
            Settings::default(),
            "{empty}"
        );
    }
}

#[test]
fn a_scheduler_configuration_that_the_scheduler_would_refuse_stops_the_start() {
    let zone = "topologyKey: zone, whenUnsatisfiable: DoNotSchedule";
    let at = "parsing scheduler config, validating scheduler config, podTopologySpread.defaultConstraints";
    let decoding =
        "parsing scheduler config, decoding scheduler config, error unmarshaling JSON: while decoding JSON: json:";
    let cases = [
        (
            "{maxSkew: 0, topologyKey: zone}".to_owned(),
            format!("{at}[0].maxSkew must be greater than 0"),
        ),
        ("{maxSkew: 1}".to_owned(), format!("{at}[0].topologyKey must be set")),
        (
            "{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: Never}".to_owned(),
            format!(r#"{at}[0].whenUnsatisfiable "Never" must be one of "DoNotSchedule" or "ScheduleAnyway""#),
        ),
        (
            format!("{{maxSkew: 1, {zone}, labelSelector: {{}}}}"),
            format!("{at}[0].labelSelector must not be set, as selectors are deduced for each pod"),
        ),
        (
            format!("{{maxSkew: 1, {zone}, matchLabelKeys: [a]}}"),
            format!("{at}[0].matchLabelKeys must not be set, as it has no effect on default constraints"),
        ),
        (
            format!("{{maxSkew: 1, {zone}}}, {{maxSkew: 2, {zone}}}"),
            format!("{at}[1] is a duplicate of [0], {{zone, DoNotSchedule}}"),
        ),
        (
            format!("{{maxSkews: 1, {zone}}}"),
            format!(r#"{decoding} unknown field "maxSkews""#),
        ),
    ];
    for (constraints, text) in cases {
        let document = format!("podTopologySpread: {{defaultConstraints: [{constraints}]}}");
        assert_eq!(fault(&["--scheduler-config", &document], &[]), text);
    }
    assert_eq!(
        fault(&["--scheduler-config", "podTopologySpreads: {}"], &[]),
        format!(r#"{decoding} unknown field "podTopologySpreads""#)
    );
    assert!(
        fault(&["--scheduler-config", "a: [b"], &[])
            .starts_with("parsing scheduler config, decoding scheduler config, ")
    );
}

#[test]
fn usage_names_every_flag_and_its_variable() {
    let usage = usage();
    for option in options::ALL {
        assert!(
            usage.contains(&format!("--{}  (env {})", option.flag, option.variable)),
            "{}",
            option.flag
        );
    }
}

#[test]
fn workers_scale_from_one_core_to_sixty() {
    for (millicores, workers) in [(1000, 10), (30_500, 505), (60_000, 1000), (90_000, 1000)] {
        let settings = Settings {
            cpu_requests: millicores,
            ..Settings::default()
        };
        assert_eq!(settings.workers(10, 1000), workers, "{millicores}");
    }
}
