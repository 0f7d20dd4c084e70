//! Where machines meet the cluster: kubelets join, nodes turn ready, go silent and are forgotten; a provider's own
//! small controllers, which are not ours to test, are stood in for.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use cloud_sim::{Ending, Happening, Machine, Region};
use jiff::Timestamp;
use serde_json::{Value, json};
use simulator::{ApiServer, Change, Event};
use tokio::{sync::mpsc::UnboundedReceiver, task::JoinSet};

use crate::objects::RUNS_FOR;

/// How long a silent kubelet is waited for before its node counts as gone.
const SILENCE: Duration = Duration::from_secs(40);

/// Sets everybody to work.
pub(crate) fn start(server: &ApiServer, region: &Arc<Region>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    tasks.spawn(play(server.clone(), Arc::clone(region)));
    // They listen from now on, not from when they are first polled.
    tasks.spawn(accept_classes(server.clone(), server.changes()));
    tasks.spawn(end_batches(server.clone(), server.changes()));
    tasks
}

/// Plays the machines' part.
async fn play(server: ApiServer, region: Arc<Region>) {
    let mut later = JoinSet::new();
    loop {
        for happening in region.happenings() {
            happen(&server, happening, &mut later);
        }
        let wait = region.due().map(|due| due.duration_since(region.now()));
        let wait = wait.map_or(Duration::MAX, |wait| Duration::try_from(wait).unwrap_or(Duration::ZERO));
        tokio::select! {
            biased;
            () = region.changed() => {}
            () = tokio::time::sleep(wait) => {}
            Some(_) = later.join_next() => {}
        }
    }
}

fn happen(server: &ApiServer, happening: Happening, later: &mut JoinSet<()>) {
    match happening {
        Happening::Joined(machine) => {
            let _ = server.create(node(&machine, server.now()));
        }
        Happening::Ready(machine) => ready(server, &machine.node_name),
        // The cloud says so to whoever reads its notices; the machine itself goes on until it is gone.
        Happening::Notice(_) => {}
        Happening::Gone(machine, ending) => {
            later.spawn(forget(server.clone(), machine, ending));
        }
    }
}

/// The node as its kubelet registers it.
pub(crate) fn node(machine: &Machine, now: Timestamp) -> Value {
    let mut labels = json!(
        machine
            .launched
            .labels
            .iter()
            .map(|(key, value)| (key.to_string(), json!(&**value)))
            .collect::<serde_json::Map<_, _>>()
    );
    labels["kubernetes.io/hostname"] = json!(machine.node_name);
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": machine.node_name, "labels": labels},
        "spec": {"providerID": machine.id.as_str(), "taints": [
            api::taints::unregistered(),
            {"key": NOT_READY, "effect": "NoSchedule"},
        ]},
        "status": {
            "capacity": machine.capacity, "allocatable": machine.allocatable,
            "addresses": [
                {"type": "InternalIP", "address": simulator::node_address(&machine.node_name)},
                {"type": "Hostname", "address": machine.node_name},
            ],
            "conditions": [condition("Ready", "False", "KubeletNotReady", "container runtime network not ready", now)],
            "nodeInfo": {"kubeletVersion": "v1.36.0", "operatingSystem": "linux", "osImage": &*machine.launched.image_id,
                "containerRuntimeVersion": "containerd://2.1.0", "kernelVersion": "6.12.0",
                "architecture": machine.launched.labels.get("kubernetes.io/arch").map_or("", AsRef::as_ref)},
        },
    })
}

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

fn condition(kind: &str, status: &str, reason: &str, message: &str, now: Timestamp) -> Value {
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
    json!({"type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": now, "lastHeartbeatTime": now})
}

/// What a kubelet reports of itself, in health.
const HEALTH: [(&str, &str, &str, &str); 4] = [
    (
        "MemoryPressure",
        "False",
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available",
    ),
    (
        "DiskPressure",
        "False",
        "KubeletHasNoDiskPressure",
        "kubelet has no disk pressure",
    ),
    (
        "PIDPressure",
        "False",
        "KubeletHasSufficientPID",
        "kubelet has sufficient PID available",
    ),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
];

