//! The cluster of a rehearsal: existing nodes with their pods, claims as the nodes they are expected to become.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use model::{
    object::{NodeName, ObjectKey, Pod},
    plan::Plan,
    snapshot::Snapshot,
};

use super::{Landed, Outcome, Spot, Waiting};
use crate::{
    Cluster, NodeId, SchedNode, Spreading,
    judge::{Expected, World, current, expected_nodes},
};

pub(super) struct Stage {
    cluster: Cluster,
    claims: Vec<Expected>,
    /// What the cluster's nodes are to the plan, in the order they joined.
    spots: Vec<Spot>,
    nodes: BTreeMap<Spot, NodeId>,
    /// Where the plan has the pods.
    planned: BTreeMap<ObjectKey, Spot>,
    queue: Vec<Waiting>,
}

impl Stage {
    pub(super) fn new(snapshot: &Snapshot, plan: &Plan) -> Self {
        let mut stage = Self {
            cluster: Cluster::new(snapshot, Spreading::System),
            claims: expected_nodes(snapshot, plan),
            spots: Vec::new(),
            nodes: BTreeMap::new(),
            planned: planned(plan),
            queue: Vec::new(),
        };
        let moving: BTreeSet<ObjectKey> = stage.planned.keys().cloned().collect();
        for node in World::new(snapshot).staying(snapshot, &moving) {
            let name = NodeName::from(node.sched_node.name.clone());
            let id = stage.join(node.sched_node, Spot::Node(name));
            for pod in &node.pods {
                stage.bind(pod, id);
            }
        }
        stage.fill_queue(snapshot, plan);
        stage
    }

    fn join(&mut self, node: SchedNode, spot: Spot) -> NodeId {
        let id = self.cluster.add_node(node);
        self.spots.push(spot.clone());
        self.nodes.insert(spot, id);
        id
    }

    fn bind(&mut self, pod: &Arc<Pod>, node: NodeId) {
        let class = self.cluster.class_of(pod);
        self.cluster.bind(class, node);
    }

    /// Priority first, then age, then identity.
    fn fill_queue(&mut self, snapshot: &Snapshot, plan: &Plan) {
        let claimed = plan.claims.iter().flat_map(|claim| &claim.pods);
        let existing = plan.existing.iter().flat_map(|node| &node.pods);
        let unplaced = plan.unplaced.iter().map(|unplaced| &unplaced.pod);
        let pods: Vec<_> = claimed
            .chain(existing)
            .chain(unplaced)
            .map(|pod| current(snapshot, pod))
            .collect();
        for pod in pods {
            let class = self.cluster.class_of(&pod);
            self.queue.push(Waiting {
                pod,
                class,
                planned: None,
                nominated: None,
            });
        }
        self.queue.sort_by_cached_key(|waiting| {
            let pod = &waiting.pod;
            let priority = std::cmp::Reverse(pod.spec.priority.unwrap_or(0));
            (priority, pod.metadata.creation_timestamp, pod.metadata.uid.clone())
        });
    }

    /// Lets the nodes of a wave join, with their daemons, and keeps room on them for the pods nominated there.
    pub(super) fn release(&mut self, plan: &Plan, wave: u32) {
        let released = plan.claims.iter().enumerate().filter(|(_, claim)| claim.wave == wave);
        let mut nominated: BTreeMap<ObjectKey, NodeId> = BTreeMap::new();
        for (at, claim) in released {
            let Some(expected) = self.claims.get(at).cloned() else {
                continue;
            };
            let node = self.join(expected.sched_node, Spot::Claim(at));
            for daemon in &expected.daemons {
                self.bind(daemon, node);
            }
            nominated.extend(claim.nominated_pods().map(|pod| (pod.metadata.key(), node)));
        }
        for waiting in &mut self.queue {
            let key = waiting.pod.metadata.key();
            if let Some(node) = nominated.get(&key) {
                self.cluster.nominate(waiting.class, *node);
                waiting.nominated = Some(*node);
            }
            waiting.planned = self.planned.get(&key).and_then(|spot| self.nodes.get(spot).copied());
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
        let waiting = self.queue.iter().map(|waiting| waiting.pod.metadata.key());
        outcome.pending = waiting.filter(|key| self.planned.contains_key(key)).collect();
        let is_unused = |at: usize, expected: &Expected| {
            let node = self.nodes.get(&Spot::Claim(at));
            node.is_some_and(|node| self.cluster.pod_count(*node) == expected.daemons.len())
        };
        let claims = self.claims.iter().enumerate();
        outcome.unused = claims.filter(|(at, it)| is_unused(*at, it)).map(|(at, _)| at).collect();
    }
}

fn planned(plan: &Plan) -> BTreeMap<ObjectKey, Spot> {
    let mut planned = BTreeMap::new();
    for (at, claim) in plan.claims.iter().enumerate() {
        planned.extend(claim.pods.iter().map(|pod| (pod.metadata.key(), Spot::Claim(at))));
    }
    for node in &plan.existing {
        let spot = Spot::Node(node.name.clone());
        planned.extend(node.pods.iter().map(|pod| (pod.metadata.key(), spot.clone())));
    }
    planned
}
