//! May a pod run on a node? The filters in the order of the default profile; the first one to refuse is named.

use super::{Cluster, NodeId, Refusal, shape::is_refused};
use crate::{
    class::{ClassId, PodClass},
    node::NodeState,
    plugin::{
        Plugin,
        inter_pod_affinity::Kind,
        node_ports,
        node_resources_fit::{self, Insufficient},
        node_volume_limits, taint_toleration,
    },
};

impl Cluster {
    /// Whether the node takes a pod of the class, and which plugin says no.
    pub fn filter(&mut self, class: ClassId, node: NodeId) -> Result<(), Refusal> {
        let at = node.index();
        match self.refused(class, at) {
            None => Ok(()),
            Some(plugin) => Err(Refusal {
                plugin,
                detail: self.explain(plugin, class, at),
            }),
        }
    }

    /// [`Cluster::filter`] without spread and affinity.
    pub(crate) fn filter_without_neighbours(&mut self, class: ClassId, node: NodeId) -> Result<(), Refusal> {
        let at = node.index();
        let refused = self
            .static_of(class, at)
            .refused
            .or_else(|| self.refused_by_room(class, at));
        refused.map_or(Ok(()), |plugin| {
            Err(Refusal {
                plugin,
                detail: self.explain(plugin, class, at),
            })
        })
    }

    pub(super) fn refused(&mut self, class: ClassId, node: usize) -> Option<Plugin> {
        self.static_of(class, node)
            .refused
            .or_else(|| self.refused_by_room(class, node))
            .or_else(|| self.refused_by_neighbours(class, node))
    }

    fn refused_by_room(&self, class: ClassId, node: usize) -> Option<Plugin> {
        let (Some(class), Some(state)) = (self.classes.get(class.index()), self.nodes.get(node)) else {
            return Some(Plugin::NodeResourcesFit);
        };
        if node_ports::conflict(&class.ports, &state.ports).is_some() {
            return Some(Plugin::NodePorts);
        }
        if is_refused(class, state) {
            return Some(Plugin::NodeResourcesFit);
        }
        is_occupied(class, state).then_some(Plugin::NodeVolumeLimits)
    }

    /// Whether anything about other pods can speak against the class.
    pub(super) fn has_neighbours(&self, class: ClassId) -> bool {
        let is_anti = |at: &usize| self.terms.get(*at).is_some_and(|it| it.term.kind == Kind::AntiAffinity);
        self.relations.get(class.index()).is_some_and(|relations| {
            let mut terms = relations.owns.iter().chain(&relations.picked_by);
            !relations.hard.is_empty() || relations.affinity.is_some() || terms.any(is_anti)
        })
    }

    pub(crate) fn refused_by_neighbours(&self, class: ClassId, node: usize) -> Option<Plugin> {
        if !self.is_spread(class, node) {
            return Some(Plugin::PodTopologySpread);
        }
        let admitted = self.is_near(class, node) && self.is_away(class, node);
        (!admitted).then_some(Plugin::InterPodAffinity)
    }

    fn is_spread(&self, class: ClassId, node: usize) -> bool {
        let Some(relations) = self.relations.get(class.index()) else {
            return true;
        };
        relations.hard.iter().all(|bond| {
            let Some(entry) = self.constraints.get(bond.constraint) else {
                return true;
            };
            let domain = self.domain(entry.key, node);
            domain.is_some_and(|domain| entry.constraint.ahead(domain) + bond.self_match <= entry.constraint.max_skew)
        })
    }

    /// How much a pod of the class on the node tends to unbalance the constraints it obeys and those that count it; the
    /// least first is the order that keeps all of them even. In this order:
    /// - what nothing counts can do no harm, and the first of a group that wants to be together must come before others;
    /// - what obeys constraints itself goes by its skew;
    /// - what obeys none can wait, but may fill the domains that are behind;
    /// - what obeys none and joins a domain that is ahead waits for all others.
    pub(crate) fn tendency(&self, class: ClassId, node: NodeId) -> (u8, i64) {
        let Some(relations) = self.relations.get(class.index()) else {
            return (0, 0);
        };
        let is_unseen = relations.counted_by.is_empty() && relations.near.is_empty();
        if relations.affinity.is_some() || is_unseen {
            return (0, 0);
        }
        let hard = relations.hard.iter().map(|bond| &bond.constraint);
        let ahead = hard.chain(&relations.counted_by).filter_map(|at| {
            let entry = self.constraints.get(*at)?;
            let domain = self.domain(entry.key, node.index())?;
            Some(entry.constraint.ahead(domain))
        });
        let ahead = ahead.max().unwrap_or(0);
        let rank = match (relations.hard.is_empty(), ahead > 0) {
            (false, _) => 1,
            (true, false) => 2,
            (true, true) => 3,
        };
        (rank, ahead)
    }

