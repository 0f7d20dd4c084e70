//! Which bound pods must find another place: those on nodes that go away, unless something keeps them there for good.

use std::sync::Arc;

use model::{
    object::{NodeName, Pod},
    pdb::{self, Blocking},
    snapshot::Snapshot,
};

use crate::supply::members;

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
        let movable = snapshot.pods_on_node(&name).filter(|pod| pod.is_reschedulable());
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
    pod.is_reschedulable() && pod.is_disruptable(now) && !is_fully_blocked(pod, snapshot)
}

/// Whether a disruption budget will never let the pod be evicted.
fn is_fully_blocked(pod: &Pod, snapshot: &Snapshot) -> bool {
    let budgets = snapshot.objects().pod_disruption_budgets.iter().map(Arc::as_ref);
    !pdb::blocking(pod, budgets, Blocking::Always, snapshot.taken_at()).is_empty()
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
