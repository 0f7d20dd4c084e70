//! `cargo xtask bench cluster`: upstream's controller and ours in turn, on the same kind of cluster and the same workload.
//!
//! Every run has a real control plane of its own, so that neither inherits what the other left. What a controller wrote
//! is read from the API server's audit log, not from the controller.

mod audit;
mod scale_in;
mod usage;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use rig::client::Seen;
use rig::{Cluster, Deadline, Process, ports};
use serde::Serialize;
use serde_json::{Value, json};
use workloads::mixed;

use crate::cluster::install;
use crate::conformance::{Suite, Upstream, workspace};
use audit::Writes;
use usage::Usage;

const RUNNING_LIMIT: Duration = Duration::from_mins(10);
const QUIET: Duration = Duration::from_secs(5);

/// What to race on.
#[derive(Args)]
pub(crate) struct Race {
    /// How many pods
    #[arg(long, default_value_t = 100)]
    pods: u64,
    /// Which workload of that size; several are several races
    #[arg(long = "seed", default_values_t = [1])]
    seeds: Vec<u64>,
    /// Our binary; a release build is made when none is given
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Only ours: for work on it
    #[arg(long)]
    alone: bool,
    /// Settings of ours, such as STEERING=off; each is a contender of its own
    #[arg(long = "with")]
    with: Vec<String>,
    /// Then take this share of the pods away, and measure the fleet once it has settled
    #[arg(long, value_name = "SHARE")]
    scale_in: Option<f64>,
    /// Rows as JSON lines
    #[arg(long)]
    json: bool,
}

/// What one controller made of one workload.
#[derive(Debug, Serialize)]
struct Row {
    controller: String,
    workload: String,
    pods: u64,
    first_s: f64,
    last_s: f64,
    /// From the first NodeClaim a controller could ask for to the last it did: from the last pod that was found
    /// unschedulable to the last claim created.
    claims_s: f64,
    nodes: usize,
    usd_h: f64,
    rss_mb: f64,
    cpu_s: f64,
    api_writes: usize,
    writes: BTreeMap<String, usize>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    scale_in: Option<scale_in::Settled>,
}

struct Contender {
    name: String,
    program: PathBuf,
    env: Vec<(String, String)>,
}

/// Runs the races.
pub(crate) fn run(race: &Race) -> Result<ExitCode> {
    let upstream = Upstream::prepare(&[])?;
    let contenders = contenders(race)?;
    for seed in &race.seeds {
        for contender in &contenders {
            let row = one(&upstream, contender, race, *seed)
                .with_context(|| format!("{} on mixed-{}-{seed}", contender.name, race.pods))?;
            show(&row, race.json)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn contenders(race: &Race) -> Result<Vec<Contender>> {
    let binary = match &race.binary {
        Some(binary) => binary
            .canonicalize()
            .with_context(|| format!("--binary {}", binary.display()))?,
        None => release_build()?,
    };
    let mut contenders = Vec::new();
    if !race.alone {
        contenders.push(Contender {
            name: "karpenter".to_owned(),
            program: Upstream::controller()?,
            env: Vec::new(),
        });
    }
    let ours = |name: String, env| Contender {
        name,
        program: binary.clone(),
        env,
    };
    if race.with.is_empty() {
        contenders.push(ours("dovetail".to_owned(), Vec::new()));
    }
    for setting in &race.with {
        let env = setting
            .split(',')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        contenders.push(ours(format!("dovetail {setting}"), env.collect()));
    }
    Ok(contenders)
}

fn release_build() -> Result<PathBuf> {
    crate::run::run(crate::run::cargo().args(["build", "--release", "-p", "dovetail"]))?;
    Ok(workspace().join("target/release/dovetail").canonicalize()?)
}

fn one(upstream: &Upstream, contender: &Contender, race: &Race, seed: u64) -> Result<Row> {
    let pods = race.pods;
    let cluster = Cluster::builder().kwok(upstream.stages().to_vec()).audit().start()?;
    for folder in upstream.crds(Suite::Regression) {
        install(&cluster, &folder)?;
    }
    let mut process = start(&cluster, contender)?;
    leading(&cluster, &mut process)?;
    prepare(&cluster)?;
    let deployments = mixed::deployments(pods, seed);
    let usage = Usage::of(process.id());
    let clock = Deadline::within(RUNNING_LIMIT);
    for deployment in &deployments {
        cluster
            .client()
            .post("/apis/apps/v1/namespaces/default/deployments", &deployment.manifest())?;
    }
    let mut first = None;
    cluster
        .client()
        .wait_for("every pod running", RUNNING_LIMIT, |client| {
            process.check()?;
            let ready = ready_pods(
                &client
                    .get("/apis/apps/v1/namespaces/default/deployments")?
                    .unwrap_or_default(),
            );
            if ready > 0 && first.is_none() {
                first = Some(clock.elapsed().as_secs_f64());
            }
            Ok(if ready >= pods {
                Seen::Done(())
            } else {
                std::thread::sleep(Duration::from_millis(150));
                Seen::NotYet(format!("{ready} of {pods} are ready"))
            })
        })?;
    let last = clock.elapsed().as_secs_f64();
    // What a controller still has to write for these nodes belongs to them.
    std::thread::sleep(QUIET);
    let nodes = cluster.client().get("/api/v1/nodes")?.unwrap_or_default();
    let (rss_mb, cpu_s) = usage.finish();
    let writes = Writes::read(&cluster.logs().join("audit.log"))?;
    let usd_h = price(&nodes)?;
    let scale_in = race
        .scale_in
        .map(|share| scale_in::run(&cluster, &mut process, &deployments, share));
    Ok(Row {
        controller: contender.name.clone(),
        workload: format!("mixed-{pods}-{seed}"),
        pods,
        first_s: round(first.unwrap_or(last)),
        last_s: round(last),
        claims_s: round(writes.claims_s),
        nodes: items(&nodes).count(),
        usd_h,
        rss_mb: round(rss_mb),
        cpu_s: round(cpu_s),
        api_writes: writes.by_resource.values().sum(),
        writes: writes.by_resource,
        scale_in: scale_in.transpose()?,
    })
}

fn start(cluster: &Cluster, contender: &Contender) -> Result<Process> {
    let [metrics, health] = ports::free()?;
    let mut command = Command::new(&contender.program);
    command
        .env("KUBECONFIG", cluster.kubeconfig())
        .env("METRICS_PORT", metrics.to_string())
        .env("HEALTH_PROBE_PORT", health.to_string())
        .env("LEADER_ELECTION_NAMESPACE", "kube-system")
        .env("SYSTEM_NAMESPACE", "kube-system")
        .env("CPU_REQUESTS", "1000");
    command.envs(contender.env.iter().cloned());
    Ok(cluster.spawn("controller", &command)?)
}

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/karpenter-leader-election";

fn leading(cluster: &Cluster, process: &mut Process) -> Result<()> {
    cluster
        .client()
        .wait_for("the controller leading", Duration::from_mins(1), |client| {
            process.check()?;
            let lease = client.get(LEASE)?.unwrap_or_default();
            Ok(match lease["spec"]["holderIdentity"].as_str() {
                Some(holder) if !holder.is_empty() => Seen::Done(()),
                _ => Seen::NotYet("nobody leads".to_owned()),
            })
        })?;
    Ok(())
}

/// The node class and the pool, and the wait until the controller has taken to them.
fn prepare(cluster: &Cluster) -> Result<()> {
    let client = cluster.client();
    let class =
        json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}});
    client.post("/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses", &class)?;
    let pool = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
        "spec": {
            "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]},
            "template": {"spec": {
                "expireAfter": "Never",
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "requirements": mixed::pool().get("spec.template.spec.requirements"),
            }},
        },
    });
    client.post("/apis/karpenter.sh/v1/nodepools", &pool)?;
    client.wait_for("the NodePool being Ready", Duration::from_mins(1), |client| {
        let pool = client
            .get("/apis/karpenter.sh/v1/nodepools/default")?
            .unwrap_or_default();
        let conditions = pool["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let ready = conditions
            .iter()
            .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
        Ok(if ready {
            Seen::Done(())
        } else {
            Seen::NotYet(json!(conditions).to_string())
        })
    })?;
    Ok(())
}

