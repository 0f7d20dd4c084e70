//! Every option: its flag, its environment variable, what it may be, and what it sets.

use std::{fmt::Write, time::Duration};

use model::snapshot::{MinValuesPolicy, PreferencePolicy};

use super::{
    Cloud, Consolidation, MetricsProfile, Notice, Packing, Settings, SettingsError, Steering, gates, scheduler_config,
};

/// One option.
pub(super) struct Opt {
    pub(super) flag: &'static str,
    pub(super) variable: &'static str,
    pub(super) kind: Kind,
    help: &'static str,
}

/// What an option may be, and where it goes.
pub(super) enum Kind {
    Switch(fn(&mut Settings) -> &mut bool),
    /// Refuses numbers outside its range by saying what they must be.
    Number(fn(&mut Settings, i64) -> Result<(), &'static str>),
    Span(fn(&mut Settings) -> &mut Duration),
    Fraction(fn(&mut Settings) -> &mut f64),
    Text(fn(&mut Settings, &str)),
    /// Refuses what is not one of the choices.
    Choice(&'static [&'static str], fn(&mut Settings, &str)),
    /// A text with a grammar of its own.
    Document(fn(&mut Settings, &str) -> Result<(), SettingsError>),
}

macro_rules! options {
    ($($flag:literal $variable:literal $kind:expr, $help:literal;)*) => {
        /// Every option, in upstream's order, then kwok's, then AWS', then Azure's, then ours.
        pub(super) const ALL: &[Opt] = &[$(Opt { flag: $flag, variable: $variable, kind: $kind, help: $help },)*];
    };
}