    fn is_near(&self, class: ClassId, node: usize) -> bool {
        let relations = self.relations.get(class.index());
        let Some(entry) = relations
            .and_then(|it| it.affinity)
            .and_then(|at| self.affinities.get(at))
        else {
            return true;
        };
        let mut all_there = true;
        for (term, counts) in entry.terms.iter().zip(&entry.counts) {
            let key = self.terms.get(*term).map_or(usize::MAX, |entry| entry.key);
            let Some(domain) = self.domain(key, node) else {
                return false;
            };
            all_there &= counts.get(domain) > 0;
        }
        // The first pod of a group that wants to be together may go anywhere.
        all_there || entry.is_self_match && entry.counts.iter().all(super::Counts::is_zero)
    }

    fn is_away(&self, class: ClassId, node: usize) -> bool {
        let Some(relations) = self.relations.get(class.index()) else {
            return true;
        };
        let anti = |at: &usize| {
            self.terms
                .get(*at)
                .filter(|entry| entry.term.kind == Kind::AntiAffinity)
        };
        let count = |entry: &super::TermEntry, counts: &super::Counts| {
            self.domain(entry.key, node).map_or(0, |domain| counts.get(domain))
        };
        relations
            .owns
            .iter()
            .filter_map(anti)
            .all(|it| count(it, &it.term.targets) == 0)
            && relations
                .picked_by
                .iter()
                .filter_map(anti)
                .all(|it| count(it, &it.term.owners) == 0)
    }

    fn explain(&self, plugin: Plugin, class: ClassId, node: usize) -> String {
        let (Some(class), Some(state)) = (self.classes.get(class.index()), self.nodes.get(node)) else {
            return "no such node".to_owned();
        };
        match plugin {
            Plugin::NodeUnschedulable => "the node is cordoned".to_owned(),
            Plugin::TaintToleration => {
                let taint = taint_toleration::untolerated(&state.node.taints, &class.pod.spec.tolerations);
                taint.map_or_else(String::new, |taint| format!("taint {} is not tolerated", taint.view()))
            }
            Plugin::NodeAffinity => "the labels are not those the pod asks for".to_owned(),
            Plugin::NodePorts => {
                let port = node_ports::conflict(&class.ports, &state.ports);
                port.map_or_else(String::new, |port| format!("port {port} is taken"))
            }
            Plugin::NodeResourcesFit => self.explain_room(class, state),
            Plugin::NodeVolumeLimits => "more volumes than the node attaches".to_owned(),
            Plugin::VolumeBinding => {
                let unreachable = || "the node does not reach the volumes".to_owned();
                class.volumes.as_ref().err().cloned().unwrap_or_else(unreachable)
            }
            Plugin::VolumeZone => "a volume is in another zone".to_owned(),
            Plugin::PodTopologySpread => "a spread constraint would be skewed".to_owned(),
            Plugin::InterPodAffinity => "an affinity or anti-affinity does not hold".to_owned(),
        }
    }

    fn explain_room(&self, class: &PodClass, state: &NodeState) -> String {
        match node_resources_fit::insufficient(&class.requests, state.room()) {
            Some(Insufficient::Pods) => "too many pods".to_owned(),
            Some(Insufficient::Resource(at)) => format!("insufficient {}", self.dictionary.name(at)),
            None => "the room is kept for pods nominated here".to_owned(),
        }
    }
}

/// Whether ports the pod wants are taken, or more volumes would be attached than can be.
pub(super) fn is_occupied(class: &PodClass, state: &NodeState) -> bool {
    let volumes = class.volumes.as_ref().map_or(&[][..], |volumes| &volumes.attachments);
    let has_conflict = || node_ports::conflict(&class.ports, &state.ports).is_some();
    let has_too_many = || node_volume_limits::exceeded(volumes, &state.attached, &state.node.volume_limits).is_some();
    !class.ports.is_empty() && has_conflict() || !volumes.is_empty() && has_too_many()
}
