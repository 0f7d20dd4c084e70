//! How is our own binary run beside a cluster of the rig, and what do its tests ask of the cluster?

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use rig::client::Seen;
use rig::{Client, Cluster, Process, ports};
use serde_json::{Value, json};

use crate::crd_set::CrdSet;

/// The longest any step of a scenario may take on a busy machine: kube-scheduler looks again at pods whose event it missed after
/// five minutes.
pub const LIMIT: Duration = Duration::from_mins(8);
const NODE_POOLS: &str = "/apis/karpenter.sh/v1/nodepools";
const NODE_CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";
const NODES: &str = "/api/v1/nodes";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/karpenter-leader-election";

/// Where `cargo xtask test` says that it has built the binary already.
const BUILT_AT: &str = "DOVETAIL_BINARY";

/// Our binary, built from this source, with every cloud, as it is released.
pub fn binary() -> Result<&'static Path> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| build().map_err(|error| format!("{error:#}")));
    built.as_deref().map_err(|error| anyhow!("{error}"))
}

/// As `cargo test --workspace` selects features, so that all but the binary itself is what the tests were built of: a plain
/// `cargo build` would build k8s-openapi and the SDK of AWS a second time. A test of the package brings its binary along.
const BUILD: [&str; 8] = [
    "test",
    "--quiet",
    "--no-run",
    "--locked",
    "--workspace",
    "--features=dovetail/aws,dovetail/azure",
    "--test",
    "words",
];

fn build() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os(BUILT_AT) {
        return Ok(path.into());
    }
    let test = std::env::current_exe()?;
    let folder = test.parent().and_then(Path::parent).context("a test lies in target")?;
    let status = Command::new(env!("CARGO"))
        .args(BUILD)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()?;
    if !status.success() {
        bail!("cargo {} ended with {status}", BUILD.join(" "));
    }
    Ok(folder.join("dovetail"))
}

/// A cluster with kwok and our CRDs, on which nothing of ours runs yet.
pub fn cluster() -> Result<Cluster> {
    let cluster = bare_cluster()?;
    install_crds(cluster.client())?;
    Ok(cluster)
}

/// A cluster with kwok, and nothing of ours.
pub fn bare_cluster() -> Result<Cluster> {
    Ok(Cluster::builder().kwok(Vec::new()).audit().start()?)
}

/// Installs our CRDs.
pub fn install_crds(client: &Client) -> Result<()> {
    client.install_crd(&CrdSet::Kwok.ours()?)?;
    Ok(())
}

/// Starts our binary with Karpenter's environment.
pub fn start(cluster: &Cluster, name: &str, settings: &[(&str, &str)]) -> Result<Process> {
    let [metrics, health] = ports::free()?;
    let mut command = Command::new(binary()?);
    command
        .env_clear()
        .env("KUBECONFIG", cluster.kubeconfig())
        .env("METRICS_PORT", metrics.to_string())
        .env("HEALTH_PROBE_PORT", health.to_string())
        .env("LEADER_ELECTION_NAMESPACE", "kube-system")
        .env("LOG_LEVEL", "debug")
        .envs(settings.iter().copied());
    Ok(cluster.spawn(name, &command)?)
}

/// Starts our binary as the service account of `deploy/rbac.yaml`, who may do only what is granted there.
pub fn start_as_account(cluster: &Cluster, name: &str) -> Result<Process> {
    let kubeconfig = cluster.account_kubeconfig();
    start(cluster, name, &[("KUBECONFIG", &kubeconfig.to_string_lossy())])
}

/// Installs the role the product ships with.
pub fn apply_role(client: &Client) -> Result<()> {
    apply_role_without(client, "", "")
}

/// Installs the role the product ships with, except for a verb on a resource.
pub fn apply_role_without(client: &Client, verb: &str, resource: &str) -> Result<()> {
    apply_changed(client, "deploy/rbac.yaml", |object| revoke(object, verb, resource))
}

