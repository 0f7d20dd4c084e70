//! When a node counts as broken, and what is done about it.

use std::time::Duration;

use model::object::ConditionStatus;

/// What mends a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepairAction {
    /// Another node takes its place.
    ReplaceNode,
    /// It is rebooted.
    RebootNode,
}

/// A condition of a node that calls for repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairPolicy {
    /// The node condition.
    pub condition_type: &'static str,
    /// Its status that is bad.
    pub condition_status: ConditionStatus,
    /// Its reasons that are meant; empty for the one fallback of the set, `.*` for any.
    pub reason_regex: &'static str,
    /// For how long that is borne.
    pub toleration: Duration,
    /// Bound of the drain: none respects budgets and protections, zero does not drain.
    pub termination_grace_period: Option<Duration>,
    /// Which goes first, 0 to 100.
    pub priority: u8,
    /// What is done.
    pub action: RepairAction,
}
