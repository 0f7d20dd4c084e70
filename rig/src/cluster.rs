//! How is a cluster started and ended? Each piece as a plain process on loopback, in the order they need each other.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::build::{self, KubernetesVersion};
use crate::client::{Client, Seen};
use crate::error::{Error, Result, io};
use crate::guard::Guard;
use crate::pki::{self, Pki};
use crate::process::Process;
use crate::{kwok, ports};

/// Bounds of the single steps; generous, because the machine may be busy with other clusters.
const API_SERVER_LIMIT: Duration = Duration::from_secs(120);
const CONTROLLERS_LIMIT: Duration = Duration::from_secs(60);
/// The static token of the one user, who may do everything.
const TOKEN: &str = "rig";
/// How often a start is repeated because somebody else took one of its ports.
const ATTEMPTS: usize = 3;

/// What to start. Made by [`Cluster::builder`].
#[derive(Clone, Default)]
pub struct Builder {
    kubernetes: KubernetesVersion,
    api_server_only: bool,
    stages: Option<Vec<PathBuf>>,
    scheduler_config: Option<String>,
    state: Option<PathBuf>,
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

    /// A KubeSchedulerConfiguration for kube-scheduler; the connection to the cluster is filled in.
    #[must_use]
    pub fn scheduler_config(mut self, yaml: String) -> Self {
        self.scheduler_config = Some(yaml);
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
        if started.is_err() {
            cluster.keep_logs();
        }
        started.map(|()| cluster)
    }
}

fn port_was_taken(error: &Error) -> bool {
    matches!(error, Error::Died { tail, .. } if tail.contains("address already in use"))
}

/// A running cluster. Dropping it ends every process and removes its files; the logs stay when the thread panics.
pub struct Cluster {
    // Fields drop in this order: the processes before the guard that watches them.
    processes: Vec<Process>,
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

    /// The administrator's connection.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The folder with a log for each process.
    pub fn logs(&self) -> PathBuf {
        self.state.join("logs")
    }