options! {
    "karpenter-service" "KARPENTER_SERVICE" Kind::Text(|_, _| {}), "The name of a webhook's Service. Unused.";
    "metrics-port" "METRICS_PORT" Kind::Number(|settings, port| to_port(&mut settings.metrics_port, port)), "The port of /metrics. Default 8080.";
    "health-probe-port" "HEALTH_PROBE_PORT" Kind::Number(|settings, port| to_port(&mut settings.health_probe_port, port)), "The port of /healthz and /readyz. Default 8081.";
    "kube-client-qps" "KUBE_CLIENT_QPS" Kind::Number(|settings, qps| { settings.kube_client_qps = rate(qps, 5); Ok(()) }), "Requests per second to the API server, smoothed. 0 is 5, negative is unlimited. Default 200.";
    "kube-client-burst" "KUBE_CLIENT_BURST" Kind::Number(|settings, burst| { settings.kube_client_burst = rate(burst, 10); Ok(()) }), "Requests to the API server at once. 0 is 10, negative is unlimited. Default 300.";
    "enable-profiling" "ENABLE_PROFILING" Kind::Switch(|settings| &mut settings.enable_profiling), "Accepted, without effect. Default false.";
    "disable-controller-warmup" "DISABLE_CONTROLLER_WARMUP" Kind::Switch(|settings| &mut settings.disable_controller_warmup), "Begin to watch only once leading. Default true.";
    "disable-leader-election" "DISABLE_LEADER_ELECTION" Kind::Switch(|settings| &mut settings.disable_leader_election), "Lead without asking. Default false.";
    "disable-cluster-state-observability" "DISABLE_CLUSTER_STATE_OBSERVABILITY" Kind::Switch(|settings| &mut settings.disable_cluster_state_observability), "No metrics of pods, nodes, pools and conditions, and no events of conditions. Default false.";
    "leader-election-name" "LEADER_ELECTION_NAME" Kind::Text(|settings, name| name.clone_into(&mut settings.leader_election_name)), "The name of the Lease. Default karpenter-leader-election.";
    "leader-election-namespace" "LEADER_ELECTION_NAMESPACE" Kind::Text(|settings, name| name.clone_into(&mut settings.leader_election_namespace)), "The namespace of the Lease. Default: that of the pod.";
    "memory-limit" "MEMORY_LIMIT" Kind::Number(|settings, limit| { settings.memory_limit = limit; Ok(()) }), "The container's memory limit in bytes. Default -1, none.";
    "cpu-requests" "CPU_REQUESTS" Kind::Number(|settings, millicores| { settings.cpu_requests = cpu_requests(millicores); Ok(()) }), "The container's CPU requests in millicores: how many workers there are. Default 1000.";
    "log-level" "LOG_LEVEL" Kind::Choice(&["", "debug", "info", "error"], |settings, level| level.clone_into(&mut settings.log_level)), "debug, info or error. Default info.";
    "log-output-paths" "LOG_OUTPUT_PATHS" Kind::Text(|settings, paths| settings.log_output_paths = list(paths)), "Where the log goes: stdout, stderr, files; separated by commas. Default stdout.";
    "log-error-output-paths" "LOG_ERROR_OUTPUT_PATHS" Kind::Text(|settings, paths| settings.log_error_output_paths = list(paths)), "Where faults of the log itself go. Default stderr.";
    "batch-max-duration" "BATCH_MAX_DURATION" Kind::Span(|settings| &mut settings.batch_max_duration), "The longest that pods are gathered before a plan is made. Default 10s.";
    "batch-idle-duration" "BATCH_IDLE_DURATION" Kind::Span(|settings| &mut settings.batch_idle_duration), "How long no new pod must come for gathering to end. Default 1s.";
    "preference-policy" "PREFERENCE_POLICY" Kind::Choice(&["Ignore", "Respect"], |settings, policy| settings.decisions.preference_policy = if policy == "Ignore" { PreferencePolicy::Ignore } else { PreferencePolicy::Respect }), "What pods' preferences count for: Respect or Ignore. Default Respect.";
    "min-values-policy" "MIN_VALUES_POLICY" Kind::Choice(&["Strict", "BestEffort"], |settings, policy| settings.decisions.min_values_policy = if policy == "BestEffort" { MinValuesPolicy::BestEffort } else { MinValuesPolicy::Strict }), "Whether minValues may be lowered: Strict or BestEffort. Default Strict.";
    "ignore-dra-requests" "IGNORE_DRA_REQUESTS" Kind::Switch(|settings| &mut settings.decisions.ignore_dra_requests), "Leave pods with device claims alone. Default true.";
    "legacy-node-repair" "LEGACY_NODE_REPAIR" Kind::Switch(|settings| &mut settings.legacy_node_repair), "With the gate NodeRepair: repair by the older controller. Default false.";
    "feature-gates" "FEATURE_GATES" Kind::Document(|settings, text| { settings.decisions.feature_gates = gates::parse(text).map_err(SettingsError::FeatureGates)?; Ok(()) }), "Optional features, as A=true,B=false.";
    "scheduler-config" "SCHEDULER_CONFIG" Kind::Document(|settings, text| { settings.decisions.default_constraints = scheduler_config::parse(text).map_err(SettingsError::SchedulerConfig)?; Ok(()) }), "YAML or JSON: podTopologySpread.defaultConstraints of the cluster's scheduler.";
    "instance-types-file-path" "INSTANCE_TYPES_FILE_PATH" Kind::Text(|settings, path| path.clone_into(&mut settings.instance_types_file_path)), "kwok: a file of instance types instead of the built-in ones.";
    "cluster-ca-bundle" "CLUSTER_CA_BUNDLE" Kind::Text(|settings, bundle| { bundle.clone_into(&mut settings.aws.cluster_ca_bundle); bundle.clone_into(&mut settings.azure.cluster_ca_bundle); }), "aws, azure: who signs the API server's certificate, in base64, for nodes to trust. Default: as this process was told.";
    "cluster-name" "CLUSTER_NAME" Kind::Text(|settings, name| { name.clone_into(&mut settings.aws.cluster_name); name.clone_into(&mut settings.azure.cluster_name); }), "aws, azure: the name of the cluster. Required.";
    "cluster-endpoint" "CLUSTER_ENDPOINT" Kind::Text(|settings, url| { url.clone_into(&mut settings.aws.cluster_endpoint); url.clone_into(&mut settings.azure.cluster_endpoint); }), "aws, azure: the API server's URL for nodes. Default: EKS is asked; azure: required.";
    "isolated-vpc" "ISOLATED_VPC" Kind::Switch(|settings| &mut settings.aws.isolated_vpc), "aws: only services with a VPC endpoint can be reached; on-demand prices are the built-in ones. Default false.";
    "eks-control-plane" "EKS_CONTROL_PLANE" Kind::Switch(|settings| &mut settings.aws.eks_control_plane), "aws: EKS runs the control plane and knows its version. Default false.";
    "vm-memory-overhead-percent" "VM_MEMORY_OVERHEAD_PERCENT" Kind::Fraction(|settings| &mut settings.aws.vm_memory_overhead_percent), "aws, azure: the part of memory that the hypervisor takes, until a node has shown it. Default 0.075.";
    "interruption-queue" "INTERRUPTION_QUEUE" Kind::Text(|settings, name| name.clone_into(&mut settings.aws.interruption_queue)), "aws: the name of the SQS queue of interruptions. Default none.";
    "interruption-cost" "INTERRUPTION_COST" Kind::Span(|settings| &mut settings.aws.interruption_cost), "aws: what one interruption costs, as time of the machine it takes: offerings rank by price and by how often their machines were taken back in the last week. Default 0s, by price alone.";
    "reserved-enis" "RESERVED_ENIS" Kind::Number(|settings, number| { settings.aws.reserved_enis = number; Ok(()) }), "aws: network interfaces that pods do not get. Default 0.";
    "disable-dry-run" "DISABLE_DRY_RUN" Kind::Switch(|settings| &mut settings.aws.disable_dry_run), "aws: node classes are not tried by dry runs. Default false.";
    "enable-zonal-shift" "ENABLE_ZONAL_SHIFT" Kind::Switch(|settings| &mut settings.aws.enable_zonal_shift), "aws: zones that ARC shifted away from are avoided. Default false.";
    "ami-refresh-interval" "AMI_REFRESH_INTERVAL" Kind::Span(|settings| &mut settings.aws.ami_refresh_interval), "aws: how long images are remembered, 1m or more. Default 1m.";
    "subnet-refresh-interval" "SUBNET_REFRESH_INTERVAL" Kind::Span(|settings| &mut settings.aws.subnet_refresh_interval), "aws: how long subnets are remembered, 1m or more. Default 1m.";
    "aws-feature-gates" "AWS_FEATURE_GATES" Kind::Text(|_, _| {}), "aws: accepted, without effect: NodeClassCEL is not released upstream.";
    "kubelet-bootstrap-token" "KUBELET_BOOTSTRAP_TOKEN" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.kubelet_bootstrap_token)), "azure: the token with which a kubelet asks for its certificate. Required.";
    "ssh-public-key" "SSH_PUBLIC_KEY" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.ssh_public_key)), "azure: the key that may log in to nodes. Required.";
    "vnet-subnet-id" "VNET_SUBNET_ID" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.vnet_subnet_id)), "azure: the ARM id of the subnet of nodes whose class names none. Required.";
    "node-resource-group" "AZURE_NODE_RESOURCE_GROUP" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.node_resource_group)), "azure: the resource group of the nodes. Required.";
    "linux-admin-username" "LINUX_ADMIN_USERNAME" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.linux_admin_username)), "azure: the administrator of nodes. Default azureuser.";
    "network-plugin" "NETWORK_PLUGIN" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.network_plugin)), "azure: azure or none. Default azure.";
    "network-plugin-mode" "NETWORK_PLUGIN_MODE" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.network_plugin_mode)), "azure: overlay or empty. Default overlay.";
    "network-policy" "NETWORK_POLICY" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.network_policy)), "azure: who enforces network policies. Default nobody.";
    "network-dataplane" "NETWORK_DATAPLANE" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.network_dataplane)), "azure: azure, cilium or empty. Default cilium.";
    "dns-service-ip" "DNS_SERVICE_IP" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.dns_service_ip)), "azure: the address of cluster DNS. Default: that of the Service kube-dns.";
    "vnet-guid" "VNET_GUID" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.vnet_guid)), "azure: the GUID of the virtual network. Default: Azure is asked.";
    "node-identities" "NODE_IDENTITIES" Kind::Text(|settings, ids| settings.azure.node_identities = ids.split(',').map(str::trim).filter(|id| !id.is_empty()).map(str::to_owned).collect()), "azure: ARM ids of the identities that nodes have, separated by commas. Default none.";
    "kubelet-identity-client-id" "KUBELET_IDENTITY_CLIENT_ID" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.kubelet_identity_client_id)), "azure: the client ID of the identity that kubelets use. Default none.";
    "provision-mode" "PROVISION_MODE" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.provision_mode)), "azure: aksscriptless, bootstrappingclient, aksmachineapi or aksmachineapiheaderbatch. Default aksscriptless.";
    "nodebootstrapping-server-url" "NODEBOOTSTRAPPING_SERVER_URL" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.node_bootstrapping_server_url)), "azure: the service of mode bootstrappingclient. Default none.";
    "use-sig" "USE_SIG" Kind::Switch(|settings| &mut settings.azure.use_sig), "azure: images come from shared galleries instead of community galleries. Default false.";
    "sig-access-token-server-url" "SIG_ACCESS_TOKEN_SERVER_URL" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.sig_access_token_server_url)), "azure: who gives tokens for shared galleries. Default none.";
    "sig-subscription-id" "SIG_SUBSCRIPTION_ID" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.sig_subscription_id)), "azure: the subscription of shared galleries. Default none.";
    "node-osdisk-diskencryptionset-id" "NODE_OSDISK_DISKENCRYPTIONSET_ID" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.disk_encryption_set_id)), "azure: the ARM id of the disk encryption set of system disks. Default none.";
    "manage-existing-aks-machines" "MANAGE_EXISTING_AKS_MACHINES" Kind::Switch(|settings| &mut settings.azure.manage_existing_aks_machines), "azure: also look after machines that the machine API made. Default false.";
    "aks-machines-pool-name" "AKS_MACHINES_POOL_NAME" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.aks_machines_pool_name)), "azure: the agent pool of the machine API. Default none.";
    "provider-batch-idle-duration" "PROVIDER_BATCH_IDLE_DURATION" Kind::Span(|settings| &mut settings.azure.batch_idle_duration), "azure: how long a batch of machines waits for more. Default 1s.";
    "provider-batch-max-duration" "PROVIDER_BATCH_MAX_DURATION" Kind::Span(|settings| &mut settings.azure.batch_max_duration), "azure: the longest that a batch of machines waits. Default 5s.";
    "provider-batch-max-size" "PROVIDER_BATCH_MAX_SIZE" Kind::Number(|settings, size| { settings.azure.batch_max_size = size; Ok(()) }), "azure: the most machines in a batch, 1 to 50. Default 50.";
    "additional-tags" "ADDITIONAL_TAGS" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.additional_tags)), "azure: tags of everything we make, as k=v,k=v. Default none.";
    "enable-azure-sdk-logging" "ENABLE_AZURE_SDK_LOGGING" Kind::Switch(|settings| &mut settings.azure.is_sdk_logged), "azure: log every request to Azure at level debug. Default true.";
    "arm-cloud" "ARM_CLOUD" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.cloud)), "azure: AzurePublicCloud, AzureChinaCloud or AzureUSGovernmentCloud. Default AzurePublicCloud.";
    "azure-environment-filepath" "AZURE_ENVIRONMENT_FILEPATH" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.environment_filepath)), "azure: a file that describes another cloud: resourceManagerEndpoint, activeDirectoryEndpoint, tokenAudience. Default none.";
    "location" "LOCATION" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.location)), "azure: the region. Required.";
    "arm-resource-group" "ARM_RESOURCE_GROUP" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.resource_group)), "azure: the resource group of the cluster itself. Default none.";
    "arm-tenant-id" "ARM_TENANT_ID" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.tenant_id)), "azure: the tenant. Default none.";
    "azure-tenant-id" "AZURE_TENANT_ID" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.tenant_id)), "azure: the tenant; wins over ARM_TENANT_ID.";
    "arm-subscription-id" "ARM_SUBSCRIPTION_ID" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.subscription_id)), "azure: the subscription. Required.";
    "azure-subscription-id" "AZURE_SUBSCRIPTION_ID" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.subscription_id)), "azure: the subscription; wins over ARM_SUBSCRIPTION_ID.";
    "system-namespace" "SYSTEM_NAMESPACE" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.system_namespace)), "azure: where the ConfigMap upcoming-maintenance-window is. Default none: windows are always open.";
    "azure-client-id" "AZURE_CLIENT_ID" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.client_id)), "azure: the identity we act as. Default: that of the machine.";
    "azure-federated-token-file" "AZURE_FEDERATED_TOKEN_FILE" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.federated_token_file)), "azure: the service account token that is exchanged for one of Azure (workload identity). Default none.";
    "azure-authority-host" "AZURE_AUTHORITY_HOST" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.authority_host)), "azure: who exchanges it. Default: the cloud's.";
    "arm-endpoint" "ARM_ENDPOINT" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.arm_endpoint)), "azure: the address of Azure Resource Manager. Default: the cloud's.";
    "arm-static-token" "ARM_STATIC_TOKEN" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.static_token)), "azure: a token for a double of Azure on this machine; refused for any other address. Default none.";
    "azure-pricing-endpoint" "AZURE_PRICING_ENDPOINT" Kind::Text(|settings, text| text.clone_into(&mut settings.azure.pricing_endpoint)), "azure: the address of the retail prices. Default: the public one, in the public cloud only.";
    "cloud" "CLOUD" Kind::Choice(&["auto", "aws", "azure", "kwok"], |settings, cloud| settings.cloud = match cloud { "aws" => Cloud::Aws, "azure" => Cloud::Azure, "kwok" => Cloud::Kwok, _ => Cloud::Auto }), "Whose machines: aws, azure, kwok, or auto: azure where ARM_SUBSCRIPTION_ID or --node-resource-group is set, aws where --cluster-name is set and this build has it, else kwok. Default auto.";
    "metrics-profile" "METRICS_PROFILE" Kind::Choice(&["minimal", "standard", "full"], |settings, profile| settings.metrics_profile = match profile { "minimal" => MetricsProfile::Minimal, "full" => MetricsProfile::Full, _ => MetricsProfile::Standard }), "How many metrics are shown: minimal, standard (upstream's) or full. Default standard.";
    "steering" "STEERING" Kind::Choice(&["off", "release", "nominate", "pin"], |settings, steering| settings.steering = match steering { "off" => Steering::Off, "release" => Steering::Release, "pin" => Steering::Pin, _ => Steering::Nominate }), "How pods are led to the nodes planned for them: off, release, nominate or pin. Default nominate.";
    "packing" "PACKING" Kind::Choice(&["cheapest", "faithful"], |settings, packing| settings.packing = if packing == "faithful" { Packing::Faithful } else { Packing::Cheapest }), "Which plans are made: cheapest, or faithful to upstream. Default cheapest.";
    "foresight" "FORESIGHT" Kind::Switch(|settings| &mut settings.foresight), "With cheapest packing: nodes are as large as the pods ask for that ReplicaSets are about to make. Default false.";
    "consolidation" "CONSOLIDATION" Kind::Choice(&["cheapest", "faithful"], |settings, consolidation| settings.consolidation = if consolidation == "faithful" { Consolidation::Faithful } else { Consolidation::Cheapest }), "Which moves save money: cheapest (also several nodes for several), or faithful to upstream. Default cheapest.";
    "decision-records" "DECISION_RECORDS" Kind::Switch(|settings| &mut settings.decision_records), "Keep a record of every act and refusal, in the ConfigMaps dovetail-decisions-0 to -9 beside the Lease. Default true.";
    "decisions-file" "DECISIONS_FILE" Kind::Text(|settings, path| path.clone_into(&mut settings.decisions_file)), "A file that holds the decision records as well, one a line. Default none.";
    "flight-recorder" "FLIGHT_RECORDER" Kind::Text(|settings, path| path.clone_into(&mut settings.flight_recorder)), "A directory in which the inputs of the decisions of the last 24 hours are kept, for dovetail replay. Default none.";
    "page-port" "PAGE_PORT" Kind::Number(|settings, port| to_port(&mut settings.page_port, port)), "The port of the page, which asks for a token of the cluster. Default 0: there is none.";
    "notify-url" "NOTIFY_URL" Kind::Text(|settings, url| url.clone_into(&mut settings.notify_url)), "A webhook that is told what comes of decisions. Give it by the environment, from a Secret: who knows it can write to it. Default none.";
    "notify-format" "NOTIFY_FORMAT" Kind::Choice(&["auto", "cloudevents", "slack", "teams"], |settings, format| if format == "auto" { settings.notify_format.clear(); } else { format.clone_into(&mut settings.notify_format); }), "What the webhook reads: cloudevents, slack, teams, or auto: what its host is known to read, else cloudevents. Default auto.";
    "notify-on" "NOTIFY_ON" Kind::Text(|settings, words| words.clone_into(&mut settings.notify_on)), "What it is told of, separated by commas: refused, aborted, launched, replaced, deleted, rebooted (these are the default), launching, replacing, deleting, rebooting, planned, kept.";
    "notify-every" "NOTIFY_EVERY" Kind::Span(|settings| &mut settings.notify_every), "The time from one message to the next; what is decided meanwhile is one message. Default 1m.";
}

