//! What files do not say because nobody has judged it yet: a NodePool fresh from a manifest has no status, a pod that
//! kube-scheduler has not seen waits for no reason. Taken at their best, and told.

use std::sync::Arc;

use model::{
    object::{BriefCondition, Condition, ConditionStatus, Metadata, NodePool, Object, Pod, PodPhase},
    snapshot::{Snapshot, Table},
};

use crate::terminal::counted;

/// The snapshot with pools that are ready unless they say otherwise and pods that wait unless somebody said why, and what
/// was assumed for that.
pub(super) fn assumed(mut snapshot: Snapshot) -> (Snapshot, Vec<String>) {
    let mut told = Vec::new();
    let mut objects = snapshot.objects().clone();
    if let Some(count) = judged(&mut objects.node_pools, made_ready) {
        let (pools, have) = (counted(count, "NodePool"), if count == 1 { "has" } else { "have" });
        told.push(format!("{pools} that no controller has judged {have} no fault: ready"));
    }
    if let Some(count) = judged(&mut objects.pods, made_to_wait) {
        let (pods, need) = (counted(count, "pod"), if count == 1 { "needs" } else { "need" });
        told.push(format!("{pods} that kube-scheduler has not judged {need} a place"));
    }
    if !told.is_empty() {
        let (title, settings) = (snapshot.title().clone(), snapshot.settings().clone());
        snapshot = Snapshot::sharing(title, settings.into(), objects, snapshot.shared_catalog().clone());
    }
    (snapshot, told)
}

/// Puts in what was judged anew; how many, if any.
fn judged<T: Object>(table: &mut Table<T>, judge: impl Fn(&T) -> Option<T>) -> Option<usize> {
    let changed: Vec<Arc<T>> = table.iter().filter_map(|object| judge(object)).map(Arc::new).collect();
    if changed.is_empty() {
        return None;
    }
    let count = changed.len();
    *table = table.with(changed);
    Some(count)
}

/// Whether an API server has seen it: then whoever judges it has had the chance, and a snapshot answers as its cluster does.
fn is_seen(metadata: &Metadata) -> bool {
    !metadata.uid.is_unset()
}

fn made_ready(pool: &NodePool) -> Option<NodePool> {
    let is_ready = |condition: &Condition| *condition.kind == *"Ready";
    if is_seen(&pool.metadata) || pool.status.conditions.iter().any(is_ready) {
        return None;
    }
    let mut pool = pool.clone();
    let ready = Condition {
        kind: "Ready".into(),
        status: ConditionStatus::True,
        ..Condition::default()
    };
    pool.status.conditions = pool.status.conditions.iter().cloned().chain([ready]).collect();
    Some(pool)
}

/// A pod with a gate is not looked at by kube-scheduler, whoever wrote it down.
fn made_to_wait(pod: &Pod) -> Option<Pod> {
    let may_wait = matches!(pod.status.phase, PodPhase::Unset | PodPhase::Pending)
        && pod.node_name.is_none()
        && pod.spec.scheduling_gates.is_empty()
        && !pod.metadata.is_deleting()
        && !is_seen(&pod.metadata)
        && pod.condition("PodScheduled").is_none();
    if !may_wait {
        return None;
    }
    let mut pod = pod.clone();
    let unschedulable = BriefCondition {
        kind: "PodScheduled".into(),
        status: ConditionStatus::False,
        reason: "Unschedulable".into(),
        ..BriefCondition::default()
    };
    // Limits stand for requests that are missing, as the API server has it.
    pod.spec = Arc::new(pod.spec.admitted());
    pod.status.phase = PodPhase::Pending;
    pod.status.conditions = pod.status.conditions.iter().cloned().chain([unschedulable]).collect();
    pod.is_provisionable().then_some(pod)
}
