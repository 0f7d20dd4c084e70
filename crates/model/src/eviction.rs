//! Which pods may be evicted, which a drain waits for, and which will need another place.

use api::{
    annotations::DO_NOT_DISRUPT,
    duration::{Duration, DurationError},
    taints::DISRUPTED,
};
use jiff::{SignedDuration, Timestamp};

use crate::{
    object::{Pod, Toleration},
    taint::TaintView,
};

/// How long a pod may outlive its own deletion time before a drain stops waiting for it.
const STUCK_AFTER: SignedDuration = SignedDuration::from_mins(1);

const DISRUPTED_TAINT: TaintView<'static> = TaintView {
    key: DISRUPTED,
    value: "",
    effect: "NoSchedule",
};

/// What `karpenter.sh/do-not-disrupt` says of a pod now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Protection {
    /// There is no annotation.
    None,
    /// The annotation means nothing.
    Invalid(InvalidProtection),
    /// `true`.
    Always,
    /// For a while, which begins when the pod starts.
    FromStart,
    /// Until then.
    Until(Timestamp),
    /// It was protected for a while, and that is over.
    Elapsed,
}

/// Why an annotation means nothing. The wording is upstream's, because it reaches users through an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidProtection {
    /// Neither `true` nor a duration.
    #[error("failed to parse {value:?} as a duration: {error}")]
    NotADuration {
        /// As written.
        value: String,
        /// What is wrong with it.
        error: DurationError,
    },
    /// A duration that protects nothing.
    #[error("duration {0:?} must be positive")]
    NotPositive(String),
}

impl Protection {
    /// True while the pod must be left alone.
    pub fn is_active(&self) -> bool {
        matches!(self, Self::Always | Self::FromStart | Self::Until(_))
    }
}

/// Reads a positive duration.
fn protected_for(value: &str) -> Result<SignedDuration, InvalidProtection> {
    let duration: Duration = value.parse().map_err(|error| InvalidProtection::NotADuration {
        value: value.to_owned(),
        error,
    })?;
    if duration.as_nanos() > 0 {
        Ok(duration.to_signed())
    } else {
        Err(InvalidProtection::NotPositive(value.to_owned()))
    }
}

impl Pod {
    /// What `karpenter.sh/do-not-disrupt` says now: `true` protects for good, a positive duration from the pod's start on.
    pub fn protection(&self, now: Timestamp) -> Protection {
        let Some(value) = self.metadata.annotations.get(DO_NOT_DISRUPT) else {
            return Protection::None;
        };
        if **value == *"true" {
            return Protection::Always;
        }
        let duration = match protected_for(value) {
            Ok(duration) => duration,
            Err(invalid) => return Protection::Invalid(invalid),
        };
        let Some(start) = self.status.start_time else {
            return Protection::FromStart;
        };
        let until = start.saturating_add(duration).unwrap_or(Timestamp::MAX);
        if now < until {
            Protection::Until(until)
        } else {
            Protection::Elapsed
        }
    }

    /// True when the pod stays on a node that goes away: it tolerates `karpenter.sh/disrupted:NoSchedule`.
    pub fn tolerates_disruption(&self) -> bool {
        let tolerations: Vec<_> = self.spec.tolerations.iter().map(Toleration::view).collect();
        DISRUPTED_TAINT.is_tolerated_by(&tolerations)
    }

    /// True when the pod should have been gone a minute ago. Its deletion time includes its grace period.
    pub fn is_stuck_terminating(&self, now: Timestamp) -> bool {
        let due = self.metadata.deletion_timestamp;
        due.is_some_and(|due| now.duration_since(due) > STUCK_AFTER)
    }

    /// True when the eviction API may be called for the pod. All of:
    /// - it is active;
    /// - it does not tolerate the disrupted taint;
    /// - no node owns it;
    /// - it is not protected by `karpenter.sh/do-not-disrupt`.
    pub fn is_evictable(&self, now: Timestamp) -> bool {
        self.is_active()
            && !self.tolerates_disruption()
            && !self.is_owned_by_node()
            && !self.protection(now).is_active()
    }

    /// True when a drain has to do with the pod, protected or not. All of:
    /// - it does not tolerate the disrupted taint;
    /// - it is not stuck terminating;
    /// - no node owns it.
    pub fn is_drainable(&self, now: Timestamp) -> bool {
        !self.tolerates_disruption() && !self.is_stuck_terminating(now) && !self.is_owned_by_node()
    }

    /// True when a drain waits for the pod to go: it has not ended, and it is drainable.
    pub fn is_waiting_eviction(&self, now: Timestamp) -> bool {
        !self.is_terminal() && self.is_drainable(now)
    }

    /// True when the pod would be made anew elsewhere. All of:
    /// - it is active, or a StatefulSet's that is about to go;
    /// - neither a DaemonSet nor a Node owns it.
    pub fn is_reschedulable(&self) -> bool {
        let is_remade = self.metadata.is_deleting() && self.metadata.is_owned_by("apps/v1", "StatefulSet");
        (self.is_active() || is_remade) && !self.is_owned_by_daemon_set() && !self.is_owned_by_node()
    }

