//! The cluster of a rehearsal: existing nodes with their pods, claims as the nodes they are expected to become.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use model::{
    object::{NodeName, ObjectKey, Pod, Text},
    plan::{Plan, Slot},
    snapshot::Snapshot,
};

use super::{Landed, Outcome, Spot, Waiting};
use crate::{
    Cluster, NodeId, SchedNode, Spreading,
    judge::{Expected, World, current, expected_nodes},
};

/// The nodes that stay, with the pods that stay on them: the same for all plans that move the same pods.
#[derive(Debug, Clone)]
pub(super) struct Scene {
    /// Pods on nodes that plans take away from there.
    moving: BTreeSet<ObjectKey>,
    cluster: Cluster,
    nodes: BTreeMap<Text, NodeId>,
}

impl Scene {
    pub(super) fn new(snapshot: &Snapshot, moving: BTreeSet<ObjectKey>) -> Self {
        let mut scene = Self {
            cluster: Cluster::new(snapshot, Spreading::System),
            nodes: BTreeMap::new(),
            moving,
        };
        for node in World::new(snapshot).staying(snapshot, &scene.moving) {
            let name = node.sched_node.name.clone();
            let id = scene.cluster.add_node(node.sched_node);
            for pod in &node.pods {
                bind(&mut scene.cluster, pod, id);
            }
            scene.nodes.insert(name, id);
        }
        scene
    }

    /// Whether it is the scene of these pods.
    pub(super) fn is_of(&self, moving: &BTreeSet<ObjectKey>) -> bool {
        self.moving == *moving
    }
}

/// Pods of a plan that are bound now.
pub(super) fn moving(snapshot: &Snapshot, plan: &Plan) -> BTreeSet<ObjectKey> {
    let pods = &snapshot.objects().pods;
    let placed = plan.claims.iter().flat_map(|claim| &claim.pods);
    let placed = placed.chain(plan.existing.iter().flat_map(|node| &node.pods));
    let is_bound = |key: &ObjectKey| pods.get(key).is_some_and(|pod| pod.node_name.is_some());
    placed.map(|pod| pod.metadata.key()).filter(is_bound).collect()
}

fn bind(cluster: &mut Cluster, pod: &Arc<Pod>, node: NodeId) {
    let class = cluster.class_of(pod);
    cluster.bind(class, node);
}

pub(super) struct Stage {
    cluster: Cluster,
    claims: Vec<Expected>,
    /// What the cluster's nodes are to the plan, in the order they joined.
    spots: Vec<Spot>,
    /// The nodes of the plan's claims, once they are there, and of its existing nodes.
    of_claims: Vec<Option<NodeId>>,
    of_existing: Vec<Option<NodeId>>,
    queue: Vec<Waiting>,
}

impl Stage {
    /// Classes that the plan brings are left with the scene, for the next plan has them too.
    pub(super) fn new(snapshot: &Snapshot, plan: &Plan, scene: &mut Scene) -> Self {
        let queue = queue(snapshot, plan, &mut scene.cluster);
        let name = |id: &NodeId| scene.cluster.node_name(*id).cloned();
        let mut ids: Vec<NodeId> = scene.nodes.values().copied().collect();
        ids.sort_unstable();
        let spots = ids.iter().filter_map(name).map(|name| Spot::Node(NodeName::from(name)));
        let existing = plan.existing.iter();
        Self {
            claims: expected_nodes(snapshot, plan),
            spots: spots.collect(),
            of_claims: vec![None; plan.claims.len()],
            of_existing: existing
                .map(|node| scene.nodes.get(node.name.as_str()).copied())
                .collect(),
            queue,
            cluster: scene.cluster.clone(),
        }
    }

    fn join(&mut self, node: SchedNode, claim: usize) -> NodeId {
        let id = self.cluster.add_node(node);
        self.spots.push(Spot::Claim(claim));
        if let Some(place) = self.of_claims.get_mut(claim) {
            *place = Some(id);
        }
        id
    }

