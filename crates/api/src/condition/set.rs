//! How conditions change: when a transition is recorded, and how the root condition follows from its dependents.
//!
//! The rules are those of the library behind Karpenter's kinds, including the order in which conditions are listed.
//! Nothing here reads a clock: the caller says what time it is.

use std::cmp::Reverse;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{
    Condition, ConditionStatus,
    names::{
        AWAITING_RECONCILIATION, AWAITING_RECONCILIATION_MESSAGE, READY, RECONCILING_DEPENDENTS, UNHEALTHY_DEPENDENTS,
    },
};
use crate::time::Time;

/// Which conditions a kind always has: the root and those it follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConditionTypes {
    root: &'static str,
    dependents: &'static [&'static str],
}

/// What the rules need to know of the object, and the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    /// `metadata.generation`.
    pub generation: i64,
    /// `metadata.creationTimestamp`.
    pub created: Timestamp,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// The present.
    pub now: Timestamp,
}

impl Subject {
    /// What the metadata of an object says. An object not yet stored counts as created now.
    pub fn new(metadata: &ObjectMeta, now: Timestamp) -> Self {
        Self {
            generation: metadata.generation.unwrap_or_default(),
            created: metadata.creation_timestamp.as_ref().map_or(now, |time| time.0),
            deleting: metadata.deletion_timestamp.is_some(),
            now,
        }
    }
}

/// A dependent or root condition cannot be cleared, since it must always be there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot clear condition {0}: Ready depends on it; set it to Unknown instead")]
pub struct ClearDependent(String);

/// The conditions of one object, open for change.
#[derive(Debug)]
pub struct ConditionSet<'a> {
    types: ConditionTypes,
    subject: Subject,
    conditions: &'a mut Vec<Condition>,
}

impl ConditionTypes {
    /// Ready, following from `dependents`.
    pub const fn ready(dependents: &'static [&'static str]) -> Self {
        Self {
            root: READY,
            dependents,
        }
    }

    /// Opens the conditions of an object, adding the root and dependents that are missing as Unknown.
    pub fn open(self, conditions: &mut Vec<Condition>, subject: Subject) -> ConditionSet<'_> {
        let mut set = self.open_observed(conditions, subject);
        for condition_type in self.all() {
            if find(set.conditions, condition_type).is_none() {
                set.set_unknown(condition_type);
            }
        }
        set
    }

    /// Opens the conditions of an object as they are, for kinds whose conditions belong to someone else.
    pub fn open_observed(self, conditions: &mut Vec<Condition>, subject: Subject) -> ConditionSet<'_> {
        ConditionSet {
            types: self,
            subject,
            conditions,
        }
    }

    /// The root, then those it follows from.
    pub fn all(self) -> impl Iterator<Item = &'static str> {
        [self.root].into_iter().chain(self.dependents.iter().copied())
    }

    /// Whether Ready follows from a condition, or it is Ready itself.
    pub fn includes(self, condition_type: &str) -> bool {
        condition_type == self.root || self.dependents.contains(&condition_type)
    }
}

/// The condition of a type.
pub fn find<'a>(conditions: &'a [Condition], condition_type: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == condition_type)
}

/// Whether a condition is there and True.
pub fn is_true(conditions: &[Condition], condition_type: &str) -> bool {
    find(conditions, condition_type).is_some_and(|condition| condition.status == ConditionStatus::True)
}

/// Whether a condition is there and False.
pub fn is_false(conditions: &[Condition], condition_type: &str) -> bool {
    find(conditions, condition_type).is_some_and(|condition| condition.status == ConditionStatus::False)
}

/// Whether a condition is Unknown or not there.
pub fn is_unknown(conditions: &[Condition], condition_type: &str) -> bool {
    find(conditions, condition_type).is_none_or(|condition| condition.status == ConditionStatus::Unknown)
}

