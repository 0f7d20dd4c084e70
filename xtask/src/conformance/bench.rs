//! Where does a spec run? On a cluster with the controller beside it, kept from spec to spec while all goes well.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use rig::{Cluster, Controller, Deadline, Deployment, Process, ports};
use serde_json::json;

use super::Suite;
use super::spec::{self, Outcome, Spec, Verdict};
use super::upstream::Upstream;
use crate::cluster::install;

/// The longest wait in the suites is 35 minutes.
const SPEC_LIMIT: Duration = Duration::from_mins(40);
const KILL_AFTER: Duration = Duration::from_mins(43);
/// Where the performance suite looks for the controller's metrics.
const METRICS_PORT: u16 = 8080;
/// The default-constraint specs look for a kube-scheduler that was given this file.
const SCHEDULER_CONFIG: &str = "/etc/kubernetes/karpenter-scheduler-config/kube-scheduler-config.yaml";

/// A place where specs run one after the other.
pub(crate) struct Bench<'a> {
    upstream: &'a Upstream,
    program: &'a Path,
    out: &'a Path,
    name: String,
    set_up: Option<SetUp>,
}

/// Fields drop in this order: the controller goes before its cluster.
struct SetUp {
    _controller: Deployment,
    _driver: Option<Process>,
    cluster: Cluster,
    needs: Needs,
}

/// What a suite wants beyond the others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// The controller's metrics, through the API server.
    Metrics,
    /// The stand-in for DRA drivers.
    Driver,
}

impl Needs {
    fn of(suite: Suite) -> Self {
        match suite {
            Suite::Regression | Suite::Disruption => Self::Nothing,
            Suite::Performance => Self::Metrics,
            Suite::Dra => Self::Driver,
        }
    }
}

impl<'a> Bench<'a> {
    /// A place with nothing on it yet.
    pub(crate) fn new(upstream: &'a Upstream, program: &'a Path, out: &'a Path, name: String) -> Self {
        Self {
            upstream,
            program,
            out,
            name,
            set_up: None,
        }
    }

    /// Runs one spec. A failed one takes its cluster with it: what it left behind would fail the next.
    pub(crate) fn run(&mut self, spec: &Spec) -> Result<Outcome> {
        let needs = Needs::of(spec.suite);
        let kept = self.set_up.take().filter(|kept| kept.needs == needs);
        let sound = kept.and_then(|mut kept| kept.cluster.check().is_ok().then_some(kept));
        let set_up = match sound {
            Some(set_up) => set_up,
            None => self.set_up(spec.suite)?,
        };
        let outcome = self.run_on(&set_up.cluster, spec)?;
        if outcome.verdict == Verdict::Failed {
            self.keep_logs(&set_up.cluster, spec)?;
        } else {
            self.set_up = Some(set_up);
        }
        Ok(outcome)
    }

    fn run_on(&self, cluster: &Cluster, spec: &Spec) -> Result<Outcome> {
        let report = cluster.logs().join("report.json");
        for old in [&report, &cluster.logs().join("spec.log")] {
            let _ = fs::remove_file(old);
        }
        let mut command = self.upstream.test(spec.suite);
        command.env("KUBECONFIG", cluster.kubeconfig()).env_remove("OUTPUT_DIR");
        if spec.suite == Suite::Performance {
            command.env("OUTPUT_DIR", reports(self.out));
        }
        command.arg(format!("--ginkgo.focus={}", spec.focus()));
        command.arg(format!("--ginkgo.json-report={}", report.display()));
        command.arg(format!("--ginkgo.timeout={}s", SPEC_LIMIT.as_secs()));
        command.args(["--ginkgo.grace-period=1m", "--ginkgo.v", "--ginkgo.no-color"]);
        let clock = Deadline::within(KILL_AFTER);
        let mut test = cluster.spawn("spec", &command)?;
        while test.ended().is_none() && !clock.passed() {
            thread::sleep(Duration::from_millis(100));
        }
        drop(test);
        let outcome = spec::outcome(spec, &report).unwrap_or_else(|error| Outcome {
            seconds: clock.elapsed().as_secs_f64(),
            ..Outcome::impossible(&error)
        });
        // The tables are kept where nobody has this machine's folders.
        let folder = |path: &Path| format!("{}/", path.display());
        let reason = outcome.reason.replace(&folder(&self.upstream.source()), "");
        let reason = reason.replace(&folder(&cluster.logs()), "");
        Ok(Outcome { reason, ..outcome })
    }

