//! Which pods of a node are asked to go now, and how many a drain still waits for.

use std::{cmp::Reverse, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use model::object::Pod;

use super::eviction::Order;

/// What a drain does with pods that are still there at its deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Deletes them, whatever protects them.
    ForceDelete,
    /// Leaves them.
    Timeout,
}

/// Pods go tier by tier, so that those a node cannot work without go last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Applications.
    NonCritical,
    /// DaemonSets' pods.
    NonCriticalDaemon,
    /// System pods.
    Critical,
    /// DaemonSets' system pods.
    CriticalDaemon,
}

/// What a drain does now.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Who is asked to go, those that must be deleted first.
    pub enqueue: Vec<Arc<Pod>>,
    /// How.
    pub order: Order,
    /// How many pods must be gone before the drain is over.
    pub waiting: usize,
}

/// Plans a drain. Pods that would outlive the deadline are all enqueued at once; of the rest, the first tier that is not
/// empty. Pods that are going already hold the next tier back, and need not be asked again.
pub fn plan(pods: &[Arc<Pod>], deadline: Option<Timestamp>, mode: Mode, now: Timestamp) -> Plan {
    let waiting = pods.iter().filter(|pod| pod.is_waiting_eviction(now)).cloned();
    let forced = |pod: &Arc<Pod>| mode == Mode::ForceDelete && must_be_deleted(pod, deadline, now);
    let (mut doomed, graceful): (Vec<_>, Vec<_>) = waiting.partition(forced);
    // Who needs longest to end is asked first: a few seconds may be all that is left.
    doomed.sort_by_key(|pod| Reverse(pod.spec.termination_grace_period_seconds));
    let waiting = doomed.len() + graceful.len();
    let first = graceful.iter().map(|pod| tier(pod)).min();
    let asked = graceful
        .into_iter()
        .filter(|pod| Some(tier(pod)) == first && pod.is_active());
    Plan {
        enqueue: doomed.into_iter().chain(asked).collect(),
        order: match (mode, deadline) {
            (Mode::Timeout, Some(deadline)) => Order::Timeout(deadline),
            _ => Order::ForceDelete(deadline),
        },
        waiting,
    }
}

/// Whether a pod must be deleted now to be gone by the deadline. Either:
/// - it is going, but not before the deadline;
/// - it is not going, and what is left is less than its own grace period. A pod without one is never due.
pub fn must_be_deleted(pod: &Pod, deadline: Option<Timestamp>, now: Timestamp) -> bool {
    match (deadline, pod.metadata.deletion_timestamp) {
        (None, _) => false,
        (Some(deadline), Some(due)) => due > deadline,
        (Some(deadline), None) => deletion_due(pod, deadline).is_some_and(|due| now > due),
    }
}

/// When a pod that is not going must be deleted at the latest, to be gone by the deadline.
pub fn deletion_due(pod: &Pod, deadline: Timestamp) -> Option<Timestamp> {
    let grace = SignedDuration::from_secs(pod.spec.termination_grace_period_seconds?);
    deadline.saturating_sub(grace).ok()
}

