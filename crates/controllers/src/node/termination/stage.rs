//! How far the end of a node has come, and what its claim says of it.

use std::time::Duration;

use api::{
    annotations::NODECLAIM_TERMINATION_TIMESTAMP,
    condition::names::nodeclaim::{
        AWAITING_VOLUME_DETACHMENT, DRAINED, DRAINING, INSTANCE_TERMINATING, TERMINATION_GRACE_PERIOD_ELAPSED, TYPES,
        VOLUMES_DETACHED,
    },
    labels::EXCLUDE_FROM_EXTERNAL_LOAD_BALANCERS,
    taints::DISRUPTED,
};
use jiff::{SignedDuration, Timestamp};
use model::object::{ConditionStatus, Labels, Node, NodeClaim, Taint, Text};

use super::observe::Seen;
use crate::{
    Problem, conditions,
    node::drain::{self, Mode, Plan},
};

/// How long a drain lasts at least, because pods may still come that were bound before the taint was seen.
const MIN_DRAIN: SignedDuration = SignedDuration::from_secs(5);

/// How far the end of a node has come.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Stage {
    /// Pods are on their way out.
    Draining(Plan),
    /// No pod is left, but for this long one may still come.
    Settling(Duration),
    /// Volumes are attached; these attachments must go.
    Detaching(Vec<Text>),
    /// The machine may go.
    Ending(Volumes),
}

/// How it stands with the volumes when the machine may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Volumes {
    /// None is attached.
    Detached,
    /// Some are, but the deadline has passed.
    Abandoned,
}

/// Looks how far a node's end has come.
pub(super) fn stage(seen: &Seen, deadline: Option<Timestamp>, now: Timestamp) -> Stage {
    let plan = drain::plan(&seen.pods, deadline, Mode::ForceDelete, now);
    if plan.waiting > 0 {
        Stage::Draining(plan)
    } else if let Some(left) = seen.claim.as_ref().and_then(|claim| settling(claim, now)) {
        Stage::Settling(left)
    } else if seen.attachments.is_empty() {
        Stage::Ending(Volumes::Detached)
    } else if deadline.is_some_and(|deadline| now > deadline) {
        Stage::Ending(Volumes::Abandoned)
    } else {
        Stage::Detaching(seen.attachments.clone())
    }
}

/// How much longer pods may come; none when none can.
fn settling(claim: &NodeClaim, now: Timestamp) -> Option<Duration> {
    let begun = match claim.condition(DRAINED) {
        None => now,
        Some(drained) if drained.status == ConditionStatus::Unknown => drained.last_transition_time.unwrap_or(now),
        Some(_) => return None,
    };
    let left = Duration::try_from(MIN_DRAIN - now.duration_since(begun)).ok();
    left.filter(|left| !left.is_zero())
}

/// The claim with its conditions as the stage asks for. `accepted`: the cloud has taken on the machine's end.
pub(super) fn recorded(claim: &NodeClaim, stage: &Stage, accepted: bool, now: Timestamp) -> NodeClaim {
    let mut after = claim.clone();
    let is_new = claim.condition(DRAINED).is_none();
    conditions::change(TYPES, &claim.metadata, &mut after.status.conditions, now, |set| {
        match stage {
            Stage::Draining(_) | Stage::Settling(_) if is_new => {
                set.set_unknown_with_reason(DRAINED, DRAINING, DRAINING);
            }
            Stage::Draining(_) | Stage::Settling(_) => {}
            Stage::Detaching(_) => {
                set.set_true(DRAINED);
                let awaiting = AWAITING_VOLUME_DETACHMENT;
                set.set_unknown_with_reason(VOLUMES_DETACHED, awaiting, awaiting);
            }
            Stage::Ending(volumes) => {
                set.set_true(DRAINED);
                let elapsed = TERMINATION_GRACE_PERIOD_ELAPSED;
                match volumes {
                    Volumes::Detached => set.set_true(VOLUMES_DETACHED),
                    Volumes::Abandoned => set.set_false(VOLUMES_DETACHED, elapsed, elapsed),
                };
            }
        }
        if accepted {
            set.set_true(INSTANCE_TERMINATING);
        }
    });
    after
}

