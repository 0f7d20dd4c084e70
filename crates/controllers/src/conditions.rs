//! Conditions of Karpenter's kinds, changed by the rules of [`api::condition::set`] on the model's slim objects.

use api::condition::{self as rules, ConditionSet, ConditionTypes, Subject};
use jiff::Timestamp;
use model::object::{Condition, ConditionStatus, List, Metadata};

/// Changes the conditions of an object as the rules say: missing dependents appear as Unknown, the root follows.
pub(crate) fn change(
    types: ConditionTypes,
    metadata: &Metadata,
    conditions: &mut List<Condition>,
    now: Timestamp,
    change: impl FnOnce(&mut ConditionSet<'_>),
) {
    let subject = Subject {
        generation: metadata.generation,
        created: metadata.creation_timestamp.unwrap_or(now),
        deleting: metadata.is_deleting(),
        now,
    };
    let mut list: Vec<rules::Condition> = conditions.iter().map(|known| written(known, now)).collect();
    change(&mut types.open(&mut list, subject));
    *conditions = list.into_iter().map(read).collect();
}

/// Puts a condition into a list as `SetStatusCondition` of Kubernetes does, for kinds without a root: the time changes
/// with the status only.
pub(crate) fn put(conditions: &mut List<Condition>, mut condition: Condition, now: Timestamp) {
    let mut list: Vec<Condition> = conditions.iter().cloned().collect();
    let known = list.iter_mut().find(|known| known.kind == condition.kind);
    let same = known.as_ref().filter(|known| known.status == condition.status);
    condition.last_transition_time = same
        .and_then(|known| known.last_transition_time)
        .or_else(|| Some(whole_seconds(now)));
    match known {
        Some(known) => *known = condition,
        None => list.push(condition),
    }
    *conditions = list.into();
}

fn written(condition: &Condition, now: Timestamp) -> rules::Condition {
    rules::Condition {
        last_transition_time: condition.last_transition_time.unwrap_or(now).into(),
        message: condition.message.to_string(),
        observed_generation: condition.observed_generation,
        reason: condition.reason.to_string(),
        status: match condition.status {
            ConditionStatus::True => rules::ConditionStatus::True,
            ConditionStatus::False => rules::ConditionStatus::False,
            ConditionStatus::Unknown => rules::ConditionStatus::Unknown,
        },
        type_: condition.kind.to_string(),
    }
}

fn read(condition: rules::Condition) -> Condition {
    Condition {
        kind: condition.type_.into(),
        status: match condition.status {
            rules::ConditionStatus::True => ConditionStatus::True,
            rules::ConditionStatus::False => ConditionStatus::False,
            _ => ConditionStatus::Unknown,
        },
        reason: condition.reason.into(),
        message: condition.message.into(),
        last_transition_time: Some(whole_seconds(condition.last_transition_time.0)),
        observed_generation: condition.observed_generation,
    }
}

/// As the API server will give it back: otherwise the same condition would look changed.
fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use api::condition::names::nodeclaim::{LAUNCHED, TYPES};

    use super::*;

    #[test]
    fn setting_one_condition_of_a_claim_brings_the_others_and_the_root() {
        let now: Timestamp = "2026-11-16T10:00:00Z".parse().unwrap();
        let metadata = Metadata {
            generation: 1,
            ..Metadata::default()
        };
        let mut conditions = List::default();
        change(TYPES, &metadata, &mut conditions, now, |set| {
            set.set_true(LAUNCHED);
        });
        let shown: Vec<_> = conditions
            .iter()
            .map(|condition| (&*condition.kind, condition.status, &*condition.reason))
            .collect();
        let expected = [
            ("Launched", ConditionStatus::True, "Launched"),
            ("Registered", ConditionStatus::Unknown, "AwaitingReconciliation"),
            ("Initialized", ConditionStatus::Unknown, "AwaitingReconciliation"),
            ("Ready", ConditionStatus::Unknown, "ReconcilingDependents"),
        ];
        let mut sorted = shown.clone();
        sorted.sort_by_key(|(kind, ..)| expected.iter().position(|(known, ..)| known == kind));
        assert_eq!(sorted, expected);
    }
}
