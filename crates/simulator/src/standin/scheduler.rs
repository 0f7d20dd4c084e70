//! Pending pods get nodes as kube-scheduler chooses them, or a condition that says why none takes them.

use std::{collections::BTreeMap, sync::Arc};

use model::{
    object::{Node, Object, Pod},
    snapshot::{Catalog, Objects, Settings, Snapshot, Table, Title},
};
use scheduler::{Cluster, NodeId, SchedNode, Spreading};
use serde_json::{Value, json};

use super::{News, is_deleting, nodes, place, pods, text};
use crate::{ApiServer, Resource, address::Key, pod::set_condition};

/// Schedules whenever something changes that may help.
pub(super) async fn schedule(server: ApiServer) {
    let concerns = [
        nodes(),
        pods(),
        Resource::new("", "persistentvolumes"),
        Resource::new("", "persistentvolumeclaims"),
        Resource::new("storage.k8s.io", "storageclasses"),
        Resource::new("storage.k8s.io", "csinodes"),
    ];
    let mut news = News::of(&server);
    let mut known = Known::default();
    while let Some(changed) = news.next(&concerns).await {
        for (resource, object) in &changed {
            known.learn(&server, resource, object);
        }
        let waiting = known.waiting();
        if !waiting.is_empty() {
            round(&server, &known, &waiting);
        }
    }
}

/// Nodes and pods as the scheduler reads them, kept in step with the changes: to read all of them for each would make a
/// big cluster slow.
#[derive(Default)]
struct Known {
    nodes: BTreeMap<Key, Arc<Node>>,
    pods: BTreeMap<Key, Arc<Pod>>,
    waiting: BTreeMap<Key, Arc<Value>>,
}

impl Known {
    fn learn(&mut self, server: &ApiServer, resource: &Resource, object: &Value) {
        let place = place(object);
        let now = server.current(resource, &place);
        if *resource == nodes() {
            keep(&mut self.nodes, &place, now.as_ref());
        } else if *resource == pods() {
            keep(&mut self.pods, &place, now.as_ref());
            match now.filter(|now| is_waiting(now)) {
                Some(now) => self.waiting.insert(place, now),
                None => self.waiting.remove(&place),
            };
        }
    }

    /// Pods to be scheduled: priority first, then age, then identity.
    fn waiting(&self) -> Vec<(Arc<Value>, Arc<Pod>)> {
        let typed = |(place, pod): (&Key, &Arc<Value>)| Some((Arc::clone(pod), Arc::clone(self.pods.get(place)?)));
        let mut waiting: Vec<_> = self.waiting.iter().filter_map(typed).collect();
        waiting.sort_by_key(|(pod, _)| {
            let priority = pod["spec"]["priority"].as_i64().unwrap_or(0);
            let age = text(pod, "/metadata/creationTimestamp").to_owned();
            (-priority, age, text(pod, "/metadata/uid").to_owned())
        });
        waiting
    }
}

/// Keeps an object as it is now; one that is gone, or cannot be read, is not kept.
fn keep<T: Object>(kept: &mut BTreeMap<Key, Arc<T>>, place: &Key, now: Option<&Arc<Value>>) {
    match now.and_then(|now| T::deserialize(&**now).ok()) {
        Some(typed) => kept.insert(place.clone(), Arc::new(typed)),
        None => kept.remove(place),
    };
}

fn is_waiting(pod: &Value) -> bool {
    text(pod, "/spec/nodeName").is_empty()
        && text(pod, "/spec/schedulerName") == "default-scheduler"
        && text(pod, "/status/phase") == "Pending"
        && !is_deleting(pod)
        && pod["spec"]["schedulingGates"].as_array().is_none_or(Vec::is_empty)
}

fn round(server: &ApiServer, known: &Known, waiting: &[(Arc<Value>, Arc<Pod>)]) {
    let snapshot = snapshot(server, known);
    let mut bench = Bench::new(&snapshot);
    let nominated: Vec<Option<NodeId>> = waiting.iter().map(|(pod, typed)| bench.nominate(pod, typed)).collect();
    for ((pod, typed), nominated) in waiting.iter().zip(nominated) {
        match bench.place(typed, nominated) {
            Some(node) => bind(server, pod, &node),
            None => refuse(server, pod, &bench.why_none(typed)),
        }
    }
}