impl Opt {
    /// Sets the option to the value of its flag.
    pub(super) fn set_by_flag(&self, settings: &mut Settings, value: &str) -> Result<(), SettingsError> {
        let invalid = |reason: &str| SettingsError::Value {
            flag: self.flag,
            value: value.to_owned(),
            reason: reason.to_owned(),
        };
        match self.kind {
            Kind::Switch(switch) => {
                *switch(settings) = value.parse().map_err(|_| SettingsError::Switch {
                    flag: self.flag,
                    value: value.to_owned(),
                })?;
            }
            Kind::Number(set) => {
                let number = go_number(value).ok_or_else(|| invalid("parse error"))?;
                set(settings, number).map_err(|must| self.out_of_range(value, must))?;
            }
            Kind::Span(span) => *span(settings) = go_span(value).ok_or_else(|| invalid("parse error"))?,
            Kind::Fraction(fraction) => *fraction(settings) = value.parse().map_err(|_| invalid("parse error"))?,
            Kind::Text(set) => set(settings, value),
            Kind::Choice(choices, set) => self.choose(settings, value, choices, set)?,
            Kind::Document(set) => set(settings, value)?,
        }
        Ok(())
    }

    /// Sets the option to the value of its environment variable, if that can be read.
    pub(super) fn set_by_variable(
        &self,
        settings: &mut Settings,
        value: &str,
    ) -> Result<Option<Notice>, SettingsError> {
        let notice = |expected, default: String| Notice::Variable {
            variable: self.variable,
            value: value.to_owned(),
            expected,
            default,
        };
        match self.kind {
            Kind::Switch(switch) => match go_bool(value) {
                Some(on) => *switch(settings) = on,
                None => return Ok(Some(notice("true or false", switch(settings).to_string()))),
            },
            Kind::Number(set) => match value.parse::<i64>() {
                Ok(number) => set(settings, number).map_err(|must| self.out_of_range(value, must))?,
                Err(_) => return Ok(Some(notice("a whole number", self.default_number()))),
            },
            Kind::Span(span) => match go_span(value) {
                Some(duration) => *span(settings) = duration,
                None => {
                    return Ok(Some(notice(
                        "a duration such as 1m30s",
                        format!("{:?}", span(settings)),
                    )));
                }
            },
            Kind::Fraction(fraction) => match value.parse() {
                Ok(number) => *fraction(settings) = number,
                Err(_) => return Ok(Some(notice("a number", fraction(settings).to_string()))),
            },
            Kind::Text(set) => set(settings, value),
            Kind::Choice(choices, set) => self.choose(settings, value, choices, set)?,
            Kind::Document(set) => set(settings, value)?,
        }
        Ok(None)
    }

