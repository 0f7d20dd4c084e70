//! What changes when a class, a node or a pod comes: the counts of the plugins.

use std::collections::{BTreeSet, hash_map::Entry};

use model::object::{LabelSelector, Text, TopologySpreadConstraint};

use super::{AffinityEntry, Bond, Cluster, ConstraintEntry, ConstraintKey, NodeId, Spreading, TermEntry};
use crate::{
    class::ClassId,
    plugin::{
        inter_pod_affinity::{Counts, Kind, Term},
        node_affinity,
        pod_topology_spread::{Action, Constraint, default_selector},
        taint_toleration,
    },
};

impl Cluster {
    /// A pod of the class runs on the node from now on, whether or not the filters agree.
    pub fn bind(&mut self, class: ClassId, node: NodeId) {
        let at = node.index();
        let (Some(state), Some(pod)) = (self.nodes.get_mut(at), self.classes.get(class.index())) else {
            return;
        };
        state.bind(class, pod);
        self.changed.push(node.0);
        self.count(class, at, &BTreeSet::new());
    }

    /// [`Cluster::bind`], but no count over these topologies hears of it.
    pub(crate) fn bind_unseen(&mut self, class: ClassId, node: NodeId, unseen: &BTreeSet<Text>) {
        let at = node.index();
        if let (Some(state), Some(pod)) = (self.nodes.get_mut(at), self.classes.get(class.index())) {
            state.bind(class, pod);
            self.changed.push(node.0);
            self.count(class, at, unseen);
        }
    }

    fn count(&mut self, class: ClassId, node: usize, unseen: &BTreeSet<Text>) {
        let Some(relations) = self.relations.get(class.index()) else {
            return;
        };
        let keys = &self.keys;
        let seen = |key: &usize| unseen.is_empty() || keys.get(*key).is_some_and(|key| !unseen.contains(&key.name));
        let domain = |key: usize| Some(key).filter(seen).and_then(|key| keys.get(key)?.domain(node));
        for at in &relations.picked_by {
            let Some(entry) = self.terms.get_mut(*at) else { continue };
            if let Some(domain) = domain(entry.key) {
                entry.term.targets.add(domain, 1);
            }
        }
        for at in &relations.owns {
            let Some(entry) = self.terms.get_mut(*at) else { continue };
            if let Some(domain) = domain(entry.key) {
                entry.term.owners.add(domain, 1);
            }
        }
        for at in &relations.near {
            let Some(entry) = self.affinities.get_mut(*at) else {
                continue;
            };
            for (term, counts) in entry.terms.iter().zip(&mut entry.counts) {
                let key = self.terms.get(*term).map_or(usize::MAX, |entry| entry.key);
                if let Some(domain) = domain(key) {
                    counts.add(domain, 1);
                }
            }
        }
        for at in &relations.counted_by {
            let Some(entry) = self.constraints.get_mut(*at) else {
                continue;
            };
            if entry.eligible.get(node) == Some(&true)
                && let Some(domain) = domain(entry.key)
            {
                entry.constraint.add_pods(domain, 1);
            }
        }
    }

    /// Enters a new class: its terms and constraints, and those of others that speak of it.
    pub(super) fn relate(&mut self, id: ClassId) {
        self.relate_to_known(id);
        self.add_terms(id);
        self.add_constraints(id);
    }

    fn relate_to_known(&mut self, id: ClassId) {
        let at = id.index();
        let (Some(class), Some(relations)) = (self.classes.get(at), self.relations.get_mut(at)) else {
            return;
        };
        let pod = &class.pod;
        let picks = |term: &TermEntry| term.term.picks(pod);
        relations.picked_by = positions(&self.terms, picks);
        relations.near = positions(&self.affinities, |entry| {
            entry.terms.iter().all(|term| self.terms.get(*term).is_some_and(picks))
        });
        relations.counted_by = positions(&self.constraints, |entry| entry.constraint.counts(pod));
    }