    fn set_up(&self, suite: Suite) -> Result<SetUp> {
        let needs = Needs::of(suite);
        let mut stages = self.upstream.stages().to_vec();
        let mut builder = Cluster::builder().scheduler_config(self.upstream.scheduler_config()?);
        if needs == Needs::Metrics {
            builder = builder.kubelet_address(host_address()?);
            stages.push(self.port_forward()?);
        }
        let cluster = builder
            .kwok(stages)
            .start()
            .context("starting a cluster for the suite")?;
        for folder in self.upstream.crds(suite) {
            install(&cluster, &folder)?;
        }
        show_scheduler(&cluster)?;
        let driver = (needs == Needs::Driver).then(|| start_driver(&cluster)).transpose()?;
        let node = (needs == Needs::Metrics).then(|| host_node(&cluster)).transpose()?;
        let controller = Controller {
            program: self.program.to_path_buf(),
            env: settings(&cluster, needs)?,
            node,
        };
        let deployment = Deployment::start(&cluster, &controller).context("starting the controller")?;
        Ok(SetUp {
            _controller: deployment,
            _driver: driver,
            cluster,
            needs,
        })
    }

    /// kwok leads a port-forward to the controller's metrics there.
    fn port_forward(&self) -> Result<PathBuf> {
        let forward = json!({
            "apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "ClusterPortForward", "metadata": {"name": "metrics"},
            "spec": {"forwards": [{"ports": [METRICS_PORT], "target": {"address": "127.0.0.1", "port": METRICS_PORT}}]},
        });
        let path = self.out.join("port-forward.yaml");
        fs::write(&path, forward.to_string())?;
        Ok(path)
    }

    fn keep_logs(&self, cluster: &Cluster, spec: &Spec) -> Result<()> {
        let words: String = spec
            .text
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .take(100)
            .collect();
        let dir = self
            .out
            .join("failed")
            .join(spec.suite.name())
            .join(words)
            .join(&self.name);
        fs::create_dir_all(&dir)?;
        for name in [
            "spec.log",
            "report.json",
            "karpenter.log",
            "kwok.log",
            "kube-scheduler.log",
        ] {
            let _ = fs::copy(cluster.logs().join(name), dir.join(name));
        }
        Ok(())
    }
}

/// Where the performance suite leaves what it measured.
pub(crate) fn reports(out: &Path) -> PathBuf {
    out.join("performance")
}

/// What upstream's chart sets for its suites, on ports of this cluster's own, except where a suite counts on a port.
fn settings(cluster: &Cluster, needs: Needs) -> Result<BTreeMap<String, String>> {
    let [free, health] = ports::free()?;
    let metrics = if needs == Needs::Metrics { METRICS_PORT } else { free };
    let gates = "StaticCapacity=true,SpotToSpotConsolidation=true,NodeRepair=true,CapacityBuffer=true";
    let settings = [
        ("KUBECONFIG", cluster.kubeconfig().display().to_string()),
        ("METRICS_PORT", metrics.to_string()),
        ("HEALTH_PROBE_PORT", health.to_string()),
        ("FEATURE_GATES", gates.to_owned()),
        ("LEADER_ELECTION_NAMESPACE", "kube-system".to_owned()),
        ("SYSTEM_NAMESPACE", "kube-system".to_owned()),
        ("CPU_REQUESTS", "1000".to_owned()),
        ("LOG_LEVEL", "debug".to_owned()),
    ];
    Ok(settings.map(|(name, value)| (name.to_owned(), value)).into())
}

/// An address of this machine that is not loopback, to which the API server refuses to proxy. Nothing is sent.
fn host_address() -> Result<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket
        .connect((Ipv4Addr::new(192, 0, 2, 1), 9))
        .context("the performance suite needs a network address besides loopback")?;
    Ok(socket.local_addr()?.ip())
}

/// The node this machine passes for, closed to all other pods.
fn host_node(cluster: &Cluster) -> Result<String> {
    let name = "rig-host".to_owned();
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"kwok-partition": "a"}},
        "spec": {"taints": [{"key": "CriticalAddonsOnly", "effect": "NoSchedule"}]},
    });
    cluster.client().post("/api/v1/nodes", &node)?;
    Ok(name)
}

/// A pod that shows how kube-scheduler was started, as a static pod would; nobody runs it.
fn show_scheduler(cluster: &Cluster) -> Result<()> {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "kube-scheduler", "labels": {"component": "kube-scheduler"}},
        "spec": {
            "schedulerName": "rig",
            "containers": [{
                "name": "kube-scheduler", "image": "rig",
                "command": ["kube-scheduler", format!("--config={SCHEDULER_CONFIG}")],
            }],
        },
    });
    cluster.client().post("/api/v1/namespaces/kube-system/pods", &pod)?;
    Ok(())
}

fn start_driver(cluster: &Cluster) -> Result<Process> {
    let driver: PathBuf = Upstream::dra_driver()?;
    let mut command = Command::new(driver);
    command.env("KUBECONFIG", cluster.kubeconfig());
    Ok(cluster.spawn("dra-kwok-driver", &command)?)
}
