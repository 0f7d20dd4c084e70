//! How is the controller to run? Upstream's flags and environment variables, with its names, defaults and parse rules.
//!
//! A flag wins over an environment variable, which wins over the default. What upstream swallows without a word (a
//! variable it cannot read, a feature gate it does not know) is used as upstream uses it, and told as a [`Notice`].

mod arguments;
mod aws;
mod azure;
mod fault;
mod gates;
mod options;
mod scheduler_config;

use std::time::Duration;

pub use aws::{AwsSettings, Cloud};
pub use azure::AzureSettings;
pub use fault::{Notice, SettingsError};
pub use options::usage;

/// How the controller runs.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "one switch each, as upstream has them")]
pub struct Settings {
    /// What changes decisions.
    pub decisions: model::snapshot::Settings,
    /// `--metrics-port`
    pub metrics_port: u16,
    /// `--health-probe-port`
    pub health_probe_port: u16,
    /// `--kube-client-qps`
    pub kube_client_qps: u32,
    /// `--kube-client-burst`
    pub kube_client_burst: u32,
    /// `--enable-profiling`; accepted, and without effect: there is no Go profiler to serve.
    pub enable_profiling: bool,
    /// `--disable-controller-warmup`
    pub disable_controller_warmup: bool,
    /// `--disable-leader-election`
    pub disable_leader_election: bool,
    /// `--disable-cluster-state-observability`
    pub disable_cluster_state_observability: bool,
    /// `--leader-election-name`
    pub leader_election_name: String,
    /// `--leader-election-namespace`
    pub leader_election_namespace: String,
    /// `--memory-limit`, in bytes; negative for none
    pub memory_limit: i64,
    /// `--cpu-requests`, in millicores
    pub cpu_requests: u32,
    /// `--log-level`
    pub log_level: String,
    /// `--log-output-paths`
    pub log_output_paths: Vec<String>,
    /// `--log-error-output-paths`
    pub log_error_output_paths: Vec<String>,
    /// `--batch-max-duration`
    pub batch_max_duration: Duration,
    /// `--batch-idle-duration`
    pub batch_idle_duration: Duration,
    /// `--legacy-node-repair`
    pub legacy_node_repair: bool,
    /// `--instance-types-file-path` (kwok)
    pub instance_types_file_path: String,
    /// `--metrics-profile`
    pub metrics_profile: MetricsProfile,
    /// `--steering`
    pub steering: Steering,
    /// `--packing`
    pub packing: Packing,
    /// `--foresight`
    pub foresight: bool,
    /// `--consolidation`
    pub consolidation: Consolidation,
    /// `--decision-records`
    pub decision_records: bool,
    /// `--decisions-file`; empty for none
    pub decisions_file: String,
    /// `--flight-recorder`; empty for none
    pub flight_recorder: String,
    /// `--page-port`; 0 for none
    pub page_port: u16,
    /// `--notify-url`; empty for nobody
    pub notify_url: String,
    /// `--notify-format`; empty: as the host of the URL is known to read
    pub notify_format: String,
    /// `--notify-on`; empty for the usual
    pub notify_on: String,
    /// `--notify-every`
    pub notify_every: Duration,
    /// `--cloud`
    pub cloud: Cloud,
    /// What only the AWS provider reads.
    pub aws: AwsSettings,
    /// What only the Azure provider reads.
    pub azure: AzureSettings,
}

/// How many metrics are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum MetricsProfile {
    /// Nothing per pod and nothing per node: what it costs does not grow with the cluster.
    Minimal,
    /// Upstream's set.
    #[default]
    Standard,
    /// Upstream's set and our own.
    Full,
}

/// How far placing pods is left to the scheduler of the cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Steering {
    /// Wholly, as upstream does.
    Off,
    /// The nodes of one plan are released together.
    Release,
    /// As release, and where a rehearsal says that it helps, planned pods are nominated for their nodes.
    #[default]
    Nominate,
    /// As nominate, and pods are bound to their nodes before these are released.
    Pin,
}

