//! What may a cluster be like? The choices, and the start with its repeats.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use super::Cluster;
use crate::build::{self, KubernetesVersion};
use crate::error::{Error, Result};

/// How often a start is repeated because somebody else took one of its ports.
const ATTEMPTS: usize = 3;

/// What to start. Made by [`Cluster::builder`].
#[derive(Clone, Default)]
pub struct Builder {
    pub(super) kubernetes: KubernetesVersion,
    pub(super) api_server_only: bool,
    pub(super) stages: Option<Vec<PathBuf>>,
    pub(super) kubelets: Option<IpAddr>,
    pub(super) scheduler_config: Option<String>,
    pub(super) state: Option<PathBuf>,
    pub(super) audit: bool,
}

impl Builder {
    /// Another release than the default.
    #[must_use]
    pub fn kubernetes(mut self, version: KubernetesVersion) -> Self {
        self.kubernetes = version;
        self
    }

    /// Only etcd and the API server: nothing schedules, nothing is collected, but it is up sooner.
    #[must_use]
    pub fn api_server_only(mut self) -> Self {
        self.api_server_only = true;
        self
    }

    /// kwok plays the kubelets of nodes labelled `kwok-partition=a`, by these stage files, or by the rig's own when there
    /// are none: nodes Ready, pods Running, deleted pods gone.
    #[must_use]
    pub fn kwok(mut self, stages: Vec<PathBuf>) -> Self {
        self.stages = Some(stages);
        self
    }

    /// Where kwok answers as the kubelets, instead of on loopback. The API server forwards ports over loopback, but it
    /// does not proxy HTTP to pods there.
    #[must_use]
    pub fn kubelet_address(mut self, address: IpAddr) -> Self {
        self.kubelets = Some(address);
        self
    }

    /// A KubeSchedulerConfiguration for kube-scheduler; the connection to the cluster is filled in.
    #[must_use]
    pub fn scheduler_config(mut self, yaml: String) -> Self {
        self.scheduler_config = Some(yaml);
        self
    }

    /// Writes down who asked the API server for what, in `logs()/audit.log`: one JSON line per answered request.
    #[must_use]
    pub fn audit(mut self) -> Self {
        self.audit = true;
        self
    }

    /// Keeps the cluster's files in `dir` instead of a fresh temporary folder. It is removed with the cluster.
    #[must_use]
    pub fn state_dir(mut self, dir: PathBuf) -> Self {
        self.state = Some(dir);
        self
    }

    /// Starts it (building the binaries first, if need be) and returns when everything answers.
    pub fn start(self) -> Result<Cluster> {
        let binaries = build::control_plane(&self.kubernetes)?;
        let mut attempt = 1;
        loop {
            match self.attempt(&binaries) {
                Err(error) if attempt < ATTEMPTS && port_was_taken(&error) => attempt += 1,
                other => return other,
            }
        }
    }

    fn attempt(&self, binaries: &Path) -> Result<Cluster> {
        let mut cluster = Cluster::prepare(self, binaries)?;
        let started = cluster.start_control_plane(self);
        if started.as_ref().is_err_and(|error| !port_was_taken(error)) {
            cluster.keep_logs();
        }
        started.map(|()| cluster)
    }
}

fn port_was_taken(error: &Error) -> bool {
    matches!(error, Error::Died { tail, .. } if tail.contains("address already in use"))
}
