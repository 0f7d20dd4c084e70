//! How long does a controller take from its start until it leads with a full cache, on a cluster that is already large?

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use rig::client::Seen;
use rig::{Client, Cluster};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Contender, contenders_of, install_crds, lease_holder, page, round, start};
use crate::conformance::Upstream;

const LIMIT: Duration = Duration::from_mins(5);
/// Connections that fill the cluster.
const HANDS: usize = 8;

/// How large the cluster is, and who starts on it.
#[derive(Args)]
pub(crate) struct Startup {
    /// How many nodes, each with its claim
    #[arg(long, default_value_t = 1000)]
    nodes: usize,
    /// How many running pods
    #[arg(long, default_value_t = 10_000)]
    pods: usize,
    /// How often each starts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Our binary; a release build is made when none is given
    #[arg(long)]
    binary: Option<std::path::PathBuf>,
    /// Only ours: for work on it
    #[arg(long)]
    alone: bool,
    /// Rows as JSON lines
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Row {
    controller: String,
    nodes: usize,
    pods: usize,
    /// From the start of the process until it holds the lease and says that it is ready.
    leading_s: f64,
    rss_mb: f64,
    cpu_s: f64,
}

/// Fills a cluster and starts the controllers on it, one after the other.
pub(crate) fn run(startup: &Startup) -> Result<()> {
    let upstream = Upstream::prepare(&[])?;
    let contenders = contenders_of(startup.binary.as_deref(), startup.alone, &[])?;
    // Nobody else: nodes without kubelets would be given up, and their pods with them.
    let cluster = Cluster::builder().api_server_only().start()?;
    install_crds(&upstream, &cluster)?;
    fill(&cluster, startup)?;
    for _ in 0..startup.rounds {
        for contender in &contenders {
            let row = one(&cluster, contender, startup)?;
            show(&row, startup.json)?;
        }
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures")]
fn one(cluster: &Cluster, contender: &Contender, startup: &Startup) -> Result<Row> {
    let client = cluster.client();
    client.delete(super::LEASE)?;
    let began = Instant::now();
    let mut started = start(cluster, contender)?;
    client.wait_for("the controller leading", LIMIT, |client| {
        started.process.check()?;
        let is_ready = page(started.health, "/readyz").is_some_and(|(status, _)| status == 200);
        Ok(if is_ready && lease_holder(client)?.is_some() {
            Seen::Done(())
        } else {
            std::thread::sleep(Duration::from_millis(10));
            Seen::NotYet("not yet".to_owned())
        })
    })?;
    let leading_s = began.elapsed().as_secs_f64();
    let (rss_mb, cpu_s) = super::Usage::whole(started.process.id());
    started.process.kill();
    Ok(Row {
        controller: contender.name.clone(),
        nodes: startup.nodes,
        pods: startup.pods,
        leading_s: round(leading_s),
        rss_mb: round(rss_mb),
        cpu_s: round(cpu_s),
    })
}

/// Objects as a cluster has them after a while: claims that were launched, nodes that joined, pods that run.
fn fill(cluster: &Cluster, startup: &Startup) -> Result<()> {
    let client = cluster.client();
    super::apply_pool(client)?;
    // What a controller finds must not depend on who started before it.
    let still = json!({"spec": {"disruption": {"consolidateAfter": "Never"}}});
    client.patch("/apis/karpenter.sh/v1/nodepools/default", &still)?;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    client.post("/api/v1/namespaces/default/serviceaccounts", &account)?;
    each(client, startup.nodes, |client, at| {
        let name = format!("node-{at:05}");
        let node = node(&name);
        client.post("/api/v1/nodes", &node)?;
        client.patch(
            &format!("/api/v1/nodes/{name}/status"),
            &json!({"status": node["status"]}),
        )?;
        let claim = claim(&name);
        client.post("/apis/karpenter.sh/v1/nodeclaims", &claim)?;
        let path = format!("/apis/karpenter.sh/v1/nodeclaims/{name}/status");
        client.patch(&path, &json!({"status": claim["status"]})).map(drop)
    })?;
    each(client, startup.pods, |client, at| {
        let pod = pod(at, &format!("node-{:05}", at % startup.nodes.max(1)));
        client.post("/api/v1/namespaces/default/pods", &pod)?;
        let path = format!("/api/v1/namespaces/default/pods/pod-{at:06}/status");
        client.patch(&path, &json!({"status": running()})).map(drop)
    })
}

/// Does something so many times, with several hands.
fn each(client: &Client, count: usize, work: impl Fn(&Client, usize) -> rig::Result<()> + Sync) -> Result<()> {
    let next = AtomicUsize::new(0);
    let hand = || -> rig::Result<()> {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return Ok(());
            }
            work(client, at)?;
        }
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let hands: Vec<_> = (0..HANDS).map(|_| scope.spawn(hand)).collect();
        hands.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    for result in results {
        result
            .map_err(|_| anyhow::anyhow!("a hand panicked"))?
            .context("filling the cluster")?;
    }
    Ok(())
}

fn labels(name: &str) -> Value {
    json!({
        "karpenter.sh/nodepool": "default", "karpenter.sh/capacity-type": "spot",
        "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
        "node.kubernetes.io/instance-type": "c-16x-amd64-linux", "topology.kubernetes.io/zone": "test-zone-a",
        "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
        "karpenter.kwok.sh/kwoknodeclass": "default",
    })
}

fn room() -> Value {
    json!({"cpu": "16", "memory": "32Gi", "pods": "110", "ephemeral-storage": "20Gi"})
}

fn node(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": labels(name), "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "spec": {"providerID": format!("kwok://{name}")},
        "status": {"capacity": room(), "allocatable": room(), "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn claim(name: &str) -> Value {
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": kind, "message": "", "observedGeneration": 1,
            "lastTransitionTime": "2026-11-16T10:00:00Z"})
    };
    let conditions = ["Launched", "Registered", "Initialized", "Ready"].map(condition);
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": name, "labels": labels(name), "finalizers": ["karpenter.sh/termination"]},
        "spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}],
            "expireAfter": "Never",
        },
        "status": {
            "providerID": format!("kwok://{name}"), "nodeName": name, "capacity": room(), "allocatable": room(),
            "conditions": conditions,
        },
    })
}

fn pod(at: usize, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("pod-{at:06}"), "labels": {"app": format!("app-{}", at % 50)}},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "app", "image": "app", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
        },
    })
}

fn running() -> Value {
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": "2026-11-16T10:00:00Z"});
    let conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"].map(condition);
    json!({"phase": "Running", "conditions": conditions})
}

#[allow(clippy::print_stdout, reason = "this is what the command was asked for")]
fn show(row: &Row, as_json: bool) -> Result<()> {
    if as_json {
        println!("{}", serde_json::to_string(row)?);
    } else {
        println!(
            "{:<24} {} nodes {} pods  leading after {:>6.2} s  {:>7.1} MB  {:>6.2} CPU s",
            row.controller, row.nodes, row.pods, row.leading_s, row.rss_mb, row.cpu_s
        );
    }
    Ok(())
}
