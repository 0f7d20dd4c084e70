//! Why a node stays: the rule that stopped it, what it would have saved, and the smallest change that lifts it.
//!
//! Upstream says most of this in events; their texts are rendered from the same data.

use std::fmt;

use api::{
    annotations::{DO_NOT_DISRUPT, DO_NOT_REPAIR},
    labels::NODEPOOL,
};
use jiff::Timestamp;
use model::{
    eviction::Protection,
    object::{InstanceTypeName, NodeClaimName, NodeName, NodePoolName, ObjectKey, Text},
    price::Price,
};

use crate::{
    command::{PoolScore, Saving},
    method::{Method, Reason},
};

/// Why a node stays.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The node, or the claim's name while it has none.
    pub node: NodeName,
    /// Its claim; none for nodes of somebody else's.
    pub claim: Option<NodeClaimName>,
    /// Its pool, where it is known.
    pub node_pool: Option<NodePoolName>,
    /// The method that would have taken it; none when no method would.
    pub method: Option<Method>,
    /// The rule that stopped it.
    pub rule: Rule,
    /// What an hour without the node, or with the replacement that was found, would have saved at most.
    pub would_save: Option<Price>,
    /// The smallest change that lifts this rule; another may stop the node then.
    pub fix: Option<Fix>,
}

/// A change somebody could make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// The kind of what to change.
    pub kind: &'static str,
    /// Which one.
    pub object: ObjectKey,
    /// What to change, in the imperative.
    pub change: String,
}

impl fmt::Display for Fix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.kind, self.object, self.change)
    }
}

/// The rules that keep nodes.
#[derive(Debug, Clone, PartialEq)]
pub enum Rule {
    /// A command is under way for it.
    InQueue,
    /// Only for repair: a claim of no pool has no template for a replacement.
    RepairNeedsNodePool,
    /// It is nobody's claim.
    Unmanaged,
    /// The claim has no node.
    NoNode,
    /// It reboots.
    Rebooting,
    /// It goes already.
    Leaving,
    /// It has not joined.
    NotRegistered,
    /// Not all of it is up.
    NotInitialized,
    /// A recent plan relies on it.
    Nominated,
    /// `karpenter.sh/do-not-disrupt` on the node.
    DoNotDisrupt,
    /// It names no pool.
    NoNodePoolLabel,
    /// The pool it names is not there, or offers nothing.
    NodePoolNotFound(NodePoolName),
    /// A pod is protected.
    ProtectedPod {
        /// The pod.
        pod: ObjectKey,
        /// By what.
        protection: Protection,
    },
    /// Budgets of pods allow no eviction.
    PodBudgets {
        /// The pod.
        pod: ObjectKey,
        /// Its budgets: more than one always blocks.
        budgets: Vec<ObjectKey>,
    },
    /// The pool's number of nodes is fixed.
    StaticPool,
    /// The type is not offered, so nobody knows its price.
    UnknownInstanceType(InstanceTypeName),
    /// A label without which nobody knows its price.
    MissingLabel(&'static str),
    /// `consolidateAfter: Never`.
    ConsolidationDisabled,
    /// It has room for a capacity buffer.
    BufferPods,
    /// The policy is WhenEmpty, and it is not.
    OnlyWhenEmpty,
    /// Its pods have not been quiet for long enough.
    NotYetConsolidatable {
        /// When they will have been, if nothing happens.
        at: Option<Timestamp>,
    },
    /// No more nodes of the pool may go now.
    Budget {
        /// For this reason.
        reason: Reason,
        /// How many nodes may go at a time.
        allowed: u32,
        /// How many are going or are not ready.
        disrupting: u32,
        /// When the budgets next allow more, within a week.
        opens: Option<Timestamp>,
    },
    /// There is no NodePool to launch a replacement from, so upstream does not even look.
    NoNodePools,
    /// Pods would have no place.
    Unschedulable(UnschedulablePods),
    /// More than one node would have to come.
    TooManyReplacements(usize),
    /// Too few types are left at a lower price.
    MinValues(String),
    /// Whatever could replace it costs as much.
    NotCheaper,
    /// Spot nodes are not replaced by spot nodes.
    SpotToSpotDisabled,
    /// Spot nodes are replaced by spot nodes only when many types are cheaper.
    SpotFlexibility(usize),
    /// The policy Balanced finds it not worth it.
    Balanced(Vec<PoolScore>),
    /// `karpenter.sh/do-not-repair` on the node.
    DoNotRepair,
    /// Pods block the drain, and nothing bounds it.
    UnboundedDrain,
    /// Too many nodes of the pool are broken at once.
    BreakerTripped,
    /// The static pool has as many nodes as it may have.
    StaticAtLimit,
    /// The static pool's reservations are full.
    ReservationsFull,
    /// The static pool has more nodes than it should; that is settled first.
    ScaleDownFirst,
    /// Nothing changed since the method last found nothing to do.
    Settled,
    /// The round's work budget was used up; the next round begins here.
    NotLookedAt,
    /// Another command of this round came first.
    Later,
    /// People want nothing disrupted. Ours.
    Paused {
        /// In their words.
        reason: String,
        /// Until when.
        until: Option<Timestamp>,
    },
    /// It would save less than the pool asks for. Ours.
    MinimumSaving {
        /// What it would save.
        saving: Saving,
        /// What it must save at least.
        least: Price,
    },
    /// The pool went from one kind of node to another and back for the same pods. Ours.
    LoopGuard,
    /// Replacements of this pool do not come up. Ours.
    FailedReplacements(u32),
    /// So many pods are known to come within minutes, and would need it. Ours.
    NeededSoon(usize),
    /// Moving costs more than it saves before the node would end anyway. Ours.
    MovingCost,
}

/// Pods that would have no place, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnschedulablePods {
    /// In the order of their keys, at most the five that upstream names.
    pub named: Vec<(ObjectKey, Text)>,
    /// How many there are.
    pub count: usize,
}

