//! What a cluster remembers changes nothing: it chooses as one that is built afresh for every pod and scores all nodes.

use std::sync::Arc;

use model::{
    object::{Labels, Pod},
    quantity::Quantity,
    resources::ResourceName,
    snapshot::{Catalog, Objects, Settings, Snapshot, Title},
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Cluster, NodeId, Spreading};
use crate::{SchedNode, plugin::pod_topology_spread};

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";

fn snapshot() -> Snapshot {
    let title = Title {
        name: String::new(),
        taken_at: "2026-11-16T00:00:00Z".parse().unwrap(),
        origin: String::new(),
    };
    Snapshot::new(title, Settings::default(), Objects::default(), Catalog::default())
}

fn node(number: usize, zone: u8, size: u8) -> SchedNode {
    // Names against the order of joining, so that ties are not settled by position.
    let name = format!("n{:03}", 500 - number);
    let mut labels = vec![
        (HOST.into(), name.as_str().into()),
        ("size".into(), size.to_string().into()),
    ];
    // Some nodes are in no zone.
    if zone < 3 {
        labels.push((ZONE.into(), format!("z{zone}").into()));
    }
    let amounts = [
        (ResourceName::Cpu, Quantity::from_millis(1000 * (1 + i64::from(size)))),
        (
            ResourceName::Memory,
            Quantity::from_bytes((1 << 30) * (4 - i64::from(size))),
        ),
        (ResourceName::Pods, Quantity::from_units(6)),
    ];
    SchedNode {
        name: name.as_str().into(),
        labels: Labels::from_pairs(labels),
        allocatable: amounts.into_iter().collect(),
        ..SchedNode::default()
    }
}