    fn add_terms(&mut self, id: ClassId) {
        let Some(pod) = self.classes.get(id.index()).map(|class| class.pod.clone()) else {
            return;
        };
        let (mut owned, mut required) = (Vec::new(), Vec::new());
        for term in Term::of_pod(&self.snapshot, &pod) {
            let is_affinity = term.kind == Kind::Affinity;
            let at = self.add_term(term);
            if is_affinity {
                required.push(at);
            }
            owned.push(at);
        }
        let affinity = (!required.is_empty()).then(|| self.add_affinity(id, required));
        if let Some(relations) = self.relations.get_mut(id.index()) {
            (relations.owns, relations.affinity) = (owned, affinity);
        }
    }

    fn add_term(&mut self, term: Term) -> usize {
        if let Some(at) = self.terms.iter().position(|known| known.term.is_like(&term)) {
            return at;
        }
        let (at, key) = (self.terms.len(), self.key(&term.topology_key));
        let mut entry = TermEntry { term, key };
        for (class, relations) in self.classes.iter().zip(&mut self.relations) {
            if entry.term.picks(&class.pod) {
                relations.picked_by.push(at);
            }
        }
        for (node, state) in self.nodes.iter().enumerate() {
            let Some(domain) = self.domain(key, node) else { continue };
            let picked = state.pods.iter().filter(|class| self.is_picked(**class, at));
            entry.term.targets.add(domain, count_of(picked));
        }
        self.terms.push(entry);
        at
    }

    fn is_picked(&self, class: ClassId, term: usize) -> bool {
        self.relations
            .get(class.index())
            .is_some_and(|relations| relations.picked_by.contains(&term))
    }

    fn add_affinity(&mut self, id: ClassId, terms: Vec<usize>) -> usize {
        let at = self.affinities.len();
        let is_near = |relations: &super::Relations| terms.iter().all(|term| relations.picked_by.contains(term));
        let near: Vec<bool> = self.relations.iter().map(is_near).collect();
        let mut counts = vec![Counts::default(); terms.len()];
        for (node, state) in self.nodes.iter().enumerate() {
            let pods = count_of(state.pods.iter().filter(|class| near.get(class.index()) == Some(&true)));
            for (term, counts) in terms.iter().zip(&mut counts) {
                let key = self.terms.get(*term).map_or(usize::MAX, |entry| entry.key);
                if let Some(domain) = self.domain(key, node).filter(|_| pods > 0) {
                    counts.add(domain, pods);
                }
            }
        }
        for (relations, _) in self.relations.iter_mut().zip(&near).filter(|(_, near)| **near) {
            relations.near.push(at);
        }
        self.affinities.push(AffinityEntry {
            is_self_match: near.get(id.index()) == Some(&true),
            terms,
            counts,
        });
        at
    }

    fn add_constraints(&mut self, id: ClassId) {
        let Some(class) = self.classes.get(id.index()) else {
            return;
        };
        let (pod, mut written) = (class.pod.clone(), class.constraints.clone());
        let mut is_system = false;
        if written.is_empty() {
            (written, is_system) = self.default_constraints(&pod);
        }
        if let Some(class) = self.classes.get_mut(id.index()) {
            class.is_system_spread = is_system;
        }
        for action in [Action::DoNotSchedule, Action::ScheduleAnyway] {
            let constraints = Constraint::of_pod(&pod, &written, action);
            let keys: Vec<usize> = constraints.iter().map(|it| self.key(&it.topology_key)).collect();
            let mut entered = Vec::new();
            for (constraint, key) in constraints.into_iter().zip(&keys) {
                let needed = if is_system { vec![*key] } else { keys.clone() };
                entered.push(Bond {
                    self_match: constraint.self_match,
                    constraint: self.add_constraint(id, constraint, *key, needed),
                });
            }
            if let Some(relations) = self.relations.get_mut(id.index()) {
                match action {
                    Action::DoNotSchedule => relations.hard = entered,
                    Action::ScheduleAnyway => relations.soft = entered.iter().map(|bond| bond.constraint).collect(),
                }
            }
        }
    }

