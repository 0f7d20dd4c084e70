//! What to do: which nodes go, what comes instead, what that saves, and how upstream would say it.

use std::fmt;

use jiff::SignedDuration;
use model::{
    object::{NodeName, NodePoolName, Text},
    plan::{Plan, PlannedClaim},
    price::Price,
};

use crate::{
    candidate::Candidate,
    method::{Decision, Method, Reason, TerminateFirst},
};

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// Who found it.
    pub method: Method,
    /// The nodes that go.
    pub candidates: Vec<Candidate>,
    /// The nodes that come first.
    pub replacements: Vec<Replacement>,
    /// Where the pods go in the simulation: nodes in `existing` are to be nominated, pods in `unplaced` are pending ones
    /// that nothing changes for. Empty where nothing was simulated.
    pub plan: Plan,
    /// Set when the nodes go although no replacement could be launched first.
    pub terminate_first: Option<TerminateFirst>,
    /// The node is rebooted instead.
    pub is_reboot: bool,
    /// How much more an hour cost before.
    pub saving: Saving,
    /// The score of each NodePool under the policy Balanced; empty for other policies.
    pub scores: Vec<PoolScore>,
}

/// A node that comes first.
#[derive(Debug, Clone, PartialEq)]
pub enum Replacement {
    /// What the simulation asks for.
    Planned(Box<PlannedClaim>),
    /// Whatever the template of a static NodePool asks for.
    Static(NodePoolName),
}

impl Replacement {
    /// What the simulation asks for; none for static pools.
    pub fn planned(&self) -> Option<&PlannedClaim> {
        match self {
            Self::Planned(claim) => Some(claim),
            Self::Static(_) => None,
        }
    }

    /// Whose template it is made from.
    pub fn node_pool(&self) -> &NodePoolName {
        match self {
            Self::Planned(claim) => &claim.node_pool,
            Self::Static(pool) => pool,
        }
    }
}

/// Pico-dollars an hour, less than nothing when a command costs more than it saves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Saving(pub i128);

impl Saving {
    /// What is left of `before` after `after`.
    pub fn between(before: Price, after: Price) -> Self {
        Self(i128::from(before.picos()) - i128::from(after.picos()))
    }
}

/// In dollars and cents, as upstream's `$%.2f`.
impl fmt::Display for Saving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const CENT: u128 = 10_000_000_000;
        let sign = if self.0 < 0 { "-" } else { "" };
        let picos = self.0.unsigned_abs();
        let (cents, rest) = (picos / CENT, picos % CENT);
        // A half rounds to even, as printing the nearest float does when it is exact.
        let up = rest > CENT / 2 || (rest == CENT / 2 && cents % 2 == 1);
        let cents = cents + u128::from(up);
        f.pad(&format!("${sign}{}.{:02}", cents / 100, cents % 100))
    }
}

/// How a NodePool under the policy Balanced fares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolScore {
    /// The pool.
    pub pool: NodePoolName,
    /// What is saved, of what the pool costs: pico-dollars.
    pub saving: (i128, i128),
    /// What is disturbed, of what there is to disturb: units of [`crate::Cost`].
    pub disruption: (i128, i128),
    /// Whether it is worth it.
    pub is_approved: bool,
}

impl Command {
    /// What it comes to.
    pub fn decision(&self) -> Decision {
        if self.is_reboot {
            Decision::Reboot
        } else if !self.replacements.is_empty() {
            Decision::Replace
        } else if self.terminate_first.is_some() {
            Decision::TerminateFirst
        } else {
            Decision::Delete
        }
    }

    /// Why the nodes go.
    pub fn reason(&self) -> Reason {
        self.method.reason()
    }