/// The node closed to pods and load balancers. A taint of that key with another effect is replaced.
pub(super) fn tainted(node: &Node) -> Node {
    let mut after = node.clone();
    let is_there = |taint: &Taint| *taint.key == *DISRUPTED && *taint.effect == *"NoSchedule";
    if !node.spec.taints.iter().any(is_there) {
        let others = node
            .spec
            .taints
            .iter()
            .filter(|taint| *taint.key != *DISRUPTED)
            .cloned();
        let disrupted = Taint {
            key: DISRUPTED.into(),
            effect: "NoSchedule".into(),
            ..Taint::default()
        };
        after.spec.taints = others.chain([disrupted]).collect();
    }
    let mut labels = node.metadata.labels.to_vec();
    labels.push((EXCLUDE_FROM_EXTERNAL_LOAD_BALANCERS.into(), "karpenter".into()));
    after.metadata.labels = Labels::from_pairs(labels);
    after
}

/// Whether the kubelet says that the node works.
pub(super) fn is_ready(node: &Node) -> bool {
    node.condition("Ready")
        .is_some_and(|ready| ready.status == ConditionStatus::True)
}

/// The text of a claim's deadline.
pub(super) fn deadline_of(claim: &NodeClaim) -> Option<&str> {
    claim
        .metadata
        .annotations
        .get(NODECLAIM_TERMINATION_TIMESTAMP)
        .map(AsRef::as_ref)
}

