//! What becomes of a pod when it loses its node or gets one.

use std::sync::Arc;

use jiff::Timestamp;
use model::object::{BriefCondition, ConditionStatus, List, NodeName, Pod, PodPhase};

/// The pod, waiting for a node: what its owner makes in its place.
pub(crate) fn waiting(pod: &Pod, now: Timestamp) -> Arc<Pod> {
    let mut pod = pod.clone();
    pod.node_name = None;
    pod.status.phase = PodPhase::Pending;
    pod.status.nominated_node_name = None;
    pod.status.start_time = None;
    pod.status.conditions = scheduled(ConditionStatus::False, "Unschedulable", now);
    Arc::new(pod)
}

/// The pod, running on a node.
pub(crate) fn running(pod: &Pod, node: &NodeName, now: Timestamp) -> Arc<Pod> {
    let mut pod = pod.clone();
    pod.node_name = Some(node.clone());
    pod.status.phase = PodPhase::Running;
    pod.status.nominated_node_name = None;
    pod.status.start_time = Some(now);
    pod.status.conditions = scheduled(ConditionStatus::True, "", now);
    Arc::new(pod)
}

/// Whether somebody makes another one when it goes.
pub(crate) fn comes_back(pod: &Pod) -> bool {
    pod.is_active() && pod.metadata.controller().is_some() && is_movable(pod)
}

/// Whether it is tied to its node, and goes with it.
fn is_movable(pod: &Pod) -> bool {
    !pod.is_owned_by_daemon_set() && !pod.is_owned_by_node()
}

/// Whether it is lost when its node goes: nobody makes another one.
pub(crate) fn is_lost(pod: &Pod) -> bool {
    pod.is_active() && pod.metadata.controller().is_none() && is_movable(pod)
}

fn scheduled(status: ConditionStatus, reason: &str, now: Timestamp) -> List<BriefCondition> {
    let condition = BriefCondition {
        kind: "PodScheduled".into(),
        status,
        reason: reason.into(),
        last_transition_time: Some(now),
    };
    vec![condition].into()
}
