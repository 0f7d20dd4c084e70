//! Has a node been quiet for as long as its pool wants before it is consolidated?

use std::time::Duration;

use api::{condition::names::nodeclaim::INITIALIZED, duration::NillableDuration};
use jiff::Timestamp;
use model::object::{ConditionStatus, NodeClaim, NodePool};

/// Whether a node may be consolidated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Consolidatable {
    /// Its pool does not consolidate, or it is not initialised.
    No,
    /// If it stays quiet for so long.
    In(Duration),
    /// Now.
    Yes,
}

/// Pods came or went last, or else the node was initialised, longer ago than the pool's `consolidateAfter`.
pub(super) fn of(pool: &NodePool, claim: &NodeClaim, now: Timestamp) -> Consolidatable {
    let span = pool.spec.disruption.consolidate_after.as_ref();
    let Some(span) = span.and_then(NillableDuration::span) else {
        return Consolidatable::No;
    };
    let initialized = claim.condition(INITIALIZED);
    let Some(initialized) = initialized.filter(|condition| condition.status == ConditionStatus::True) else {
        return Consolidatable::No;
    };
    let since = claim.status.last_pod_event_time.or(initialized.last_transition_time);
    let left = since.map(|since| span.to_signed() - now.duration_since(since));
    match left.map(Duration::try_from) {
        Some(Ok(left)) if !left.is_zero() && span.as_nanos() > 0 => Consolidatable::In(left),
        _ => Consolidatable::Yes,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pool(after: &Value) -> NodePool {
        serde_json::from_value(json!({"spec": {"disruption": {"consolidateAfter": after}}})).unwrap()
    }

    fn claim(initialized: &str, event: &Value) -> NodeClaim {
        serde_json::from_value(json!({"status": {
            "lastPodEventTime": event,
            "conditions": [{"type": "Initialized", "status": initialized, "lastTransitionTime": "2026-11-16T10:00:00Z"}],
        }}))
        .unwrap()
    }

    #[test]
    fn a_node_is_consolidatable_once_it_was_quiet_for_long_enough() {
        let now = "2026-11-16T10:01:00Z".parse().unwrap();
        let event = json!("2026-11-16T10:00:50Z");
        let left = |seconds| Consolidatable::In(Duration::from_secs(seconds));
        let cases = [
            (json!("Never"), "True", Value::Null, Consolidatable::No),
            (json!("30s"), "Unknown", Value::Null, Consolidatable::No),
            (json!("30s"), "True", Value::Null, Consolidatable::Yes),
            (json!("1m"), "True", Value::Null, Consolidatable::Yes),
            (json!("90s"), "True", Value::Null, left(30)),
            (json!("30s"), "True", event.clone(), left(20)),
            (json!("0s"), "True", event.clone(), Consolidatable::Yes),
            (json!("0s"), "True", json!("2026-11-16T10:01:30Z"), Consolidatable::Yes),
        ];
        for (after, initialized, event, expected) in cases {
            let found = of(&pool(&after), &claim(initialized, &event), now);
            assert_eq!(found, expected, "{after} {initialized} {event}");
        }
    }
}