    fn choose(
        &self,
        settings: &mut Settings,
        value: &str,
        choices: &'static [&'static str],
        set: fn(&mut Settings, &str),
    ) -> Result<(), SettingsError> {
        if !choices.contains(&value) {
            return Err(SettingsError::Choice {
                variable: self.variable,
                value: value.to_owned(),
                choices,
            });
        }
        set(settings, value);
        Ok(())
    }

    fn out_of_range(&self, value: &str, must: &'static str) -> SettingsError {
        SettingsError::Range {
            variable: self.variable,
            value: value.to_owned(),
            must,
        }
    }

    /// The default as the help tells it.
    fn default_number(&self) -> String {
        let told = self.help.rsplit("Default ").next().unwrap_or_default();
        told.chars()
            .take_while(|letter| letter.is_ascii_digit() || *letter == '-')
            .collect()
    }
}

/// What `--help` prints.
pub fn usage() -> String {
    let mut text = String::from("Usage of karpenter:\n");
    for option in ALL {
        let _ = writeln!(
            text,
            "  --{}  (env {})\n        {}",
            option.flag, option.variable, option.help
        );
    }
    text
}

/// Go's `strconv.ParseBool`.
pub(super) fn go_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// Go's integer literals: decimal, `0x`, `0o` or `0`, `0b`, with `_` between digits.
fn go_number(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, &lower[..]),
    };
    let digits = digits.replace('_', "");
    let sign = if negative { "-" } else { "" };
    (!digits.starts_with(['+', '-']))
        .then(|| i64::from_str_radix(&format!("{sign}{digits}"), radix).ok())
        .flatten()
}

/// Go's durations; a negative one is over at once.
fn go_span(text: &str) -> Option<Duration> {
    let parsed: api::duration::Duration = text.parse().ok()?;
    Some(Duration::from_nanos(u64::try_from(parsed.as_nanos()).unwrap_or(0)))
}

fn to_port(port: &mut u16, number: i64) -> Result<(), &'static str> {
    *port = u16::try_from(number).map_err(|_| "a port, 0 to 65535")?;
    Ok(())
}

/// As client-go takes a rate: zero is its default, negative no limit.
fn rate(given: i64, when_zero: u32) -> u32 {
    match given {
        0 => when_zero,
        given => u32::try_from(given).unwrap_or(u32::MAX),
    }
}

/// As upstream takes them: nothing or less is one core.
fn cpu_requests(millicores: i64) -> u32 {
    match millicores {
        ..=0 => 1000,
        given => u32::try_from(given).unwrap_or(u32::MAX),
    }
}

fn list(paths: &str) -> Vec<String> {
    paths.split(',').map(str::to_owned).collect()
}
