//! Which node would the scheduler choose? The highest sum of weighted scores among the nodes that pass the filters.
//!
//! kube-scheduler draws lots between equal nodes, and in clusters of more than a hundred nodes it looks at a part of
//! them only. Here ties go to the first node by name, and all nodes are scored.

use super::{
    Cluster, NodeId,
    filter::{fit_now, is_occupied},
};
use crate::{
    class::{ClassId, Fit},
    plugin::{
        MAX_NODE_SCORE,
        inter_pod_affinity::{self, Kind},
        node_affinity,
        pod_topology_spread::{self, SoftSpread},
        taint_toleration,
    },
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
        self.refresh_ranks();
        let mut candidates = self.candidates(class);
        self.add_static_scores(class, &mut candidates);
        self.add_spread_scores(class, &mut candidates);
        self.add_affinity_scores(class, &mut candidates);
        let rank = |node: usize| self.ranks.get(node).copied().unwrap_or(u32::MAX);
        let best = candidates
            .iter()
            .max_by_key(|candidate| (candidate.score, std::cmp::Reverse(rank(candidate.node))));
        best.map(|candidate| NodeId::new(candidate.node))
    }

    /// The nodes that take a pod of the class, in the order they joined.
    pub fn feasible(&mut self, class: ClassId) -> Vec<NodeId> {
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
        }
    }

    /// Gives the room of one nomination back.
    pub fn withdraw(&mut self, class: ClassId, node: NodeId) {
        if let Some(state) = self.nodes.get_mut(node.index()) {
            state.withdraw(class);
        }
    }

    fn candidates(&mut self, class: ClassId) -> Vec<Candidate> {
        self.static_of(class, self.nodes.len().saturating_sub(1));
        let Some(pod) = self.classes.get_mut(class.index()) else {
            return Vec::new();
        };
        let mut fits = std::mem::take(&mut pod.fits);
        fits.resize(self.nodes.len(), Fit::default());
        let mut candidates = Vec::with_capacity(self.nodes.len());
        let alone = pod.statics.iter().zip(&mut fits).zip(&self.nodes).enumerate();
        for (node, ((_, fit), state)) in alone.filter(|(_, ((alone, _), _))| alone.refused.is_none()) {
            if fit.version != state.version {
                *fit = fit_now(pod, state);
            }
            if !fit.refused && !is_occupied(pod, state) {
                let score = fit.score;
                candidates.push(Candidate { node, score });
            }
        }
        pod.fits = fits;
        if self.has_neighbours(class) {
            candidates.retain(|candidate| self.refused_by_neighbours(class, candidate.node).is_none());
        }
        candidates
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

    /// Taints and preferred node affinity, each on a scale of its own.
    fn add_static_scores(&mut self, class: ClassId, candidates: &mut [Candidate]) {
        if !self.classes.get(class.index()).is_some_and(|class| class.has_wishes) {
            return;
        }
        let statics: Vec<_> = candidates
            .iter()
            .map(|candidate| self.static_of(class, candidate.node))
            .collect();
        let most = |of: fn(&crate::class::Static) -> i64| statics.iter().map(of).max().unwrap_or(0);
        let (intolerable, preference) = (most(|it| it.intolerable), most(|it| it.preference));
        for (candidate, of_node) in candidates.iter_mut().zip(&statics) {
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

    fn soft_constraints(&self, class: ClassId) -> Vec<&super::ConstraintEntry> {
        let soft = self.relations.get(class.index()).map_or(&[][..], |it| &it.soft);
        soft.iter().filter_map(|at| self.constraints.get(*at)).collect()
    }

    fn has_all_domains(&self, soft: &[&super::ConstraintEntry], node: usize) -> bool {
        soft.iter().all(|entry| self.domain(entry.key, node).is_some())
    }

    fn soft_spread(
        &self,
        entry: &super::ConstraintEntry,
        soft: &[&super::ConstraintEntry],
        candidates: &[Candidate],
    ) -> SoftSpread {
        let whole = candidates.iter().filter(|it| self.has_all_domains(soft, it.node));
        let mut domains: Vec<_> = whole.filter_map(|it| self.domain(entry.key, it.node)).collect();
        domains.sort_unstable();
        domains.dedup();
        SoftSpread::new(entry.constraint.max_skew, domains.len())
    }

    fn add_affinity_scores(&self, class: ClassId, candidates: &mut [Candidate]) {
        let terms = self.weighted_terms(class);
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
    fn weighted_terms(&self, class: ClassId) -> Vec<(&super::TermEntry, i64, bool)> {
        let Some(relations) = self.relations.get(class.index()) else {
            return Vec::new();
        };
        let own = relations.owns.iter().filter_map(|at| self.terms.get(*at));
        let own = own.filter_map(|entry| match entry.term.kind {
            Kind::Preferred(weight) => Some((entry, weight, true)),
            _ => None,
        });
        let others = relations.picked_by.iter().filter_map(|at| self.terms.get(*at));
        let others = others.map(|entry| (entry, entry.term.kind.weight_on_others(), false));
        own.chain(others.filter(|(_, weight, _)| *weight != 0)).collect()
    }
}
