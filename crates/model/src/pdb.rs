//! What disruption budgets say of a plan to evict pods. Whether an eviction goes through is the API server's word alone.

use jiff::Timestamp;

use crate::object::{IntOrString, Object, ObjectKey, Pod, PodDisruptionBudget};

/// Which budgets count as blocking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocking {
    /// Those that allow no disruption now.
    Now,
    /// Those that never will, whatever the number of healthy pods.
    Always,
}

/// The budgets that keep a pod in place; empty when none does. The rules in order:
/// - a pod that is not evictable is blocked by none: the eviction API is not called for it;
/// - two budgets on one pod block it whatever they say, because the eviction API does not serve such pods;
/// - a budget that lets unhealthy pods go does not block a pod that is not ready.
pub fn blocking<'a>(
    pod: &Pod,
    budgets: impl IntoIterator<Item = &'a PodDisruptionBudget>,
    which: Blocking,
    now: Timestamp,
) -> Vec<ObjectKey> {
    if !pod.is_evictable(now) {
        return Vec::new();
    }
    let matching: Vec<_> = budgets.into_iter().filter(|budget| budget.selects(pod)).collect();
    let is_blocked = match matching.as_slice() {
        [] => false,
        [only] => !only.lets_unhealthy_go(pod) && only.blocks(which),
        _ => true,
    };
    let keys = matching.iter().map(|budget| budget.metadata().key());
    if is_blocked { keys.collect() } else { Vec::new() }
}

impl PodDisruptionBudget {
    /// True when it protects the pod.
    pub fn selects(&self, pod: &Pod) -> bool {
        let selector = self.spec.selector.as_ref();
        self.metadata.namespace == pod.metadata.namespace
            && selector.is_some_and(|selector| selector.matches(&pod.metadata.labels))
    }

    fn lets_unhealthy_go(&self, pod: &Pod) -> bool {
        self.spec.unhealthy_pod_eviction_policy.as_deref() == Some("AlwaysAllow") && pod.is_unready()
    }

    fn blocks(&self, which: Blocking) -> bool {
        match which {
            Blocking::Now => self.status.disruptions_allowed == 0,
            Blocking::Always => self.is_fully_blocking(),
        }
    }

    /// A budget that no number of healthy pods satisfies. A `minAvailable` count is not looked at: more pods may come.
    fn is_fully_blocking(&self) -> bool {
        let is_percentage =
            |bound: &IntOrString, text: &str| matches!(bound, IntOrString::String(word) if **word == *text);
        let allows_none = |bound: &IntOrString| *bound == IntOrString::Int(0) || is_percentage(bound, "0%");
        let needs_all = |bound: &IntOrString| is_percentage(bound, "100%");
        self.spec.max_unavailable.as_ref().is_some_and(allows_none)
            || self.spec.min_available.as_ref().is_some_and(needs_all)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn now() -> Timestamp {
        "2026-11-16T10:00:00Z".parse().unwrap()
    }

    fn pod(over: &Value) -> Pod {
        let mut pod = json!({
            "metadata": {"name": "p", "namespace": "ns", "labels": {"app": "web"}},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        });
        for part in ["metadata", "spec", "status"] {
            for (key, value) in over[part].as_object().into_iter().flatten() {
                pod[part][key] = value.clone();
            }
        }
        serde_json::from_value(pod).unwrap()
    }

    fn budget(name: &str, spec: &Value, allowed: i32) -> PodDisruptionBudget {
        let mut budget = json!({
            "metadata": {"name": name, "namespace": "ns"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": allowed},
        });
        for (key, value) in spec.as_object().unwrap() {
            budget["spec"][key] = value.clone();
        }
        serde_json::from_value(budget).unwrap()
    }

    #[test]
    fn budget_blocks_now_by_its_count_and_always_by_its_spec() {
        let cases = [
            (json!({"maxUnavailable": 1}), 0, true, false),
            (json!({"maxUnavailable": 1}), 1, false, false),
            (json!({"maxUnavailable": 0}), 0, true, true),
            (json!({"maxUnavailable": 0}), 1, false, true),
            (json!({"maxUnavailable": "0%"}), 1, false, true),
            (json!({"minAvailable": "100%"}), 1, false, true),
            (json!({"minAvailable": 100}), 1, false, false),
            (json!({"minAvailable": "50%"}), 1, false, false),
            (
                json!({"maxUnavailable": 0, "selector": {"matchLabels": {"app": "db"}}}),
                0,
                false,
                false,
            ),
            (json!({"maxUnavailable": 0, "selector": null}), 0, false, false),
        ];
        for (spec, allowed, now_blocked, always_blocked) in cases {
            let budget = budget("b", &spec, allowed);
            let key = |blocked: bool| blocked.then(|| budget.metadata.key()).into_iter().collect::<Vec<_>>();
            let found =
                [Blocking::Now, Blocking::Always].map(|which| blocking(&pod(&json!({})), [&budget], which, now()));
            assert_eq!(
                found,
                [key(now_blocked), key(always_blocked)],
                "{spec}, {allowed} allowed"
            );
        }
    }

    #[test]
    fn two_budgets_on_a_pod_block_it_whatever_they_say() {
        let spec = json!({"maxUnavailable": 5, "unhealthyPodEvictionPolicy": "AlwaysAllow"});
        let budgets = ["a", "b"].map(|name| budget(name, &spec, 5));
        let unready = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
        for which in [Blocking::Now, Blocking::Always] {
            let found = blocking(&pod(&unready), &budgets, which, now());
            assert_eq!(found, [ObjectKey::new("ns", "a"), ObjectKey::new("ns", "b")]);
        }
    }

    #[test]
    fn budget_does_not_hold_pods_that_are_unhealthy_or_never_evicted() {
        let ready = |status: &str| json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
        let cases = [
            (ready("False"), "AlwaysAllow", false),
            (ready("True"), "AlwaysAllow", true),
            (ready("Unknown"), "AlwaysAllow", true),
            (ready("False"), "IfHealthyBudget", true),
            (
                json!({"spec": {"tolerations": [{"operator": "Exists"}]}}),
                "IfHealthyBudget",
                false,
            ),
            (
                json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}),
                "IfHealthyBudget",
                false,
            ),
            (json!({"metadata": {"namespace": "other"}}), "IfHealthyBudget", false),
        ];
        for (over, policy, blocked) in cases {
            let spec = json!({"maxUnavailable": 0, "unhealthyPodEvictionPolicy": policy});
            let found = blocking(&pod(&over), [&budget("b", &spec, 0)], Blocking::Now, now());
            assert_eq!(!found.is_empty(), blocked, "{over} {policy}");
        }
    }
}
