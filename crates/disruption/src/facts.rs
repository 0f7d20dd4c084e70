//! What a decision must know and a snapshot cannot say: what is under way, what was tried, and what people asked for.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};
use model::{
    object::{ConditionStatus, InstanceTypeName, NodeClaimName, NodeName, NodePoolName, Pod, ProviderId, Text},
    price::Price,
};

use crate::method::Method;

/// What a snapshot cannot say. The default is a controller that has just started: nothing is under way.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Facts {
    /// Machines of commands under way, by provider ID.
    pub queued: BTreeSet<ProviderId>,
    /// Claims marked for deletion in memory, whether or not the API knows of it yet. Their nodes take no pods, their pods
    /// need a place, and they use up budgets.
    pub marked: BTreeSet<NodeClaimName>,
    /// Machines that a recent plan put pods on, by provider ID.
    pub nominated: BTreeSet<ProviderId>,
    /// How many stand-ins of capacity buffers the last plan put on a machine.
    pub buffer_pods: BTreeMap<ProviderId, usize>,
    /// What the nodes of a NodePool cost together, for the policy Balanced; where it is missing or nothing, the
    /// candidates' prices stand in. [`crate::tracked_costs`] works it out.
    pub pool_costs: BTreeMap<NodePoolName, Price>,
    /// How many claims of a static NodePool there are. A pool that is missing is counted from the snapshot.
    pub static_counts: BTreeMap<NodePoolName, StaticCount>,
    /// What the repair policies say of nodes now; nodes that need no repair are missing.
    pub repairs: BTreeMap<NodeName, Repair>,
    /// The conditions that some repair policy is about: they count for the breaker however short they have lasted.
    pub repair_conditions: BTreeSet<(Text, ConditionStatus)>,
    /// When the cluster last changed in a way that may make consolidation possible; none asks in any case.
    pub changed_at: Option<Timestamp>,
    /// The value of `changed_at` at which a method found nothing more to do. Take over [`crate::Pass::settled`].
    pub settled_at: BTreeMap<Method, Timestamp>,
    /// What a method found nothing more to do with, where budgets were in the way. Take over [`crate::Pass::constrained`].
    pub constrained: BTreeMap<Method, Constrained>,
    /// Where the last round stopped for lack of work budget. Take over [`crate::Round::rotation`].
    pub rotation: Rotation,
    /// Set while people want nothing disrupted. Provisioning goes on.
    pub pause: Option<Pause>,
    /// Pods that are known to come within minutes, such as those of CronJobs, as if they waited for a node already.
    pub expected: Vec<Arc<Pod>>,
    /// Commands that were carried out, newest last, for as long as anybody wants to remember them (an hour is enough).
    pub past_moves: Vec<PastMove>,
    /// Replacements that did not come up since one last did, by NodePool.
    pub failed_replacements: BTreeMap<NodePoolName, u32>,
}

/// How many claims a static NodePool has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct StaticCount {
    /// Claims that stay.
    pub active: u64,
    /// Claims that are marked for deletion or being deleted.
    pub deleting: u64,
    /// Claims whose replacement is on its way.
    pub pending_disruption: u64,
    /// Slots that commands under way took and did not use yet.
    pub reserved: u64,
}

/// What the repair policies say of a node.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Repair {
    /// What is to be done. Reboots that did not help before are already turned into replacements.
    pub action: RepairAction,
    /// True when they were.
    pub is_escalated: bool,
    /// The condition that decides.
    pub condition: Text,
    /// Its status.
    pub status: ConditionStatus,
    /// Its reason.
    pub reason: Text,
    /// The shortest bound of the drain that any policy due now has; none takes the claim's own.
    pub drain_bound: Option<SignedDuration>,
    /// Which goes first: the largest of rank × 30 minutes + time since it was due. One rank is half an hour of waiting.
    pub urgency: SignedDuration,
}

/// What mends a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub enum RepairAction {
    /// It is rebooted.
    Reboot,
    /// Another node takes its place.
    Replace,
}

/// Where single-node consolidation goes on when a round could not look at every candidate.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Rotation {
    /// Candidates that the last rounds did not get to, in order, with the time since which they wait.
    pub waiting: Vec<(NodeName, Timestamp)>,
}

impl Rotation {
    /// How long the candidate that waits longest has waited.
    pub fn oldest(&self, now: Timestamp) -> SignedDuration {
        let oldest = self.waiting.iter().map(|(_, since)| *since).min();
        oldest.map_or(SignedDuration::ZERO, |since| now.duration_since(since))
    }
}

/// People want nothing disrupted for a while.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Pause {
    /// Why, in their words.
    pub reason: String,
    /// Until when; none until they say so.
    pub until: Option<Timestamp>,
}

impl Pause {
    /// Whether it still holds.
    pub fn is_on(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

/// A replacement that was carried out: what a NodePool had, what came instead, and for whom.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PastMove {
    /// When it began.
    pub at: Timestamp,
    /// The pool.
    pub pool: NodePoolName,
    /// What went.
    pub removed: Vec<MachineShape>,
    /// What came, as far as it is known.
    pub launched: Vec<MachineShape>,
    /// What the pods that moved ask for, as [`crate::Command::requests_digest`] gives it.
    pub requests_digest: u64,
}

/// What a machine is, as far as its price goes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct MachineShape {
    /// Its type.
    pub instance_type: InstanceTypeName,
    /// `spot`, `on-demand` or `reserved`.
    pub capacity_type: Text,
}

/// A method found nothing more to do with what budgets left it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Constrained {
    /// The value of [`Facts::changed_at`] then.
    pub changed_at: Timestamp,
    /// How many nodes the budgets left, by pool.
    pub left: BTreeMap<NodePoolName, u32>,
}
