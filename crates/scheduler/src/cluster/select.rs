//! Which node would the scheduler choose? The highest sum of weighted scores among the nodes that pass the filters.
//!
//! kube-scheduler draws lots between equal nodes, and in clusters of more than a hundred nodes it looks at a part of
//! them only. Here ties go to the first node by name, and all nodes are scored.

use super::{Cluster, ConstraintEntry, NodeId, TermEntry, filter::is_occupied};
use crate::{
    class::ClassId,
    plugin::{
        MAX_NODE_SCORE,
        inter_pod_affinity::{self, Kind},
        node_affinity,
        pod_topology_spread::{self, SoftSpread},
        taint_toleration,
    },
    topology::TopologyKey,
};

/// A node that passed the filters, with its score so far.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    node: usize,
    score: i64,
}

impl Cluster {
    /// The node for a pod of the class; none when no node takes it.
    pub fn select(&mut self, class: ClassId) -> Option<NodeId> {
        self.refresh(class);
        let best = if self.is_scored_by_more(class) {
            self.best_of_all(class)
        } else {
            self.best_by_room(class)
        };
        best.map(NodeId::new)
    }

    /// The nodes that take a pod of the class, in the order they joined.
    pub fn feasible(&mut self, class: ClassId) -> Vec<NodeId> {
        self.refresh(class);
        let candidates = self.candidates(class);
        candidates.iter().map(|candidate| NodeId::new(candidate.node)).collect()
    }

    /// Chooses a node and binds a pod of the class to it.
    pub fn schedule(&mut self, class: ClassId) -> Option<NodeId> {
        let node = self.select(class)?;
        self.bind(class, node);
        Some(node)
    }

    /// Keeps room on a node for a pod of the class, as a nomination does: pods of a lower priority may not take it.
    pub fn nominate(&mut self, class: ClassId, node: NodeId) {
        if let (Some(state), Some(pod)) = (self.nodes.get_mut(node.index()), self.classes.get(class.index())) {
            state.nominate(class, pod);
            self.changed.push(node.0);
        }
    }

    /// Gives the room of one nomination back.
    pub fn withdraw(&mut self, class: ClassId, node: NodeId) {
        if let Some(state) = self.nodes.get_mut(node.index()) {
            state.withdraw(class);
            self.changed.push(node.0);
        }
    }

    /// Brings what is known of the class and the nodes up to date.
    pub(super) fn refresh(&mut self, class: ClassId) {
        self.refresh_ranks();
        if let Some((alone, shape)) = self.classes.get(class.index()).map(|class| (class.alone, class.shape)) {
            self.refresh_alone(alone);
            self.refresh_shape(shape);
        }
    }

    fn refresh_ranks(&mut self) {
        if self.ranks.len() == self.nodes.len() {
            return;
        }
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by_key(|at| self.nodes.get(*at).map(|state| &state.node.name));
        self.ranks = vec![0; order.len()];
        for (rank, at) in (0..).zip(order) {
            if let Some(place) = self.ranks.get_mut(at) {
                *place = rank;
            }
        }
    }

    fn scores(&self, class: ClassId) -> &[i32] {
        let shape = self.classes.get(class.index()).map(|class| class.shape);
        let shape = shape.and_then(|at| self.shapes.get(at));
        shape.map_or(&[], |shape| &shape.scores)
    }

    /// Whether scores other than those of resources count for the class.
    fn is_scored_by_more(&self, class: ClassId) -> bool {
        let alone = self.classes.get(class.index()).and_then(|it| self.alone.get(it.alone));
        alone.is_some_and(|alone| alone.has_wishes)
            || self.relations.get(class.index()).is_some_and(|it| !it.soft.is_empty())
            || self.weighted_terms(class).next().is_some()
    }

    /// The best node where only room counts: most nodes are out by their score, without a look at the other filters.
    fn best_by_room(&self, class: ClassId) -> Option<usize> {
        let has_neighbours = self.has_neighbours(class);
        let mut best: Option<(i32, u32, usize)> = None;
        for ((node, &score), &rank) in self.scores(class).iter().enumerate().zip(&self.ranks) {
            let (most, first) = best.map_or((0, u32::MAX), |(score, rank, _)| (score, rank));
            let is_better = score > most || score == most && rank < first;
            if is_better && self.is_admitted(class, node, has_neighbours) {
                best = Some((score, rank, node));
            }
        }
        best.map(|(_, _, node)| node)
    }

    /// Whether a node with room takes the class.
    fn is_admitted(&self, class: ClassId, node: usize, has_neighbours: bool) -> bool {
        let (Some(pod), Some(state)) = (self.classes.get(class.index()), self.nodes.get(node)) else {
            return false;
        };
        self.alone.get(pod.alone).is_some_and(|alone| alone.admits(node))
            && !is_occupied(pod, state)
            && (!has_neighbours || self.refused_by_neighbours(class, node).is_none())
    }

    pub(super) fn best_of_all(&self, class: ClassId) -> Option<usize> {
        let mut candidates = self.candidates(class);
        self.add_static_scores(class, &mut candidates);
        self.add_spread_scores(class, &mut candidates);
        self.add_affinity_scores(class, &mut candidates);
        let rank = |node: usize| self.ranks.get(node).copied().unwrap_or(u32::MAX);
        let best = candidates
            .iter()
            .max_by_key(|candidate| (candidate.score, std::cmp::Reverse(rank(candidate.node))));
        best.map(|candidate| candidate.node)
    }