    /// The nodes that go, by name.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeName> {
        self.candidates.iter().map(|candidate| &candidate.node)
    }

    /// The NodePools of the nodes that go, each once, in the order they first appear.
    pub fn node_pools(&self) -> Vec<&NodePoolName> {
        let mut pools: Vec<&NodePoolName> = Vec::new();
        for candidate in &self.candidates {
            if !pools.contains(&&candidate.node_pool) {
                pools.push(&candidate.node_pool);
            }
        }
        pools
    }

    /// What the nodes that go cost an hour.
    pub fn source_price(&self) -> Price {
        self.candidates.iter().map(|candidate| candidate.price).sum()
    }

    /// How many pods would have to move.
    pub fn pod_count(&self) -> usize {
        self.candidates
            .iter()
            .map(|candidate| candidate.reschedulable.len())
            .sum()
    }

    /// How long each drain may take at most, where a repair policy says so.
    pub fn drain_bound(&self) -> Option<SignedDuration> {
        self.candidates
            .iter()
            .filter_map(|candidate| candidate.drain_bound)
            .min()
    }

    /// A number for what the pods that move ask for: equal pods, equal number. For the loop breaker's memory.
    pub fn requests_digest(&self) -> u64 {
        crate::guard::requests_digest(&self.candidates)
    }

    /// Upstream's text for events before the command begins: `replace: [a, b] -> [1 replacement]`.
    pub fn text(&self) -> String {
        format!("{}: [{}]{}", self.decision(), self.names(), self.arrow())
    }

    /// Upstream's text for one node's event.
    pub fn text_for(&self, node: &NodeName) -> String {
        if self.candidates.len() == 1 {
            return self.text();
        }
        let (decision, count) = (self.decision(), self.candidates.len());
        format!("{decision}: [{node}] (part of {count}-node consolidation)")
    }

    /// Upstream's text for the log line at the start, with the command's id.
    pub fn log_text(&self, id: &str) -> String {
        let pools: Vec<&str> = self.node_pools().iter().map(|pool| pool.as_str()).collect();
        format!(
            "{}/{id}: {}: nodepools=[{}]: [{}]{} (savings: {})",
            self.reason(),
            self.decision(),
            pools.join(","),
            self.names(),
            self.arrow(),
            self.saving
        )
    }

    /// The message of `ConsolidationCandidate` for one node; upstream publishes it for replacements only.
    pub fn candidate_message(&self, node: &NodeName) -> String {
        format!(
            "Consolidation candidate: {} (savings: {})",
            self.text_for(node),
            self.saving
        )
    }

    /// The message of `ConsolidationRejected` for one node.
    pub fn rejected_message(&self, node: &NodeName, why: &crate::Invalid) -> String {
        let text = self.text_for(node);
        format!(
            "Consolidation rejected: {text}, reason: {} (savings: {})",
            why.label(),
            self.saving
        )
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.nodes().map(NodeName::as_str).collect();
        names.join(", ")
    }

    fn arrow(&self) -> String {
        match self.replacements.len() {
            0 => String::new(),
            1 => " -> [1 replacement]".to_owned(),
            count => format!(" -> [{count} replacements]"),
        }
    }

    /// The capacity type a replacement will be, as upstream's log names it: reserved, else spot, else on-demand.
    pub fn replacement_capacity_type(claim: &PlannedClaim) -> Option<Text> {
        let constraint = claim
            .constraints
            .iter()
            .find(|spec| *spec.key == *api::labels::CAPACITY_TYPE)?;
        let kinds = [
            api::labels::CAPACITY_TYPE_RESERVED,
            api::labels::CAPACITY_TYPE_SPOT,
            api::labels::CAPACITY_TYPE_ON_DEMAND,
        ];
        let named = |kind: &&str| constraint.values.iter().any(|value| **value == **kind);
        kinds.iter().find(|kind| named(kind)).map(|kind| Text::from(*kind))
    }
}

impl PoolScore {
    /// Upstream's message of `ConsolidationApproved`.
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    pub fn message(&self) -> String {
        let share = |(part, whole): (i128, i128)| if whole <= 0 { 0.0 } else { part as f64 / whole as f64 };
        let (saving, disruption) = (share(self.saving), share(self.disruption));
        let score = if saving <= 0.0 {
            "0.00".to_owned()
        } else if disruption == 0.0 {
            "+Inf".to_owned()
        } else {
            format!("{:.2}", saving / disruption)
        };
        format!(
            "score {score} >= threshold 0.50 (k: 2, savings {:.1}%, disruption {:.1}%)",
            saving * 100.0,
            disruption * 100.0
        )
    }
}
