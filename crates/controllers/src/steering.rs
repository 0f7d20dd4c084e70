//! When may a node take pods? kube-scheduler spends the plan, not we: it spreads pods over whatever nodes are there. So the
//! nodes of one plan are released together, and those that only some pods may use come last.
//!
//! A node is held by the taint it registers with (`karpenter.sh/unregistered`), so holding costs no write. Every hold has
//! a deadline: a node that is slow to come does not keep the others.
//!
//! How far this goes is one setting: `off` leaves everything to kube-scheduler; `release` holds nodes; `nominate` also tells
//! pods where to go where that helps ([`hint`]); `pin` also binds pods itself ([`pin`]).

pub(crate) mod hint;
pub(crate) mod pin;
pub(crate) mod withdraw;

use std::time::Duration;

use api::annotations;
use jiff::Timestamp;
use model::object::{ConditionStatus, Node, NodeClaim, ObjectKey, Pod, condition};
use runtime::ApiError;
use state::State;

/// The longest a node that could take pods is held for others of its plan.
const TOGETHER_LIMIT: Duration = Duration::from_secs(10);
/// The longest a node that is to come last is held after the others were released,
const LAST_LIMIT: Duration = Duration::from_secs(5);
/// and after a pod was last bound to one of them: kube-scheduler is through with them then.
const LAST_QUIET: Duration = Duration::from_secs(2);

/// Whether a node may take pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Release {
    /// It may.
    Now,
    /// Not yet.
    Held {
        /// Who is waited for.
        reason: String,
        /// When it is released in any case.
        until: Timestamp,
    },
}

impl Release {
    fn or_sooner(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Now, _) => self,
            (Self::Held { until: one, .. }, Self::Held { until: two, .. }) if one <= two => self,
            _ => other,
        }
    }
}

/// Whether the node of a claim may take pods. `ready_since` is when it could.
pub fn release(claim: &NodeClaim, ready_since: Timestamp, state: &State, now: Timestamp) -> Release {
    let Some(plan) = claim.metadata.annotations.get(annotations::PLAN) else {
        return Release::Now;
    };
    let held = |reason: String, since: Timestamp, limit: Duration| {
        let until = since.saturating_add(limit).unwrap_or(Timestamp::MAX);
        if now < until {
            Release::Held { reason, until }
        } else {
            Release::Now
        }
    };
    let others = || {
        state
            .claims_of_plan(plan)
            .filter(|other| other.metadata.name != claim.metadata.name && !other.metadata.is_deleting())
    };
    if let Some(late) = others().find(|other| !has_joined(other, state)) {
        let reason = format!(
            "waiting for the node of {}, planned together with it",
            late.metadata.name
        );
        return held(reason, ready_since, TOGETHER_LIMIT);
    }
    if !comes_last(claim) {
        return Release::Now;
    }
    let (mut released, mut bound) = (ready_since, ready_since);
    let mut waiting = None;
    for first in others().filter(|other| !comes_last(other)) {
        match registered_at(first) {
            None => {
                let reason = format!("released after the node of {}", first.metadata.name);
                return held(reason, ready_since, TOGETHER_LIMIT + LAST_LIMIT);
            }
            Some(at) => released = released.max(at),
        }
        bound = bound.max(last_bound(first, state).unwrap_or(bound));
        waiting = waiting.or_else(|| unbound_pod(first, state));
    }
    match waiting {
        None => Release::Now,
        Some(pod) => {
            let reason = format!("released once {pod} had its chance on the other nodes of its plan");
            match held(reason.clone(), released.max(bound), LAST_QUIET) {
                Release::Now => Release::Now,
                quiet @ Release::Held { .. } => held(reason, released, LAST_LIMIT).or_sooner(quiet),
            }
        }
    }
}

