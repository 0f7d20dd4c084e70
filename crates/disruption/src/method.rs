//! In which ways nodes go: upstream's methods in upstream's order, what each is called, and what it may ignore.

use std::fmt;

/// A way to find nodes that should go. The order of the variants is the order in which they are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Method {
    /// Broken nodes are replaced or rebooted.
    Repair,
    /// Nodes whose pods cost nothing to evict are deleted.
    Emptiness,
    /// Outdated nodes of static NodePools are replaced.
    StaticDrift,
    /// Outdated nodes are replaced.
    Drift,
    /// Several nodes are deleted, or replaced by one that is cheaper.
    MultiNodeConsolidation,
    /// One node is deleted, or replaced by one that is cheaper.
    SingleNodeConsolidation,
    /// Several nodes are replaced by several that are cheaper. Ours: upstream has no such move.
    Repack,
}

impl Method {
    /// All methods, in the order they are asked.
    pub const ALL: [Self; 7] = [
        Self::Repair,
        Self::Emptiness,
        Self::StaticDrift,
        Self::Drift,
        Self::MultiNodeConsolidation,
        Self::SingleNodeConsolidation,
        Self::Repack,
    ];

    /// The reason budgets, conditions and events name.
    pub fn reason(self) -> Reason {
        match self {
            Self::Repair => Reason::Unhealthy,
            Self::Emptiness => Reason::Empty,
            Self::StaticDrift | Self::Drift => Reason::Drifted,
            Self::MultiNodeConsolidation | Self::SingleNodeConsolidation | Self::Repack => Reason::Underutilized,
        }
    }

    /// What keeps a node from being a candidate of this method.
    pub fn class(self) -> Class {
        match self {
            Self::Repair => Class::Repair,
            Self::StaticDrift | Self::Drift => Class::Eventual,
            _ => Class::Graceful,
        }
    }

    /// The value of the metrics' label `consolidation_type`; empty where upstream's is.
    pub fn consolidation_type(self) -> &'static str {
        match self {
            Self::Repair | Self::StaticDrift | Self::Drift => "",
            Self::Emptiness => "empty",
            Self::MultiNodeConsolidation | Self::Repack => "multi",
            Self::SingleNodeConsolidation => "single",
        }
    }

    /// Whether a command waits, and is validated once more, before anybody acts on it.
    pub fn is_validated(self) -> bool {
        !self.consolidation_type().is_empty()
    }

    /// Whether the method is about cost, so that a cluster in which nothing changed need not be asked again.
    pub fn is_consolidation(self) -> bool {
        !self.consolidation_type().is_empty()
    }
}

/// Why a node goes, as budgets and the condition `DisruptionReason` spell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// It costs more than it is worth.
    Underutilized,
    /// Nothing on it needs a place.
    Empty,
    /// It is not what its NodePool asks for now.
    Drifted,
    /// It is broken.
    Unhealthy,
}

impl Reason {
    /// All reasons a budget may name.
    pub const ALL: [Self; 4] = [Self::Underutilized, Self::Empty, Self::Drifted, Self::Unhealthy];

    /// As budgets and conditions spell it. Metrics use the lower-case form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Underutilized => "Underutilized",
            Self::Empty => "Empty",
            Self::Drifted => "Drifted",
            Self::Unhealthy => "Unhealthy",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How much respect a method owes to what runs on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Budgets of pods and `do-not-disrupt` keep the node.
    Graceful,
    /// They do not, once the claim bounds how long its drain may take.
    Eventual,
    /// Neither do they for a broken node, nor does `do-not-disrupt` on the node itself.
    Repair,
}

impl Class {
    /// How many there are.
    pub(crate) const COUNT: usize = 3;
}

/// What a command comes to, as events and metrics spell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decision {
    /// The nodes go, others take their pods.
    Delete,
    /// New nodes come first.
    Replace,
    /// The node goes although its replacement could not be launched first.
    TerminateFirst,
    /// The node is rebooted in place.
    Reboot,
}

impl Decision {
    /// As events and metrics spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Replace => "replace",
            Self::TerminateFirst => "terminate-first",
            Self::Reboot => "reboot",
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Why no replacement could be launched first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TerminateFirst {
    /// The only place for the replacement is the reservation slot that the node holds.
    NoReservedCapacity,
    /// The static NodePool is at its node limit.
    StaticAtLimit,
}

impl TerminateFirst {
    /// The value of the metrics' label `terminate_first_reason`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoReservedCapacity => "no-reserved-capacity",
            Self::StaticAtLimit => "static-at-limit",
        }
    }
}