fn bind(server: &ApiServer, pod: &Value, node: &str) {
    let binding = json!({"metadata": {"uid": pod["metadata"]["uid"]}, "target": {"kind": "Node", "name": node}});
    let _ = server.bind(&super::key(pod), &binding);
}

fn refuse(server: &ApiServer, pod: &Value, message: &str) {
    let now = server.now();
    let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message});
    let _ = server.update("Pod", &super::key(pod), |pod| set_condition(pod, condition, now));
}

/// What the scheduler sees of the cluster.
fn snapshot(server: &ApiServer, known: &Known) -> Snapshot {
    let objects = Objects {
        nodes: Table::new(known.nodes.values().cloned().collect()),
        pods: Table::new(known.pods.values().cloned().collect()),
        namespaces: table(server),
        services: table(server),
        replica_sets: table(server),
        stateful_sets: table(server),
        replication_controllers: table(server),
        persistent_volumes: table(server),
        persistent_volume_claims: table(server),
        storage_classes: table(server),
        csi_nodes: table(server),
        volume_attachments: table(server),
        ..Objects::default()
    };
    let title = Title {
        name: "simulator".to_owned(),
        taken_at: server.now(),
        origin: "simulator".to_owned(),
    };
    Snapshot::new(title, Settings::default(), objects, Catalog::default())
}

fn table<T: Object>(server: &ApiServer) -> Table<T> {
    let group = T::API_VERSION.split_once('/').map_or("", |(group, _)| group);
    let objects = server.all_of(group, T::KIND);
    let typed = objects.iter().filter_map(|object| T::deserialize(&**object).ok());
    Table::new(typed.map(Arc::new).collect())
}

/// The nodes of one round, with what runs on them.
struct Bench {
    cluster: Cluster,
    nodes: BTreeMap<String, NodeId>,
}

impl Bench {
    fn new(snapshot: &Snapshot) -> Self {
        let mut cluster = Cluster::new(snapshot, Spreading::System);
        let mut nodes = BTreeMap::new();
        let join = |node: &Arc<Node>| SchedNode::of(snapshot, node);
        for node in snapshot.objects().nodes.iter() {
            nodes.insert(node.metadata.name.to_string(), cluster.add_node(join(node)));
        }
        let mut bench = Self { cluster, nodes };
        for pod in snapshot.objects().pods.iter() {
            let node = pod.node_name.as_ref().map(ToString::to_string).unwrap_or_default();
            if let Some(node) = bench.nodes.get(&node).copied().filter(|_| !pod.is_terminal()) {
                let class = bench.cluster.class_of(pod);
                bench.cluster.bind(class, node);
            }
        }
        bench
    }

    /// Keeps room for a pod where its status says.
    fn nominate(&mut self, pod: &Value, typed: &Arc<Pod>) -> Option<NodeId> {
        let node = self.nodes.get(text(pod, "/status/nominatedNodeName")).copied()?;
        let class = self.cluster.class_of(typed);
        self.cluster.nominate(class, node);
        Some(node)
    }

    /// A nominated pod is first tried where it is nominated.
    fn place(&mut self, pod: &Arc<Pod>, nominated: Option<NodeId>) -> Option<String> {
        let class = self.cluster.class_of(pod);
        if let Some(node) = nominated {
            self.cluster.withdraw(class, node);
            if self.cluster.filter(class, node).is_ok() {
                self.cluster.bind(class, node);
                return self.name(node);
            }
        }
        let placed = self.cluster.schedule(class);
        if let (None, Some(node)) = (placed, nominated) {
            self.cluster.nominate(class, node);
        }
        placed.and_then(|node| self.name(node))
    }

    fn name(&self, node: NodeId) -> Option<String> {
        self.cluster.node_name(node).map(ToString::to_string)
    }

    fn why_none(&mut self, pod: &Arc<Pod>) -> String {
        if self.nodes.is_empty() {
            return "no nodes available to schedule pods".to_owned();
        }
        let class = self.cluster.class_of(pod);
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        for node in self.nodes.values() {
            if let Err(refusal) = self.cluster.filter(class, *node) {
                *reasons.entry(refusal.detail).or_default() += 1;
            }
        }
        let reasons: Vec<String> = reasons
            .iter()
            .map(|(reason, count)| format!("{count} {reason}"))
            .collect();
        format!("0/{} nodes are available: {}.", self.nodes.len(), reasons.join(", "))
    }
}
