//! What a reboot that is under way needs next: one step at a time, each of them safe to repeat.

use std::{sync::Arc, time::Duration};

use api::{
    annotations::{REBOOT_PRE_BOOT_ID, REBOOT_TERMINATION_GRACE_PERIOD},
    condition::names::nodeclaim::{INITIALIZED, REBOOT_ISSUED, REBOOT_REQUESTED, REBOOTING},
    duration, labels, taints,
};
use jiff::{SignedDuration, Timestamp};
use model::object::{Condition, ConditionStatus, Node, NodeClaim, Pod, Taint};

use crate::node::drain::{self, Mode, Plan};

/// How often recovery is looked at, changes aside.
pub(super) const POLL: Duration = Duration::from_secs(15);
/// How long the cloud may take to accept a reboot.
const ISSUANCE_TIMEOUT: SignedDuration = SignedDuration::from_mins(5);
/// How long a node may take to come back.
const OBSERVATION_WINDOW: SignedDuration = SignedDuration::from_mins(20);
/// How long a drain lasts at least, because pods may still come that were bound before the taint was seen.
const MIN_DRAIN: SignedDuration = SignedDuration::from_secs(5);

/// A claim whose node is being rebooted.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seen {
    pub(super) claim: Arc<NodeClaim>,
    pub(super) node: Option<Arc<Node>>,
    pub(super) pods: Vec<Arc<Pod>>,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// There is no reboot.
    Nothing,
    /// Nothing to do until something changes, or this long.
    Wait(Duration),
    /// Pods are asked to go.
    Drain(Plan, Duration),
    /// No more pods.
    Fence,
    /// The boot is written down that is to end.
    Remember,
    /// The cloud is asked.
    Call,
    /// The cloud has taken it on, or it has happened already.
    Issue,
    /// The node is no longer initialized.
    Unlabel,
    /// The new boot takes pods.
    Unfence,
    /// The new boot is there; it is not ready yet.
    Observed,
    /// The node is back.
    Succeed,
    /// It did not work.
    Fail(Failure),
}

/// Why a reboot failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// The `result` of the metrics.
    pub(super) result: &'static str,
    /// For people.
    pub(super) message: String,
}

impl Failure {
    /// The request itself makes no sense: the node is kept.
    pub(super) const INVALID_REQUEST: &'static str = "invalid_request";
    /// The cloud did not do it.
    pub(super) const PROVIDER_ERROR: &'static str = "provider_error";
    /// The node did not come back.
    const RECOVERY_TIMEOUT: &'static str = "recovery_timeout";

    pub(super) fn provider(message: String) -> Self {
        Self {
            result: Self::PROVIDER_ERROR,
            message,
        }
    }
}

impl Seen {
    /// The reboot under way; none when there is none, or the claim belongs to termination.
    pub(super) fn rebooting(&self) -> Option<&Condition> {
        let condition = self.claim.condition(REBOOTING)?;
        let under_way = condition.status == ConditionStatus::True && !self.claim.metadata.is_deleting();
        under_way.then_some(condition)
    }

    /// When the reboot was asked for.
    pub(super) fn requested_at(&self) -> Option<Timestamp> {
        self.claim.condition(REBOOTING)?.last_transition_time
    }

    /// When the cloud took the reboot on: Initialized is Unknown since.
    pub(super) fn issued_at(&self) -> Option<Timestamp> {
        let initialized = self.claim.condition(INITIALIZED)?;
        let at = initialized.last_transition_time;
        at.filter(|_| initialized.status == ConditionStatus::Unknown)
    }

    /// Names this reboot for the cloud, the same however often it is asked.
    pub(super) fn operation_id(&self) -> String {
        let requested = self.requested_at().map(Timestamp::as_nanosecond).unwrap_or_default();
        let boot = self.pre_boot_id().unwrap_or_default();
        format!("{}-{requested}-{boot}", self.claim.metadata.uid)
    }

    fn pre_boot_id(&self) -> Option<&str> {
        self.claim
            .metadata
            .annotations
            .get(REBOOT_PRE_BOOT_ID)
            .map(AsRef::as_ref)
    }