    /// The API server's address.
    pub fn server(&self) -> &str {
        &self.server
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
            Some(dir) => fs::create_dir_all(dir).map_err(io("create", dir)).map(|()| dir.clone())?,
            None => tempfile::Builder::new()
                .prefix("dovetail-rig-")
                .tempdir()
                .map_err(io("create a folder in", std::env::temp_dir()))?
                .keep(),
        };
        let logs = state.join("logs");
        fs::create_dir_all(&logs).map_err(io("create", &logs))?;
        let [port] = ports::free()?;
        let server = format!("https://127.0.0.1:{port}");
        let pki = pki::create(&state.join("pki"))?;
        let client = Client::new(server.clone(), TOKEN, &pki.ca_pem)?;
        let guard = Guard::over(&state)?;
        let cluster = Self {
            processes: Vec::new(),
            guard,
            state,
            binaries: binaries.to_path_buf(),
            pki,
            client,
            server,
            keep_logs: false,
        };
        cluster.write("tokens.csv", &format!("{TOKEN},admin,admin,system:masters\n"))?;
        cluster.write("kubeconfig", &cluster.kubeconfig_text())?;
        Ok(cluster)
    }

    fn start_control_plane(&mut self, builder: &Builder) -> Result<()> {
        self.start_api_server()?;
        if !builder.api_server_only {
            let scheduler = self.start_scheduler(builder.scheduler_config.as_deref())?;
            let manager = self.start_controller_manager()?;
            self.await_health("kube-scheduler", &scheduler)?;
            self.await_health("kube-controller-manager", &manager)?;
            self.await_service_account("default")?;
            self.await_service_account("kube-system")?;
        }
        if let Some(stages) = &builder.stages {
            let address = self.start_kwok(stages)?;
            self.await_health("kwok", &address)?;
        }
        Ok(())
    }

    fn start_api_server(&mut self) -> Result<()> {
        let [clients, peers] = ports::free()?;
        let etcd = format!("http://127.0.0.1:{clients}");
        let mut command = self.program("etcd");
        command.arg("--data-dir").arg(self.state.join("etcd"));
        // Nothing here outlives the process, so nothing needs to reach the disk.
        command.args(["--unsafe-no-fsync", "--log-level=warn", "--quota-backend-bytes=4294967296"]);
        command.arg(format!("--listen-client-urls={etcd}")).arg(format!("--advertise-client-urls={etcd}"));
        command.arg(format!("--listen-peer-urls=http://127.0.0.1:{peers}"));
        self.run("etcd", &command)?;

        let mut command = self.program("kube-apiserver");
        let port = self.server.rsplit(':').next().unwrap_or_default();
        command.args(["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--authorization-mode=RBAC"]);
        command.arg(format!("--secure-port={port}")).arg(format!("--etcd-servers={etcd}"));
        command.args(["--service-cluster-ip-range=10.96.0.0/16", "--allow-privileged=true"]);
        command.arg("--service-account-issuer=https://kubernetes.default.svc");
        // The suites' clients do not pace themselves.
        command.args(["--max-requests-inflight=3000", "--max-mutating-requests-inflight=1500"]);
        command.arg("--service-account-key-file").arg(&self.pki.accounts_public);
        command.arg("--service-account-signing-key-file").arg(&self.pki.accounts_key);
        command.arg("--token-auth-file").arg(self.state.join("tokens.csv"));
        command.arg("--cert-dir").arg(self.state.join("pki"));
        self.with_certificate(&mut command);
        self.run("kube-apiserver", &command)?;
        let server = self.server.clone();
        self.await_answer("kube-apiserver", &server, "/readyz", API_SERVER_LIMIT)
    }

    fn start_scheduler(&mut self, config: Option<&str>) -> Result<String> {
        let (mut command, address) = self.controller("kube-scheduler")?;
        if let Some(config) = config {
            let path = self.write("kube-scheduler.yaml", &self.connected(config)?)?;
            command.arg("--config").arg(path);
        }
        self.run("kube-scheduler", &command)?;
        Ok(address)
    }

    /// With a configuration file the scheduler takes its connection from there and not from its flags.
    fn connected(&self, config: &str) -> Result<String> {
        let origin = "the scheduler's configuration";
        let wrong = |reason: String| Error::Manifest { origin: origin.to_owned(), reason };
        let mut config: serde_json::Value = serde_saphyr::from_str(config).map_err(|e| wrong(e.to_string()))?;
        config["clientConnection"]["kubeconfig"] = self.kubeconfig().display().to_string().into();
        config["leaderElection"]["leaderElect"] = false.into();
        Ok(config.to_string())
    }

    fn start_controller_manager(&mut self) -> Result<String> {
        let (mut command, address) = self.controller("kube-controller-manager")?;
        command.arg("--service-account-private-key-file").arg(&self.pki.accounts_key);
        command.arg("--root-ca-file").arg(&self.pki.ca);
        command.arg("--use-service-account-credentials=false");
        self.run("kube-controller-manager", &command)?;
        Ok(address)
    }

    /// The flags kube-scheduler and kube-controller-manager have in common, and the address they will answer on.
    fn controller(&self, name: &str) -> Result<(Command, String)> {
        let [port] = ports::free()?;
        let mut command = self.program(name);
        for flag in ["--kubeconfig", "--authentication-kubeconfig", "--authorization-kubeconfig"] {
            command.arg(flag).arg(self.kubeconfig());
        }
        command.args(["--leader-elect=false", "--bind-address=127.0.0.1"]).arg(format!("--secure-port={port}"));
        self.with_certificate(&mut command);
        Ok((command, format!("https://127.0.0.1:{port}")))
    }

    fn start_kwok(&mut self, stages: &[PathBuf]) -> Result<String> {
        let [port] = ports::free()?;
        let own = kwok::write_stages(&self.state.join("stages"))?;
        let mut command = self.program("kwok");
        command.arg("--kubeconfig").arg(self.kubeconfig());
        for stage in if stages.is_empty() { &own } else { stages } {
            command.arg("--config").arg(stage);
        }
        command.args(kwok::FLAGS);
        command.arg(format!("--node-port={port}")).arg(format!("--server-address=127.0.0.1:{port}"));
        // kwok looks for more configuration in the home folder.
        command.env("HOME", &self.state);
        self.run("kwok", &command)?;
        Ok(format!("http://127.0.0.1:{port}"))
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.binaries.join(name));
        command.current_dir(&self.state);
        command
    }

    fn with_certificate(&self, command: &mut Command) {
        command.arg("--tls-cert-file").arg(&self.pki.cert).arg("--tls-private-key-file").arg(&self.pki.key);
    }

    fn run(&mut self, name: &str, command: &Command) -> Result<()> {
        let process = self.spawn(name, command)?;
        self.processes.push(process);
        Ok(())
    }

    fn await_health(&mut self, name: &str, address: &str) -> Result<()> {
        self.await_answer(name, address, "/healthz", CONTROLLERS_LIMIT)
    }

    fn await_answer(&mut self, name: &str, address: &str, path: &str, limit: Duration) -> Result<()> {
        let client = Client::new(address.to_owned(), TOKEN, &self.pki.ca_pem)?;
        client.wait_for(&format!("{name} answering {path}"), limit, |client| {
            self.check()?;
            Ok(match client.request("GET", path, None, "application/json") {
                Ok(answer) if answer.ok() => Seen::Done(()),
                Ok(answer) => Seen::NotYet(answer.message()),
                Err(error) => Seen::NotYet(error.to_string()),
            })
        })
    }

    /// No pod can be created in a namespace before the controller-manager has made its service account.
    fn await_service_account(&mut self, namespace: &str) -> Result<()> {
        let client = self.client.clone();
        client.wait_for(&format!("the service account {namespace}/default"), CONTROLLERS_LIMIT, |client| {
            self.check()?;
            Ok(match client.get(&format!("/api/v1/namespaces/{namespace}/serviceaccounts/default"))? {
                Some(_) => Seen::Done(()),
                None => Seen::NotYet("there is none".to_owned()),
            })
        })
    }

    fn kubeconfig_text(&self) -> String {
        let (server, ca) = (&self.server, BASE64_STANDARD.encode(&self.pki.ca_pem));
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: rig\n\
             clusters: [{{name: rig, cluster: {{server: {server:?}, certificate-authority-data: {ca}}}}}]\n\
             users: [{{name: admin, user: {{token: {TOKEN}}}}}]\n\
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
        for part in ["etcd", "pki", "stages"] {
            let _ = fs::remove_dir_all(self.state.join(part));
        }
        eprintln!("rig: the cluster's logs are in {}", self.logs().display());
    }
}