    /// True when the pod does not keep its node from being disrupted: it is not active, or not protected.
    pub fn is_disruptable(&self, now: Timestamp) -> bool {
        !self.is_active() || !self.protection(now).is_active()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOW: &str = "2026-11-16T10:00:00Z";

    fn now() -> Timestamp {
        NOW.parse().unwrap()
    }

    fn pod(metadata: &Value, spec: &Value, status: &Value) -> Pod {
        serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap()
    }

    #[test]
    fn do_not_disrupt_protects_for_good_or_from_the_start_for_a_while() {
        let at = |time: &str| time.parse().unwrap();
        let cases = [
            (json!(null), json!(null), Protection::None),
            (json!("true"), json!(null), Protection::Always),
            (json!("5m"), json!(null), Protection::FromStart),
            (
                json!("5m"),
                json!("2026-11-16T09:55:01Z"),
                Protection::Until(at("2026-11-16T10:00:01Z")),
            ),
            (json!("5m"), json!("2026-11-16T09:55:00Z"), Protection::Elapsed),
            (
                json!("1h30m"),
                json!(NOW),
                Protection::Until(at("2026-11-16T11:30:00Z")),
            ),
        ];
        for (value, start, expected) in cases {
            let annotations = match &value {
                Value::Null => json!({}),
                value => json!({ DO_NOT_DISRUPT: value }),
            };
            let pod = pod(
                &json!({"name": "p", "annotations": annotations}),
                &json!({}),
                &json!({"startTime": start}),
            );
            assert_eq!(pod.protection(now()), expected, "{value} since {start}");
        }
    }

    #[test]
    fn meaningless_protection_says_why_in_upstreams_words() {
        let cases = [
            (
                "false",
                r#"failed to parse "false" as a duration: time: invalid duration "false""#,
            ),
            (
                "5",
                r#"failed to parse "5" as a duration: time: missing unit in duration "5""#,
            ),
            ("0s", r#"duration "0s" must be positive"#),
            ("-5m", r#"duration "-5m" must be positive"#),
        ];
        for (value, expected) in cases {
            let metadata = json!({"name": "p", "annotations": { DO_NOT_DISRUPT: value }});
            let protection = pod(&metadata, &json!({}), &json!({})).protection(now());
            let Protection::Invalid(why) = &protection else {
                panic!("{value}: {protection:?}");
            };
            assert_eq!((why.to_string().as_str(), protection.is_active()), (expected, false));
        }
    }

    #[test]
    fn predicates_hold_as_the_contract_says() {
        let owner = |version: &str, kind: &str| json!([{"apiVersion": version, "kind": kind, "name": "o", "uid": "u"}]);
        let tolerates = json!({"tolerations": [{"operator": "Exists"}]});
        let tolerates_other =
            json!({"tolerations": [{"key": "karpenter.sh/disrupted", "operator": "Exists", "effect": "NoExecute"}]});
        let running = json!({"phase": "Running"});
        let due_a_minute_ago = json!({"deletionTimestamp": "2026-11-16T09:59:00Z"});
        let due_earlier = json!({"deletionTimestamp": "2026-11-16T09:58:59Z"});
        let protected = json!({"annotations": { DO_NOT_DISRUPT: "true" }});
        let none = json!({});
        let of_set = json!({"deletionTimestamp": NOW, "ownerReferences": owner("apps/v1", "StatefulSet")});
        // evictable, drainable, waited for, reschedulable, disruptable
        let cases = [
            (&none, &none, &running, [true, true, true, true, true]),
            (
                &none,
                &none,
                &json!({"phase": "Succeeded"}),
                [false, true, false, false, true],
            ),
            (
                &none,
                &none,
                &json!({"phase": "Failed"}),
                [false, true, false, false, true],
            ),
            (&protected, &none, &running, [false, true, true, true, false]),
            (&none, &tolerates, &running, [false, false, false, true, true]),
            (&none, &tolerates_other, &running, [true, true, true, true, true]),
            (&due_a_minute_ago, &none, &running, [false, true, true, false, true]),
            (&due_earlier, &none, &running, [false, false, false, false, true]),
            (
                &json!({"ownerReferences": owner("v1", "Node")}),
                &none,
                &running,
                [false, false, false, false, true],
            ),
            (
                &json!({"ownerReferences": owner("apps/v1", "DaemonSet")}),
                &none,
                &running,
                [true, true, true, false, true],
            ),
            (&of_set, &none, &running, [false, true, true, true, true]),
        ];
        for (metadata, spec, status, expected) in cases {
            let mut named = metadata.clone();
            named["name"] = json!("p");
            let pod = pod(&named, spec, status);
            let now = now();
            let holds = [
                pod.is_evictable(now),
                pod.is_drainable(now),
                pod.is_waiting_eviction(now),
                pod.is_reschedulable(),
                pod.is_disruptable(now),
            ];
            assert_eq!(holds, expected, "{metadata} {spec} {status}");
        }
    }
}