impl Steering {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Release => "release",
            Self::Nominate => "nominate",
            Self::Pin => "pin",
        }
    }
}

/// Which plans are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Packing {
    /// The cheapest of many.
    #[default]
    Cheapest,
    /// Upstream's.
    Faithful,
}

/// Which moves save money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Consolidation {
    /// Upstream's, and several nodes for several.
    #[default]
    Cheapest,
    /// Upstream's.
    Faithful,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            decisions: model::snapshot::Settings::default(),
            metrics_port: 8080,
            health_probe_port: 8081,
            kube_client_qps: 200,
            kube_client_burst: 300,
            enable_profiling: false,
            disable_controller_warmup: true,
            disable_leader_election: false,
            disable_cluster_state_observability: false,
            leader_election_name: "karpenter-leader-election".to_owned(),
            leader_election_namespace: String::new(),
            memory_limit: -1,
            cpu_requests: 1000,
            log_level: "info".to_owned(),
            log_output_paths: vec!["stdout".to_owned()],
            log_error_output_paths: vec!["stderr".to_owned()],
            batch_max_duration: Duration::from_secs(10),
            batch_idle_duration: Duration::from_secs(1),
            legacy_node_repair: false,
            instance_types_file_path: String::new(),
            metrics_profile: MetricsProfile::default(),
            steering: Steering::default(),
            packing: Packing::default(),
            foresight: false,
            consolidation: Consolidation::default(),
            decision_records: true,
            decisions_file: String::new(),
            flight_recorder: String::new(),
            page_port: 0,
            notify_url: String::new(),
            notify_format: String::new(),
            notify_on: String::new(),
            notify_every: Duration::from_mins(1),
            cloud: Cloud::default(),
            aws: AwsSettings::default(),
            azure: AzureSettings::default(),
        }
    }
}

impl Settings {
    /// Whether pods that are about to be made take part in plans. Upstream's plans know none.
    pub fn looks_ahead(&self) -> bool {
        self.foresight && self.packing == Packing::Cheapest
    }

    /// The settings of these arguments (the program's name left out) and this environment, and what to log about them.
    pub fn parse(
        arguments: impl Iterator<Item = String>,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<(Self, Vec<Notice>), SettingsError> {
        let mut given = arguments::read(arguments)?;
        let mut settings = Self::default();
        let mut notices = std::mem::take(&mut given.notices);
        for option in options::ALL {
            if let Some(value) = given.flags.get(option.flag) {
                option.set_by_flag(&mut settings, value)?;
            } else if let Some(value) = environment(option.variable) {
                notices.extend(option.set_by_variable(&mut settings, &value)?);
            }
        }
        settings.aws.validate()?;
        settings.azure.validate()?;
        if settings.enable_profiling {
            notices.push(Notice::NoProfiler);
        }
        notices.extend(given.unknown_gates(&environment));
        Ok((settings, notices))
    }

    /// How often failed items of a controller come back: so many a second on one core, more with more workers, and ten
    /// times as many at once, as upstream scales it.
    pub fn retries(&self, at_one: u32, workers: (u32, u32)) -> crate::rate::Rate {
        #[expect(clippy::cast_precision_loss, reason = "at most some thousands")]
        let workers_now = self.workers(workers.0, workers.1) as f64;
        let per_second = (workers_now * f64::from(at_one) / f64::from(workers.0)).ceil();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small positive number"
        )]
        let burst = (per_second * 10.0) as u32;
        crate::rate::Rate { per_second, burst }
    }

    /// Workers of a controller: from `at_one` on one core to `at_sixty` on sixty, as upstream scales them.
    pub fn workers(&self, at_one: u32, at_sixty: u32) -> usize {
        let cores = f64::from(self.cpu_requests.max(1)) / 1000.0;
        let share = ((cores - 1.0) / 59.0).clamp(0.0, 1.0);
        let workers = f64::from(at_one) + share * f64::from(at_sixty - at_one);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small positive number"
        )]
        let workers = workers as usize;
        workers
    }
}

#[cfg(test)]
mod tests;