/// A node turns ready, and the node life cycle takes the taint off that says it is not.
pub(crate) fn ready(server: &ApiServer, node: &str) {
    let now = server.now();
    let _ = server.update("Node", node, |node| {
        node["status"]["conditions"] = HEALTH
            .iter()
            .map(|(kind, status, reason, message)| condition(kind, status, reason, message, now))
            .collect();
        if let Some(taints) = node["spec"]["taints"].as_array_mut() {
            taints.retain(|taint| taint["key"] != NOT_READY);
        }
    });
}

/// A machine that is gone falls silent; after a while its node counts as unreachable, and the cloud's controller, which
/// finds no machine behind it, deletes the node.
async fn forget(server: ApiServer, machine: Arc<Machine>, ending: Ending) {
    tokio::time::sleep(SILENCE).await;
    let Some(node) = server.object("Node", &machine.node_name) else {
        return;
    };
    if node["spec"]["providerID"] != machine.id.as_str() {
        return;
    }
    let now = server.now();
    let _ = server.update("Node", &machine.node_name, |node| {
        let unknown = condition(
            "Ready",
            "Unknown",
            "NodeStatusUnknown",
            "Kubelet stopped posting node status.",
            now,
        );
        node["status"]["conditions"] = json!([unknown]);
        if !node["spec"]["taints"].is_array() {
            node["spec"]["taints"] = json!([]);
        }
        if let Some(taints) = node["spec"]["taints"].as_array_mut() {
            for effect in ["NoSchedule", "NoExecute"] {
                taints.push(json!({"key": UNREACHABLE, "effect": effect}));
            }
        }
    });
    if ending != Ending::Deleted {
        let _ = server.delete("Node", &machine.node_name);
    }
}

/// Accepts node classes: a provider would find their images and networks first.
async fn accept_classes(server: ApiServer, mut changes: UnboundedReceiver<Change>) {
    const CLASSES: [&str; 3] = ["ec2nodeclasses", "aksnodeclasses", "kwoknodeclasses"];
    let mut accepted = BTreeSet::new();
    while let Some(change) = changes.recv().await {
        if change.event == Event::Deleted || !CLASSES.contains(&change.resource.plural.as_str()) {
            continue;
        }
        let (kind, name) = (text(&change.object, "/kind"), text(&change.object, "/metadata/name"));
        if accepted.insert(text(&change.object, "/metadata/uid").to_owned()) {
            let generation = change.object["metadata"]["generation"].clone();
            let mut ready = condition("Ready", "True", "Ready", "", server.now());
            ready["observedGeneration"] = generation;
            let _ = server.update(kind, name, |class| class["status"]["conditions"] = json!([ready]));
        }
    }
}

/// Pods that say how long they run end by themselves.
async fn end_batches(server: ApiServer, mut changes: UnboundedReceiver<Change>) {
    let mut known = BTreeSet::new();
    let mut running = JoinSet::new();
    loop {
        let change = tokio::select! {
            biased;
            change = changes.recv() => change,
            Some(_) = running.join_next() => continue,
        };
        let Some(change) = change else { return };
        let pod = &change.object;
        let time = pod["metadata"]["annotations"][RUNS_FOR].as_str();
        let time = time.and_then(|time| crate::time::parse(time).ok());
        if let Some(time) = time.filter(|_| text(pod, "/status/phase") == "Running")
            && known.insert(text(pod, "/metadata/uid").to_owned())
        {
            let (server, key) = (server.clone(), key(pod));
            running.spawn(async move {
                tokio::time::sleep(time).await;
                let _ = server.update("Pod", &key, |pod| pod["status"]["phase"] = json!("Succeeded"));
            });
        }
    }
}

pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    // As [`Value::pointer`] reads it, which allocates for every part of the way.
    let mut found = object;
    for part in pointer.split('/').skip(1) {
        let next = match (found, part.contains('~')) {
            (Value::Array(items), _) => part.parse::<usize>().ok().and_then(|at| items.get(at)),
            (_, false) => found.get(part),
            (_, true) => found.get(part.replace("~1", "/").replace("~0", "~")),
        };
        match next {
            Some(next) => found = next,
            None => return "",
        }
    }
    found.as_str().unwrap_or_default()
}

/// Whether an object has a condition that is True.
pub(crate) fn holds(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions
        .into_iter()
        .any(|one| one["type"] == kind && one["status"] == "True")
}

/// As the server's direct access names an object.
pub(crate) fn key(object: &Value) -> String {
    match (text(object, "/metadata/namespace"), text(object, "/metadata/name")) {
        ("", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}
