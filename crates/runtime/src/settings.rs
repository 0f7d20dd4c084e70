//! Upstream's flags and environment variables, with its names and defaults.

use std::time::Duration;

/// How the controller runs.
#[derive(Debug, Clone, PartialEq)]
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
    /// `--disable-leader-election`
    pub disable_leader_election: bool,
    /// `--disable-cluster-state-observability`
    pub disable_cluster_state_observability: bool,
    /// `--leader-election-name`
    pub leader_election_name: String,
    /// `--leader-election-namespace`
    pub leader_election_namespace: String,
    /// `--cpu-requests`, in millicores
    pub cpu_requests: u32,
    /// `--log-level`
    pub log_level: String,
    /// `--batch-max-duration`
    pub batch_max_duration: Duration,
    /// `--batch-idle-duration`
    pub batch_idle_duration: Duration,
    /// `--instance-types-file-path` (kwok)
    pub instance_types_file_path: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            decisions: model::snapshot::Settings::default(),
            metrics_port: 8080,
            health_probe_port: 8081,
            kube_client_qps: 200,
            kube_client_burst: 300,
            disable_leader_election: false,
            disable_cluster_state_observability: false,
            leader_election_name: "karpenter-leader-election".to_owned(),
            leader_election_namespace: String::new(),
            cpu_requests: 1000,
            log_level: "info".to_owned(),
            batch_max_duration: Duration::from_secs(10),
            batch_idle_duration: Duration::from_secs(1),
            instance_types_file_path: String::new(),
        }
    }
}

impl Settings {
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
