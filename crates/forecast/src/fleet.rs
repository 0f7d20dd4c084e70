//! A cluster in which decisions are carried out at once: nodes come, pods move, nodes go.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{
    annotations::{NODEPOOL_HASH, NODEPOOL_HASH_VERSION},
    condition::names::nodeclaim::{CONSOLIDATABLE, INITIALIZED, LAUNCHED, REGISTERED},
    labels,
};
use disruption::Command;
use jiff::Timestamp;
use model::{
    object::{
        BriefCondition, Condition, ConditionStatus, Labels, List, Map, Metadata, Node, NodeClaim, NodeClaimSpec,
        NodeClaimStatus, NodeName, NodePool, NodePoolName, NodeSpec, NodeStatus, ObjectKey, Pod, ProviderId, Text,
    },
    plan::{Plan, PlannedClaim, Unplaced},
    price::Price,
    snapshot::Snapshot,
};
use packing::Options;
use scheduler::SchedNode;

use crate::pod;

/// A cluster that is played with.
#[derive(Debug, Clone)]
pub struct Fleet {
    snapshot: Snapshot,
    launched: Vec<NewNode>,
    /// Names given so far.
    names: usize,
    options: Options,
}

/// A node that was launched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewNode {
    /// What it is called here.
    pub name: NodeName,
    /// Whose it is.
    pub node_pool: NodePoolName,
    /// Its type.
    pub instance_type: String,
    /// Where it is.
    pub zone: String,
    /// `spot`, `on-demand` or `reserved`.
    pub capacity_type: String,
    /// What it costs an hour.
    pub price: Price,
    /// The pods it was launched for.
    pub pods: usize,
}

/// What nodes that went left behind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Left {
    /// Pods that need another place, and where they were.
    pub moving: Vec<(ObjectKey, NodeName)>,
    /// Pods that nobody makes again.
    pub lost: Vec<ObjectKey>,
}

impl Fleet {
    /// The cluster as it is.
    pub fn new(snapshot: Snapshot, options: Options) -> Self {
        Self {
            snapshot,
            launched: Vec::new(),
            names: 0,
            options,
        }
    }

    /// The cluster as it has become.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The nodes launched so far, those that went again too.
    pub fn launched(&self) -> &[NewNode] {
        &self.launched
    }

    /// The launched nodes that are still there.
    pub fn present(&self) -> impl Iterator<Item = &NewNode> {
        let is_there = |node: &&NewNode| self.snapshot.node(&node.name).is_some();
        self.launched.iter().filter(is_there)
    }

    /// What all nodes of NodePools cost an hour.
    pub fn price(&self) -> Price {
        disruption::tracked_costs(&self.snapshot).into_values().sum()
    }

    /// Time passes.
    pub(crate) fn set_time(&mut self, now: Timestamp) {
        let mut title = self.snapshot.title().clone();
        title.taken_at = now;
        let settings = Arc::new(self.snapshot.settings().clone());
        let objects = self.snapshot.objects().clone();
        self.snapshot = Snapshot::sharing(title, settings, objects, Arc::clone(self.snapshot.shared_catalog()));
    }

    /// Buys nodes for the pods that wait, and lets them run; returns those without a place.
    pub fn provision(&mut self) -> Vec<Unplaced> {
        let plan = packing::plan(&self.snapshot, &self.options);
        self.carry_out(&plan);
        plan.unplaced
    }

    /// The plan's nodes come, and its pods run where it has them.
    pub fn carry_out(&mut self, plan: &Plan) {
        let now = self.snapshot.taken_at();
        let expected = scheduler::expected_nodes(&self.snapshot, plan);
        let (mut nodes, mut claims, mut pods) = (Vec::new(), Vec::new(), Vec::new());
        for (claim, expected) in plan.claims.iter().zip(expected) {
            let Some(pool) = self.snapshot.node_pool(&claim.node_pool).cloned() else {
                continue;
            };
            let name = self.free_name();
            let machine = Machine::new(&name, &pool, claim, expected, now);
            self.launched.push(machine.told(claim));
            pods.extend(claim.pods.iter().map(|it| pod::running(it, &machine.name, now)));
            nodes.push(Arc::new(machine.node));
            claims.push(Arc::new(machine.claim));
        }
        for place in &plan.existing {
            let name = self.node_behind(&place.name);
            pods.extend(place.pods.iter().map(|it| pod::running(it, &name, now)));
        }
        self.snapshot = self.snapshot.overlaid(|objects| {
            objects.nodes = objects.nodes.with(nodes);
            objects.node_claims = objects.node_claims.with(claims);
            objects.pods = objects.pods.with(pods);
        });
    }

