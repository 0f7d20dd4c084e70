//! How does a plain process pass for the Deployment `kube-system/karpenter`?
//!
//! The Deployment is real, and so are its ReplicaSets and pods: kube-controller-manager rolls it out. The rig is the
//! kubelet of those pods. It runs one process with the environment the Deployment asks for, restarts it when that
//! changes, and reports a pod as Ready once the process of its generation leads.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Client, Seen};
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::guard::Guard;
use crate::process::Process;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/kube-system/deployments";
const PODS: &str = "/api/v1/namespaces/kube-system/pods";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/karpenter-leader-election";
const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";
/// A scheduler nobody runs: these pods are never offered to a node, and never count as unschedulable.
const NO_SCHEDULER: &str = "rig";
const TICK: Duration = Duration::from_millis(250);
const LEADING_LIMIT: Duration = Duration::from_mins(5);
const STOPPING_GRACE: Duration = Duration::from_secs(15);

/// A controller's program and its environment.
#[derive(Debug, Clone)]
pub struct Controller {
    /// The executable.
    pub program: PathBuf,
    /// Its settings; this is what the Deployment's container shows.
    pub env: BTreeMap<String, String>,
    /// A node of kwok's for the pod that stands for the process, when its ports are to be reached through the API server.
    pub node: Option<String>,
}

/// The Deployment in play; dropping it ends the process.
pub struct Deployment {
    stop: Option<Sender<()>>,
    player: Option<JoinHandle<()>>,
}

impl Deployment {
    /// Creates the Deployment and returns when its process leads and its pod is Ready.
    pub fn start(cluster: &Cluster, controller: &Controller) -> Result<Self> {
        let client = cluster.client();
        client.post(DEPLOYMENTS, &object(&controller.env))?;
        let mut player = Player {
            client: client.clone(),
            guard: cluster.guard(),
            log: cluster.logs().join("karpenter.log"),
            program: controller.program.clone(),
            node: controller.node.clone(),
            running: None,
        };
        client.wait_for(
            "the Deployment kube-system/karpenter being ready",
            LEADING_LIMIT,
            |client| {
                player.step()?;
                let status = client.get(&format!("{DEPLOYMENTS}/karpenter"))?.unwrap_or_default()["status"].clone();
                Ok(if status["readyReplicas"] == 1 {
                    Seen::Done(())
                } else {
                    Seen::NotYet(status.to_string())
                })
            },
        )?;
        let (stop, stopped) = mpsc::channel();
        let player = std::thread::spawn(move || {
            let mut last = String::new();
            while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                let now = player.step().err().map(|error| error.to_string()).unwrap_or_default();
                // A lasting trouble is told once.
                if !now.is_empty() && now != last {
                    eprintln!("rig: playing the Deployment kube-system/karpenter: {now}");
                }
                last = now;
            }
        });
        Ok(Self {
            stop: Some(stop),
            player: Some(player),
        })
    }
}

impl Drop for Deployment {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(player) = self.player.take() {
            let _ = player.join();
        }
    }
}

/// What tells one generation of the Deployment's pods from the next.
#[derive(Debug, Clone, PartialEq)]
struct Generation {
    env: Value,
    restarted_at: Value,
}

impl Generation {
    /// Of a pod, or of a pod template.
    fn of(pod: &Value) -> Self {
        Self {
            env: pod["spec"]["containers"][0]["env"].clone(),
            restarted_at: pod["metadata"]["annotations"][RESTARTED_AT].clone(),
        }
    }

    fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.env.as_array().into_iter().flatten().filter_map(|variable| {
            Some((
                variable["name"].as_str()?,
                variable["value"].as_str().unwrap_or_default(),
            ))
        })
    }
}

struct Running {
    generation: Generation,
    process: Process,
    restarts: u32,
    leading: bool,
}

struct Player {
    client: Client,
    guard: Guard,
    log: PathBuf,
    program: PathBuf,
    node: Option<String>,
    running: Option<Running>,
}

