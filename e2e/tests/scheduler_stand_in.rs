//! Does our stand-in decide as kube-scheduler does? One pod per case is put to a real one and to ours.
//!
//! All cases share a cluster: each has nodes, a namespace and topology keys of its own, and its pod selects its nodes. The
//! pods that are there already name their node, so nothing but the pod in question is scheduled.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

#[path = "scheduler_stand_in/cases.rs"]
mod cases;

use std::{sync::Arc, time::Duration};

use cases::{Case, Expect, PROBE, all};
use model::{dump, object::Pod, snapshot::Snapshot};
use rig::{Client, client::Seen};
use scheduler::{Cluster, SchedNode, Spreading};
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_mins(8);

/// What a scheduler made of a case's pod: its node, or none while it stays pending.
type Answer = Option<String>;

#[test]
fn every_pod_lands_where_kube_scheduler_puts_it() {
    let cases = all();
    let rig = rig::Cluster::builder().kwok(Vec::new()).start().unwrap();
    let client = rig.client();
    for case in &cases {
        prepare(client, case);
    }
    await_ready(client, cases.iter().map(|case| case.nodes.len()).sum());
    let before = snapshot(client);
    for case in &cases {
        client.post(&pods_path(&case.namespace()), &case.probe()).unwrap();
    }
    let mut wrong = Vec::new();
    for case in &cases {
        let (real, ours, feasible) = (theirs(client, case), stand_in(&before, case), feasible(&before, case));
        let expected = case.expected();
        if real != expected || ours != expected || !case.admits(&feasible) {
            wrong.push(format!(
                "{}: expected {expected:?}, kube-scheduler {real:?}, ours {ours:?} of {feasible:?}",
                case.name
            ));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

fn prepare(client: &Client, case: &Case) {
    for (namespace, labels) in case.namespaces() {
        let object = json!({ "metadata": { "name": namespace, "labels": labels } });
        client.post("/api/v1/namespaces", &object).unwrap();
        let account = json!({ "metadata": { "name": "default" } });
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        client
            .request("POST", &path, Some(&account), rig::client::media::JSON)
            .unwrap();
    }
    for node in case.nodes() {
        client.post("/api/v1/nodes", &node).unwrap();
    }
    for (namespace, pod) in case.pods() {
        client.post(&pods_path(&namespace), &pod).unwrap();
    }
}

fn pods_path(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods")
}

/// Nodes are usable once kwok has made them ready and their taint is gone.
fn await_ready(client: &Client, count: usize) {
    let look = |client: &Client| {
        let nodes = client.get("/api/v1/nodes")?.unwrap_or_default();
        let items = nodes["items"].as_array().cloned().unwrap_or_default();
        let starting = |node: &&Value| {
            node["spec"]["taints"]
                .to_string()
                .contains("node.kubernetes.io/not-ready")
        };
        let waiting = items.iter().filter(starting).count();
        Ok(if items.len() == count && waiting == 0 {
            Seen::Done(())
        } else {
            Seen::NotYet(format!("{waiting} of {} nodes start", items.len()))
        })
    };
    client.wait_for("all nodes being ready", LIMIT, look).unwrap();
}

fn snapshot(client: &Client) -> Snapshot {
    let list = |path: &str, kind: &str, version: &str| {
        let mut list = client.get(path).unwrap().unwrap();
        for item in list["items"].as_array_mut().unwrap() {
            (item["kind"], item["apiVersion"]) = (json!(kind), json!(version));
        }
        dump::Source::Stream(path.to_string(), Box::new(std::io::Cursor::new(list.to_string())))
    };
    let sources = [
        list("/api/v1/nodes", "Node", "v1"),
        list("/api/v1/pods", "Pod", "v1"),
        list("/api/v1/namespaces", "Namespace", "v1"),
    ];
    let options = dump::Options {
        mode: dump::Mode::Strict,
        taken_at: jiff::Timestamp::UNIX_EPOCH,
    };
    dump::read(sources, options).unwrap().0
}

/// What kube-scheduler says: a node, or the condition that it found none.
fn theirs(client: &Client, case: &Case) -> Answer {
    let path = format!("{}/{PROBE}", pods_path(&case.namespace()));
    let look = |client: &Client| {
        let pod = client.get(&path)?.unwrap_or_default();
        let node = pod["spec"]["nodeName"].as_str().map(str::to_owned);
        let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let refused = conditions.iter().any(|it| it["reason"] == "Unschedulable");
        Ok(match node {
            Some(node) => Seen::Done(Some(node)),
            None if refused => Seen::Done(None),
            None => Seen::NotYet(pod["status"].to_string()),
        })
    };
    let what = format!("a verdict on {}", case.name);
    client.wait_for(&what, LIMIT, look).unwrap()
}

/// Our cluster with everything the real one has, and the pod of the case.
fn ours(snapshot: &Snapshot, case: &Case) -> (Cluster, scheduler::ClassId) {
    let mut cluster = Cluster::new(snapshot, Spreading::System);
    for node in snapshot.objects().nodes.iter() {
        let id = cluster.add_node(SchedNode::of(snapshot, node));
        for pod in snapshot.pods_on_node(&node.name()).filter(|pod| !pod.is_terminal()) {
            let class = cluster.class_of(pod);
            cluster.bind(class, id);
        }
    }
    let mut probe = case.probe();
    probe["metadata"]["namespace"] = json!(case.namespace());
    let pod: Arc<Pod> = Arc::new(serde_json::from_value(probe).unwrap());
    let class = cluster.class_of(&pod);
    (cluster, class)
}

fn stand_in(snapshot: &Snapshot, case: &Case) -> Answer {
    let (mut cluster, class) = ours(snapshot, case);
    let node = cluster.select(class)?;
    cluster.node_name(node).map(ToString::to_string)
}

fn feasible(snapshot: &Snapshot, case: &Case) -> Vec<String> {
    let (mut cluster, class) = ours(snapshot, case);
    let nodes = cluster.feasible(class);
    nodes
        .iter()
        .filter_map(|node| cluster.node_name(*node).map(ToString::to_string))
        .collect()
}

impl Case {
    fn expected(&self) -> Answer {
        match self.expect {
            Expect::Pending => None,
            Expect::Only(node) | Expect::Best(node) => Some(self.node_name(node)),
        }
    }

    /// Whether so many nodes pass the filters as the case says.
    fn admits(&self, feasible: &[String]) -> bool {
        match self.expect {
            Expect::Pending => feasible.is_empty(),
            Expect::Only(_) => feasible.len() == 1,
            Expect::Best(_) => feasible.len() > 1,
        }
    }
}