    /// Bound of the drain: none is unbounded, zero is no drain.
    pub(super) fn bound(&self) -> Result<Option<SignedDuration>, String> {
        let Some(text) = self.claim.metadata.annotations.get(REBOOT_TERMINATION_GRACE_PERIOD) else {
            return Ok(None);
        };
        let bound: duration::Duration = text
            .parse()
            .map_err(|error| format!("parsing reboot termination grace period {text:?}: {error}"))?;
        if bound.as_nanos() < 0 {
            return Err(format!(
                "reboot termination grace period must be non-negative, got {text:?}"
            ));
        }
        Ok(Some(bound.to_signed()))
    }
}

/// What comes next. `calling_since`: when this process first asked the cloud.
pub(super) fn step(seen: &Seen, calling_since: Option<Timestamp>, now: Timestamp) -> Step {
    let Some(rebooting) = seen.rebooting() else {
        return Step::Nothing;
    };
    let requested = seen.requested_at().unwrap_or(now);
    let issued = *rebooting.reason == *REBOOT_ISSUED;
    let deadline = if issued {
        seen.issued_at().map(|at| after(at, OBSERVATION_WINDOW))
    } else {
        calling_since.map(|at| after(at, ISSUANCE_TIMEOUT))
    };
    let patience = match seen.node {
        None => Some(deadline.unwrap_or_else(|| after(requested, ISSUANCE_TIMEOUT))),
        Some(_) => deadline,
    };
    if patience.is_some_and(|deadline| now > deadline) {
        return Step::Fail(timed_out(issued));
    }
    match (&seen.node, &*rebooting.reason) {
        (None, _) => Step::Wait(POLL),
        (Some(node), REBOOT_REQUESTED) => requested_step(seen, node, requested, now),
        (Some(node), REBOOT_ISSUED) => issued_step(seen, node),
        _ => Step::Nothing,
    }
}

fn timed_out(issued: bool) -> Failure {
    let (result, message) = if issued {
        (
            Failure::RECOVERY_TIMEOUT,
            "node did not recover within the observation window",
        )
    } else {
        (
            Failure::PROVIDER_ERROR,
            "reboot was not issued within the issuance timeout",
        )
    };
    let message = message.to_owned();
    Failure { result, message }
}

/// Fence, drain, write down, call.
fn requested_step(seen: &Seen, node: &Node, requested: Timestamp, now: Timestamp) -> Step {
    let bound = match seen.bound() {
        Ok(bound) => bound,
        Err(why) => {
            return Step::Fail(Failure {
                result: Failure::INVALID_REQUEST,
                message: format!("invalid reboot request: {why}"),
            });
        }
    };
    if !node.spec.taints.iter().any(is_fence) {
        return Step::Fence;
    }
    match seen.pre_boot_id() {
        Some(boot) if *boot != *node.status.node_info.boot_id => Step::Issue,
        Some(_) => Step::Call,
        None => drain_step(seen, bound, requested, now).unwrap_or(Step::Remember),
    }
}

/// What the drain still needs; none when it is over. Pods that are there at its deadline ride through the reboot.
fn drain_step(seen: &Seen, bound: Option<SignedDuration>, requested: Timestamp, now: Timestamp) -> Option<Step> {
    if bound.is_some_and(|bound| bound.is_zero()) {
        return None;
    }
    let deadline = bound.map(|bound| after(requested, bound.max(MIN_DRAIN)));
    let plan = drain::plan(&seen.pods, deadline, Mode::Timeout, now);
    if plan.waiting == 0 {
        return left(now, after(requested, MIN_DRAIN)).map(Step::Wait);
    }
    match deadline {
        None => Some(Step::Drain(plan, POLL)),
        Some(deadline) => left(now, deadline).map(|left| Step::Drain(plan, left.min(POLL))),
    }
}