fn tier(pod: &Pod) -> Tier {
    let class = &*pod.spec.priority_class_name;
    let critical = matches!(class, "system-cluster-critical" | "system-node-critical");
    match (critical, pod.is_owned_by_daemon_set()) {
        (false, false) => Tier::NonCritical,
        (false, true) => Tier::NonCriticalDaemon,
        (true, false) => Tier::Critical,
        (true, true) => Tier::CriticalDaemon,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(time: &str) -> Timestamp {
        format!("2026-11-16T{time}Z").parse().unwrap()
    }

    fn pod(name: &str, over: &Value) -> Arc<Pod> {
        let mut pod = json!({
            "metadata": {"namespace": "ns", "name": name, "uid": name},
            "spec": {"terminationGracePeriodSeconds": 30},
            "status": {"phase": "Running"},
        });
        for part in ["metadata", "spec", "status"] {
            for (key, value) in over[part].as_object().into_iter().flatten() {
                pod[part][key] = value.clone();
            }
        }
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    fn daemon() -> Value {
        json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d"}])
    }

    fn fleet() -> [Arc<Pod>; 4] {
        let critical = "system-cluster-critical";
        [
            pod(
                "critical-daemon",
                &json!({"metadata": {"ownerReferences": daemon()}, "spec": {"priorityClassName": "system-node-critical"}}),
            ),
            pod("critical", &json!({"spec": {"priorityClassName": critical}})),
            pod("daemon", &json!({"metadata": {"ownerReferences": daemon()}})),
            pod("web", &json!({"spec": {"priorityClassName": "high"}})),
        ]
    }

    fn names(plan: &Plan) -> (Vec<&str>, usize) {
        (
            plan.enqueue.iter().map(|pod| &*pod.metadata.name).collect(),
            plan.waiting,
        )
    }

    #[test]
    fn of_those_that_would_outlive_the_deadline_who_needs_longest_is_asked_first() {
        let grace = |seconds: i64| json!({"spec": {"terminationGracePeriodSeconds": seconds}});
        let pods = [
            pod("short", &grace(5)),
            pod("middle", &grace(30)),
            pod("long", &grace(600)),
            pod(
                "critical",
                &json!({"spec": {"terminationGracePeriodSeconds": 60, "priorityClassName": "system-node-critical"}}),
            ),
        ];
        let found = plan(&pods, Some(at("10:00:30")), Mode::ForceDelete, at("10:00:01"));
        assert_eq!(names(&found), (vec!["long", "critical", "middle", "short"], 4));
    }

    #[test]
    fn only_the_first_tier_that_is_not_empty_is_asked_to_go() {
        let pods = fleet();
        let expected = ["web", "daemon", "critical", "critical-daemon"];
        for (gone, name) in expected.iter().enumerate() {
            let left = &pods[..4 - gone];
            let found = plan(left, None, Mode::ForceDelete, at("10:00:00"));
            assert_eq!(names(&found), (vec![*name], 4 - gone));
            assert_eq!(found.order, Order::ForceDelete(None));
        }
        assert_eq!(
            names(&plan(&[], None, Mode::ForceDelete, at("10:00:00"))),
            (Vec::new(), 0)
        );
    }

    #[test]
    fn pod_that_is_going_holds_the_next_tier_back_until_it_is_stuck() {
        let going = |due: &str| {
            let due = format!("2026-11-16T{due}Z");
            pod("web", &json!({"metadata": {"deletionTimestamp": due}}))
        };
        let daemon = fleet()[2].clone();
        let held = [going("09:59:00"), daemon.clone()];
        assert_eq!(
            names(&plan(&held, None, Mode::ForceDelete, at("10:00:00"))),
            (Vec::new(), 2)
        );
        let stuck = [going("09:58:59"), daemon];
        assert_eq!(
            names(&plan(&stuck, None, Mode::ForceDelete, at("10:00:00"))),
            (vec!["daemon"], 1)
        );
    }

    #[test]
    fn pods_that_do_not_take_part_in_a_drain_are_not_waited_for() {
        let pods = [
            pod("tolerant", &json!({"spec": {"tolerations": [{"operator": "Exists"}]}})),
            pod(
                "static",
                &json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "n"}]}}),
            ),
            pod("done", &json!({"status": {"phase": "Succeeded"}})),
            pod("failed", &json!({"status": {"phase": "Failed"}})),
        ];
        assert_eq!(
            names(&plan(&pods, None, Mode::ForceDelete, at("10:00:00"))),
            (Vec::new(), 0)
        );
    }

    #[test]
    fn protected_pod_is_waited_for() {
        let protected = pod(
            "p",
            &json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}),
        );
        assert_eq!(
            names(&plan(&[protected], None, Mode::ForceDelete, at("10:00:00"))),
            (vec!["p"], 1)
        );
    }

    #[test]
    fn pods_that_would_outlive_the_deadline_are_enqueued_whatever_their_tier() {
        let deadline = Some(at("10:00:20"));
        let mut pods = fleet().to_vec();
        pods.push(pod("quick", &json!({"spec": {"terminationGracePeriodSeconds": 1}})));
        pods.push(pod(
            "quick-critical",
            &json!({"spec": {"terminationGracePeriodSeconds": 1, "priorityClassName": "system-node-critical"}}),
        ));
        let found = plan(&pods, deadline, Mode::ForceDelete, at("10:00:00"));
        let expected = vec!["critical-daemon", "critical", "daemon", "web", "quick"];
        assert_eq!(
            (names(&found), found.order),
            ((expected, 6), Order::ForceDelete(deadline))
        );
    }

    #[test]
    fn drain_with_a_timeout_never_looks_at_grace_periods() {
        let deadline = at("10:00:20");
        let found = plan(&fleet(), Some(deadline), Mode::Timeout, at("10:00:00"));
        assert_eq!(
            (names(&found), found.order),
            ((vec!["web"], 4), Order::Timeout(deadline))
        );
        let unbounded = plan(&fleet(), None, Mode::Timeout, at("10:00:00"));
        assert_eq!(unbounded.order, Order::ForceDelete(None));
    }

    #[test]
    fn deletion_is_due_when_the_grace_period_no_longer_fits() {
        let deadline = Some(at("10:01:00"));
        let going = |due: &str| json!({"metadata": {"deletionTimestamp": format!("2026-11-16T{due}Z")}});
        let cases = [
            (json!({}), deadline, "10:00:30", false),
            (json!({}), deadline, "10:00:31", true),
            (json!({}), None, "10:00:31", false),
            (
                json!({"spec": {"terminationGracePeriodSeconds": null}}),
                deadline,
                "10:02:00",
                false,
            ),
            (going("10:01:00"), deadline, "10:00:31", false),
            (going("10:01:01"), deadline, "10:00:31", true),
            (going("10:01:01"), None, "10:00:31", false),
        ];
        for (over, deadline, now, expected) in cases {
            assert_eq!(
                must_be_deleted(&pod("p", &over), deadline, at(now)),
                expected,
                "{over} {now}"
            );
        }
    }
}