    fn candidates(&self, class: ClassId) -> Vec<Candidate> {
        let has_neighbours = self.has_neighbours(class);
        let with_room = self.scores(class).iter().enumerate().filter(|(_, score)| **score >= 0);
        let admitted = with_room.filter(|(node, _)| self.is_admitted(class, *node, has_neighbours));
        let candidate = |(node, score): (usize, &i32)| Candidate {
            node,
            score: i64::from(*score),
        };
        admitted.map(candidate).collect()
    }

    /// Taints and preferred node affinity, each on a scale of its own.
    fn add_static_scores(&self, class: ClassId, candidates: &mut [Candidate]) {
        let alone = self.classes.get(class.index()).and_then(|it| self.alone.get(it.alone));
        let Some(alone) = alone.filter(|alone| alone.has_wishes) else {
            return;
        };
        let of = |candidate: &Candidate| alone.nodes.get(candidate.node).copied();
        let statics = || candidates.iter().filter_map(of);
        let intolerable = statics().map(|it| it.intolerable).max().unwrap_or(0);
        let preference = statics().map(|it| it.preference).max().unwrap_or(0);
        for candidate in candidates {
            let Some(of_node) = of(candidate) else { continue };
            if intolerable > 0 {
                let share = MAX_NODE_SCORE - MAX_NODE_SCORE * of_node.intolerable / intolerable;
                candidate.score += taint_toleration::WEIGHT * share;
            }
            if preference > 0 {
                candidate.score += node_affinity::WEIGHT * MAX_NODE_SCORE * of_node.preference / preference;
            }
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "upstream rounds to whole numbers here")]
    fn add_spread_scores(&self, class: ClassId, candidates: &mut [Candidate]) {
        let soft = self.soft_constraints(class);
        if soft.is_empty() {
            return;
        }
        let needs_all = self
            .classes
            .get(class.index())
            .is_some_and(|class| !class.is_system_spread);
        let spreads: Vec<_> = soft
            .iter()
            .map(|entry| self.soft_spread(entry, &soft, candidates))
            .collect();
        let sum = |node: usize| -> Option<i64> {
            if needs_all && !self.has_all_domains(&soft, node) {
                return None;
            }
            let parts = soft.iter().zip(&spreads).filter_map(|(entry, spread)| {
                let domain = self.domain(entry.key, node)?;
                Some(spread.of_count(entry.constraint.count(domain)))
            });
            Some(parts.sum::<f64>().round() as i64)
        };
        let mut sums: Vec<_> = candidates.iter().map(|candidate| sum(candidate.node)).collect();
        pod_topology_spread::normalize(&mut sums);
        for (candidate, score) in candidates.iter_mut().zip(sums) {
            candidate.score += pod_topology_spread::WEIGHT * score.unwrap_or(0);
        }
    }

    fn soft_constraints(&self, class: ClassId) -> Vec<&ConstraintEntry> {
        let soft = self.relations.get(class.index()).map_or(&[][..], |it| &it.soft);
        soft.iter().filter_map(|at| self.constraints.get(*at)).collect()
    }

    fn has_all_domains(&self, soft: &[&ConstraintEntry], node: usize) -> bool {
        soft.iter().all(|entry| self.domain(entry.key, node).is_some())
    }

    /// A domain weighs the less the more of them the candidates are in.
    fn soft_spread(&self, entry: &ConstraintEntry, soft: &[&ConstraintEntry], candidates: &[Candidate]) -> SoftSpread {
        let mut seen = vec![false; self.keys.get(entry.key).map_or(0, TopologyKey::domains)];
        let mut domains = 0;
        for candidate in candidates.iter().filter(|it| self.has_all_domains(soft, it.node)) {
            let domain = self.domain(entry.key, candidate.node);
            if let Some(seen) = domain.and_then(|domain| seen.get_mut(domain)) {
                domains += usize::from(!std::mem::replace(seen, true));
            }
        }
        SoftSpread::new(entry.constraint.max_skew, domains)
    }

    fn add_affinity_scores(&self, class: ClassId, candidates: &mut [Candidate]) {
        let terms: Vec<_> = self.weighted_terms(class).collect();
        if terms.is_empty() {
            return;
        }
        let sum = |node: usize| -> i64 {
            let parts = terms.iter().map(|(entry, weight, targets)| {
                let counts = if *targets {
                    &entry.term.targets
                } else {
                    &entry.term.owners
                };
                self.domain(entry.key, node)
                    .map_or(0, |domain| weight * counts.get(domain))
            });
            parts.sum()
        };
        let mut sums: Vec<_> = candidates.iter().map(|candidate| sum(candidate.node)).collect();
        inter_pod_affinity::normalize(&mut sums);
        for (candidate, score) in candidates.iter_mut().zip(sums) {
            candidate.score += inter_pod_affinity::WEIGHT * score;
        }
    }

    /// Terms with a weight: the pod's own count the pods they pick, those of others that pick the pod count their owners.
    fn weighted_terms(&self, class: ClassId) -> impl Iterator<Item = (&TermEntry, i64, bool)> {
        let relations = self.relations.get(class.index());
        let (owns, picked_by) = relations.map_or((&[][..], &[][..]), |it| (&it.owns, &it.picked_by));
        let own = owns.iter().filter_map(|at| self.terms.get(*at));
        let own = own.filter_map(|entry| match entry.term.kind {
            Kind::Preferred(weight) => Some((entry, weight, true)),
            _ => None,
        });
        let others = picked_by.iter().filter_map(|at| self.terms.get(*at));
        let others = others.map(|entry| (entry, entry.term.kind.weight_on_others(), false));
        own.chain(others.filter(|(_, weight, _)| *weight != 0))
    }
}