/// When a pod was last bound to a claim's node.
fn last_bound(claim: &NodeClaim, state: &State) -> Option<Timestamp> {
    let node = claim.status.node_name.as_ref()?;
    let scheduled = state.pods_on_node(node.as_str()).filter_map(|pod| {
        let scheduled = pod.condition("PodScheduled")?;
        scheduled
            .last_transition_time
            .filter(|_| scheduled.status == ConditionStatus::True)
    });
    scheduled.max()
}

/// A pod that was planned onto a claim's node and has not found its place yet, there or elsewhere.
fn unbound_pod(claim: &NodeClaim, state: &State) -> Option<ObjectKey> {
    let name = claim.name();
    let mut planned = state.pods_of_claim(&name);
    let waits = |pod: &&ObjectKey| state.get::<Pod>(pod).is_some_and(|pod| pod.node_name.is_none());
    planned.find(waits).cloned()
}

/// Where a bound pod that was planned onto a new node has landed: `planned` or `elsewhere`, as a metric says it.
pub(crate) fn place(pod: &Pod, state: &State) -> Option<&'static str> {
    let node = pod.node_name.as_ref()?;
    let claim = state.claim_of_pod(&pod.metadata.key())?;
    let claim = state.get::<NodeClaim>(&ObjectKey::cluster_scoped(claim.as_str()));
    let id = claim.and_then(|claim| claim.status.provider_id.as_ref());
    let mut nodes = id.into_iter().flat_map(|id| state.nodes_of_provider_id(id.as_str()));
    let is_planned = nodes.any(|planned| planned.name() == *node);
    Some(if is_planned { "planned" } else { "elsewhere" })
}

/// Whether a node is kept from pods by us.
pub(crate) fn is_held(node: &Node) -> bool {
    let is_unregistered = |taint: &model::object::Taint| *taint.key == *api::taints::UNREGISTERED;
    node.spec
        .taints
        .iter()
        .any(|taint| is_unregistered(taint) || pin::is_pinning(taint))
}

/// What came of a write about a pod, as a metric says it.
pub(crate) fn word<T>(result: &Result<T, ApiError>) -> &'static str {
    match result {
        Ok(_) => "done",
        Err(error) if error.is_forbidden() => "forbidden",
        // Somebody was faster: the pod is bound, changed or gone.
        Err(error) if error.is_conflict() || error.is_not_found() || error.code == Some(422) => "overtaken",
        Err(_) => "failed",
    }
}

pub(crate) fn comes_last(claim: &NodeClaim) -> bool {
    let mark = claim.metadata.annotations.get(annotations::RELEASE);
    mark.is_some_and(|mark| **mark == *"last")
}

/// A claim's node is there and Ready, or was let go long ago.
pub(crate) fn has_joined(claim: &NodeClaim, state: &State) -> bool {
    let Some(id) = &claim.status.provider_id else {
        return false;
    };
    let ready = |node: &Node| {
        node.condition("Ready")
            .is_some_and(|ready| ready.status == ConditionStatus::True)
    };
    registered_at(claim).is_some() || state.nodes_of_provider_id(id.as_str()).any(|node| ready(node))
}

