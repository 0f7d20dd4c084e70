//! What if these nodes were gone? Prepared once, asked thousands of times.
//!
//! A simulation costs in proportion to the pods that move, not to the cluster: it starts from counts and rooms that were
//! worked out once, and takes back what it did.

use std::{collections::BTreeMap, sync::Arc};

use model::{
    object::{NodeName, Pod, Text},
    plan::{Plan, PlannedNode, Slot},
    resources::ResourceList,
    snapshot::Snapshot,
};

use crate::{
    Options, Work,
    demand::{Demand, Origin},
    finish,
    limits::Limits,
    problem::Problem,
    run::Run,
    supply::{Supply, members},
};

/// A cluster ready to be asked about.
#[derive(Debug)]
pub struct Prepared {
    problem: Problem,
    nodes: BTreeMap<NodeName, NodeEntry>,
    /// Place of each pod in the queue.
    ranks: Vec<u32>,
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
        let (demand, supply) = (Demand::with_residents(snapshot), Supply::of(snapshot, options));
        let problem = Problem::new(snapshot, demand, supply, options);
        let mut ranks = vec![0; problem.order.len()];
        for (rank, pod) in (0..).zip(&problem.order) {
            ranks[*pod as usize] = rank;
        }
        let nodes = entries(snapshot, &problem);
        Self { problem, nodes, ranks }
    }

    /// Somebody to ask; one per thread.
    pub fn simulator(&self) -> Simulator<'_> {
        let mut run = Run::new(&self.problem);
        run.begin();
        Simulator {
            limits: run.limits.clone(),
            run,
            prepared: self,
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
        if let Some(entry) = entries.get_mut(&NodeName::from(&*member.name())) {
            entry.capacity = member.capacity();
        }
    }
    for (pod, entry) in (0..).zip(&problem.pods) {
        if let Origin::Resident(node) = &entry.origin
            && let Some(entry) = entries.get_mut(node)
        {
            entry.residents.push(pod);
        }
    }
    entries
}

/// Answers questions about a prepared cluster, one after the other.
pub struct Simulator<'p> {
    prepared: &'p Prepared,
    run: Run<'p>,
    limits: Vec<Limits>,
}

impl Simulator<'_> {
    /// Where the pods of these nodes would go if the nodes were gone.
    pub fn without(&mut self, nodes: &[NodeName]) -> Result<Simulation, UnknownNode> {
        let mut queue: Vec<u32> = self.prepared.problem.demand().collect();
        let before = self.run.work;
        let mut moved = 0;
        for name in nodes {
            let Some(entry) = self.prepared.nodes.get(name) else {
                self.run.roll_back(&self.limits);
                return Err(UnknownNode(name.clone()));
            };
            moved += entry.residents.len();
            queue.extend(&entry.residents);
            self.remove(entry);
        }
        queue.sort_unstable_by_key(|pod| self.prepared.ranks[*pod as usize]);
        let left = self.run.drain(queue.iter().copied().collect());
        let plan = self.plan(&queue, &left);
        let simulation = Simulation {
            plan,
            moved,
            work: self.run.work.since(before),
        };
        self.run.roll_back(&self.limits);
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
    fn plan(&mut self, queue: &[u32], left: &[u32]) -> Plan {
        if self.run.claims.len() > 0 || !left.is_empty() {
            return finish::plan(&mut self.run, left);
        }
        let mut places: BTreeMap<usize, Vec<Arc<Pod>>> = BTreeMap::new();
        for (node, pod) in self.run.placements() {
            places.entry(node).or_default().push(pod);
        }
        let slots: BTreeMap<usize, u32> = places.keys().copied().zip(0..).collect();
        let order = self.run.placements().filter_map(|(node, _)| slots.get(&node));
        let order = order.map(|at| Slot::Existing(*at)).collect();
        debug_assert_eq!(places.values().map(Vec::len).sum::<usize>(), queue.len());
        let existing = places.into_iter().map(|(node, pods)| PlannedNode {
            name: self.prepared.problem.node_name(node).clone(),
            pods,
        });
        Plan {
            existing: existing.collect(),
            order,
            ..Plan::default()
        }
    }
}
