//! What is done with a pod that is to leave its node, and what follows when the server refuses.

use std::sync::Arc;

use jiff::Timestamp;
use model::object::{Pod, PodDisruptionBudget};
use runtime::{ApiError, Event};
use state::Transition;

use super::{Order, drain, events};
use crate::mutation::{self, Mutation};

/// The API server's words for a pod that two budgets protect; the answer has code 500.
const TWO_BUDGETS: &str =
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";

/// What is done with a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing, ever again.
    Drop,
    /// It is deleted.
    Delete {
        /// By when it must be gone.
        deadline: Timestamp,
        /// Seconds it is granted.
        grace: i64,
    },
    /// It is protected: nothing now.
    Wait,
    /// It is evicted.
    Evict,
}

/// Looks at a pod; the first rule that holds decides.
pub(super) fn verdict(order: Order, pod: &Pod, now: Timestamp) -> Verdict {
    match order {
        Order::Timeout(deadline) if now > deadline => return Verdict::Drop,
        Order::ForceDelete(Some(deadline)) if drain::must_be_deleted(pod, Some(deadline), now) => {
            return deletion(pod, deadline, now);
        }
        _ => {}
    }
    if !pod.is_active() {
        Verdict::Drop
    } else if mutation::has(Mutation::DeletesPods) {
        deletion(pod, now, now)
    } else if pod.is_evictable(now) || mutation::has(Mutation::EvictsProtected) {
        Verdict::Evict
    } else {
        Verdict::Wait
    }
}

/// Never without grace: that would take the pod out of the API before its containers have ended. A pod that is going
/// as fast already is left to go.
fn deletion(pod: &Pod, deadline: Timestamp, now: Timestamp) -> Verdict {
    let grace = deadline.duration_since(now).as_secs().max(1);
    let granted = pod.metadata.deletion_grace_period_seconds;
    if pod.metadata.is_deleting() && granted.is_some_and(|granted| granted <= grace) {
        Verdict::Drop
    } else {
        Verdict::Delete { deadline, grace }
    }
}

/// What the pod's protection has to say when it was asked about.
pub(super) fn speaks(verdict: &Verdict, pod: &Pod, now: Timestamp) -> Option<Event> {
    match verdict {
        Verdict::Evict | Verdict::Wait => events::protection(pod, &pod.protection(now)),
        Verdict::Drop | Verdict::Delete { .. } => None,
    }
}

/// What follows from a refused eviction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// There is no such pod, or another of its name.
    Gone,
    /// A budget holds it.
    Budget(&'static str),
    /// It is tried again.
    Other,
}

/// Reads a refusal.
pub(super) fn refusal(error: &ApiError) -> Refusal {
    if error.is_not_found() || error.is_conflict() {
        Refusal::Gone
    } else if error.message == TWO_BUDGETS {
        Refusal::Budget("eviction does not support multiple PDBs")
    } else if error.is_too_many_requests() {
        Refusal::Budget("evicting pod violates a PDB")
    } else {
        Refusal::Other
    }
}

/// A budget that lets more pods go than before.
pub(super) struct Opened<'a> {
    pub(super) budget: &'a PodDisruptionBudget,
    /// How many may go.
    pub(super) allowed: usize,
}

/// Whether a change of a budget lets pods go that were held.
pub(super) fn opened(change: &Transition<PodDisruptionBudget>) -> Option<Opened<'_>> {
    let allowed = |budget: &Arc<PodDisruptionBudget>| budget.status.disruptions_allowed;
    let after = change.after.as_ref()?;
    let more = change
        .before
        .as_ref()
        .is_none_or(|before| allowed(before) < allowed(after));
    more.then(|| Opened {
        budget: after,
        allowed: usize::try_from(allowed(after)).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(time: &str) -> Timestamp {
        format!("2026-11-16T{time}Z").parse().unwrap()
    }

    fn pod(over: &Value) -> Pod {
        let mut pod = json!({
            "metadata": {"namespace": "ns", "name": "p", "uid": "u"},
            "spec": {"terminationGracePeriodSeconds": 30},
            "status": {"phase": "Running"},
        });
        for part in ["metadata", "spec", "status"] {
            for (key, value) in over[part].as_object().into_iter().flatten() {
                pod[part][key] = value.clone();
            }
        }
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn pod_is_dropped_deleted_spared_or_evicted_in_that_order() {
        let forced = Order::ForceDelete(Some(at("10:01:00")));
        let for_ever = Order::ForceDelete(None);
        let timeout = Order::Timeout(at("10:01:00"));
        let delete = |grace| Verdict::Delete {
            deadline: at("10:01:00"),
            grace,
        };
        let running = json!({});
        let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
        let tolerant = json!({"spec": {"tolerations": [{"operator": "Exists"}]}});
        let ended = json!({"status": {"phase": "Succeeded"}});
        let going = |due: &str, grace: i64| json!({"metadata": {"deletionTimestamp": format!("2026-11-16T{due}Z"), "deletionGracePeriodSeconds": grace}});
        let cases = [
            (timeout, running.clone(), "10:01:00", Verdict::Evict),
            (timeout, running.clone(), "10:01:01", Verdict::Drop),
            (timeout, protected.clone(), "10:00:59", Verdict::Wait),
            (for_ever, running.clone(), "10:01:01", Verdict::Evict),
            (for_ever, protected.clone(), "10:01:01", Verdict::Wait),
            (for_ever, tolerant.clone(), "10:01:01", Verdict::Wait),
            (for_ever, ended.clone(), "10:01:01", Verdict::Drop),
            (for_ever, going("10:30:00", 30), "10:01:01", Verdict::Drop),
            (forced, running.clone(), "10:00:30", Verdict::Evict),
            (forced, running.clone(), "10:00:31", delete(29)),
            (forced, protected.clone(), "10:00:31", delete(29)),
            (forced, running.clone(), "10:00:59.5", delete(1)),
            (forced, running, "10:05:00", delete(1)),
            (forced, going("10:01:01", 30), "10:00:50", delete(10)),
            (forced, going("10:01:00", 30), "10:00:50", Verdict::Drop),
            (forced, going("10:05:01", 1), "10:05:00", Verdict::Drop),
        ];
        for (order, over, now, expected) in cases {
            assert_eq!(verdict(order, &pod(&over), at(now)), expected, "{order:?} {over} {now}");
        }
    }

    #[test]
    fn protection_speaks_when_it_decides() {
        let pod = pod(&json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "soon"}}}));
        let now = at("10:00:00");
        let reason = |verdict| speaks(&verdict, &pod, now).map(|event| event.reason.to_string());
        assert_eq!(
            reason(verdict(Order::ForceDelete(None), &pod, now)).as_deref(),
            Some("InvalidDoNotDisruptAnnotation")
        );
        assert_eq!(reason(Verdict::Drop), None);
    }

    #[test]
    fn budget_opens_when_it_allows_more_than_before() {
        let budget = |allowed: i32| {
            let json = json!({"metadata": {"name": "b"}, "status": {"disruptionsAllowed": allowed}});
            Arc::new(serde_json::from_value::<PodDisruptionBudget>(json).unwrap())
        };
        let cases = [
            (Some(0), Some(2), Some(2)),
            (None, Some(1), Some(1)),
            (Some(1), Some(0), None),
            (Some(1), Some(1), None),
            (Some(1), None, None),
        ];
        for (before, after, expected) in cases {
            let change = Transition {
                before: before.map(budget),
                after: after.map(budget),
            };
            assert_eq!(
                opened(&change).map(|open| open.allowed),
                expected,
                "{before:?} {after:?}"
            );
        }
    }
}