fn pod(kind: u8, size: u8, app: u8) -> Arc<Pod> {
    let app = format!("a{app}");
    let selector = json!({"matchLabels": {"app": app}});
    let spread = |key: &str, unmet: &str| json!([{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": unmet, "labelSelector": selector}]);
    let near = |key: &str| json!([{"labelSelector": selector, "topologyKey": key}]);
    let soft = |key: &str| json!([{"weight": 7, "podAffinityTerm": {"labelSelector": selector, "topologyKey": key}}]);
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let mut spec = json!({"containers": [{"name": "c", "resources": {"requests": {
        "cpu": format!("{}m", 100 + 150 * u32::from(size)), "memory": format!("{}Mi", 700 - 300 * u32::from(size))}}}]});
    let (field, value) = match kind {
        0 => ("topologySpreadConstraints", spread(ZONE, "DoNotSchedule")),
        1 => ("topologySpreadConstraints", spread(HOST, "DoNotSchedule")),
        2 => ("topologySpreadConstraints", spread(ZONE, "ScheduleAnyway")),
        3 => ("affinity", json!({"podAntiAffinity": {required: near(HOST)}})),
        4 => ("affinity", json!({"podAffinity": {required: near(ZONE)}})),
        5 => ("affinity", json!({"podAntiAffinity": {preferred: soft(HOST)}})),
        6 => ("nodeSelector", json!({"size": "1"})),
        7 => ("priority", json!(10)),
        _ => ("hostNetwork", Value::Null),
    };
    spec[field] = value;
    let name = format!("p{kind}{size}");
    let json = json!({"metadata": {"name": name, "namespace": "ns", "labels": {"app": app}}, "spec": spec});
    Arc::new(serde_json::from_value(json).unwrap())
}

/// All there is, without memory.
#[derive(Debug, Default)]
struct World {
    nodes: Vec<SchedNode>,
    bound: Vec<(Arc<Pod>, NodeId)>,
    nominated: Vec<(Arc<Pod>, NodeId)>,
}

impl World {
    fn built(&self, first: &Arc<Pod>) -> Cluster {
        let mut cluster = Cluster::new(&snapshot(), Spreading::Configured);
        cluster.class_of(first);
        for node in &self.nodes {
            cluster.add_node(node.clone());
        }
        for (pod, node) in &self.bound {
            let class = cluster.class_of(pod);
            cluster.bind(class, *node);
        }
        for (pod, node) in &self.nominated {
            let class = cluster.class_of(pod);
            cluster.nominate(class, *node);
        }
        cluster
    }

    /// The nodes that a pod's hard spread constraints leave, counted pod by pod.
    fn evenly(&self, pod: &Arc<Pod>) -> Vec<bool> {
        let written = &pod.spec.topology_spread_constraints;
        let hard = pod_topology_spread::Constraint::of_pod(pod, written, pod_topology_spread::Action::DoNotSchedule);
        let is_even = |at: usize| {
            hard.iter().all(|constraint| {
                let value = |at: usize| self.nodes[at].labels.get(&constraint.topology_key);
                let count = |domain| {
                    let there = self
                        .bound
                        .iter()
                        .filter(|(_, node)| value(node.index()) == Some(domain));
                    there.filter(|(pod, _)| constraint.counts(pod)).count()
                };
                let least = (0..self.nodes.len()).filter_map(value).map(count).min().unwrap_or(0);
                value(at).is_some_and(|domain| count(domain) <= least)
            })
        };
        (0..self.nodes.len()).map(is_even).collect()
    }
}

#[derive(Debug, Clone)]
enum Step {
    Join(u8, u8),
    Schedule(u8, u8, u8),
    Nominate(u8, u8, u8, usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => (0..4_u8, 0..3_u8).prop_map(|(zone, size)| Step::Join(zone, size)),
        6 => (0..9_u8, 0..3_u8, 0..3_u8).prop_map(|(kind, size, app)| Step::Schedule(kind, size, app)),
        1 => (0..9_u8, 0..3_u8, 0..3_u8, 0..99_usize).prop_map(|(kind, size, app, at)| Step::Nominate(kind, size, app, at)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_cluster_that_remembers_chooses_as_one_built_afresh(steps in prop::collection::vec(step(), 1..60)) {
        let mut world = World::default();
        let mut cluster = Cluster::new(&snapshot(), Spreading::Configured);
        for step in [Step::Join(0, 0), Step::Join(1, 1), Step::Join(2, 2)].into_iter().chain(steps) {
            match step {
                Step::Join(zone, size) => {
                    let node = node(world.nodes.len(), zone, size);
                    cluster.add_node(node.clone());
                    world.nodes.push(node);
                }
                Step::Schedule(kind, size, app) => {
                    let pod = pod(kind, size, app);
                    let mut afresh = world.built(&pod);
                    let class = afresh.class_of(&pod);
                    let even = world.evenly(&pod);
                    let feasible: Vec<NodeId> = (0..world.nodes.len())
                        .map(NodeId::new)
                        .filter(|node| afresh.filter(class, *node).is_ok())
                        .collect();
                    prop_assert!(feasible.iter().all(|node| even[node.index()]));
                    prop_assert_eq!(afresh.feasible(class), feasible);
                    afresh.refresh(class);
                    let expected = afresh.best_of_all(class).map(NodeId::new);
                    let class = cluster.class_of(&pod);
                    let chosen = cluster.schedule(class);
                    prop_assert_eq!(chosen, expected);
                    world.bound.extend(chosen.map(|node| (pod, node)));
                }
                Step::Nominate(kind, size, app, at) => {
                    let (pod, node) = (pod(kind, size, app), NodeId::new(at % world.nodes.len()));
                    let class = cluster.class_of(&pod);
                    cluster.nominate(class, node);
                    world.nominated.push((pod, node));
                    // Every other one is taken back.
                    if world.nominated.len() % 2 == 0 && let Some((pod, node)) = world.nominated.pop() {
                        let class = cluster.class_of(&pod);
                        cluster.withdraw(class, node);
                    }
                }
            }
        }
    }
}