/// Reads a claim's deadline.
pub(super) fn parse_deadline(claim: &NodeClaim, text: &str) -> Result<Timestamp, Problem> {
    text.parse().map_err(|error| {
        Problem::Other(format!(
            "annotation {NODECLAIM_TERMINATION_TIMESTAMP} of NodeClaim {} is {text:?}, which is no RFC 3339 time ({error}); \
             correct or remove it",
            claim.metadata.name
        ))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::object::Pod;
    use serde_json::{Value, json};

    use super::*;
    use crate::node::eviction::Order;

    fn at(time: &str) -> Timestamp {
        format!("2026-11-16T{time}Z").parse().unwrap()
    }

    fn claim(conditions: &Value) -> NodeClaim {
        serde_json::from_value(json!({
            "metadata": {"name": "c", "generation": 1, "creationTimestamp": "2026-11-16T09:00:00Z"},
            "status": {"conditions": conditions},
        }))
        .unwrap()
    }

    fn drained(status: &str, since: &str) -> Value {
        json!([{"type": "Drained", "status": status, "reason": "Draining", "message": "Draining",
            "lastTransitionTime": format!("2026-11-16T{since}Z"), "observedGeneration": 1}])
    }

    fn seen(claim: Option<NodeClaim>, pods: &[Arc<Pod>], attachments: &[&str]) -> Seen {
        Seen {
            node: Arc::new(serde_json::from_value(json!({"metadata": {"name": "n"}})).unwrap()),
            claim: claim.map(Arc::new),
            pods: pods.to_vec(),
            attachments: attachments.iter().map(|name| (*name).into()).collect(),
        }
    }

    fn settling(seconds: u64) -> Stage {
        Stage::Settling(Duration::from_secs(seconds))
    }

    fn pod() -> Arc<Pod> {
        Arc::new(serde_json::from_value(json!({"metadata": {"name": "p"}})).unwrap())
    }

    #[test]
    fn node_ends_step_by_step() {
        let (now, past) = (at("10:00:00"), Some(at("09:59:59")));
        let draining = Stage::Draining(Plan {
            enqueue: vec![pod()],
            order: Order::ForceDelete(None),
            waiting: 1,
        });
        let long = || Some(claim(&drained("Unknown", "09:59:55")));
        let detaching = Stage::Detaching(vec!["a".into()]);
        let cases = [
            (seen(long(), &[pod()], &["a"]), None, draining.clone()),
            (seen(None, &[pod()], &[]), None, draining),
            (seen(Some(claim(&json!([]))), &[], &[]), None, settling(5)),
            (
                seen(Some(claim(&drained("Unknown", "09:59:56"))), &[], &[]),
                None,
                settling(1),
            ),
            (seen(long(), &[], &[]), None, Stage::Ending(Volumes::Detached)),
            (
                seen(Some(claim(&drained("True", "09:59:59"))), &[], &[]),
                None,
                Stage::Ending(Volumes::Detached),
            ),
            (seen(None, &[], &[]), None, Stage::Ending(Volumes::Detached)),
            (seen(long(), &[], &["a"]), None, detaching.clone()),
            (seen(long(), &[], &["a"]), Some(now), detaching.clone()),
            (seen(None, &[], &["a"]), None, detaching),
            (seen(long(), &[], &["a"]), past, Stage::Ending(Volumes::Abandoned)),
            (seen(long(), &[], &[]), past, Stage::Ending(Volumes::Detached)),
        ];
        for (at, (seen, deadline, expected)) in cases.into_iter().enumerate() {
            assert_eq!(stage(&seen, deadline, now), expected, "case {at}");
        }
    }

    /// Type, status and reason of the conditions that a stage writes.
    fn written(before: &Value, stage: &Stage, accepted: bool) -> Vec<(String, ConditionStatus, String)> {
        let after = recorded(&claim(before), stage, accepted, at("10:00:00"));
        let ours = [DRAINED, VOLUMES_DETACHED, INSTANCE_TERMINATING];
        let find = |kind: &&str| after.condition(kind).cloned();
        let conditions = ours.iter().filter_map(find);
        conditions
            .map(|found| (found.kind.to_string(), found.status, found.reason.to_string()))
            .collect()
    }

    #[test]
    fn claim_says_how_far_its_end_has_come() {
        use ConditionStatus::{False, True, Unknown};
        let draining = drained("Unknown", "09:00:00");
        let says = |kind: &str, status, reason: &str| (kind.to_owned(), status, reason.to_owned());
        let is_drained = || says("Drained", True, "Drained");
        let cases = [
            (
                json!([]),
                settling(1),
                false,
                vec![says("Drained", Unknown, "Draining")],
            ),
            (
                draining.clone(),
                settling(1),
                false,
                vec![says("Drained", Unknown, "Draining")],
            ),
            (
                draining.clone(),
                Stage::Detaching(vec!["a".into()]),
                false,
                vec![
                    is_drained(),
                    says("VolumesDetached", Unknown, "AwaitingVolumeDetachment"),
                ],
            ),
            (
                draining.clone(),
                Stage::Ending(Volumes::Detached),
                false,
                vec![is_drained(), says("VolumesDetached", True, "VolumesDetached")],
            ),
            (
                draining,
                Stage::Ending(Volumes::Abandoned),
                true,
                vec![
                    is_drained(),
                    says("VolumesDetached", False, "TerminationGracePeriodElapsed"),
                    says("InstanceTerminating", True, "InstanceTerminating"),
                ],
            ),
        ];
        for (before, stage, accepted, expected) in cases {
            assert_eq!(written(&before, &stage, accepted), expected, "{stage:?}");
        }
    }

    #[test]
    fn drain_that_goes_on_keeps_the_time_it_began() {
        let first = recorded(&claim(&json!([])), &settling(1), false, at("10:00:00"));
        let second = recorded(&first, &settling(1), false, at("10:00:03"));
        assert_eq!(second, first);
    }

    #[test]
    fn node_is_closed_once_and_a_softer_taint_of_ours_is_replaced() {
        let node = |taints: &Value, labels: &Value| -> Node {
            let json = json!({"metadata": {"name": "n", "labels": labels}, "spec": {"taints": taints}});
            serde_json::from_value(json).unwrap()
        };
        let ours = json!({"key": "karpenter.sh/disrupted", "effect": "NoSchedule"});
        let other = json!({"key": "dedicated", "value": "db", "effect": "NoSchedule"});
        let softer = json!({"key": "karpenter.sh/disrupted", "effect": "PreferNoSchedule"});
        let excluded = json!({"a": "b", "node.kubernetes.io/exclude-from-external-load-balancers": "karpenter"});
        let closed = node(&json!([other, ours]), &excluded);
        let cases = [json!([other]), json!([other, ours]), json!([softer, other])];
        for taints in cases {
            assert_eq!(tainted(&node(&taints, &json!({"a": "b"}))), closed, "{taints}");
        }
        assert_eq!(tainted(&closed), closed);
    }

    #[test]
    fn unreadable_deadline_is_named_with_its_claim() {
        let problem = parse_deadline(&claim(&json!([])), "tomorrow").unwrap_err().to_string();
        assert!(
            problem.starts_with(
                "annotation karpenter.sh/nodeclaim-termination-timestamp of NodeClaim c is \"tomorrow\", which"
            ),
            "{problem}"
        );
        assert_eq!(
            parse_deadline(&claim(&json!([])), "2026-11-16T10:00:00Z").unwrap(),
            at("10:00:00")
        );
    }
}
