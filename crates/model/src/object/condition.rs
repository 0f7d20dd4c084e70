//! What controllers say about an object: status conditions, with as much of them as the kind's readers need.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    List, Text,
    metadata::{is_unset, is_zero},
};

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody knows.
    #[default]
    Unknown,
}

/// A condition of a Karpenter object, complete.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: Text,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, for machines.
    pub reason: Text,
    /// Why, for people.
    pub message: Text,
    /// When `status` last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Timestamp>,
    /// The generation it was computed from.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
}

/// A condition of a Pod or Node, without message and probe times.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BriefCondition {
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: Text,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, for machines.
    #[serde(skip_serializing_if = "is_unset")]
    pub reason: Text,
    /// When `status` last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Timestamp>,
}

/// The condition of a type in a list of full conditions.
pub fn find<'a>(conditions: &'a List<Condition>, kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| *condition.kind == *kind)
}

/// True when the condition of a type is there and holds.
pub fn holds(conditions: &List<Condition>, kind: &str) -> bool {
    find(conditions, kind).is_some_and(|condition| condition.status == ConditionStatus::True)
}