    /// The constraints a pod without any gets, and whether they are the built-in ones.
    fn default_constraints(&self, pod: &model::object::Pod) -> (Vec<TopologySpreadConstraint>, bool) {
        let configured = &self.snapshot.settings().default_constraints;
        let is_system = configured.is_empty() && self.spreading == Spreading::System;
        if configured.is_empty() && !is_system {
            return (Vec::new(), false);
        }
        let Some(selector) = default_selector(&self.snapshot, pod) else {
            return (Vec::new(), false);
        };
        let constraints = if is_system {
            system_constraints()
        } else {
            configured.to_vec()
        };
        let selected = constraints.into_iter().map(|constraint| TopologySpreadConstraint {
            label_selector: Some(LabelSelector::clone(&selector)),
            ..constraint
        });
        (selected.collect(), is_system)
    }

    /// Constraints that count the same pods on the same nodes are one.
    fn add_constraint(&mut self, owner: ClassId, constraint: Constraint, key: usize, needed: Vec<usize>) -> usize {
        let at = self.constraints.len();
        let look = ConstraintKey {
            alone: self.classes.get(owner.index()).map_or(usize::MAX, |class| class.alone),
            identity: constraint.identity(),
            needed: needed.clone(),
        };
        match self.constraint_index.entry(look) {
            Entry::Occupied(known) => return *known.get(),
            Entry::Vacant(place) => place.insert(at),
        };
        for (class, relations) in self.classes.iter().zip(&mut self.relations) {
            if constraint.counts(&class.pod) {
                relations.counted_by.push(at);
            }
        }
        self.constraints.push(ConstraintEntry {
            owner,
            constraint,
            key,
            needed,
            eligible: Vec::new(),
        });
        for node in 0..self.nodes.len() {
            self.extend_constraint(at, node);
        }
        at
    }

    /// Enters the next node into a constraint.
    pub(super) fn extend_constraint(&mut self, at: usize, node: usize) {
        let Some(entry) = self.constraints.get(at) else { return };
        let is_eligible = self.is_eligible(entry, node);
        let pods = self.nodes.get(node).map_or(&[][..], |state| &state.pods);
        let counted = pods.iter().filter(|class| {
            let relations = self.relations.get(class.index());
            relations.is_some_and(|relations| relations.counted_by.contains(&at))
        });
        let (counted, domain) = (count_of(counted), self.domain(entry.key, node));
        let Some(entry) = self.constraints.get_mut(at) else {
            return;
        };
        entry.eligible.push(is_eligible);
        if let Some(domain) = domain.filter(|_| is_eligible) {
            entry.constraint.add_node(domain, counted);
        }
    }

    /// Whether a constraint looks at a node: it has all labels needed, and the policies admit it.
    fn is_eligible(&self, entry: &ConstraintEntry, node: usize) -> bool {
        let (Some(state), Some(owner)) = (self.nodes.get(node), self.classes.get(entry.owner.index())) else {
            return false;
        };
        let (spec, node_side) = (&owner.pod.spec, &state.node);
        entry.needed.iter().all(|key| self.domain(*key, node).is_some())
            && (!entry.constraint.honors_affinity || node_affinity::admits(spec, &node_side.name, &node_side.labels))
            && (!entry.constraint.honors_taints
                || taint_toleration::untolerated(&node_side.taints, &spec.tolerations).is_none())
    }
}

/// kube-scheduler's own soft constraints: at most three more on a host, five more in a zone.
fn system_constraints() -> Vec<TopologySpreadConstraint> {
    [(3, "kubernetes.io/hostname"), (5, "topology.kubernetes.io/zone")]
        .map(|(max_skew, key)| TopologySpreadConstraint {
            max_skew,
            topology_key: key.into(),
            when_unsatisfiable: "ScheduleAnyway".into(),
            ..TopologySpreadConstraint::default()
        })
        .to_vec()
}

fn positions<T>(entries: &[T], holds: impl Fn(&T) -> bool) -> Vec<usize> {
    let found = entries.iter().enumerate().filter(|(_, entry)| holds(entry));
    found.map(|(at, _)| at).collect()
}

fn count_of<'a>(classes: impl Iterator<Item = &'a ClassId>) -> i64 {
    i64::try_from(classes.count()).unwrap_or(i64::MAX)
}
