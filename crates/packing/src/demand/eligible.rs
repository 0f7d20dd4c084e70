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

/// The pods of nodes that stay which would have to be made anew elsewhere if their node went, in the order of both names.
pub(super) fn residents(snapshot: &Snapshot) -> Vec<(NodeName, &Arc<Pod>)> {
    let staying = members(snapshot).into_iter().filter(|member| !member.is_leaving());
    let mut names: Vec<_> = staying.filter_map(|member| Some(member.node?.name())).collect();
    names.sort_unstable();
    let mut pods = Vec::new();
    for name in names {
        let movable = snapshot.pods_on_node(&name).filter(|pod| is_reschedulable(pod));
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

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "literals read better by value")]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::demand::fixture::{bound, object, snapshot};

    fn owned_by(api_version: &str, kind: &str) -> Value {
        json!([{ "apiVersion": api_version, "kind": kind, "name": "owner", "uid": "u" }])
    }

    fn leaving_node() -> Value {
        object(
            "v1",
            "Node",
            "",
            "n",
            json!({ "metadata": { "deletionTimestamp": "2026-11-15T12:00:00Z" } }),
        )
    }

    /// Whether the pod on a node that goes away moves, beside these objects.
    fn moves(pod: Value, beside: &[Value]) -> bool {
        let objects = [leaving_node(), bound("p", "n", pod)];
        let snapshot = snapshot(objects.iter().chain(beside).cloned().collect());
        !moving(&snapshot).is_empty()
    }

    #[test]
    fn pod_of_a_leaving_node_moves_if_somebody_will_make_it_anew() {
        let (deleted, set) = ("2026-11-15T12:00:00Z", owned_by("apps/v1", "StatefulSet"));
        let cases = [
            (json!({}), true),
            (
                json!({ "metadata": { "ownerReferences": owned_by("apps/v1", "DaemonSet") } }),
                false,
            ),
            (
                json!({ "metadata": { "ownerReferences": owned_by("apps/v1beta1", "DaemonSet") } }),
                true,
            ),
            (
                json!({ "metadata": { "ownerReferences": owned_by("v1", "Node") } }),
                false,
            ),
            (json!({ "status": { "phase": "Succeeded" } }), false),
            (json!({ "status": { "phase": "Failed" } }), false),
            (json!({ "metadata": { "deletionTimestamp": deleted } }), false),
            (
                json!({ "metadata": { "deletionTimestamp": deleted, "ownerReferences": set } }),
                true,
            ),
        ];
        for (pod, expected) in cases {
            assert_eq!(moves(pod.clone(), &[]), expected, "{pod}");
        }
    }

    #[test]
    fn do_not_disrupt_keeps_an_active_pod_for_good_or_for_a_while() {
        let (started, ended) = (json!("2026-11-15T12:06:00Z"), json!("2026-11-15T12:05:00Z"));
        let cases = [
            ("true", &Value::Null, false),
            ("false", &Value::Null, true),
            ("5m", &started, false),
            ("5m", &ended, true),
            ("5m", &Value::Null, false),
            ("0s", &started, true),
            ("-5m", &started, true),
            ("soon", &started, true),
        ];
        for (value, start, expected) in cases {
            let annotations = json!({ "karpenter.sh/do-not-disrupt": value });
            let pod = json!({ "metadata": { "annotations": annotations }, "status": { "startTime": start } });
            assert_eq!(moves(pod, &[]), expected, "{value} since {start}");
        }
        let going = json!({ "metadata": {
            "annotations": { "karpenter.sh/do-not-disrupt": "true" }, "deletionTimestamp": "2026-11-15T12:00:00Z",
            "ownerReferences": owned_by("apps/v1", "StatefulSet"),
        } });
        assert!(moves(going, &[]), "a StatefulSet's pod that goes anyway");
    }

    fn budget(name: &str, namespace: &str, spec: Value) -> Value {
        let selects = json!({ "spec": { "selector": { "matchLabels": { "app": "web" } } } });
        let mut budget = object("policy/v1", "PodDisruptionBudget", namespace, name, selects);
        for (key, value) in spec.as_object().unwrap() {
            budget["spec"][key] = value.clone();
        }
        budget
    }

    #[test]
    fn pod_under_a_budget_that_never_allows_an_eviction_stays() {
        let cases = [
            (json!({ "maxUnavailable": 0 }), false),
            (json!({ "maxUnavailable": "0%" }), false),
            (json!({ "minAvailable": "100%" }), false),
            (json!({ "maxUnavailable": 1 }), true),
            (json!({ "minAvailable": 1 }), true),
            (json!({ "minAvailable": "50%" }), true),
            (
                json!({ "maxUnavailable": 0, "selector": { "matchLabels": { "app": "db" } } }),
                true,
            ),
            (json!({ "maxUnavailable": 0, "selector": null }), true),
        ];
        let pod = json!({ "metadata": { "labels": { "app": "web" } } });
        for (spec, expected) in cases {
            assert_eq!(
                moves(pod.clone(), &[budget("b", "ns", spec.clone())]),
                expected,
                "{spec}"
            );
        }
        let elsewhere = budget("b", "other", json!({ "maxUnavailable": 0 }));
        assert!(moves(pod.clone(), &[elsewhere]), "a budget of another namespace");
        let two = ["a", "b"].map(|name| budget(name, "ns", json!({ "maxUnavailable": 1 })));
        assert!(!moves(pod, &two), "two budgets");
    }

    #[test]
    fn budget_does_not_hold_pods_that_are_unhealthy_or_never_evicted() {
        let blocking = |policy: &str| {
            budget(
                "b",
                "ns",
                json!({ "maxUnavailable": 0, "unhealthyPodEvictionPolicy": policy }),
            )
        };
        let labels = json!({ "labels": { "app": "web" } });
        let ready = |status: &str| json!({ "metadata": labels, "status": { "conditions": [{ "type": "Ready", "status": status }] } });
        let tolerant = json!({ "metadata": labels, "spec": { "tolerations": [{ "operator": "Exists" }] } });
        let cases = [
            (ready("False"), "AlwaysAllow", true),
            (ready("True"), "AlwaysAllow", false),
            (ready("False"), "IfHealthyBudget", false),
            (tolerant, "IfHealthyBudget", true),
        ];
        for (pod, policy, expected) in cases {
            assert_eq!(moves(pod.clone(), &[blocking(policy)]), expected, "{policy} {pod}");
        }
    }
}