fn ready_pods(deployments: &Value) -> u64 {
    items(deployments)
        .filter_map(|deployment| deployment["status"]["readyReplicas"].as_u64())
        .sum()
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list["items"].as_array().into_iter().flatten()
}

/// What the nodes cost an hour, by the catalogue.
fn price(nodes: &Value) -> Result<f64> {
    let loaded = catalogue::load(catalogue::Source::Kwok, None, &[])?;
    let mut total = 0.0;
    for node in items(nodes) {
        let label = |key: &str| node["metadata"]["labels"][key].as_str().unwrap_or_default();
        let name = label(api::labels::INSTANCE_TYPE);
        let wanted = [
            (api::labels::ZONE, label(api::labels::ZONE)),
            (api::labels::CAPACITY_TYPE, label(api::labels::CAPACITY_TYPE)),
        ];
        let entry = loaded
            .catalog
            .get(&name.into())
            .with_context(|| format!("no type {name:?}"))?;
        let offering = entry.offerings.iter().find(|offering| {
            wanted.iter().all(|(key, value)| {
                let of_key = offering
                    .requirements
                    .iter()
                    .find(|requirement| requirement.key == **key);
                of_key.is_some_and(|requirement| requirement.values.iter().any(|known| known == *value))
            })
        });
        let offering = offering.with_context(|| format!("no offering of {name} at {wanted:?}"))?;
        total += offering.price.to_decimal().parse::<f64>()?;
    }
    Ok((total * 1e4).round() / 1e4)
}

fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[allow(clippy::print_stdout, reason = "this is what the command was asked for")]
fn show(row: &Row, as_json: bool) -> Result<()> {
    if as_json {
        println!("{}", serde_json::to_string(row)?);
        return Ok(());
    }
    println!(
        "{:<24} {:<14} first {:>6.2} s  last {:>6.2} s  claims {:>6.2} s  {:>4} nodes  {:>9.4} $/h  {:>7.1} MB  {:>6.2} CPU s  {:>5} writes  {:?}",
        row.controller,
        row.workload,
        row.first_s,
        row.last_s,
        row.claims_s,
        row.nodes,
        row.usd_h,
        row.rss_mb,
        row.cpu_s,
        row.api_writes,
        row.writes
    );
    if let Some(settled) = &row.scale_in {
        println!("{:<24} {settled:?}", "");
    }
    Ok(())
}
