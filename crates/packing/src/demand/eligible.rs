//! Which bound pods must find another place: those on nodes that go away, unless something keeps them there for good.

use std::sync::Arc;

use api::{annotations::DO_NOT_DISRUPT, duration::Duration, taints::DISRUPTED};
use jiff::Timestamp;
use model::{
    object::{IntOrString, NodeName, Pod, PodDisruptionBudget, Toleration},
    snapshot::Snapshot,
    taint::TaintView,
};

use crate::supply::members;

const DISRUPTED_TAINT: TaintView<'static> = TaintView {
    key: DISRUPTED,
    value: "",
    effect: "NoSchedule",
};

/// The pods of nodes that go away which can be rescheduled now, with their nodes, in the order of both names.
pub(super) fn moving(snapshot: &Snapshot) -> Vec<(NodeName, &Arc<Pod>)> {
    let leaving = members(snapshot).into_iter().filter(|member| member.is_leaving());
    let mut names: Vec<_> = leaving.filter_map(|member| Some(member.node?.name())).collect();
    names.sort_unstable();
    let mut pods = Vec::new();
    for name in names {
        let movable = snapshot
            .pods_on_node(&name)
            .filter(|pod| is_currently_reschedulable(pod, snapshot));
        pods.extend(movable.map(|pod| (name.clone(), pod)));
    }
    pods
}

/// All of:
/// - the pod will be made anew: it is active, or a StatefulSet's that is about to go, and no DaemonSet's or Node's;
/// - it is not protected by `karpenter.sh/do-not-disrupt`, which counts for active pods only;
/// - no disruption budget keeps it in place for good.
fn is_currently_reschedulable(pod: &Pod, snapshot: &Snapshot) -> bool {
    let now = snapshot.taken_at();
    is_reschedulable(pod) && !(pod.is_active() && is_protected(pod, now)) && !is_fully_blocked(pod, snapshot)
}

fn is_reschedulable(pod: &Pod) -> bool {
    let is_remade = pod.metadata.is_deleting() && pod.metadata.is_owned_by("apps/v1", "StatefulSet");
    (pod.is_active() || is_remade) && !pod.is_owned_by_daemon_set() && !pod.is_owned_by_node()
}

/// `true` protects for good, a positive duration from the pod's start on; without a start it has not run out.
fn is_protected(pod: &Pod, now: Timestamp) -> bool {
    let Some(value) = pod.metadata.annotations.get(DO_NOT_DISRUPT) else {
        return false;
    };
    if **value == *"true" {
        return true;
    }
    let duration = value.parse::<Duration>().ok().filter(|span| span.as_nanos() > 0);
    duration.is_some_and(|span| {
        let age = pod.status.start_time.map(|start| now.duration_since(start));
        age.is_none_or(|age| age < span.to_signed())
    })
}

/// Whether a disruption budget will never let the pod be evicted. Two budgets on one pod never do, whatever they say.
fn is_fully_blocked(pod: &Pod, snapshot: &Snapshot) -> bool {
    if !is_evictable(pod, snapshot.taken_at()) {
        return false;
    }
    let budgets = &snapshot.objects().pod_disruption_budgets;
    let mut matching = budgets.iter().filter(|budget| selects(budget, pod));
    match (matching.next(), matching.next()) {
        (None, _) => false,
        (Some(_), Some(_)) => true,
        (Some(budget), None) => !lets_unhealthy_go(budget, pod) && never_allows(budget),
    }
}

/// Whether the eviction API would be called for the pod at all.
fn is_evictable(pod: &Pod, now: Timestamp) -> bool {
    let tolerations: Vec<_> = pod.spec.tolerations.iter().map(Toleration::view).collect();
    pod.is_active()
        && !DISRUPTED_TAINT.is_tolerated_by(&tolerations)
        && !pod.is_owned_by_node()
        && !is_protected(pod, now)
}

fn selects(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    let selector = budget.spec.selector.as_ref();
    budget.metadata.namespace == pod.metadata.namespace
        && selector.is_some_and(|selector| selector.matches(&pod.metadata.labels))
}

fn lets_unhealthy_go(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    budget.spec.unhealthy_pod_eviction_policy.as_deref() == Some("AlwaysAllow") && pod.is_unready()
}

/// A budget that no number of healthy pods satisfies. A `minAvailable` count is not looked at: more pods may come.
fn never_allows(budget: &PodDisruptionBudget) -> bool {
    let is_percentage = |bound: &IntOrString, text: &str| matches!(bound, IntOrString::String(word) if **word == *text);
    let allows_none = |bound: &IntOrString| *bound == IntOrString::Int(0) || is_percentage(bound, "0%");
    let spec = &budget.spec;
    spec.max_unavailable.as_ref().is_some_and(allows_none)
        || spec
            .min_available
            .as_ref()
            .is_some_and(|bound| is_percentage(bound, "100%"))
}
