//! `cargo xtask bench cluster`: upstream's controller and ours in turn, on the same kind of cluster and the same workload.
//!
//! Every run has a real control plane of its own, so that neither inherits what the other left. What a controller wrote
//! is read from the API server's audit log, not from the controller.

mod audit;
mod controller_log;
mod scale_in;
mod startup;
pub(crate) mod usage;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use rig::client::Seen;
use rig::{Client, Cluster, Deadline, Process, ports};
use serde::Serialize;
use serde_json::{Value, json};
use workloads::mixed;

use crate::cluster::install;
use crate::conformance::{Suite, Upstream, workspace};
use audit::Writes;
use controller_log::Rounds;
pub(crate) use startup::{Startup, run as run_startup};
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
    /// Ours with this setting of --steering; each is a contender of its own
    #[arg(long, value_parser = ["off", "release", "nominate", "pin"])]
    steering: Vec<String>,
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
    /// Rounds of planning that made claims.
    rounds: usize,
    /// Seconds of these rounds: planning and creating claims, without batch windows.
    own_s: f64,
    nodes: usize,
    /// What the nodes there are cost.
    usd_h: f64,
    /// What our engine would pay had it seen all pods at once, and what nobody can pay less than.
    planned_usd_h: Option<f64>,
    bound_usd_h: Option<f64>,
    /// Pods that were planned onto a new node and landed there, and on others; ours only.
    as_planned: Option<f64>,
    elsewhere: Option<f64>,
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

/// A controller that runs.
struct Started {
    process: Process,
    metrics: u16,
    health: u16,
}

