//! What does a node alone say to a pod? Taints, labels and volumes: the same for all pods that ask for the same.

use model::object::{Labels, List, NodeAffinity, Toleration};

use super::Cluster;
use crate::{
    class::{ClassId, PodClass, Static},
    node::NodeState,
    plugin::{Plugin, node_affinity, node_unschedulable, taint_toleration, volume_binding, volume_zone},
};

/// What the plugins that look at a node alone read of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct AloneKey {
    tolerations: List<Toleration>,
    node_selector: Labels,
    node_affinity: Option<NodeAffinity>,
    /// Pods with volumes are looked at one class at a time.
    with_volumes: Option<ClassId>,
}

impl AloneKey {
    pub(super) fn of(id: ClassId, class: &PodClass) -> Self {
        let spec = &class.pod.spec;
        let affinity = spec.affinity.as_ref();
        Self {
            tolerations: spec.tolerations.clone(),
            node_selector: spec.node_selector.clone(),
            node_affinity: affinity.and_then(|affinity| affinity.node_affinity.clone()),
            with_volumes: (!spec.volumes.is_empty()).then_some(id),
        }
    }
}

/// What the nodes are to pods of one key, as far as they were looked at.
#[derive(Debug, Clone)]
pub(super) struct Alone {
    /// The first class with this key.
    pub(super) owner: ClassId,
    pub(super) nodes: Vec<Static>,
    /// Some node has a soft taint they do not tolerate, or labels they would like.
    pub(super) has_wishes: bool,
    /// Some node refuses them.
    pub(super) has_refusals: bool,
}

impl Alone {
    pub(super) fn new(owner: ClassId) -> Self {
        Self {
            owner,
            nodes: Vec::new(),
            has_wishes: false,
            has_refusals: false,
        }
    }

    pub(super) fn admits(&self, node: usize) -> bool {
        !self.has_refusals || self.nodes.get(node).is_some_and(|it| it.refused.is_none())
    }
}

impl Cluster {
    /// Looks at the nodes that came since the last time.
    pub(super) fn refresh_alone(&mut self, at: usize) {
        let Some(alone) = self.alone.get_mut(at) else { return };
        let Some(class) = self.classes.get(alone.owner.index()) else {
            return;
        };
        for state in self.nodes.iter().skip(alone.nodes.len()) {
            let entry = judge_alone(class, state);
            alone.has_wishes |= entry.intolerable != 0 || entry.preference != 0;
            alone.has_refusals |= entry.refused.is_some();
            alone.nodes.push(entry);
        }
    }

    /// What of the node alone speaks against the class, remembered.
    pub(super) fn static_of(&mut self, class: ClassId, node: usize) -> Static {
        let closed = Static {
            refused: Some(Plugin::NodeAffinity),
            intolerable: 0,
            preference: 0,
        };
        let Some(at) = self.classes.get(class.index()).map(|class| class.alone) else {
            return closed;
        };
        if self.alone.get(at).is_some_and(|alone| alone.nodes.len() <= node) {
            self.refresh_alone(at);
        }
        let known = self.alone.get(at).and_then(|alone| alone.nodes.get(node));
        known.copied().unwrap_or(closed)
    }
}

pub(super) fn judge_alone(class: &PodClass, state: &NodeState) -> Static {
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