/// Installs the roles and bindings of a file of this repository.
pub fn apply_manifest(client: &Client, file: &str) -> Result<()> {
    apply_changed(client, file, |_| {})
}

fn apply_changed(client: &Client, file: &str, change: impl Fn(&mut Value)) -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
    let yaml = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    for mut object in rig::manifest::documents(file, &yaml)? {
        change(&mut object);
        let [kind, name, namespace] = ["/kind", "/metadata/name", "/metadata/namespace"]
            .map(|pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default());
        let collection = match kind {
            "ServiceAccount" => format!("/api/v1/namespaces/{namespace}/serviceaccounts"),
            _ if namespace.is_empty() => format!("{RBAC}/{}s", kind.to_lowercase()),
            _ => format!("{RBAC}/namespaces/{namespace}/{}s", kind.to_lowercase()),
        };
        client.apply(&format!("{collection}/{name}"), &object)?;
    }
    Ok(())
}

fn revoke(role: &mut Value, verb: &str, resource: &str) {
    let rules = role
        .pointer_mut("/rules")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten();
    let concerned = rules.filter(|rule| {
        rule["resources"]
            .as_array()
            .is_some_and(|all| all.contains(&json!(resource)))
    });
    for rule in concerned {
        if let Some(verbs) = rule["verbs"].as_array_mut() {
            verbs.retain(|granted| granted != verb);
        }
    }
}

/// Waits until a process has written something to its log.
pub fn await_log(client: &Client, process: &Process, words: &str) -> Result<()> {
    Ok(client.wait_for(&format!("{words:?} in the log"), LIMIT, |_| {
        let log = fs::read_to_string(process.log()).unwrap_or_default();
        Ok(if log.contains(words) {
            Seen::Done(())
        } else {
            let last = log.lines().last().unwrap_or_default();
            Seen::NotYet(format!("it ends with {last}"))
        })
    })?)
}

/// Starts upstream's controller for kwok.
pub fn start_upstream(cluster: &Cluster, name: &str) -> Result<Process> {
    let [metrics, health] = ports::free()?;
    let mut command = Command::new(rig::karpenter::controller()?);
    command
        .env_clear()
        .env("KUBECONFIG", cluster.kubeconfig())
        .env("METRICS_PORT", metrics.to_string())
        .env("HEALTH_PROBE_PORT", health.to_string())
        .env("LEADER_ELECTION_NAMESPACE", "kube-system")
        .env("SYSTEM_NAMESPACE", "kube-system");
    Ok(cluster.spawn(name, &command)?)
}

/// What a process shows on its metrics port.
pub fn metrics(port: u16) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    write!(
        stream,
        "GET /metrics HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, page) = answer.split_once("\r\n\r\n").context("no answer")?;
    if !head.contains(" 200 ") {
        bail!("{head}");
    }
    Ok(page.to_owned())
}

/// The value of a series, by its name with labels; zero when there is none.
pub fn value(metrics: &str, series: &str) -> f64 {
    let of_series = metrics.lines().find_map(|line| line.strip_prefix(series));
    of_series
        .and_then(|value| value.trim().parse().ok())
        .unwrap_or_default()
}

/// A request to the API server, as its audit log has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// `verb resource[/subresource]`.
    pub what: String,
    /// The status of the answer.
    pub code: u64,
}

/// What controllers have asked the API server for so far.
pub fn requests(cluster: &Cluster) -> Result<Vec<Request>> {
    let log = fs::read_to_string(cluster.logs().join("audit.log"))?;
    let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let lines = whole.lines().map(serde_json::from_str::<Value>);
    let lines = lines.collect::<Result<Vec<_>, _>>().context("reading the audit log")?;
    let ours = lines.iter().filter(|line| {
        let agent = line["userAgent"].as_str().unwrap_or_default();
        agent.starts_with("karpenter")
    });
    Ok(ours.map(request).collect())
}

fn request(line: &Value) -> Request {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let object = &line["objectRef"];
    let part = match object["subresource"].as_str() {
        Some(part) => format!("/{part}"),
        None => String::new(),
    };
    Request {
        what: format!("{} {}{part}", text(&line["verb"]), text(&object["resource"])),
        code: line["responseStatus"]["code"].as_u64().unwrap_or_default(),
    }
}