/// Runs the races.
pub(crate) fn run(race: &Race) -> Result<ExitCode> {
    let upstream = Upstream::prepare(&[])?;
    let steering = race.steering.iter().map(|steering| format!("STEERING={steering}"));
    let settings: Vec<String> = race.with.iter().cloned().chain(steering).collect();
    let contenders = contenders_of(race.binary.as_deref(), race.alone, &settings)?;
    for seed in &race.seeds {
        let ours = contenders.last();
        let planned = ours.and_then(|ours| planned(ours, &mixed::pending(race.pods, *seed)));
        let left_over = race.scale_in.and_then(|share| {
            let left_over = scale_in::left_over(&mixed::deployments(race.pods, *seed), share);
            ours.and_then(|ours| self::planned(ours, &left_over))
        });
        for contender in &contenders {
            let mut row = one(&upstream, contender, race, *seed)
                .with_context(|| format!("{} on mixed-{}-{seed}", contender.name, race.pods))?;
            (row.planned_usd_h, row.bound_usd_h) = planned.unzip();
            if let Some(settled) = &mut row.scale_in {
                settled.bound_usd_h = left_over.map(|(_, bound)| bound);
            }
            show(&row, race.json)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What our engine says of a workload when all its pods are pending at once: the price of its plan, and the lower bound.
fn planned(ours: &Contender, pending: &workloads::Snapshot) -> Option<(f64, f64)> {
    let file = std::env::temp_dir().join(format!("{}-{}.json", pending.name(), std::process::id()));
    std::fs::write(&file, serde_json::to_vec(pending).ok()?).ok()?;
    let mut command = Command::new(&ours.program);
    command.args(["plan", "--output", "json", "--from"]).arg(&file);
    let answer = command.output();
    let _ = std::fs::remove_file(&file);
    let report: Value = serde_json::from_slice(&answer.ok()?.stdout).ok()?;
    let price = |field: &str| {
        let price = &report["total"][field];
        price.as_f64().or_else(|| price.as_str()?.parse().ok())
    };
    Some((price("usd_h")?, price("lower_bound_usd_h")?))
}

/// Upstream unless ours is to be alone, and ours once with each of these settings, or as it is.
fn contenders_of(binary: Option<&Path>, alone: bool, settings: &[String]) -> Result<Vec<Contender>> {
    let binary = match binary {
        Some(binary) => binary
            .canonicalize()
            .with_context(|| format!("--binary {}", binary.display()))?,
        None => release_build()?,
    };
    let mut contenders = Vec::new();
    if !alone {
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
    if settings.is_empty() {
        contenders.push(ours("dovetail".to_owned(), Vec::new()));
    }
    for setting in settings {
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
    install_crds(upstream, &cluster)?;
    let mut started = start(&cluster, contender)?;
    leading(&cluster, &mut started.process)?;
    prepare(&cluster)?;
    let deployments = mixed::deployments(pods, seed);
    let usage = Usage::of(started.process.id());
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
            started.process.check()?;
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
    let rounds = Rounds::read(started.process.log())?;
    let metrics = page(started.metrics, "/metrics").map(|(_, text)| text);
    let landed = |place: &str| landed(metrics.as_deref()?, place);
    let usd_h = price(&nodes)?;
    let scale_in = race
        .scale_in
        .map(|share| scale_in::run(&cluster, &mut started.process, &deployments, share, usd_h));
    Ok(Row {
        controller: contender.name.clone(),
        workload: format!("mixed-{pods}-{seed}"),
        pods,
        first_s: round(first.unwrap_or(last)),
        last_s: round(last),
        claims_s: round(writes.claims_s),
        rounds: rounds.count,
        own_s: (rounds.own_s * 1000.0).round() / 1000.0,
        nodes: items(&nodes).count(),
        usd_h,
        planned_usd_h: None,
        bound_usd_h: None,
        as_planned: landed("planned"),
        elsewhere: landed("elsewhere"),
        rss_mb: round(rss_mb),
        cpu_s: round(cpu_s),
        api_writes: writes.by_resource.values().sum(),
        writes: writes.by_resource,
        scale_in: scale_in.transpose()?,
    })
}

/// How many pods landed, as our metrics have it.
fn landed(metrics: &str, place: &str) -> Option<f64> {
    let is_it = |line: &&str| {
        line.starts_with("dovetail_steering_pods_landed_total{") && line.contains(&format!("\"{place}\""))
    };
    metrics.lines().find(is_it)?.rsplit(' ').next()?.parse().ok()
}

/// Status and body of what a port of this machine answers; none while nobody does.
fn page(port: u16, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    write!(
        stream,
        "GET {path} HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )
    .ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

fn install_crds(upstream: &Upstream, cluster: &Cluster) -> Result<()> {
    for folder in upstream.crds(Suite::Regression) {
        install(cluster, &folder)?;
    }
    Ok(())
}

fn start(cluster: &Cluster, contender: &Contender) -> Result<Started> {
    let [metrics, health] = ports::free()?;
    let mut command = Command::new(&contender.program);
    command
        .env("KUBECONFIG", cluster.kubeconfig())
        .env("METRICS_PORT", metrics.to_string())
        .env("HEALTH_PROBE_PORT", health.to_string())
        .env("LEADER_ELECTION_NAMESPACE", "kube-system")
        .env("SYSTEM_NAMESPACE", "kube-system")
        .env("CPU_REQUESTS", "1000")
        .env("METRICS_PROFILE", "full");
    command.envs(contender.env.iter().cloned());
    let process = cluster.spawn("controller", &command)?;
    Ok(Started {
        process,
        metrics,
        health,
    })
}

/// Who leads, if anybody does.
fn lease_holder(client: &Client) -> rig::Result<Option<String>> {
    let lease = client.get(LEASE)?.unwrap_or_default();
    let holder = lease["spec"]["holderIdentity"]
        .as_str()
        .filter(|holder| !holder.is_empty());
    Ok(holder.map(str::to_owned))
}

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/karpenter-leader-election";

fn leading(cluster: &Cluster, process: &mut Process) -> Result<()> {
    cluster
        .client()
        .wait_for("the controller leading", Duration::from_mins(1), |client| {
            process.check()?;
            Ok(match lease_holder(client)? {
                Some(_) => Seen::Done(()),
                None => Seen::NotYet("nobody leads".to_owned()),
            })
        })?;
    Ok(())
}

/// The node class and the pool, and the wait until the controller has taken to them.
fn prepare(cluster: &Cluster) -> Result<()> {
    let client = cluster.client();
    apply_pool(client)?;
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

fn apply_pool(client: &Client) -> Result<()> {
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
        "{:<27} {:<14} first {:>6.2} s  last {:>6.2} s  own {:>6.3} s in {} rounds  {:>4} nodes  {:>9.4} $/h ({:.4} planned at once, bound {:.4})  \
         landed {:.0}/{:.0}  {:>7.1} MB  {:>6.2} CPU s  {:>5} writes  {:?}",
        row.controller,
        row.workload,
        row.first_s,
        row.last_s,
        row.own_s,
        row.rounds,
        row.nodes,
        row.usd_h,
        row.planned_usd_h.unwrap_or_default(),
        row.bound_usd_h.unwrap_or_default(),
        row.as_planned.unwrap_or_default(),
        row.elsewhere.unwrap_or_default(),
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
