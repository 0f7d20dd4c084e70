//! May a pod run on a node? The filters in the order of the default profile; the first one to refuse is named.

use super::{Cluster, NodeId, Refusal};
use crate::{
    class::{ClassId, Fit, PodClass, Static},
    node::NodeState,
    plugin::{
        Plugin,
        inter_pod_affinity::Kind,
        node_affinity, node_ports, node_resources_balanced_allocation,
        node_resources_fit::{self, Insufficient, Room},
        node_unschedulable, node_volume_limits, taint_toleration, volume_binding, volume_zone,
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

    /// What of the node alone speaks against the class, remembered.
    pub(super) fn static_of(&mut self, class: ClassId, node: usize) -> Static {
        let closed = Static {
            refused: Some(Plugin::NodeAffinity),
            intolerable: 0,
            preference: 0,
        };
        let Some(class) = self.classes.get_mut(class.index()) else {
            return closed;
        };
        while class.statics.len() <= node {
            let Some(state) = self.nodes.get(class.statics.len()) else {
                return closed;
            };
            let entry = judge_alone(class, state);
            class.statics.push(entry);
        }
        class.statics.get(node).copied().unwrap_or(closed)
    }

    fn refused_by_room(&mut self, class: ClassId, node: usize) -> Option<Plugin> {
        let (Some(class), Some(state)) = (self.classes.get_mut(class.index()), self.nodes.get(node)) else {
            return Some(Plugin::NodeResourcesFit);
        };
        if node_ports::conflict(&class.ports, &state.ports).is_some() {
            return Some(Plugin::NodePorts);
        }
        if fit(class, node, state).refused {
            return Some(Plugin::NodeResourcesFit);
        }
        let volumes = class.volumes.as_ref().map_or(&[][..], |volumes| &volumes.attachments);
        let exceeded = !volumes.is_empty()
            && node_volume_limits::exceeded(volumes, &state.attached, &state.node.volume_limits).is_some();
        exceeded.then_some(Plugin::NodeVolumeLimits)
    }

    /// The resource scores of a node that has room, remembered.
    pub(super) fn resource_score(&mut self, class: ClassId, node: usize) -> i64 {
        let (Some(class), Some(state)) = (self.classes.get_mut(class.index()), self.nodes.get(node)) else {
            return 0;
        };
        fit(class, node, state).score
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
        relations
            .hard
            .iter()
            .filter_map(|at| self.constraints.get(*at))
            .all(|entry| {
                let domain = self.domain(entry.key, node);
                domain.is_some_and(|domain| entry.constraint.skew(domain) <= entry.constraint.max_skew)
            })
    }

    /// How much a pod of the class on the node tends to unbalance the constraints it obeys and those that count it; the
    /// least first is the order that keeps all of them even. In this order:
    /// - what nothing counts can do no harm;
    /// - what obeys constraints itself goes by its skew;
    /// - what obeys none can wait, but may fill the domains that are behind;
    /// - what obeys none and joins a domain that is ahead waits for all others.
    pub(crate) fn tendency(&self, class: ClassId, node: NodeId) -> (u8, i64) {
        let Some(relations) = self.relations.get(class.index()).filter(|it| !it.counted_by.is_empty()) else {
            return (0, 0);
        };
        let entries = relations.hard.iter().chain(&relations.counted_by);
        let ahead = entries.filter_map(|at| {
            let entry = self.constraints.get(*at)?;
            let domain = self.domain(entry.key, node.index())?;
            Some(entry.constraint.skew(domain) - entry.constraint.self_match)
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

fn judge_alone(class: &PodClass, state: &NodeState) -> Static {
    let (node, spec) = (&state.node, &class.pod.spec);
    Static {
        refused: refused_alone(class, state),
        intolerable: taint_toleration::intolerable(&node.taints, &spec.tolerations),
        preference: node_affinity::preference(spec, &node.name, &node.labels),
    }
}

fn refused_alone(class: &PodClass, state: &NodeState) -> Option<Plugin> {
    let (node, spec) = (&state.node, &class.pod.spec);
    if !node_unschedulable::admits(&spec.tolerations, node.is_unschedulable) {
        return Some(Plugin::NodeUnschedulable);
    }
    if taint_toleration::untolerated(&node.taints, &spec.tolerations).is_some() {
        return Some(Plugin::TaintToleration);
    }
    if !node_affinity::admits(spec, &node.name, &node.labels) {
        return Some(Plugin::NodeAffinity);
    }
    let Ok(volumes) = &class.volumes else {
        return Some(Plugin::VolumeBinding);
    };
    if !volume_binding::admits(volumes, &node.name, &node.labels) {
        return Some(Plugin::VolumeBinding);
    }
    (!volume_zone::admits(&volumes.bound, &node.labels)).then_some(Plugin::VolumeZone)
}

/// Room and resource scores; computed again only when the node changed.
fn fit(class: &mut PodClass, node: usize, state: &NodeState) -> Fit {
    if class.fits.len() <= node {
        class.fits.resize(node + 1, Fit::default());
    }
    match class.fits.get(node) {
        Some(known) if known.version == state.version => *known,
        _ => {
            let fresh = fit_now(class, state);
            if let Some(place) = class.fits.get_mut(node) {
                *place = fresh;
            }
            fresh
        }
    }
}

fn fit_now(class: &PodClass, state: &NodeState) -> Fit {
    let room = state.room();
    let mut refused = node_resources_fit::insufficient(&class.requests, room).is_some();
    if let Some((requested, pods)) = state.requested_with_nominated(class.priority) {
        let room = Room {
            requested: &requested,
            pods: room.pods + pods,
            ..room
        };
        refused |= node_resources_fit::insufficient(&class.requests, room).is_some();
    }
    Fit {
        version: state.version,
        refused,
        score: if refused { 0 } else { resource_score(class, state) },
    }
}

fn resource_score(class: &PodClass, state: &NodeState) -> i64 {
    let (allocatable, requested, non_zero) = state.shares();
    let plus = |a: [i64; 2], b: [i64; 2]| [a[0] + b[0], a[1] + b[1]];
    let least = node_resources_fit::least_allocated(plus(non_zero, class.non_zero), allocatable);
    // A pod that asks for nothing is not balanced: all such pods would end up on one node.
    let balanced = if class.asked == [0, 0] {
        0
    } else {
        node_resources_balanced_allocation::score(plus(requested, class.asked), requested, allocatable)
    };
    node_resources_fit::WEIGHT * least + node_resources_balanced_allocation::WEIGHT * balanced
}