impl Player {
    fn step(&mut self) -> Result<()> {
        let Some(deployment) = self.client.get(&format!("{DEPLOYMENTS}/karpenter"))? else {
            return Ok(());
        };
        let wanted = Generation::of(&deployment["spec"]["template"]);
        self.keep_running(wanted)?;
        let Some(running) = &mut self.running else {
            return Ok(());
        };
        if !running.leading {
            running.leading = leads(&self.client, self.node.as_deref())?;
        }
        if running.leading {
            report_pods(&self.client, running)?;
        }
        Ok(())
    }

    /// Replaces the process of another generation, restarts one that crashed.
    fn keep_running(&mut self, wanted: Generation) -> Result<()> {
        let mut restarts = 0;
        if let Some(running) = &mut self.running {
            let same = running.generation == wanted;
            match running.process.ended() {
                None if same => return Ok(()),
                None => running.process.stop(STOPPING_GRACE),
                Some(_) if same => {
                    restarts = running.restarts + 1;
                    crashed(running)?;
                }
                Some(_) => {}
            }
        }
        // Its holder is gone; the next one need not wait until that is noticed.
        self.client.delete(LEASE)?;
        let mut command = Command::new(&self.program);
        command.envs(wanted.variables());
        let process = self.guard.spawn("karpenter", &command, self.log.clone())?;
        self.running = Some(Running {
            generation: wanted,
            process,
            restarts,
            leading: false,
        });
        Ok(())
    }
}

/// A crash while running is the business of the suite, which counts restarts; a crash at the start is ours.
fn crashed(running: &mut Running) -> Result<()> {
    if running.leading {
        Ok(())
    } else {
        running.process.check()
    }
}

/// Whether somebody holds the lease, which was removed before the process started. The suites look for a pod of the
/// holder's name: a process has its machine's, so a pod of that name is made.
fn leads(client: &Client, node: Option<&str>) -> Result<bool> {
    let lease = client.get(LEASE)?.unwrap_or_default();
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
    let Some(name) = holder.split('_').next().filter(|name| !name.is_empty()) else {
        return Ok(false);
    };
    if client.get(&format!("{PODS}/{name}"))?.is_none() {
        create_leader_pod(client, name, node)?;
    }
    Ok(true)
}

/// On a node it is kwok that makes the pod run; with the node's network it has the node's address.
fn create_leader_pod(client: &Client, name: &str, node: Option<&str>) -> Result<()> {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/instance": "karpenter"}},
        "spec": pod_spec(&json!([])),
    });
    if let Some(node) = node {
        pod["spec"]["nodeName"] = node.into();
        pod["spec"]["hostNetwork"] = true.into();
        return client.post(PODS, &pod).map(drop);
    }
    client.post(PODS, &pod)?;
    client.patch(&format!("{PODS}/{name}/status"), &ready(0)).map(drop)
}

fn report_pods(client: &Client, running: &Running) -> Result<()> {
    let list = client
        .get(&format!("{PODS}?labelSelector=app.kubernetes.io%2Fname%3Dkarpenter"))?
        .unwrap_or_default();
    for pod in list["items"].as_array().into_iter().flatten() {
        let reported = &pod["status"]["containerStatuses"][0]["restartCount"];
        if Generation::of(pod) != running.generation || *reported == running.restarts {
            continue;
        }
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        match client.patch(&format!("{PODS}/{name}/status"), &ready(running.restarts)) {
            // It was deleted meanwhile.
            Err(Error::Api { status: 404, .. }) => {}
            other => drop(other?),
        }
    }
    Ok(())
}

fn ready(restarts: u32) -> Value {
    json!({"status": {
        "phase": "Running",
        "conditions": [{"type": "ContainersReady", "status": "True"}, {"type": "Ready", "status": "True"}],
        "containerStatuses": [{
            "name": "controller", "image": "rig", "imageID": "rig", "ready": true, "started": true,
            "restartCount": restarts, "state": {"running": {}},
        }],
    }})
}

fn pod_spec(env: &Value) -> Value {
    json!({
        "schedulerName": NO_SCHEDULER,
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "controller", "image": "rig", "env": env}],
    })
}

fn object(env: &BTreeMap<String, String>) -> Value {
    let env: Vec<_> = env
        .iter()
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    let labels = json!({"app.kubernetes.io/name": "karpenter", "app.kubernetes.io/instance": "karpenter"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "karpenter", "namespace": "kube-system", "labels": labels},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec(&json!(env))},
        },
    })
}