    /// Lets the nodes of a wave join, with their daemons, and keeps room on them for the pods nominated there.
    pub(super) fn release(&mut self, plan: &Plan, wave: u32) {
        let released = plan.claims.iter().enumerate().filter(|(_, claim)| claim.wave == wave);
        for (at, _) in released {
            let Some(expected) = self.claims.get(at).cloned() else {
                continue;
            };
            let node = self.join(expected.sched_node, at);
            for daemon in &expected.daemons {
                bind(&mut self.cluster, daemon, node);
            }
        }
        for waiting in &mut self.queue {
            let planned = match waiting.slot {
                Some(Slot::Claim(at)) => self.of_claims.get(at as usize),
                Some(Slot::Existing(at)) => self.of_existing.get(at as usize),
                None => None,
            };
            waiting.planned = planned.copied().flatten();
            if waiting.is_nominated
                && waiting.nominated.is_none()
                && let Some(node) = waiting.planned
            {
                self.cluster.nominate(waiting.class, node);
                waiting.nominated = Some(node);
            }
        }
    }

    /// Tries every pod that waits, once, in the order of the queue.
    pub(super) fn schedule(&mut self, outcome: &mut Outcome) {
        for waiting in std::mem::take(&mut self.queue) {
            match self.place(&waiting) {
                None => self.queue.push(waiting),
                Some(node) if waiting.planned == Some(node) => outcome.as_planned += 1,
                Some(node) => outcome
                    .elsewhere
                    .extend(self.spots.get(node.index()).map(|spot| Landed {
                        pod: waiting.pod.metadata.key(),
                        on: spot.clone(),
                    })),
            }
        }
    }

    /// A nominated pod is first tried where it is nominated.
    fn place(&mut self, waiting: &Waiting) -> Option<NodeId> {
        let Some(node) = waiting.nominated else {
            return self.cluster.schedule(waiting.class);
        };
        self.cluster.withdraw(waiting.class, node);
        if self.cluster.filter(waiting.class, node).is_ok() {
            self.cluster.bind(waiting.class, node);
            return Some(node);
        }
        let placed = self.cluster.schedule(waiting.class);
        if placed.is_none() {
            self.cluster.nominate(waiting.class, node);
        }
        placed
    }

    pub(super) fn finish(self, outcome: &mut Outcome) {
        let planned = self.queue.iter().filter(|waiting| waiting.slot.is_some());
        outcome.pending = planned.map(|waiting| waiting.pod.metadata.key()).collect();
        let is_unused = |at: usize, expected: &Expected| {
            let node = self.of_claims.get(at).copied().flatten();
            node.is_some_and(|node| self.cluster.pod_count(node) == expected.daemons.len())
        };
        let claims = self.claims.iter().enumerate();
        outcome.unused = claims.filter(|(at, it)| is_unused(*at, it)).map(|(at, _)| at).collect();
    }
}

/// All pods of a plan: priority first, then age, then identity.
fn queue(snapshot: &Snapshot, plan: &Plan, cluster: &mut Cluster) -> Vec<Waiting> {
    let mut queue = Vec::with_capacity(plan.placed() + plan.unplaced.len());
    let mut push = |pod: &Arc<Pod>, slot: Option<Slot>, is_nominated: bool| {
        let pod = current(snapshot, pod);
        queue.push(Waiting {
            class: cluster.class_of(&pod),
            pod,
            slot,
            is_nominated,
            planned: None,
            nominated: None,
        });
    };
    for (at, claim) in (0..).zip(&plan.claims) {
        for (number, pod) in (0..).zip(&claim.pods) {
            push(
                pod,
                Some(Slot::Claim(at)),
                claim.nominated.binary_search(&number).is_ok(),
            );
        }
    }
    for (at, node) in (0..).zip(&plan.existing) {
        node.pods
            .iter()
            .for_each(|pod| push(pod, Some(Slot::Existing(at)), false));
    }
    plan.unplaced.iter().for_each(|it| push(&it.pod, None, false));
    queue.sort_by_cached_key(|waiting| {
        let pod = &waiting.pod;
        let priority = std::cmp::Reverse(pod.spec.priority.unwrap_or(0));
        (priority, pod.metadata.creation_timestamp, pod.metadata.uid.clone())
    });
    queue
}
