//! Nodes join and become ready; pods bound to them run, and end when they are told to.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{News, is_deleting, key, lifecycle::Silent, nodes, pods, text};
use crate::{ApiServer, pod::set_condition, write::time};

/// Makes nodes ready.
pub(super) async fn join(server: ApiServer, after: Duration, silent: Silent, details: bool) {
    let act = move |server: &ApiServer, node: &Value| {
        if !silent.has(text(node, "/metadata/name")) {
            ready(server, node, details);
        }
    };
    later(server, nodes(), is_joining, after, act).await;
}

/// Runs pods.
pub(super) async fn run(server: ApiServer, after: Duration, silent: Silent, details: bool) {
    let act = move |server: &ApiServer, pod: &Value| {
        if !silent.has(text(pod, "/spec/nodeName")) {
            running(server, pod, details);
        }
    };
    later(server, pods(), is_starting, after, act).await;
}

/// Ends pods.
pub(super) async fn end(server: ApiServer, after: Duration, silent: Silent) {
    let act = move |server: &ApiServer, pod: &Value| {
        if !silent.has(text(pod, "/spec/nodeName")) {
            let _ = server.delete_now("Pod", &key(pod));
        }
    };
    let mut news = News::of(&server);
    let mut known = BTreeSet::new();
    let mut ends = JoinSet::new();
    while let Some(changed) = news.next(&[pods()]).await {
        for (_, pod) in changed {
            let is_new = is_deleting(&pod) && known.insert(text(&pod, "/metadata/uid").to_owned());
            if is_new && !text(&pod, "/spec/nodeName").is_empty() {
                let grace = pod["metadata"]["deletionGracePeriodSeconds"].as_u64().unwrap_or(0);
                ends.spawn(once(
                    server.clone(),
                    pod,
                    after.min(Duration::from_secs(grace)),
                    act.clone(),
                ));
            }
        }
    }
}

/// Acts on every object that fits, once, after a time.
async fn later(
    server: ApiServer,
    resource: crate::Resource,
    fits: fn(&Value) -> bool,
    after: Duration,
    act: impl Fn(&ApiServer, &Value) + Clone + Send + 'static,
) {
    let mut news = News::of(&server);
    let mut known = BTreeSet::new();
    let mut acts = JoinSet::new();
    while let Some(changed) = news.next(std::slice::from_ref(&resource)).await {
        for (_, object) in changed {
            if fits(&object) && known.insert(text(&object, "/metadata/uid").to_owned()) {
                acts.spawn(once(server.clone(), object, after, act.clone()));
            }
        }
    }
}

/// Acts on an object after a time, if it is still the same one.
async fn once(server: ApiServer, object: Arc<Value>, after: Duration, act: impl Fn(&ApiServer, &Value) + Send) {
    tokio::time::sleep(after).await;
    let now = server.object(text(&object, "/kind"), &key(&object));
    if let Some(now) = now.filter(|now| now["metadata"]["uid"] == object["metadata"]["uid"]) {
        act(&server, &now);
    }
}

/// Nodes that kwok plays bear its label.
fn is_joining(node: &Value) -> bool {
    node["metadata"]["labels"]["kwok.x-k8s.io/node"] == "fake" && !crate::pod::is_ready(node)
}

/// The kubelet says that it is ready, and the node's life cycle takes the taint off that says it is not.
fn ready(server: &ApiServer, node: &Value, details: bool) {
    let now = server.now();
    let conditions = [
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
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
        (
            "NetworkUnavailable",
            "False",
            "RouteCreated",
            "RouteController created a route",
        ),
    ];
    let _ = server.update("Node", &key(node), |node| {
        for (kind, status, reason, message) in conditions {
            let condition = json!({"type": kind, "status": status, "reason": reason, "message": message,
                "lastHeartbeatTime": time(now)});
            set_condition(node, condition, now);
        }
        node["status"]["phase"] = json!("Running");
        if details {
            describe_node(node);
        }
        if let Some(taints) = node["spec"]["taints"].as_array_mut() {
            taints.retain(|taint| taint["key"] != "node.kubernetes.io/not-ready");
        }
    });
}

fn is_starting(pod: &Value) -> bool {
    !text(pod, "/spec/nodeName").is_empty() && text(pod, "/status/phase") == "Pending" && !is_deleting(pod)
}

fn running(server: &ApiServer, pod: &Value, details: bool) {
    if is_deleting(pod) || server.object("Node", text(pod, "/spec/nodeName")).is_none() {
        return;
    }
    let now = server.now();
    let _ = server.update("Pod", &key(pod), |pod| {
        pod["status"]["phase"] = json!("Running");
        pod["status"]["startTime"] = time(now);
        for kind in ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"] {
            set_condition(pod, json!({"type": kind, "status": "True"}), now);
        }
        if details {
            describe_pod(pod, &time(now));
        }
    });
}

/// An address that a name always gets, in a network of 16 bits.
fn address(network: &str, name: &str) -> String {
    let sum = name
        .bytes()
        .fold(7_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
    format!("{network}.{}.{}", (sum >> 8) % 256, sum % 254 + 1)
}

/// The address of a node in its network: the one in its name if it has one there, as on EC2.
pub fn node_address(name: &str) -> String {
    let first = name.split('.').next().unwrap_or_default();
    let parts = first.strip_prefix("ip-").map(|parts| parts.replace('-', "."));
    let said = parts.filter(|parts| parts.parse::<std::net::Ipv4Addr>().is_ok());
    said.unwrap_or_else(|| address("10.0", name))
}

fn describe_node(node: &mut Value) {
    let name = text(node, "/metadata/name").to_owned();
    let architecture = match text(node, "/metadata/labels/kubernetes.io~1arch") {
        "" => "amd64",
        other => other,
    };
    node["status"]["nodeInfo"] = json!({
        "architecture": architecture, "operatingSystem": "linux", "kubeletVersion": "v1.36.0", "kubeProxyVersion": "",
        "osImage": "simulated", "kernelVersion": "0.0.0", "containerRuntimeVersion": "none://0",
        "machineID": "", "systemUUID": "", "bootID": "",
    });
    if node["status"]["addresses"].as_array().is_none_or(Vec::is_empty) {
        node["status"]["addresses"] = json!([
            {"type": "InternalIP", "address": node_address(&name)}, {"type": "Hostname", "address": name},
        ]);
    }
}

fn describe_pod(pod: &mut Value, now: &Value) {
    let ip = address("10.64", text(pod, "/metadata/uid"));
    let status = |container: &Value| {
        json!({"name": container["name"], "image": container["image"], "imageID": "", "ready": true, "started": true,
            "restartCount": 0, "state": {"running": {"startedAt": now}}, "lastState": {}})
    };
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let statuses: Vec<Value> = containers.map(status).collect();
    pod["status"]["containerStatuses"] = json!(statuses);
    pod["status"]["hostIP"] = json!(node_address(text(pod, "/spec/nodeName")));
    pod["status"]["podIP"] = json!(ip);
    pod["status"]["podIPs"] = json!([{"ip": ip}]);
}
