//! What does a machine wait for that is not up yet, or on its way out?

use model::object::{Condition, ConditionStatus, NodeClaim};
use serde::Serialize;

use crate::{Machine, State, View};

/// What a machine waits for that neither stays nor is up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Passing {
    /// For how long it has been so.
    pub since_s: Option<i64>,
    /// What it waits for.
    pub text: String,
    /// Whether that has gone wrong: the cloud or a controller gave a reason.
    pub is_stuck: bool,
}

/// Steps of a launch, as conditions of the claim, and what is missing before each.
const STEPS: [(&str, &str); 3] = [
    ("Launched", "the cloud has not said yet that the instance runs"),
    (
        "Registered",
        "the instance runs, and its node has not joined the cluster",
    ),
    ("Initialized", "the node has joined, and is not all up"),
];

impl Passing {
    /// What a machine waits for; none for one that is up.
    pub(crate) fn of(view: &View<'_>, machine: &Machine<'_>) -> Option<Self> {
        match machine.state {
            State::Launching | State::Starting => Some(coming(view, machine)),
            State::Leaving => Some(leaving(view, machine)),
            State::Ready | State::Cordoned | State::NotReady => None,
        }
    }
}

fn coming(view: &View<'_>, machine: &Machine<'_>) -> Passing {
    let since_s = machine.created().map(|made| view.seconds_since(made));
    let of_claim = machine.member.claim.and_then(|claim| missing(claim));
    let (step, condition) = of_claim.unwrap_or((STEPS[2].1, None));
    let said = condition.and_then(said);
    Passing {
        since_s,
        is_stuck: said.is_some(),
        text: said.map_or_else(|| step.to_owned(), |said| format!("{step} ({said})")),
    }
}

/// The first step that is not done, with what is said of it.
fn missing(claim: &NodeClaim) -> Option<(&'static str, Option<&Condition>)> {
    let is_done = |condition: Option<&Condition>| condition.is_some_and(|it| it.status == ConditionStatus::True);
    let steps = STEPS.iter().map(|(name, text)| (*text, claim.condition(name)));
    steps.into_iter().find(|(_, condition)| !is_done(*condition))
}

/// Reason and message, as far as they say anything.
fn said(condition: &Condition) -> Option<String> {
    let parts = [&condition.reason, &condition.message];
    let said: Vec<&str> = parts
        .into_iter()
        .map(|part| &**part)
        .filter(|part| !part.is_empty())
        .collect();
    // What the API server writes before anybody has looked.
    let is_plain = said.is_empty() || *condition.reason == *"AwaitingReconciliation";
    (!is_plain).then(|| said.join(": "))
}

fn leaving(view: &View<'_>, machine: &Machine<'_>) -> Passing {
    let of_claim = machine.member.claim.and_then(|claim| claim.metadata.deletion_timestamp);
    let of_node = machine.member.node.and_then(|node| node.metadata.deletion_timestamp);
    let movable = machine.movable().count();
    let finalizers = machine.member.claim.map(|claim| &claim.metadata.finalizers);
    let text = match (
        machine.member.node.is_some(),
        movable,
        finalizers.and_then(|all| all.first()),
    ) {
        (true, 0, _) => "its pods are gone, and its instance is being terminated".to_owned(),
        (true, 1, _) => "1 pod is still to leave it".to_owned(),
        (true, pods, _) => format!("{pods} pods are still to leave it"),
        (false, _, Some(finalizer)) => {
            format!("its node is gone, and finalizer {finalizer} waits until the cloud says that the instance is, too")
        }
        (false, _, None) => "its node is gone".to_owned(),
    };
    Passing {
        since_s: of_claim.or(of_node).map(|since| view.seconds_since(since)),
        text,
        is_stuck: false,
    }
}