/// Waits until controllers have made a request once more than `before` times.
pub fn await_request(cluster: &Cluster, what: &str, before: usize) -> Result<()> {
    Ok(cluster.client().wait_for(&format!("another {what}"), LIMIT, |_| {
        let made = count(cluster, what).unwrap_or_default();
        Ok(if made > before {
            Seen::Done(())
        } else {
            Seen::NotYet(format!("{made} were made"))
        })
    })?)
}

/// How often controllers have made a request.
pub fn count(cluster: &Cluster, what: &str) -> Result<usize> {
    let requests = requests(cluster)?;
    Ok(requests.iter().filter(|request| request.what == what).count())
}

/// Forgets who led: a process that was killed cannot, and its successor need not wait until that is noticed.
pub fn forget_leader(client: &Client) -> Result<()> {
    Ok(client.delete(LEASE)?)
}

/// Waits until there is exactly one node for each claim and each claim knows its node. Never more nodes than claims.
pub fn await_one_node_per_claim(client: &Client) -> Result<()> {
    Ok(client.wait_for("one node for each claim", LIMIT, |client| {
        let (claims, nodes) = (
            ids(client, NODE_CLAIMS, "/status/providerID")?,
            ids(client, NODES, "/spec/providerID")?,
        );
        let is_one_each = claims == nodes && claims.windows(2).all(|pair| pair[0] != pair[1]);
        Ok(if is_one_each {
            Seen::Done(())
        } else {
            Seen::NotYet(format!("claims {claims:?}, nodes {nodes:?}"))
        })
    })?)
}

fn ids(client: &Client, path: &str, pointer: &str) -> rig::Result<Vec<String>> {
    let list = client.get(path)?.unwrap_or_default();
    let items = list["items"].as_array().into_iter().flatten();
    let id = |item: &Value| {
        item.pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let mut ids: Vec<String> = items.map(id).collect();
    ids.sort();
    Ok(ids)
}

/// Waits until somebody leads, and returns who.
pub fn await_leader(client: &Client) -> Result<String> {
    Ok(client.wait_for("a leader", LIMIT, |client| {
        Ok(leader(client)?.map_or_else(|| Seen::NotYet("nobody holds the lease".to_owned()), Seen::Done))
    })?)
}

/// Waits until somebody leads who is not this one: the lease of the dead names them until it has run out.
pub fn await_other_leader(client: &Client, gone: &str) -> Result<()> {
    Ok(client.wait_for("another leader", LIMIT, |client| {
        Ok(match leader(client)?.filter(|leader| leader != gone) {
            Some(_) => Seen::Done(()),
            None => Seen::NotYet(format!("nobody but {gone} holds the lease")),
        })
    })?)
}

/// Who leads.
pub fn leader(client: &Client) -> rig::Result<Option<String>> {
    let lease = client.get(LEASE)?.unwrap_or_default();
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
    Ok(Some(holder.to_owned()).filter(|holder| !holder.is_empty()))
}

/// A node class and a pool of kwok's Linux types.
pub fn apply_pool(client: &Client, name: &str) -> Result<()> {
    let class = json!({
        "apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"},
    });
    client.apply("/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses/default", &class)?;
    client.apply(&format!("{NODE_POOLS}/{name}"), &pool(name))?;
    Ok(())
}

/// Lets the nodes of a pool go as soon as they are not worth their price.
pub fn consolidate(client: &Client, pool: &str) -> Result<()> {
    let disruption = json!({
        "consolidateAfter": "0s", "consolidationPolicy": "WhenEmptyOrUnderutilized", "budgets": [{"nodes": "100%"}],
    });
    client.patch(
        &format!("{NODE_POOLS}/{pool}"),
        &json!({"spec": {"disruption": disruption}}),
    )?;
    Ok(())
}

