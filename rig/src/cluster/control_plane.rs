//! How are the pieces of a control plane started? In the order they need each other, each step awaited by asking the piece
//! itself, with a bound and a reason when it is passed.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::{Builder, Cluster, TOKEN};
use crate::client::{Client, Seen};
use crate::error::{Error, Result};
use crate::process::Process;
use crate::{kwok, ports};

/// Bounds of the single steps; generous, because the machine may be busy with other clusters.
const API_SERVER_LIMIT: Duration = Duration::from_mins(5);
const CONTROLLERS_LIMIT: Duration = Duration::from_mins(3);

pub(super) const API_SERVER: &str = "kube-apiserver";

/// Every request once, when it has been answered; without bodies.
const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived, ResponseStarted]\n\
                            rules: [{level: Metadata}]\n";

impl Cluster {
    pub(super) fn start_control_plane(&mut self, builder: &Builder) -> Result<()> {
        self.start_api_server(builder.audit)?;
        if !builder.api_server_only {
            let scheduler = self.start_scheduler(builder.scheduler_config.as_deref())?;
            let manager = self.start_controller_manager()?;
            self.await_health("kube-scheduler", &scheduler)?;
            self.await_health("kube-controller-manager", &manager)?;
            self.await_service_account("default")?;
            self.await_service_account("kube-system")?;
        }
        if let Some(stages) = &builder.stages {
            let address = self.start_kwok(stages, builder.kubelets.unwrap_or(Ipv4Addr::LOCALHOST.into()))?;
            self.await_health("kwok", &address)?;
        }
        Ok(())
    }

    fn start_api_server(&mut self, audit: bool) -> Result<()> {
        let [clients, peers] = ports::free()?;
        let etcd = format!("http://127.0.0.1:{clients}");
        let mut command = self.program("etcd");
        command.arg("--data-dir").arg(self.state.join("etcd"));
        // Nothing here outlives the process, so nothing needs to reach the disk.
        command.args([
            "--unsafe-no-fsync",
            "--log-level=warn",
            "--quota-backend-bytes=4294967296",
        ]);
        command
            .arg(format!("--listen-client-urls={etcd}"))
            .arg(format!("--advertise-client-urls={etcd}"));
        command.arg(format!("--listen-peer-urls=http://127.0.0.1:{peers}"));
        self.run("etcd", &command)?;
        self.etcd.clone_from(&etcd);

        let mut command = self.program(API_SERVER);
        let port = self.server.rsplit(':').next().unwrap_or_default();
        command.args([
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--authorization-mode=RBAC",
        ]);
        command
            .arg(format!("--secure-port={port}"))
            .arg(format!("--etcd-servers={etcd}"));
        command.args(["--service-cluster-ip-range=10.96.0.0/16", "--allow-privileged=true"]);
        command.arg("--service-account-issuer=https://kubernetes.default.svc");
        // The suites' clients do not pace themselves.
        command.args(["--max-requests-inflight=3000", "--max-mutating-requests-inflight=1500"]);
        command.arg("--service-account-key-file").arg(&self.pki.accounts_public);
        command
            .arg("--service-account-signing-key-file")
            .arg(&self.pki.accounts_key);
        command.arg("--token-auth-file").arg(self.state.join("tokens.csv"));
        command.arg("--cert-dir").arg(self.state.join("pki"));
        if audit {
            let policy = self.write("audit.yaml", AUDIT_POLICY)?;
            command.arg("--audit-policy-file").arg(policy);
            command.arg("--audit-log-path").arg(self.logs().join("audit.log"));
        }
        self.with_certificate(&mut command);
        self.run(API_SERVER, &command)?;
        self.await_api_server()
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
        let wrong = |reason: String| Error::Manifest {
            origin: origin.to_owned(),
            reason,
        };
        let mut config: serde_json::Value = serde_saphyr::from_str(config).map_err(|e| wrong(e.to_string()))?;
        config["clientConnection"]["kubeconfig"] = self.kubeconfig().display().to_string().into();
        config["leaderElection"]["leaderElect"] = false.into();
        Ok(config.to_string())
    }

    fn start_controller_manager(&mut self) -> Result<String> {
        let (mut command, address) = self.controller("kube-controller-manager")?;
        command
            .arg("--service-account-private-key-file")
            .arg(&self.pki.accounts_key);
        command.arg("--root-ca-file").arg(&self.pki.ca);
        command.arg("--use-service-account-credentials=false");
        self.run("kube-controller-manager", &command)?;
        Ok(address)
    }

    /// The flags kube-scheduler and kube-controller-manager have in common, and the address they will answer on.
    fn controller(&self, name: &str) -> Result<(Command, String)> {
        let [port] = ports::free()?;
        let mut command = self.program(name);
        for flag in [
            "--kubeconfig",
            "--authentication-kubeconfig",
            "--authorization-kubeconfig",
        ] {
            command.arg(flag).arg(self.kubeconfig());
        }
        command
            .args(["--leader-elect=false", "--bind-address=127.0.0.1"])
            .arg(format!("--secure-port={port}"));
        self.with_certificate(&mut command);
        Ok((command, format!("https://127.0.0.1:{port}")))
    }

