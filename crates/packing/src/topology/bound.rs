//! Which pods run where: the counts a topology starts from.

use std::sync::Arc;

use model::{
    object::{LabelSelector, Labels, Node, Pod, Text, Uid},
    snapshot::Snapshot,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::label_index::LabelIndex;
use crate::supply::Register;

/// Pods on nodes, by namespace and labels, because a selector asks only for those.
#[derive(Debug, Default)]
pub(crate) struct BoundPods {
    /// Nodes that pods are on.
    pub(crate) nodes: Vec<Arc<Node>>,
    sets: Vec<LabelSet>,
    index: LabelIndex,
    /// Pods with required anti-affinity and their node, if upstream takes it up; those being deleted too.
    pub(crate) avoiders: Vec<(Arc<Pod>, u32)>,
}

/// Pods with equal namespace and labels.
#[derive(Debug)]
struct LabelSet {
    namespace: Text,
    labels: Labels,
    /// Positions in [`BoundPods::nodes`], one per pod.
    nodes: Vec<u32>,
}

impl BoundPods {
    /// All pods on nodes of the snapshot but for those that are about to move.
    pub(crate) fn new(snapshot: &Snapshot, moving: &FxHashSet<&Uid>) -> Self {
        let mut bound = Self::default();
        let mut places: FxHashMap<(Text, usize), usize> = FxHashMap::default();
        let mut contents: FxHashMap<(Text, Labels), usize> = FxHashMap::default();
        let register = Register::of(snapshot);
        for node in snapshot.objects().nodes.iter() {
            let is_taken_up = register.machine(node).is_some();
            let at = bound.nodes.len() as u32;
            bound.nodes.push(Arc::clone(node));
            for pod in snapshot.pods_on_node(&node.name()) {
                if pod.is_terminal() || moving.contains(pod.uid()) {
                    continue;
                }
                if is_taken_up && has_required_anti_affinity(pod) {
                    bound.avoiders.push((Arc::clone(pod), at));
                }
                if pod.metadata.is_deleting() {
                    continue;
                }
                let (namespace, labels) = (&pod.metadata.namespace, &pod.metadata.labels);
                let set = *places
                    .entry((namespace.clone(), labels.as_ptr() as usize))
                    .or_insert_with(|| {
                        *contents
                            .entry((namespace.clone(), labels.clone()))
                            .or_insert_with(|| bound.sets.push_set(namespace, labels))
                    });
                bound.sets[set].nodes.push(at);
            }
        }
        bound.index = LabelIndex::new(bound.sets.iter().map(|set| &set.labels));
        bound
    }

    /// The nodes of the pods a selector picks in these namespaces, a node once per pod. No selector picks all: upstream
    /// counts them although such a constraint selects no pod of the batch.
    pub(crate) fn picked<'a>(
        &'a self,
        namespaces: &'a [Text],
        selector: Option<&'a LabelSelector>,
    ) -> impl Iterator<Item = u32> + 'a {
        let sets = self.index.candidates(selector).map(|at| &self.sets[at as usize]);
        sets.filter(move |set| namespaces.contains(&set.namespace))
            .filter(move |set| selector.is_none_or(|selector| selects(selector, &set.labels)))
            .flat_map(|set| set.nodes.iter().copied())
    }
}

trait PushSet {
    fn push_set(&mut self, namespace: &Text, labels: &Labels) -> usize;
}

impl PushSet for Vec<LabelSet> {
    fn push_set(&mut self, namespace: &Text, labels: &Labels) -> usize {
        self.push(LabelSet {
            namespace: namespace.clone(),
            labels: labels.clone(),
            nodes: Vec::new(),
        });
        self.len() - 1
    }
}

fn has_required_anti_affinity(pod: &Pod) -> bool {
    let affinity = pod.spec.affinity.as_ref();
    let anti = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    anti.is_some_and(|anti| !anti.required.is_empty())
}

/// Whether a selector picks an object with these labels; an invalid one picks nothing.
pub(crate) fn selects(selector: &LabelSelector, labels: &Labels) -> bool {
    let is_valid = selector
        .match_expressions
        .iter()
        .all(|expression| match &*expression.operator {
            "In" | "NotIn" => !expression.values.is_empty(),
            "Exists" | "DoesNotExist" => expression.values.is_empty(),
            _ => false,
        });
    is_valid && selector.matches(labels)
}