/// Waits until there are so many nodes, each with its claim.
pub fn await_nodes(client: &Client, count: usize) -> Result<()> {
    client.wait_for(&format!("{count} nodes"), LIMIT, |client| {
        let nodes = ids(client, NODES, "/metadata/name")?;
        Ok(if nodes.len() == count {
            Seen::Done(())
        } else {
            Seen::NotYet(format!("{nodes:?}"))
        })
    })?;
    await_one_node_per_claim(client)
}

/// A pool of kwok's Linux types.
pub fn pool(name: &str) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
        "spec": {
            "disruption": {"consolidateAfter": "Never"},
            "template": {"spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "requirements": [
                    {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]},
                ],
            }},
        },
    })
}

/// A Deployment of plain pods.
pub fn apply_deployment(client: &Client, name: &str, replicas: u64, cpu: &str) -> Result<()> {
    apply_shape(client, name, replicas, cpu, "256Mi")
}

/// A Deployment of plain pods of a shape.
pub fn apply_shape(client: &Client, name: &str, replicas: u64, cpu: &str, memory: &str) -> Result<()> {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu, "memory": memory}}}],
            }},
        },
    });
    client.apply(&format!("{DEPLOYMENTS}/{name}"), &deployment)?;
    Ok(())
}

/// Waits until so many pods of a Deployment are ready; what stands in their way is part of the failure.
pub fn await_ready(client: &Client, deployment: &str, replicas: u64) -> Result<()> {
    let ready = client.wait_for(&format!("{replicas} ready pods of {deployment}"), LIMIT, |client| {
        let path = format!("{DEPLOYMENTS}/{deployment}");
        let status = client.get(&path)?.unwrap_or_default()["status"].take();
        Ok(if status["readyReplicas"] == json!(replicas) {
            Seen::Done(())
        } else {
            Seen::NotYet(status.to_string())
        })
    });
    ready.map_err(|error| anyhow!("{error}\n{}", scene(client)))
}

/// Who waits for whom: every pod, node and claim with its conditions, a line each.
fn scene(client: &Client) -> String {
    let mut scene = String::new();
    for path in ["/api/v1/pods", NODES, NODE_CLAIMS] {
        let list = client.get(path).ok().flatten().unwrap_or_default();
        for object in list["items"].as_array().into_iter().flatten() {
            let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
            let conditions = conditions.map(|condition| {
                let [kind, status, reason] =
                    ["type", "status", "reason"].map(|field| condition[field].as_str().unwrap_or("-"));
                format!("{kind}={status} ({reason})")
            });
            let conditions = conditions.collect::<Vec<_>>().join(", ");
            let [name, node] = ["/metadata/name", "/spec/nodeName"]
                .map(|pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or("-"));
            scene.push_str(&format!("{path} {name} on {node}: {conditions}\n"));
        }
    }
    scene
}

/// A Deployment whose pods share a node with no other pod of such a Deployment.
pub fn apply_spread(client: &Client, name: &str, replicas: u64) -> Result<()> {
    let alone = json!({"podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
        }],
    }});
    apply_placed(client, name, replicas, &alone)
}

/// A Deployment of small pods with an affinity.
pub fn apply_placed(client: &Client, name: &str, replicas: u64, affinity: &Value) -> Result<()> {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {
                "affinity": affinity,
                "terminationGracePeriodSeconds": 0,
                "containers": [{
                    "name": "app", "image": "app", "resources": {"requests": {"cpu": "600m", "memory": "512Mi"}},
                }],
            }},
        },
    });
    client.apply(&format!("{DEPLOYMENTS}/{name}"), &deployment)?;
    Ok(())
}

/// Waits for an event with a reason whose message contains words, and returns the message.
pub fn await_event(client: &Client, reason: &str, words: &str) -> Result<String> {
    let path = format!("/api/v1/events?fieldSelector=reason%3D{reason}");
    Ok(
        client.wait_for(&format!("an event {reason} with {words:?}"), LIMIT, |client| {
            let list = client.get(&path)?.unwrap_or_default();
            let events = list["items"].as_array().cloned().unwrap_or_default();
            let mut messages = events.iter().filter_map(|it| it["message"].as_str());
            let found = messages.find(|message| message.contains(words)).map(ToOwned::to_owned);
            Ok(found.map_or_else(|| Seen::NotYet(json!(events).to_string()), Seen::Done))
        })?,
    )
}

