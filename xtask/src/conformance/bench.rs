//! Where does a spec run? On a cluster with the controller beside it, kept from spec to spec while all goes well.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use rig::{Cluster, Controller, Deadline, Deployment, Process, ports};
use serde_json::json;

use super::Suite;
use super::spec::{self, Outcome, Spec, Verdict};
use super::upstream::Upstream;
use crate::cluster::install;

/// The longest wait in the suites is 35 minutes.
const SPEC_LIMIT: Duration = Duration::from_secs(40 * 60);
const KILL_AFTER: Duration = Duration::from_secs(43 * 60);
/// The default-constraint specs look for a kube-scheduler that was given this file.
const SCHEDULER_CONFIG: &str = "/etc/kubernetes/karpenter-scheduler-config/kube-scheduler-config.yaml";

/// A place where specs run one after the other.
pub struct Bench<'a> {
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
    dra: bool,
}

impl<'a> Bench<'a> {
    /// A place with nothing on it yet.
    pub fn new(upstream: &'a Upstream, program: &'a Path, out: &'a Path, name: String) -> Self {
        Self { upstream, program, out, name, set_up: None }
    }

    /// Runs one spec. A failed one takes its cluster with it: what it left behind would fail the next.
    pub fn run(&mut self, spec: &Spec) -> Result<Outcome> {
        let dra = spec.suite == Suite::Dra;
        let set_up = match self.set_up.take().filter(|set_up| set_up.dra == dra) {
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
        let _ = fs::remove_file(&report);
        let log = cluster.logs().join("spec.log");
        let _ = fs::remove_file(&log);
        let mut command = self.upstream.test(spec.suite);
        command.env("KUBECONFIG", cluster.kubeconfig()).env_remove("OUTPUT_DIR");
        command.arg(format!("--ginkgo.focus={}", spec.focus()));
        command.arg(format!("--ginkgo.json-report={}", report.display()));
        command.arg(format!("--ginkgo.timeout={}s", SPEC_LIMIT.as_secs()));
        command.args(["--ginkgo.grace-period=1m", "--ginkgo.v", "--ginkgo.no-color"]);
        let clock = Deadline::within(KILL_AFTER);
        let mut test = cluster.spawn("spec", &command)?;
        while test.ended().is_none() {
            if clock.pause("the spec's end", String::new(), Duration::from_millis(100)).is_err() {
                test.stop(Duration::ZERO);
            }
        }
        spec::outcome(spec, &report).or_else(|error| {
            let reason = format!("{error:#}");
            Ok(Outcome { verdict: Verdict::Failed, seconds: clock.elapsed().as_secs_f64(), reason, repeated: false })
        })
    }

    fn set_up(&self, suite: Suite) -> Result<SetUp> {
        let cluster = Cluster::builder()
            .kwok(self.upstream.stages().to_vec())
            .scheduler_config(self.upstream.scheduler_config()?)
            .start()
            .context("starting a cluster for the suite")?;
        for folder in self.upstream.crds(suite) {
            install(&cluster, &folder)?;
        }
        show_scheduler(&cluster)?;
        let dra = suite == Suite::Dra;
        let driver = if dra { Some(start_driver(&cluster, self.upstream)?) } else { None };
        let controller = Controller { program: self.program.to_path_buf(), env: settings(&cluster)? };
        let deployment = Deployment::start(&cluster, &controller).context("starting the controller")?;
        Ok(SetUp { _controller: deployment, _driver: driver, cluster, dra })
    }

    fn keep_logs(&self, cluster: &Cluster, spec: &Spec) -> Result<()> {
        let words: String = spec.text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(100).collect();
        let dir = self.out.join("failed").join(spec.suite.name()).join(words).join(&self.name);
        fs::create_dir_all(&dir)?;
        for name in ["spec.log", "report.json", "karpenter.log", "kwok.log", "kube-scheduler.log"] {
            let _ = fs::copy(cluster.logs().join(name), dir.join(name));
        }
        Ok(())
    }
}

/// What upstream's chart sets for its suites, on ports of this cluster's own.
fn settings(cluster: &Cluster) -> Result<BTreeMap<String, String>> {
    let [metrics, health] = ports::free()?;
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

fn start_driver(cluster: &Cluster, upstream: &Upstream) -> Result<Process> {
    let driver: PathBuf = upstream.dra_driver()?;
    let mut command = std::process::Command::new(driver);
    command.env("KUBECONFIG", cluster.kubeconfig());
    Ok(cluster.spawn("dra-kwok-driver", &command)?)
}