fn registered_at(claim: &NodeClaim) -> Option<Timestamp> {
    let registered = condition::find(&claim.status.conditions, api::condition::names::nodeclaim::REGISTERED)?;
    (registered.status == ConditionStatus::True)
        .then_some(registered.last_transition_time)
        .flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn claim(name: &str, release: Option<&str>, registered: Option<i64>) -> NodeClaim {
        let registered = registered.map(
            |second| json!([{"type": "Registered", "status": "True", "lastTransitionTime": at(second).to_string()}]),
        );
        let mut annotations = json!({"dovetail.dev/plan": "p1"});
        if let Some(release) = release {
            annotations["dovetail.dev/release"] = json!(release);
        }
        read(json!({
            "metadata": {"name": name, "resourceVersion": "1", "annotations": annotations},
            "status": {
                "providerID": format!("kwok://{name}"), "nodeName": format!("node-{name}"),
                "conditions": registered.unwrap_or(json!([])),
            },
        }))
    }

    fn ready_node(name: &str) -> Node {
        read(json!({
            "metadata": {"name": format!("node-{name}"), "resourceVersion": "1"}, "spec": {"providerID": format!("kwok://{name}")},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }))
    }

    fn read<T: serde::de::DeserializeOwned>(json: Value) -> T {
        serde_json::from_value(json).unwrap()
    }

    fn state(claims: &[NodeClaim], joined: &[&str]) -> State {
        let mut state = State::default();
        for claim in claims {
            state.apply(claim.clone());
        }
        for name in joined {
            state.apply(ready_node(name));
        }
        state
    }

    #[test]
    fn nodes_of_a_plan_wait_for_each_other_but_not_for_ever() {
        let (a, b) = (claim("a", None, None), claim("b", None, None));
        let waiting = state(&[a.clone(), b.clone()], &["a"]);
        let held = Release::Held {
            reason: "waiting for the node of b, planned together with it".to_owned(),
            until: at(10),
        };
        assert_eq!(release(&a, at(0), &waiting, at(3)), held);
        assert_eq!(release(&a, at(0), &waiting, at(10)), Release::Now);
        let both = state(&[a.clone(), b], &["a", "b"]);
        assert_eq!(release(&a, at(0), &both, at(3)), Release::Now);
    }

    #[test]
    fn a_node_that_only_some_pods_may_use_comes_last() {
        let (first, last) = (claim("a", None, None), claim("b", Some("last"), None));
        let joined = state(&[first.clone(), last.clone()], &["a", "b"]);
        assert_eq!(release(&first, at(0), &joined, at(1)), Release::Now);
        let held = |reason: &str, until| Release::Held {
            reason: reason.to_owned(),
            until,
        };
        assert_eq!(
            release(&last, at(0), &joined, at(1)),
            held("released after the node of a", at(15))
        );
        let mut released = state(&[claim("a", None, Some(2)), last.clone()], &["a", "b"]);
        assert_eq!(release(&last, at(0), &released, at(3)), Release::Now);
        let pod = |node: Value, version: &str| -> Pod {
            read(
                json!({"metadata": {"name": "web", "namespace": "team", "resourceVersion": version}, "spec": {"nodeName": node}}),
            )
        };
        released.apply(pod(Value::Null, "1"));
        released.map_pod_to_claim(&ObjectKey::new("team", "web"), &first.name());
        let reason = "released once team/web had its chance on the other nodes of its plan";
        assert_eq!(release(&last, at(0), &released, at(3)), held(reason, at(4)));
        assert_eq!(
            release(&last, at(0), &released, at(4)),
            Release::Now,
            "nobody is being bound"
        );
        for (second, until) in [(3, 5), (6, 7)] {
            let scheduled =
                json!([{"type": "PodScheduled", "status": "True", "lastTransitionTime": at(second).to_string()}]);
            released.apply::<Pod>(read(json!({
                "metadata": {"name": "other", "namespace": "team", "resourceVersion": second.to_string()},
                "spec": {"nodeName": "node-a"}, "status": {"conditions": scheduled},
            })));
            assert_eq!(release(&last, at(0), &released, at(second)), held(reason, at(until)));
        }
        assert_eq!(release(&last, at(0), &released, at(7)), Release::Now);
        released.apply(pod(json!("node-a"), "2"));
        assert_eq!(release(&last, at(0), &released, at(3)), Release::Now);
    }

    #[test]
    fn a_claim_of_no_plan_or_alone_in_it_is_released_at_once() {
        let alone = claim("a", Some("last"), None);
        assert_eq!(
            release(&alone, at(0), &state(std::slice::from_ref(&alone), &["a"]), at(0)),
            Release::Now
        );
        let foreign: NodeClaim = read(json!({"metadata": {"name": "x"}}));
        assert_eq!(release(&foreign, at(0), &state(&[], &[]), at(0)), Release::Now);
    }
}