/// Waits until objects are `Ready`, each by its path.
pub fn await_all_ready(client: &Client, paths: &[String]) -> Result<()> {
    for path in paths {
        client.wait_for(&format!("{path} being Ready"), LIMIT, |client| {
            let object = client.get(path)?.unwrap_or_default();
            let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let is_ready = |it: &Value| it["type"] == "Ready" && it["status"] == "True";
            Ok(if conditions.iter().any(is_ready) {
                Seen::Done(())
            } else {
                Seen::NotYet(json!(conditions).to_string())
            })
        })?;
    }
    Ok(())
}

/// Waits until a process that was started leads.
pub fn await_lead(client: &Client, mut process: Process) -> Result<Process> {
    client.wait_for("a leader", LIMIT, |client| {
        process.check()?;
        let is_led = leader(client)?.is_some();
        Ok(if is_led {
            Seen::Done(())
        } else {
            Seen::NotYet("nobody holds the lease".to_owned())
        })
    })?;
    Ok(process)
}

/// The end of a controller's log in the error, if there is one: its files go with the cluster.
pub fn told<T>(controller: &Process, result: Result<T>) -> Result<T> {
    result.with_context(|| {
        let log = fs::read_to_string(controller.log()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let end = lines[lines.len().saturating_sub(80)..].join("\n");
        format!("the controller's log ends with\n{end}\n")
    })
}

/// Moves the store's version far on, as a day's work does, by an object that nobody looks at.
pub fn write_much(client: &Client) -> Result<()> {
    const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
    let metadata = json!({"name": "busy"});
    client.post(
        CONFIG_MAPS,
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}),
    )?;
    for at in 0..500 {
        let data = json!({"at": at.to_string()});
        client.patch(&format!("{CONFIG_MAPS}/busy"), &json!({"data": data}))?;
    }
    Ok(())
}

/// Deletes a pool and a Deployment.
pub fn delete(client: &Client, pool: &str, deployment: &str) -> Result<()> {
    client.delete(&format!("{DEPLOYMENTS}/{deployment}"))?;
    delete_pool(client, pool)
}

/// Deletes a Deployment.
pub fn delete_deployment(client: &Client, deployment: &str) -> Result<()> {
    Ok(client.delete(&format!("{DEPLOYMENTS}/{deployment}"))?)
}

/// Deletes a pool.
pub fn delete_pool(client: &Client, pool: &str) -> Result<()> {
    Ok(client.delete(&format!("{NODE_POOLS}/{pool}"))?)
}

/// Waits until there is neither a claim nor a node left.
pub fn await_nothing_left(client: &Client) -> Result<()> {
    Ok(client.wait_for("no claim and no node being left", LIMIT, |client| {
        let left = [names(client, NODE_CLAIMS)?, names(client, NODES)?];
        Ok(if left.iter().all(Vec::is_empty) {
            Seen::Done(())
        } else {
            Seen::NotYet(format!("{left:?}"))
        })
    })?)
}

/// The claims.
pub fn claims(client: &Client) -> Result<Vec<Value>> {
    items(client, NODE_CLAIMS)
}

/// The nodes.
pub fn nodes(client: &Client) -> Result<Vec<Value>> {
    items(client, NODES)
}

fn items(client: &Client, path: &str) -> Result<Vec<Value>> {
    let mut list = client.get(path)?.unwrap_or_default();
    Ok(match list["items"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    })
}

fn names(client: &Client, path: &str) -> rig::Result<Vec<String>> {
    let list = client.get(path)?.unwrap_or_default();
    let names = list["items"].as_array().into_iter().flatten();
    Ok(names
        .filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned))
        .collect())
}