impl fmt::Display for UnschedulablePods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not all pods would schedule, ")?;
        for (pod, why) in &self.named {
            write!(f, "{}/{} => {why} ", pod.namespace, pod.name)?;
        }
        if self.named.len() >= MOST_NAMED {
            write!(f, " and {} other(s)", self.count - MOST_NAMED)?;
        }
        Ok(())
    }
}

/// How many pods upstream names in an event.
pub(crate) const MOST_NAMED: usize = 5;

/// An event upstream publishes on the node and its claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its reason.
    pub reason: &'static str,
    /// Its message.
    pub message: String,
    /// A warning, and published on the NodePool as well.
    pub is_warning: bool,
}

impl Refusal {
    /// The event upstream publishes for it, if any.
    pub fn event(&self) -> Option<Event> {
        let event = |reason, message| Event {
            reason,
            message,
            is_warning: false,
        };
        match self.rule.voice() {
            Voice::Silent => None,
            Voice::Blocked(message) => Some(event("DisruptionBlocked", message)),
            Voice::Unconsolidatable(message) => Some(event("Unconsolidatable", message)),
            Voice::Named => {
                let (node, pool) = (&self.node, self.node_pool.as_ref().map_or("", |pool| pool.as_str()));
                Some(match &self.rule {
                    Rule::ConsolidationDisabled => event(
                        "Unconsolidatable",
                        format!("NodePool {pool:?} has consolidation disabled"),
                    ),
                    Rule::OnlyWhenEmpty => event(
                        "Unconsolidatable",
                        format!("NodePool {pool:?} has consolidation policy WhenEmpty, but node is not empty"),
                    ),
                    Rule::BufferPods => event("Unconsolidatable", format!("Node {:?} has buffer pods", node.as_str())),
                    Rule::BreakerTripped => Event {
                        reason: "NodeRepairBlocked",
                        message: format!("more than 20% of nodes in nodepool {pool:?} are unhealthy"),
                        is_warning: true,
                    },
                    Rule::Unschedulable(pods) => {
                        let is_consolidation = self.method.is_none_or(Method::is_consolidation);
                        let reason = if is_consolidation {
                            "Unconsolidatable"
                        } else {
                            "DisruptionBlocked"
                        };
                        event(reason, sentence(&pods.to_string()))
                    }
                    _ => return None,
                })
            }
        }
    }
}

/// How upstream speaks of a rule.
enum Voice {
    Silent,
    Blocked(String),
    Unconsolidatable(String),
    /// The text names the node or its pool.
    Named,
}

