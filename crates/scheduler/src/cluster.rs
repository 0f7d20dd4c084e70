//! A cluster in memory: nodes, the pods bound to them, and the counts the plugins keep.

mod alone;
mod bind;
mod filter;
mod select;
mod shape;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use model::{
    object::{Pod, Text},
    snapshot::Snapshot,
};
use rustc_hash::FxHashMap;

use self::{
    alone::{Alone, AloneKey},
    shape::{Shape, ShapeKey},
};
use crate::{
    amounts::Dictionary,
    class::{ClassId, ClassKey, Index, PodClass},
    node::{NodeState, SchedNode},
    plugin::{
        Plugin,
        inter_pod_affinity::{Counts, Term},
        pod_topology_spread::{Constraint, Identity},
    },
    topology::TopologyKey,
};

/// A node within one [`Cluster`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

impl NodeId {
    fn new(at: usize) -> Self {
        Self(u32::try_from(at).unwrap_or(u32::MAX))
    }

    /// Nodes are numbered in the order they joined.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Which spread constraints pods without any of their own get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spreading {
    /// Those of the snapshot's settings; none without.
    Configured,
    /// Those of the settings, or kube-scheduler's built-in soft ones when there are none.
    System,
}

/// Why a node does not take a pod.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{plugin}: {detail}")]
pub struct Refusal {
    /// The first plugin to refuse it.
    pub plugin: Plugin,
    /// What it found.
    pub detail: String,
}

/// Nodes, the pods bound to them, and what the plugins count.
#[derive(Debug, Clone)]
pub struct Cluster {
    snapshot: Snapshot,
    spreading: Spreading,
    dictionary: Dictionary,
    keys: Vec<TopologyKey>,
    nodes: Vec<NodeState>,
    classes: Vec<PodClass>,
    index: Index,
    relations: Vec<Relations>,
    terms: Vec<TermEntry>,
    affinities: Vec<AffinityEntry>,
    constraints: Vec<ConstraintEntry>,
    /// Looked up only, never walked; so are the next two.
    constraint_index: FxHashMap<ConstraintKey, usize>,
    alone_index: FxHashMap<AloneKey, usize>,
    shape_index: FxHashMap<ShapeKey, usize>,
    alone: Vec<Alone>,
    shapes: Vec<Shape>,
    /// Nodes in the order they changed.
    changed: Vec<u32>,
    /// Positions by name, for ties; empty when nodes came since it was made.
    ranks: Vec<u32>,
}

/// What counts a class, and what it must obey.
#[derive(Debug, Clone, Default)]
struct Relations {
    /// Terms that pick it.
    picked_by: Vec<usize>,
    /// Terms it owns.
    owns: Vec<usize>,
    /// Required affinities it counts for.
    near: Vec<usize>,
    /// Its own required affinity.
    affinity: Option<usize>,
    /// Constraints that count it.
    counted_by: Vec<usize>,
    hard: Vec<Bond>,
    soft: Vec<usize>,
}

/// A constraint of a class.
#[derive(Debug, Clone, Copy)]
struct Bond {
    constraint: usize,
    /// One when the pod counts itself.
    self_match: i64,
}

/// What tells one constraint from another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ConstraintKey {
    /// What its owner asks of nodes, which its policies look at.
    alone: usize,
    identity: Identity,
    needed: Vec<usize>,
}

#[derive(Debug, Clone)]
struct TermEntry {
    term: Term,
    key: usize,
}

/// The required affinity of a class: only pods that all of its terms pick count.
#[derive(Debug, Clone)]
struct AffinityEntry {
    terms: Vec<usize>,
    counts: Vec<Counts>,
    /// The pod would be near itself, so that the first one of a group may go anywhere.
    is_self_match: bool,
}

#[derive(Debug, Clone)]
struct ConstraintEntry {
    owner: ClassId,
    constraint: Constraint,
    key: usize,
    /// All keys that a node must have to be looked at.
    needed: Vec<usize>,
    eligible: Vec<bool>,
}

impl Cluster {
    /// A cluster without nodes. The snapshot says what pods refer to: namespaces, volumes, services, workloads.
    pub fn new(snapshot: &Snapshot, spreading: Spreading) -> Self {
        Self {
            snapshot: snapshot.clone(),
            spreading,
            dictionary: Dictionary::default(),
            keys: Vec::new(),
            nodes: Vec::new(),
            classes: Vec::new(),
            index: FxHashMap::default(),
            relations: Vec::new(),
            terms: Vec::new(),
            affinities: Vec::new(),
            constraints: Vec::new(),
            constraint_index: FxHashMap::default(),
            alone_index: FxHashMap::default(),
            shape_index: FxHashMap::default(),
            alone: Vec::new(),
            shapes: Vec::new(),
            changed: Vec::new(),
            ranks: Vec::new(),
        }
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// A node's name.
    pub fn node_name(&self, node: NodeId) -> Option<&Text> {
        self.nodes.get(node.index()).map(|state| &state.node.name)
    }

    /// How many pods run on a node.
    pub fn pod_count(&self, node: NodeId) -> usize {
        self.nodes.get(node.index()).map_or(0, |state| state.pods.len())
    }

    pub(crate) fn label(&self, node: NodeId, key: &str) -> Option<&Text> {
        self.nodes
            .get(node.index())
            .and_then(|state| state.node.labels.get(key))
    }

    /// The class of a pod, whose volumes and terms are looked up on first sight.
    pub fn class_of(&mut self, pod: &Arc<Pod>) -> ClassId {
        let key = ClassKey::of(pod);
        if let Some(id) = self.index.get(&key) {
            return *id;
        }
        let id = ClassId::new(self.classes.len());
        self.index.insert(key, id);
        let mut class = PodClass::new(&self.snapshot, pod, &mut self.dictionary);
        let (alone, shape) = (self.alone.len(), self.shapes.len());
        class.alone = *self.alone_index.entry(AloneKey::of(id, &class)).or_insert(alone);
        class.shape = *self.shape_index.entry(ShapeKey::of(&class)).or_insert(shape);
        if class.alone == alone {
            self.alone.push(Alone::new(id));
        }
        if class.shape == shape {
            self.shapes.push(Shape::new(id));
        }
        self.classes.push(class);
        self.relations.push(Relations::default());
        self.relate(id);
        id
    }

    /// A node joins.
    pub fn add_node(&mut self, node: SchedNode) -> NodeId {
        let at = self.nodes.len();
        for key in &mut self.keys {
            key.push(node.labels.get(&key.name));
        }
        self.nodes.push(NodeState::new(node, &mut self.dictionary));
        for entry in 0..self.constraints.len() {
            self.extend_constraint(entry, at);
        }
        self.ranks.clear();
        NodeId::new(at)
    }

    fn key(&mut self, name: &Text) -> usize {
        if let Some(at) = self.keys.iter().position(|key| key.name == *name) {
            return at;
        }
        let mut key = TopologyKey::new(name.clone());
        for state in &self.nodes {
            key.push(state.node.labels.get(name));
        }
        self.keys.push(key);
        self.keys.len() - 1
    }

    fn domain(&self, key: usize, node: usize) -> Option<usize> {
        self.keys.get(key).and_then(|key| key.domain(node))
    }
}