    /// A name that nobody has: a cluster may have been played with before.
    fn free_name(&mut self) -> String {
        loop {
            self.names += 1;
            let name = format!("new-{:04}", self.names);
            let objects = self.snapshot.objects();
            if objects.nodes.find("", &name).is_none() && objects.node_claims.find("", &name).is_none() {
                return name;
            }
        }
    }

    /// A plan names a machine by its claim while it has no node.
    fn node_behind(&self, name: &NodeName) -> NodeName {
        let claim = self.snapshot.objects().node_claims.find("", name.as_str());
        let node = claim.and_then(|claim| self.snapshot.node_of_claim(claim));
        node.map_or_else(|| name.clone(), |node| node.name())
    }

    /// The command's replacements come, its pods move, its nodes go.
    pub fn obey(&mut self, command: &Command) -> Left {
        let nodes: Vec<NodeName> = command.nodes().cloned().collect();
        // Pods leave before they come: a plan places pods that wait.
        let left = self.remove(&nodes);
        self.carry_out(&command.plan);
        left
    }

    /// Nodes go with their claims; their pods wait, or are lost.
    pub fn remove(&mut self, names: &[NodeName]) -> Left {
        let now = self.snapshot.taken_at();
        let mut left = Left::default();
        let (mut waiting, mut gone) = (Vec::new(), Vec::new());
        for name in names {
            for pod in self.snapshot.pods_on_node(name) {
                let key = pod.metadata.key();
                if pod::comes_back(pod) {
                    left.moving.push((key, name.clone()));
                    waiting.push(pod::waiting(pod, now));
                    continue;
                }
                if pod::is_lost(pod) {
                    left.lost.push(key.clone());
                }
                gone.push(key);
            }
        }
        self.snapshot = self.snapshot.without_nodes(names).without_pods(gone).with_pods(waiting);
        left
    }

    /// Nodes of NodePools; those of somebody else's take pods and are nobody's business otherwise.
    pub(crate) fn managed(&self) -> Vec<&Arc<Node>> {
        let is_managed = |node: &&Arc<Node>| {
            let pool = node.metadata.labels.get(labels::NODEPOOL);
            pool.is_some_and(|pool| !pool.is_empty()) && self.snapshot.claim_of_node(node).is_some()
        };
        self.snapshot.objects().nodes.iter().filter(is_managed).collect()
    }

    /// How many nodes of NodePools there are.
    pub fn nodes(&self) -> usize {
        self.managed().len()
    }

    /// Claims that are up and have been quiet for long enough, drift forgotten: what is left is a question of money.
    pub(crate) fn ripen(&mut self) {
        let now = self.snapshot.taken_at();
        let claims = self.snapshot.objects().node_claims.iter();
        let ripe: Vec<_> = claims.filter_map(|claim| ripened(claim, now)).map(Arc::new).collect();
        self.snapshot = self
            .snapshot
            .overlaid(|objects| objects.node_claims = objects.node_claims.with(ripe));
    }

    /// Where every pod runs.
    pub(crate) fn places(&self) -> BTreeMap<ObjectKey, NodeName> {
        let bound = |pod: &Arc<Pod>| Some((pod.metadata.key(), pod.node_name.clone()?));
        self.snapshot.objects().pods.iter().filter_map(bound).collect()
    }
}

/// A claim that consolidation may look at, if it is not one already.
fn ripened(claim: &NodeClaim, now: Timestamp) -> Option<NodeClaim> {
    use api::condition::names::nodeclaim::DRIFTED;
    let conditions = &claim.status.conditions;
    let is_up = model::object::condition::holds(conditions, INITIALIZED);
    let is_ripe = model::object::condition::holds(conditions, CONSOLIDATABLE) && claim.condition(DRIFTED).is_none();
    if !is_up || is_ripe {
        return None;
    }
    let others = conditions
        .iter()
        .filter(|it| *it.kind != *CONSOLIDATABLE && *it.kind != *DRIFTED);
    let mut ripe = claim.clone();
    ripe.status.conditions = others.cloned().chain([holding(CONSOLIDATABLE, now)]).collect();
    Some(ripe)
}

fn holding(kind: &str, now: Timestamp) -> Condition {
    Condition {
        kind: kind.into(),
        status: ConditionStatus::True,
        reason: kind.into(),
        last_transition_time: Some(now),
        ..Condition::default()
    }
}

