//! When a node is opened to pods: what steering says, counted from the moment the node could take them; and who is to
//! be asked again when a node of the same plan has come.

use std::{sync::Arc, time::Duration};

use api::{annotations, condition::names::nodeclaim};
use jiff::Timestamp;
use model::object::{Node, NodeClaim, Text, condition};
use state::{Change, State, Transition};

use crate::{
    node_claim::ownership::{claims_of_node, is_ready},
    steering::{Release, has_joined, release},
};

/// The longest a node of a plan stays closed because it is not Ready: then it registers as any other, and is initialised
/// when it is Ready.
const UNREADY_LIMIT: Duration = Duration::from_mins(1);

/// Whether a claim's node may be opened to pods.
pub(super) fn may_release(claim: &NodeClaim, node: &Node, state: &State, now: Timestamp) -> Release {
    let appeared = node.metadata.creation_timestamp.unwrap_or(now);
    let is_planned = claim.metadata.annotations.get(annotations::PLAN).is_some();
    if is_ready(node) {
        let ready = node.condition("Ready").and_then(|ready| ready.last_transition_time);
        return release(claim, ready.unwrap_or(appeared), state, now);
    }
    let until = appeared.saturating_add(UNREADY_LIMIT).unwrap_or(Timestamp::MAX);
    if is_planned && now < until {
        let reason = "waiting until the node is Ready".to_owned();
        return Release::Held { reason, until };
    }
    release(claim, appeared, state, now)
}

/// Names of the claims whose nodes may be open to pods because of a change of another one of their plan. While somebody
/// is still waited for there are none: each of them knows until when it waits.
pub(super) fn woken(change: &Change, state: &State) -> Vec<Text> {
    let claims: Vec<Arc<NodeClaim>> = match change {
        Change::NodeClaim(claim) if is_settled(claim) => claim.latest().cloned().into_iter().collect(),
        Change::Node(node) if becomes_ready(node) => claims_of_node(node, state),
        _ => return Vec::new(),
    };
    let plans = claims
        .iter()
        .filter_map(|claim| claim.metadata.annotations.get(annotations::PLAN));
    plans.flat_map(|plan| waiting(plan, state)).collect()
}

fn becomes_ready(node: &Transition<Node>) -> bool {
    let ready = |node: &Option<Arc<Node>>| node.as_ref().is_some_and(|node| is_ready(node));
    !ready(&node.before) && ready(&node.after)
}

/// Whether nobody needs to wait for a claim any more, who did before.
fn is_settled(claim: &Transition<NodeClaim>) -> bool {
    let settled = |claim: &Option<Arc<NodeClaim>>| {
        claim
            .as_ref()
            .is_none_or(|claim| claim.metadata.is_deleting() || is_registered(claim))
    };
    claim.before.is_some() && !settled(&claim.before) && settled(&claim.after)
}

fn is_registered(claim: &NodeClaim) -> bool {
    condition::holds(&claim.status.conditions, nodeclaim::REGISTERED)
}

fn waiting(plan: &str, state: &State) -> Vec<Text> {
    let staying = || state.claims_of_plan(plan).filter(|claim| !claim.metadata.is_deleting());
    if staying().any(|claim| !has_joined(claim, state)) {
        return Vec::new();
    }
    let closed = staying().filter(|claim| !is_registered(claim));
    closed.map(|claim| claim.metadata.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn read<T: DeserializeOwned>(json: Value) -> T {
        serde_json::from_value(json).unwrap()
    }

    fn claim(name: &str, version: &str, registered: &str) -> NodeClaim {
        read(json!({
            "metadata": {"name": name, "resourceVersion": version, "annotations": {"dovetail.dev/plan": "p"}},
            "status": {"providerID": name, "conditions": [{"type": "Registered", "status": registered}]},
        }))
    }

    fn node(name: &str, version: &str, ready: &str) -> Node {
        read(json!({
            "metadata": {"name": name, "resourceVersion": version, "creationTimestamp": at(0).to_string()},
            "spec": {"providerID": name},
            "status": {"conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": at(2).to_string()}]},
        }))
    }

    #[test]
    fn a_node_of_a_plan_stays_closed_for_a_while_until_it_is_ready() {
        let state = State::default();
        let held = Release::Held {
            reason: "waiting until the node is Ready".to_owned(),
            until: at(60),
        };
        let of_plan = claim("a", "1", "Unknown");
        assert_eq!(may_release(&of_plan, &node("a", "1", "False"), &state, at(1)), held);
        assert_eq!(
            may_release(&of_plan, &node("a", "1", "False"), &state, at(60)),
            Release::Now
        );
        assert_eq!(
            may_release(&of_plan, &node("a", "1", "True"), &state, at(3)),
            Release::Now
        );
        let of_none: NodeClaim = read(json!({"metadata": {"name": "a"}}));
        assert_eq!(
            may_release(&of_none, &node("a", "1", "False"), &state, at(1)),
            Release::Now
        );
    }

    #[test]
    fn the_last_node_to_come_wakes_all_that_wait_for_it() {
        let mut state = State::default();
        state.apply(claim("a", "1", "Unknown"));
        state.apply(claim("b", "2", "Unknown"));
        let first = state.apply(node("a", "3", "True")).unwrap();
        assert_eq!(woken(&first, &state), Vec::<Text>::new());
        let unready = state.apply(node("b", "4", "False")).unwrap();
        assert_eq!(woken(&unready, &state), Vec::<Text>::new());
        let last = state.apply(node("b", "5", "True")).unwrap();
        assert_eq!(woken(&last, &state), ["a".into(), "b".into()]);
        let registered = state.apply(claim("a", "6", "True")).unwrap();
        assert_eq!(woken(&registered, &state), ["b".into()]);
        let again = state.apply(claim("a", "7", "True")).unwrap();
        assert_eq!(woken(&again, &state), Vec::<Text>::new());
    }

    #[test]
    fn a_claim_that_goes_is_not_waited_for() {
        let mut state = State::default();
        state.apply(claim("a", "1", "Unknown"));
        state.apply(claim("b", "2", "Unknown"));
        state.apply(node("a", "3", "True"));
        let mut going = claim("b", "4", "Unknown");
        going.metadata.deletion_timestamp = Some(at(1));
        let change = state.apply(going).unwrap();
        assert_eq!(woken(&change, &state), ["a".into()]);
    }
}
