//! What is a running cluster, and how does it end?

mod builder;
mod control_plane;
mod store;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

pub use builder::Builder;

use crate::client::Client;
use crate::error::{Result, io};
use crate::guard::Guard;
use crate::pki::{self, Pki};
use crate::ports;
use crate::process::Process;

/// The static token of the administrator, who may do everything.
const TOKEN: &str = "rig";
/// The static token of the service account `kube-system/dovetail`, who may do what a test grants it.
const ACCOUNT_TOKEN: &str = "rig-account";
const ACCOUNT: &str = "system:serviceaccount:kube-system:dovetail";

/// A running cluster. Dropping it ends every process and removes its files; the logs stay when the thread panics.
pub struct Cluster {
    // Fields drop in this order: the processes before the guard that watches them.
    processes: Vec<Process>,
    /// How each of them was started.
    commands: Vec<(String, Command)>,
    /// Where etcd answers.
    etcd: String,
    guard: Guard,
    state: PathBuf,
    binaries: PathBuf,
    pki: Pki,
    client: Client,
    server: String,
    keep_logs: bool,
}

impl Cluster {
    /// Begins the description of a cluster.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The path of its kubeconfig: an administrator's.
    pub fn kubeconfig(&self) -> PathBuf {
        self.state.join("kubeconfig")
    }

    /// The path of the kubeconfig of the service account `kube-system/dovetail`, who may do nothing but what a role
    /// bound to it allows.
    pub fn account_kubeconfig(&self) -> PathBuf {
        self.state.join("account-kubeconfig")
    }

    /// The administrator's connection.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The folder with a log for each process.
    pub fn logs(&self) -> PathBuf {
        self.state.join("logs")
    }

    /// Whatever happens, leave the logs and say where they are.
    pub fn keep_logs(&mut self) {
        self.keep_logs = true;
    }

    /// Starts another program beside the cluster, under the same guard, logging to `logs()/<name>.log`.
    pub fn spawn(&self, name: &str, command: &Command) -> Result<Process> {
        self.guard.spawn(name, command, self.logs().join(format!("{name}.log")))
    }

    pub(crate) fn guard(&self) -> Guard {
        self.guard.clone()
    }

    /// An error when any process of the control plane has ended.
    pub fn check(&mut self) -> Result<()> {
        self.processes.iter_mut().try_for_each(Process::check)
    }

    /// Process ids of the control plane.
    pub fn process_ids(&self) -> Vec<u32> {
        self.processes.iter().map(Process::id).collect()
    }

    fn prepare(builder: &Builder, binaries: &Path) -> Result<Self> {
        let state = match &builder.state {
            Some(dir) => fs::create_dir_all(dir)
                .map_err(io("create", dir))
                .map(|()| dir.clone())?,
            None => tempfile::Builder::new()
                .prefix("dovetail-rig-")
                .tempdir()
                .map_err(io("create a folder in", std::env::temp_dir()))?
                .keep(),
        };
        let guard = Guard::over(&state)?;
        let logs = state.join("logs");
        fs::create_dir_all(&logs).map_err(io("create", &logs))?;
        let [port] = ports::free()?;
        let server = format!("https://127.0.0.1:{port}");
        let pki = pki::create(&state.join("pki"))?;
        let client = Client::new(server.clone(), TOKEN, &pki.ca_pem)?;
        let cluster = Self {
            processes: Vec::new(),
            commands: Vec::new(),
            etcd: String::new(),
            guard,
            state,
            binaries: binaries.to_path_buf(),
            pki,
            client,
            server,
            keep_logs: false,
        };
        let tokens = format!(
            "{TOKEN},admin,admin,system:masters\n{ACCOUNT_TOKEN},{ACCOUNT},dovetail,\"system:serviceaccounts,system:authenticated\"\n"
        );
        cluster.write("tokens.csv", &tokens)?;
        cluster.write("kubeconfig", &cluster.kubeconfig_text(TOKEN))?;
        cluster.write("account-kubeconfig", &cluster.kubeconfig_text(ACCOUNT_TOKEN))?;
        Ok(cluster)
    }

    fn kubeconfig_text(&self, token: &str) -> String {
        let (server, ca) = (&self.server, BASE64_STANDARD.encode(&self.pki.ca_pem));
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: rig\n\
             clusters: [{{name: rig, cluster: {{server: {server:?}, certificate-authority-data: {ca}}}}}]\n\
             users: [{{name: admin, user: {{token: {token}}}}}]\n\
             contexts: [{{name: rig, context: {{cluster: rig, user: admin}}}}]\n"
        )
    }

    fn write(&self, name: &str, content: &str) -> Result<PathBuf> {
        let path = self.state.join(name);
        fs::write(&path, content).map_err(io("write", &path)).map(|()| path)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.processes.clear();
        if !self.keep_logs && !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.state);
            return;
        }
        for part in ["etcd", "etcd-backup", "pki", "stages"] {
            let _ = fs::remove_dir_all(self.state.join(part));
        }
        eprintln!("rig: the cluster's logs are in {}", self.logs().display());
    }
}