/// A node and its claim, as they are once all is up.
struct Machine {
    name: NodeName,
    node: Node,
    claim: NodeClaim,
}

impl Machine {
    fn new(name: &str, pool: &NodePool, planned: &PlannedClaim, expected: SchedNode, now: Timestamp) -> Self {
        let id = ProviderId::from(format!("forecast:///{name}").as_str());
        let node = node(name, &id, pool, expected, now);
        let claim = claim(name, &id, pool, planned, &node, now);
        Self {
            name: node.name(),
            node,
            claim,
        }
    }

    fn told(&self, planned: &PlannedClaim) -> NewNode {
        let label = |key: &str| self.node.metadata.labels.get(key).map(ToString::to_string);
        NewNode {
            name: self.name.clone(),
            node_pool: planned.node_pool.clone(),
            instance_type: label(labels::INSTANCE_TYPE).unwrap_or_default(),
            zone: label(labels::ZONE).unwrap_or_default(),
            capacity_type: label(labels::CAPACITY_TYPE).unwrap_or_default(),
            price: planned.cheapest.as_ref().map_or(Price::ZERO, |launch| launch.price),
            pods: planned.pods.len(),
        }
    }
}

/// Labels as a node has them once it is up, under its own name.
fn up(labels: &Labels, pool: &NodePool, name: &str) -> Labels {
    let own = [
        (labels::NODEPOOL, &*pool.metadata.name),
        (labels::REGISTERED, "true"),
        (labels::INITIALIZED, "true"),
        (labels::HOSTNAME, name),
    ];
    let replaced: BTreeSet<&str> = own.iter().map(|(key, _)| *key).collect();
    let others = labels.iter().filter(|(key, _)| !replaced.contains(&**key)).cloned();
    let own = own.iter().map(|(key, value)| (Text::from(*key), Text::from(*value)));
    Map::from_pairs(others.chain(own).collect())
}

fn node(name: &str, id: &ProviderId, pool: &NodePool, expected: SchedNode, now: Timestamp) -> Node {
    let ready = BriefCondition {
        kind: "Ready".into(),
        status: ConditionStatus::True,
        reason: "KubeletReady".into(),
        last_transition_time: Some(now),
    };
    Node {
        metadata: Metadata {
            name: name.into(),
            uid: format!("node-{name}").as_str().into(),
            labels: up(&expected.labels, pool, name),
            creation_timestamp: Some(now),
            ..Metadata::default()
        },
        spec: NodeSpec {
            provider_id: Some(id.clone()),
            taints: expected.taints,
            unschedulable: false,
        },
        status: NodeStatus {
            capacity: expected.allocatable.clone(),
            allocatable: expected.allocatable,
            conditions: vec![ready].into(),
            ..NodeStatus::default()
        },
    }
}

fn claim(
    name: &str,
    id: &ProviderId,
    pool: &NodePool,
    planned: &PlannedClaim,
    node: &Node,
    now: Timestamp,
) -> NodeClaim {
    let template = &pool.spec.template.spec;
    let hashes = [NODEPOOL_HASH, NODEPOOL_HASH_VERSION];
    let stamps = pool.metadata.annotations.iter();
    let stamps = stamps.filter(|(key, _)| hashes.contains(&&**key)).cloned();
    let conditions = [LAUNCHED, REGISTERED, INITIALIZED, "Ready", CONSOLIDATABLE];
    NodeClaim {
        metadata: Metadata {
            name: name.into(),
            uid: format!("claim-{name}").as_str().into(),
            labels: node.metadata.labels.clone(),
            annotations: Map::from_pairs(stamps.collect()),
            creation_timestamp: Some(now),
            ..Metadata::default()
        },
        spec: NodeClaimSpec {
            taints: (*template.taints).clone(),
            startup_taints: List::default(),
            requirements: template.requirements.clone(),
            resources: model::object::Resources {
                requests: planned.requests.clone(),
            },
            node_class_ref: template.node_class_ref.clone(),
            termination_grace_period: template.termination_grace_period,
            expire_after: template.expire_after.clone(),
        },
        status: NodeClaimStatus {
            node_name: Some(node.name()),
            provider_id: Some(id.clone()),
            capacity: node.status.capacity.clone(),
            allocatable: node.status.allocatable.clone(),
            conditions: conditions.iter().map(|kind| holding(kind, now)).collect(),
            ..NodeClaimStatus::default()
        },
    }
}