fn issued_step(seen: &Seen, node: &Node) -> Step {
    let is_new_boot = *node.status.node_info.boot_id != *seen.pre_boot_id().unwrap_or_default();
    let ready = node.condition("Ready").map(|ready| ready.status);
    if node.metadata.labels.get(labels::INITIALIZED).is_some() {
        Step::Unlabel
    } else if !is_new_boot {
        Step::Wait(POLL)
    } else if node.spec.taints.iter().any(is_fence) {
        Step::Unfence
    } else if ready == Some(ConditionStatus::True) {
        Step::Succeed
    } else {
        Step::Observed
    }
}

/// Whether a taint is the one that keeps pods off while the node reboots.
pub(super) fn is_fence(taint: &Taint) -> bool {
    *taint.key == *taints::REBOOTING && *taint.effect == *"NoSchedule"
}

fn after(time: Timestamp, span: SignedDuration) -> Timestamp {
    time.saturating_add(span).unwrap_or(Timestamp::MAX)
}

/// What is left until a time; none when it has come.
fn left(now: Timestamp, until: Timestamp) -> Option<Duration> {
    let left = Duration::try_from(until.duration_since(now)).ok();
    left.filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::node::eviction::Order;

    fn at(time: &str) -> Timestamp {
        format!("2026-11-16T{time}Z").parse().unwrap()
    }

    /// A claim in a phase since 10:00:00, with annotations.
    fn seen(reason: &str, annotations: &Value, node: Option<Value>) -> Seen {
        let claim = json!({
            "metadata": {"name": "c", "uid": "u", "annotations": annotations},
            "status": {"conditions": [
                {"type": "Rebooting", "status": "True", "reason": reason, "lastTransitionTime": "2026-11-16T10:00:00Z"},
                {"type": "Initialized", "status": if reason == "RebootIssued" { "Unknown" } else { "True" },
                    "lastTransitionTime": "2026-11-16T10:01:00Z"},
            ]},
        });
        Seen {
            claim: Arc::new(serde_json::from_value(claim).unwrap()),
            node: node.map(|node| Arc::new(serde_json::from_value(node).unwrap())),
            pods: Vec::new(),
        }
    }

    fn node(boot: &str, fenced: bool, initialized: bool, ready: &str) -> Value {
        let fence = json!({"key": "karpenter.sh/rebooting", "effect": "NoSchedule"});
        json!({
            "metadata": {"name": "n", "labels": if initialized { json!({"karpenter.sh/initialized": "true"}) } else { json!({}) }},
            "spec": {"taints": if fenced { json!([fence]) } else { json!([]) }},
            "status": {"nodeInfo": {"bootID": boot}, "conditions": [{"type": "Ready", "status": ready}]},
        })
    }

    fn fail(result: &'static str, message: &str) -> Step {
        Step::Fail(Failure {
            result,
            message: message.to_owned(),
        })
    }

    #[test]
    fn request_fences_drains_remembers_and_calls() {
        let requested = "RebootRequested";
        let fenced = || Some(node("b1", true, true, "True"));
        let remembered = json!({"karpenter.sh/reboot-pre-boot-id": "b1"});
        let bound = |text: &str| json!({"karpenter.sh/reboot-termination-grace-period": text});
        let late = "reboot was not issued within the issuance timeout";
        let cases = [
            (seen(requested, &json!({}), None), None, "10:05:00", Step::Wait(POLL)),
            (
                seen(requested, &json!({}), None),
                None,
                "10:05:01",
                fail("provider_error", late),
            ),
            (
                seen(requested, &json!({}), Some(node("b1", false, true, "True"))),
                None,
                "10:30:00",
                Step::Fence,
            ),
            (
                seen(requested, &bound("soon"), fenced()),
                None,
                "10:00:00",
                fail(
                    "invalid_request",
                    "invalid reboot request: parsing reboot termination grace period \"soon\": time: invalid duration \"soon\"",
                ),
            ),
            (
                seen(requested, &bound("-1s"), fenced()),
                None,
                "10:00:00",
                fail(
                    "invalid_request",
                    "invalid reboot request: reboot termination grace period must be non-negative, got \"-1s\"",
                ),
            ),
            (
                seen(requested, &json!({}), fenced()),
                None,
                "10:00:02",
                Step::Wait(Duration::from_secs(3)),
            ),
            (seen(requested, &json!({}), fenced()), None, "10:00:05", Step::Remember),
            (
                seen(requested, &bound("0s"), fenced()),
                None,
                "10:00:00",
                Step::Remember,
            ),
            (seen(requested, &remembered, fenced()), None, "10:00:00", Step::Call),
            (
                seen(requested, &remembered, Some(node("b2", true, true, "False"))),
                None,
                "10:00:00",
                Step::Issue,
            ),
            (
                seen(requested, &remembered, fenced()),
                Some(at("10:20:00")),
                "10:25:00",
                Step::Call,
            ),
            (
                seen(requested, &remembered, fenced()),
                Some(at("10:20:00")),
                "10:25:01",
                fail("provider_error", late),
            ),
        ];
        for (seen, since, now, expected) in cases {
            assert_eq!(step(&seen, since, at(now)), expected, "{seen:?} at {now}");
        }
    }

    #[test]
    fn issued_reboot_is_watched_until_the_new_boot_is_ready() {
        let issued = |node| seen("RebootIssued", &json!({"karpenter.sh/reboot-pre-boot-id": "b1"}), node);
        let late = fail("recovery_timeout", "node did not recover within the observation window");
        let cases = [
            (issued(Some(node("b1", true, true, "False"))), "10:02:00", Step::Unlabel),
            (
                issued(Some(node("b1", true, false, "True"))),
                "10:02:00",
                Step::Wait(POLL),
            ),
            (
                issued(Some(node("b2", true, false, "False"))),
                "10:02:00",
                Step::Unfence,
            ),
            (
                issued(Some(node("b2", false, false, "False"))),
                "10:02:00",
                Step::Observed,
            ),
            (
                issued(Some(node("b2", false, false, "True"))),
                "10:02:00",
                Step::Succeed,
            ),
            (issued(None), "10:21:00", Step::Wait(POLL)),
            (issued(None), "10:21:01", late.clone()),
            (issued(Some(node("b2", false, false, "True"))), "10:21:01", late),
        ];
        for (seen, now, expected) in cases {
            assert_eq!(step(&seen, None, at(now)), expected, "{seen:?} at {now}");
        }
    }

    #[test]
    fn drain_before_a_reboot_only_evicts_and_ends_at_its_bound() {
        let pod: Arc<Pod> = Arc::new(serde_json::from_value(json!({"metadata": {"name": "p"}})).unwrap());
        let asks = |order| Plan {
            enqueue: vec![Arc::clone(&pod)],
            order,
            waiting: 1,
        };
        let cases = [
            (None, "10:00:00", Step::Drain(asks(Order::ForceDelete(None)), POLL)),
            (
                Some("1m"),
                "10:00:50",
                Step::Drain(asks(Order::Timeout(at("10:01:00"))), Duration::from_secs(10)),
            ),
            (
                Some("1s"),
                "10:00:04",
                Step::Drain(asks(Order::Timeout(at("10:00:05"))), Duration::from_secs(1)),
            ),
            (Some("1m"), "10:01:00", Step::Remember),
            (Some("0s"), "10:00:00", Step::Remember),
        ];
        for (bound, now, expected) in cases {
            let annotations = bound.map_or_else(
                || json!({}),
                |bound| json!({"karpenter.sh/reboot-termination-grace-period": bound}),
            );
            let mut seen = seen("RebootRequested", &annotations, Some(node("b1", true, true, "True")));
            seen.pods = vec![Arc::clone(&pod)];
            assert_eq!(step(&seen, None, at(now)), expected, "{bound:?} at {now}");
        }
    }

    #[test]
    fn operation_is_the_same_however_often_it_is_asked_for() {
        let seen = seen(
            "RebootRequested",
            &json!({"karpenter.sh/reboot-pre-boot-id": "b1"}),
            None,
        );
        assert_eq!(seen.operation_id(), "u-1794823200000000000-b1");
    }
}
