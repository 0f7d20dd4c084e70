//! What if these nodes were gone? Prepared once, asked thousands of times.
//!
//! A simulation costs in proportion to the pods that move, not to the cluster: it starts from counts and rooms that were
//! worked out once, and takes back what it did.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use model::{
    object::{NodeName, Text},
    plan::{Plan, PlannedNode},
    resources::ResourceList,
    snapshot::Snapshot,
};

use crate::{
    Options, Warm, Work,
    demand::{DemandPod, Origin},
    finish,
    limits::Limits,
    problem::Problem,
    run::Run,
    supply::members,
};

/// A cluster ready to be asked about.
#[derive(Debug)]
pub struct Prepared {
    problem: Problem,
    nodes: BTreeMap<NodeName, NodeEntry>,
    /// Place of each pod in the queue.
    ranks: Vec<u32>,
    /// The pods that need a place whatever goes, in the order they are tried.
    pending: Vec<u32>,
}

#[derive(Debug, Default)]
struct NodeEntry {
    /// Position among the nodes that take pods.
    at: usize,
    /// Position among the nodes topology counts on.
    scene_at: Option<u32>,
    residents: Vec<u32>,
    /// What it takes of its NodePool's limits, and which template that is.
    capacity: ResourceList,
    template: Option<usize>,
}

/// A node the cluster does not have, or has no room on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("node \"{0}\" is not among the nodes that stay: name one that exists and is not being deleted")]
pub struct UnknownNode(pub NodeName);

/// Where the pods of removed nodes would go.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulation {
    /// Nodes to launch, pods on existing nodes, pods left over.
    pub plan: Plan,
    /// Pods that had to move.
    pub moved: usize,
    /// What it took.
    pub work: Work,
}

impl Prepared {
    /// Works out everything simulations share.
    pub fn new(snapshot: &Snapshot, options: &Options) -> Self {
        Warm::default().prepare(snapshot, options)
    }

    pub(crate) fn of(snapshot: &Snapshot, problem: Problem) -> Self {
        let mut ranks = vec![0; problem.order.len()];
        for (rank, pod) in (0..).zip(&problem.order) {
            ranks[*pod as usize] = rank;
        }
        let nodes = entries(snapshot, &problem);
        let pending = problem.demand().collect();
        Self {
            problem,
            nodes,
            ranks,
            pending,
        }
    }

    /// Somebody to ask; one per thread.
    pub fn simulator(&self) -> Simulator<'_> {
        let mut run = Run::new(&self.problem);
        run.begin();
        Simulator {
            limits: run.limits.clone(),
            run,
            prepared: self,
            queue: VecDeque::new(),
        }
    }

    /// The nodes that can be asked about, by name.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeName> {
        self.nodes.keys()
    }
}

fn entries(snapshot: &Snapshot, problem: &Problem) -> BTreeMap<NodeName, NodeEntry> {
    let mut entries: BTreeMap<NodeName, NodeEntry> = BTreeMap::new();
    for (at, node) in problem.nodes.iter().enumerate() {
        let pool = node.labels.get(api::labels::NODEPOOL);
        let of_pool = |pool: &Text| {
            let mut templates = problem.templates.iter();
            templates.position(|entry| entry.template.pool.metadata.name == *pool)
        };
        let entry = NodeEntry {
            at,
            template: pool.and_then(of_pool),
            ..NodeEntry::default()
        };
        entries.insert(node.name.clone(), entry);
    }
    for (at, node) in (0..).zip(&problem.bound.nodes) {
        if let Some(entry) = entries.get_mut(&node.name()) {
            entry.scene_at = Some(at);
        }
    }
    for member in members(snapshot) {
        if let Some(entry) = entries.get_mut(&NodeName::from(member.name())) {
            entry.capacity = member.capacity();
        }
    }
    // Pods of a node come one after the other.
    let of_node = |(_, a): &(u32, &DemandPod), (_, b): &(u32, &DemandPod)| a.origin == b.origin;
    let pods: Vec<(u32, &DemandPod)> = (0..).zip(&problem.pods).collect();
    for pods in pods.chunk_by(of_node) {
        if let [(_, first), ..] = pods
            && let Origin::Resident(node) = &first.origin
            && let Some(entry) = entries.get_mut(node)
        {
            entry.residents.extend(pods.iter().map(|(pod, _)| *pod));
        }
    }
    entries
}

/// Answers questions about a prepared cluster, one after the other.
pub struct Simulator<'p> {
    prepared: &'p Prepared,
    run: Run<'p>,
    limits: Vec<Limits>,
    /// The queue of the simulation under way, kept for its memory.
    queue: VecDeque<u32>,
}

impl Simulator<'_> {
    /// Where the pods of these nodes would go if the nodes were gone.
    pub fn without(&mut self, nodes: &[NodeName]) -> Result<Simulation, UnknownNode> {
        let prepared = self.prepared;
        let mut queue = std::mem::take(&mut self.queue);
        queue.clear();
        queue.extend(&prepared.pending);
        let before = self.run.work;
        let mut moved = 0;
        for name in nodes {
            let Some(entry) = prepared.nodes.get(name) else {
                self.run.roll_back(&self.limits);
                return Err(UnknownNode(name.clone()));
            };
            moved += entry.residents.len();
            queue.extend(&entry.residents);
            self.remove(entry);
        }
        let rank = |pod: &u32| prepared.ranks[*pod as usize];
        queue.make_contiguous().sort_unstable_by_key(rank);
        self.run.empty(&mut queue);
        let plan = self.plan(queue.make_contiguous());
        let simulation = Simulation {
            plan,
            moved,
            work: self.run.work.since(before),
        };
        self.run.roll_back(&self.limits);
        self.queue = queue;
        Ok(simulation)
    }

    fn remove(&mut self, entry: &NodeEntry) {
        let problem = &self.prepared.problem;
        self.run.gone.insert(entry.at);
        if let Some(node) = entry.scene_at {
            for pod in &entry.residents {
                self.run.uncount(*pod, node);
            }
        }
        if let Some(template) = entry.template {
            self.run.limits[template].give_back(&entry.capacity, &problem.templates[template], &problem.index);
        }
    }

    /// The plan of one simulation: only what it touched is looked at.
    fn plan(&mut self, left: &[u32]) -> Plan {
        let mut placements: Vec<(usize, u32)> = self.run.placements().collect();
        placements.sort_by_key(|(node, _)| *node);
        let problem = &self.prepared.problem;
        let pod = |(_, pod): &(usize, u32)| Arc::clone(&problem.pods[*pod as usize].pod);
        let existing = placements.chunk_by(|(a, _), (b, _)| a == b).map(|of_node| PlannedNode {
            name: problem.node_name(of_node[0].0).clone(),
            pods: of_node.iter().map(pod).collect(),
        });
        let existing = existing.collect();
        if self.run.claims.len() > 0 || !left.is_empty() {
            return finish::plan_beside(&mut self.run, left, existing);
        }
        Plan {
            existing,
            ..Plan::default()
        }
    }
}