impl Rule {
    /// Whether it is about the node itself, so that nobody looked at its pods.
    pub fn is_about_node(&self) -> bool {
        matches!(
            self,
            Self::InQueue
                | Self::Unmanaged
                | Self::NoNode
                | Self::Rebooting
                | Self::Leaving
                | Self::NotRegistered
                | Self::NotInitialized
                | Self::Nominated
                | Self::DoNotDisrupt
                | Self::NoNodePoolLabel
                | Self::NodePoolNotFound(_)
        )
    }

    fn voice(&self) -> Voice {
        let blocked = |text: &str| Voice::Blocked(text.to_owned());
        let keys = |keys: &[ObjectKey]| keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        match self {
            Self::RepairNeedsNodePool => {
                blocked("repair requires a NodePool to construct and budget a safe replacement")
            }
            Self::NoNode => blocked("Nodeclaim does not have an associated node"),
            Self::Rebooting => blocked("Node is rebooting"),
            Self::Leaving => blocked("Node is deleting or marked for deletion"),
            Self::NotRegistered => blocked("Node isn't initialized nor registered"),
            Self::NotInitialized => blocked("Node isn't initialized"),
            Self::Nominated => blocked("Node is nominated for a pending pod"),
            Self::DoNotDisrupt => Voice::Blocked(format!(
                "Disruption is blocked through the {DO_NOT_DISRUPT:?} annotation"
            )),
            Self::NoNodePoolLabel => Voice::Blocked(format!("Node doesn't have required label (label={NODEPOOL})")),
            Self::NodePoolNotFound(pool) => Voice::Blocked(format!("NodePool not found (NodePool={pool})")),
            Self::ProtectedPod { pod, .. } => {
                Voice::Blocked(format!("Pod has {DO_NOT_DISRUPT:?} annotation (Pod={pod})"))
            }
            Self::PodBudgets { budgets, .. } if budgets.len() > 1 => Voice::Blocked(format!(
                "Eviction does not support multiple PDBs (PodDisruptionBudget(s)=[{}])",
                keys(budgets)
            )),
            Self::PodBudgets { budgets, .. } => Voice::Blocked(format!(
                "Pdb prevents pod evictions (PodDisruptionBudget=[{}])",
                keys(budgets)
            )),
            Self::UnknownInstanceType(name) => {
                Voice::Unconsolidatable(format!("Instance Type {:?} not found", name.as_str()))
            }
            Self::MissingLabel(label) => Voice::Unconsolidatable(format!("Node does not have label {label:?}")),
            Self::TooManyReplacements(count) => {
                Voice::Unconsolidatable(format!("Can't remove without creating {count} candidates"))
            }
            Self::MinValues(unmet) => Voice::Unconsolidatable(format!("Filtering by price: {unmet}")),
            Self::NotCheaper => Voice::Unconsolidatable("Can't replace with a cheaper node".to_owned()),
            Self::SpotToSpotDisabled => Voice::Unconsolidatable(
                "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node".to_owned(),
            ),
            Self::SpotFlexibility(got) => Voice::Unconsolidatable(format!(
                "SpotToSpotConsolidation requires 15 cheaper instance type options than the current candidate to \
                 consolidate, got {got}"
            )),
            Self::DoNotRepair => Voice::Blocked(format!("repair is blocked through the {DO_NOT_REPAIR:?} annotation")),
            Self::UnboundedDrain => blocked("repair requires a termination grace period to bypass blocking pods"),
            Self::StaticAtLimit => blocked("static NodePool is at its node limit and cannot stage a replacement"),
            Self::ReservationsFull => {
                blocked("static NodePool's capacity reservations are full and cannot stage a replacement")
            }
            Self::ConsolidationDisabled
            | Self::OnlyWhenEmpty
            | Self::BufferPods
            | Self::BreakerTripped
            | Self::Unschedulable(_) => Voice::Named,
            Self::InQueue
            | Self::Unmanaged
            | Self::StaticPool
            | Self::NotYetConsolidatable { .. }
            | Self::Budget { .. }
            | Self::NoNodePools
            | Self::Balanced(_)
            | Self::ScaleDownFirst
            | Self::Settled
            | Self::NotLookedAt
            | Self::Later
            | Self::Paused { .. }
            | Self::MinimumSaving { .. }
            | Self::LoopGuard
            | Self::FailedReplacements(_)
            | Self::NeededSoon(_)
            | Self::MovingCost => Voice::Silent,
        }
    }
}

/// With its first letter in upper case.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}
