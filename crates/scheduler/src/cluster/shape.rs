//! What room do pods of one size find on each node, and how much would the scheduler like them there?
//!
//! Pods differ in much, but come in few sizes. So room and resource scores are kept per size, and when one is asked for
//! only the nodes that changed since are looked at again.

use super::Cluster;
use crate::{
    class::{ClassId, PodClass},
    node::NodeState,
    plugin::{
        node_resources_balanced_allocation,
        node_resources_fit::{self, Room},
    },
};

/// The score of a node without room.
pub(super) const REFUSED: i32 = -1;

/// What the plugins that look at resources read of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ShapeKey {
    requests: Vec<(usize, i64)>,
    asked: [i64; 2],
    non_zero: [i64; 2],
    /// Room that is kept for pods of a lower priority counts as free.
    priority: i32,
}

impl ShapeKey {
    pub(super) fn of(class: &PodClass) -> Self {
        Self {
            requests: class.requests.clone(),
            asked: class.asked,
            non_zero: class.non_zero,
            priority: class.priority,
        }
    }
}

/// Pods of one size.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    /// The first class of this size.
    owner: ClassId,
    /// Resource scores by node.
    pub(super) scores: Vec<i32>,
    /// How much of the cluster's log of changes the scores know.
    seen: usize,
}

impl Shape {
    pub(super) fn new(owner: ClassId) -> Self {
        Self {
            owner,
            scores: Vec::new(),
            seen: 0,
        }
    }
}

impl Cluster {
    /// Brings the scores of a shape up to date.
    pub(super) fn refresh_shape(&mut self, at: usize) {
        let Some(shape) = self.shapes.get_mut(at) else { return };
        let Some(class) = self.classes.get(shape.owner.index()) else {
            return;
        };
        let (known, changed) = (shape.scores.len(), self.changed.get(shape.seen..).unwrap_or_default());
        if changed.len() < known {
            for node in changed.iter().map(|node| *node as usize) {
                if let (Some(place), Some(state)) = (shape.scores.get_mut(node), self.nodes.get(node)) {
                    *place = score(class, state);
                }
            }
        } else {
            shape.scores.clear();
        }
        let new = self.nodes.iter().skip(shape.scores.len());
        shape.scores.extend(new.map(|state| score(class, state)));
        shape.seen = self.changed.len();
    }
}

/// Whether there is no room for the pod, room kept for others set aside.
pub(super) fn is_refused(class: &PodClass, state: &NodeState) -> bool {
    let room = state.room();
    if node_resources_fit::insufficient(&class.requests, room).is_some() {
        return true;
    }
    state
        .requested_with_nominated(class.priority)
        .is_some_and(|(requested, pods)| {
            let room = Room {
                requested: &requested,
                pods: room.pods + pods,
                ..room
            };
            node_resources_fit::insufficient(&class.requests, room).is_some()
        })
}

/// The sum of the resource scores.
pub(super) fn score(class: &PodClass, state: &NodeState) -> i32 {
    if is_refused(class, state) {
        return REFUSED;
    }
    let (allocatable, requested, non_zero) = state.shares();
    let plus = |a: [i64; 2], b: [i64; 2]| [a[0] + b[0], a[1] + b[1]];
    let least = node_resources_fit::least_allocated(plus(non_zero, class.non_zero), allocatable);
    // A pod that asks for nothing is not balanced: all such pods would end up on one node.
    let balanced = if class.asked == [0, 0] {
        0
    } else {
        node_resources_balanced_allocation::score(plus(requested, class.asked), requested, allocatable)
    };
    let sum = node_resources_fit::WEIGHT * least + node_resources_balanced_allocation::WEIGHT * balanced;
    i32::try_from(sum).unwrap_or(i32::MAX)
}
