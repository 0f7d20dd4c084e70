//! How many nodes of a NodePool may go now, for which reason.

use std::collections::BTreeMap;

use model::object::NodePoolName;

use crate::method::Reason;

/// How many nodes of each NodePool may go for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budgets {
    /// The reason.
    pub reason: Reason,
    /// By pool.
    pub pools: BTreeMap<NodePoolName, PoolBudget>,
}

/// How many nodes of a NodePool may go for a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolBudget {
    /// Nodes that count.
    pub nodes: u32,
    /// Nodes that are going or not ready: the gauge `nodes_consuming_budgets`.
    pub disrupting: u32,
    /// How many may go at a time: the gauge `allowed_disruptions`.
    pub allowed: u32,
}

impl PoolBudget {
    /// How many more may go.
    pub fn remaining(self) -> u32 {
        self.allowed.saturating_sub(self.disrupting)
    }

    /// Upstream's message of `DisruptionBlocked` on the NodePool; none while the budgets allow any.
    pub fn blocked_message(self, reason: Reason) -> Option<String> {
        (self.nodes != 0 && self.allowed == 0)
            .then(|| format!("No allowed disruptions for disruption reason {reason} due to blocking budget"))
    }
}