    fn start_kwok(&mut self, stages: &[PathBuf], ip: IpAddr) -> Result<String> {
        let [port] = ports::free()?;
        let own = kwok::write_stages(&self.state.join("stages"))?;
        let mut command = self.program("kwok");
        command.arg("--kubeconfig").arg(self.kubeconfig());
        for stage in if stages.is_empty() { &own } else { stages } {
            command.arg("--config").arg(stage);
        }
        command.args(kwok::FLAGS);
        let address = SocketAddr::new(ip, port);
        command
            .arg(format!("--node-ip={ip}"))
            .arg(format!("--node-port={port}"));
        command.arg(format!("--server-address={address}"));
        // The API server speaks TLS to kubelets; for us kwok still answers plain HTTP on the same port.
        self.with_certificate(&mut command);
        // kwok looks for more configuration in the home folder.
        command.env("HOME", &self.state);
        self.run("kwok", &command)?;
        Ok(format!("http://{address}"))
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.binaries.join(name));
        command.current_dir(&self.state);
        command
    }

    fn with_certificate(&self, command: &mut Command) {
        command
            .arg("--tls-cert-file")
            .arg(&self.pki.cert)
            .arg("--tls-private-key-file")
            .arg(&self.pki.key);
    }

    fn run(&mut self, name: &str, command: &Command) -> Result<()> {
        let process = self.spawn(name, command)?;
        self.processes.push(process);
        self.commands.push((name.to_owned(), again(command)));
        Ok(())
    }

    /// Kills the API server and starts it again on the same port. Returns when it answers; what it remembered of recent
    /// changes for watches is gone.
    pub fn restart_api_server(&mut self) -> Result<()> {
        self.kill(API_SERVER);
        self.start_again(API_SERVER)?;
        self.await_api_server()
    }

    /// Kills a piece, or every one whose name begins so.
    pub(super) fn kill(&mut self, name: &str) {
        for (process, (of, _)) in self.processes.iter_mut().zip(&self.commands) {
            if of.starts_with(name) {
                process.kill();
            }
        }
    }

    /// Starts what was killed, as it was started before.
    pub(super) fn start_again(&mut self, name: &str) -> Result<()> {
        for at in 0..self.processes.len() {
            let Some((of, command)) = self.commands.get(at).filter(|(of, _)| of.starts_with(name)) else {
                continue;
            };
            let started = self.spawn(of, &again(command))?;
            if let Some(process) = self.processes.get_mut(at) {
                *process = started;
            }
        }
        Ok(())
    }

    pub(super) fn await_api_server(&mut self) -> Result<()> {
        let server = self.server.clone();
        self.await_answer(API_SERVER, &server, "/readyz", API_SERVER_LIMIT)
    }

    fn await_health(&mut self, name: &str, address: &str) -> Result<()> {
        self.await_answer(name, address, "/healthz", CONTROLLERS_LIMIT)
    }

    fn await_answer(&mut self, name: &str, address: &str, path: &str, limit: Duration) -> Result<()> {
        let client = Client::new(address.to_owned(), TOKEN, &self.pki.ca_pem)?;
        client.wait_for(&format!("{name} answering {path}"), limit, |client| {
            self.check_up_to(name)?;
            Ok(match client.request("GET", path, None, "application/json") {
                Ok(answer) if answer.ok() => Seen::Done(()),
                Ok(answer) => Seen::NotYet(answer.message()),
                Err(error) => Seen::NotYet(error.to_string()),
            })
        })
    }

    /// An error when a piece, or one that was started before it and that it therefore needs, has ended. What comes later
    /// may be down on purpose.
    fn check_up_to(&mut self, name: &str) -> Result<()> {
        let last = self.commands.iter().rposition(|(of, _)| of == name);
        let needed = last.map_or(self.processes.len(), |last| last + 1);
        self.processes.iter_mut().take(needed).try_for_each(Process::check)
    }

    /// No pod can be created in a namespace before the controller-manager has made its service account.
    fn await_service_account(&mut self, namespace: &str) -> Result<()> {
        let client = self.client.clone();
        client.wait_for(
            &format!("the service account {namespace}/default"),
            CONTROLLERS_LIMIT,
            |client| {
                self.check()?;
                Ok(
                    match client.get(&format!("/api/v1/namespaces/{namespace}/serviceaccounts/default"))? {
                        Some(_) => Seen::Done(()),
                        None => Seen::NotYet("there is none".to_owned()),
                    },
                )
            },
        )
    }
}

/// The same command once more: one that was started cannot be copied.
fn again(command: &Command) -> Command {
    let mut copy = Command::new(command.get_program());
    copy.args(command.get_args());
    copy.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(dir) = command.get_current_dir() {
        copy.current_dir(dir);
    }
    copy
}