impl ConditionSet<'_> {
    /// All conditions, in the order they are stored.
    pub fn list(&self) -> &[Condition] {
        self.conditions
    }

    /// The root condition.
    pub fn root(&self) -> Option<&Condition> {
        find(self.conditions, self.types.root)
    }

    /// True, with the condition's own name as the reason. Returns whether anything changed.
    pub fn set_true(&mut self, condition_type: &str) -> bool {
        self.set_true_with_reason(condition_type, condition_type, "")
    }

    /// True, with a reason. Returns whether anything changed.
    pub fn set_true_with_reason(&mut self, condition_type: &str, reason: &str, message: &str) -> bool {
        self.set(condition_type, ConditionStatus::True, reason, message)
    }

    /// False. Returns whether anything changed.
    pub fn set_false(&mut self, condition_type: &str, reason: &str, message: &str) -> bool {
        self.set(condition_type, ConditionStatus::False, reason, message)
    }

    /// Unknown because nobody has judged it. Returns whether anything changed.
    pub fn set_unknown(&mut self, condition_type: &str) -> bool {
        self.set_unknown_with_reason(condition_type, AWAITING_RECONCILIATION, AWAITING_RECONCILIATION_MESSAGE)
    }

    /// Unknown, with a reason. Returns whether anything changed.
    pub fn set_unknown_with_reason(&mut self, condition_type: &str, reason: &str, message: &str) -> bool {
        self.set(condition_type, ConditionStatus::Unknown, reason, message)
    }

    /// Removes a condition Ready does not depend on. The root is left as it is.
    pub fn clear(&mut self, condition_type: &str) -> Result<(), ClearDependent> {
        if self.types.includes(condition_type) {
            return Err(ClearDependent(condition_type.to_owned()));
        }
        if find(self.conditions, condition_type).is_some() {
            self.conditions.retain(|condition| condition.type_ != condition_type);
            self.conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
        }
        Ok(())
    }

    fn set(&mut self, condition_type: &str, status: ConditionStatus, reason: &str, message: &str) -> bool {
        let condition = Condition {
            last_transition_time: self.transition_time(condition_type, &status),
            message: message.to_owned(),
            observed_generation: self.subject.generation,
            reason: reason.to_owned(),
            status,
            type_: condition_type.to_owned(),
        };
        if find(self.conditions, condition_type) == Some(&condition) {
            return false;
        }
        self.store(condition);
        if condition_type != self.types.root {
            self.recompute_root();
        }
        true
    }

    /// The old time while the status stays, now when it changes. A root or dependent that appears for the first time
    /// has been as it is since the object was created.
    fn transition_time(&self, condition_type: &str, status: &ConditionStatus) -> Time {
        match find(self.conditions, condition_type) {
            Some(old) if old.status == *status => old.last_transition_time,
            None if self.types.includes(condition_type) => Time(self.subject.created),
            Some(_) | None => Time(self.subject.now),
        }
    }

    /// Puts a condition in place: oldest transition first, the root last.
    fn store(&mut self, condition: Condition) {
        self.conditions.retain(|other| other.type_ != condition.type_);
        if self.subject.deleting {
            // Nobody re-judges the conditions of an object that goes away, so they would look outdated forever.
            self.conditions
                .iter_mut()
                .for_each(|other| other.observed_generation = self.subject.generation);
        }
        self.conditions.push(condition);
        let root = self.types.root;
        self.conditions.sort_by_key(|condition| {
            let is_root = condition.type_ == root;
            (is_root, (!is_root).then_some(condition.last_transition_time))
        });
    }

    fn recompute_root(&mut self) {
        let unhealthy = self.unhealthy_dependents();
        let root = self.types.root;
        if unhealthy.is_empty() {
            self.set_true(root);
            return;
        }
        let generation = self.subject.generation;
        let failed = unhealthy
            .iter()
            .any(|condition| condition.status == ConditionStatus::False && condition.observed_generation == generation);
        let message = unhealthy
            .iter()
            .map(|condition| format!("{}={}", condition.type_, condition.status))
            .collect::<Vec<_>>()
            .join(", ");
        if failed {
            self.set_false(root, UNHEALTHY_DEPENDENTS, &message);
        } else {
            self.set_unknown_with_reason(root, RECONCILING_DEPENDENTS, &message);
        }
    }

    /// Dependents that are not True, or True for an older generation; the latest transition first.
    fn unhealthy_dependents(&self) -> Vec<&Condition> {
        let mut unhealthy: Vec<&Condition> = self
            .conditions
            .iter()
            .filter(|condition| self.types.dependents.contains(&condition.type_.as_str()))
            .filter(|condition| {
                matches!(condition.status, ConditionStatus::False | ConditionStatus::Unknown)
                    || condition.observed_generation != self.subject.generation
            })
            .collect();
        unhealthy.sort_by_key(|condition| Reverse(condition.last_transition_time));
        unhealthy
    }
}

#[cfg(test)]
mod tests;
