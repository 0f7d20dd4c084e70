//! What we mean to do with machines, and for which pods they are meant: kept here, not in the API. A mark dies with its
//! object.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use model::{
    object::{NodeClaim, NodeClaimName, ObjectKey, ProviderId, Text},
    snapshot::machine_of_claim,
};
use rustc_hash::FxHashMap;

use crate::{Change, State, Transition};

/// After this long without a change, consolidation looks again: prices and offers may have moved unseen.
const CONSOLIDATION_REST: SignedDuration = SignedDuration::from_mins(5);
const LEAST_NOMINATION: Duration = Duration::from_secs(10);
/// So many claims that went are remembered by their names.
const REMEMBERED: usize = 4096;

/// All marks.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    to_be_deleted: BTreeSet<Text>,
    pending_disruption: BTreeSet<Text>,
    nominated_until: FxHashMap<Text, Timestamp>,
    buffer_pods: BTreeMap<ProviderId, usize>,
    consolidation: Consolidation,
    gone: GoneClaims,
}

/// The names of the last claims that went.
#[derive(Debug, Default)]
struct GoneClaims {
    names: BTreeSet<Text>,
    oldest_first: VecDeque<Text>,
}

impl GoneClaims {
    fn insert(&mut self, name: &Text) {
        if self.names.insert(name.clone()) {
            self.oldest_first.push_back(name.clone());
        }
        if self.oldest_first.len() > REMEMBERED
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.names.remove(&oldest);
        }
    }
}

/// When the cluster last changed in a way that may make consolidation possible.
#[derive(Debug, Default)]
struct Consolidation {
    at: Timestamp,
    /// It has changed since somebody last asked.
    is_changed: bool,
}

/// How long a node that got pods in a plan is kept from being disrupted: twice the longest batch, at least 10 s.
pub fn nomination_window(batch_max_duration: Duration) -> Duration {
    LEAST_NOMINATION.max(batch_max_duration * 2)
}

impl Marks {
    pub(crate) fn is_to_be_deleted(&self, claim: &str) -> bool {
        self.to_be_deleted.contains(claim)
    }

    pub(crate) fn is_pending_disruption(&self, claim: &str) -> bool {
        self.pending_disruption.contains(claim)
    }

    pub(crate) fn forget_claim(&mut self, claim: &Text) {
        self.to_be_deleted.remove(claim);
        self.pending_disruption.remove(claim);
        self.gone.insert(claim);
    }

    pub(crate) fn forget_machine(&mut self, id: &Text) {
        self.nominated_until.remove(id);
        self.buffer_pods.remove(&ProviderId::from(id.clone()));
    }

    pub(crate) fn tidy(&mut self, now: Timestamp) {
        self.nominated_until.retain(|_, until| *until > now);
    }
}

impl State {
    /// Marks a claim's machine for deletion: it no longer counts in its pool, and its pods need a place elsewhere. The
    /// change tells who listens to claims; none when there is no such claim or it was marked.
    pub fn mark_for_deletion(&mut self, claim: &NodeClaimName) -> Option<Change> {
        let known = self.get::<NodeClaim>(&key(claim)).cloned()?;
        let name = known.metadata.name.clone();
        self.marks.pending_disruption.remove(&name);
        self.marks.to_be_deleted.insert(name).then(|| self.remarked(&known))
    }

    /// Takes the mark back: the machine stays. One that is being deleted in the API goes all the same.
    pub fn unmark_for_deletion(&mut self, claim: &NodeClaimName) -> Option<Change> {
        let known = self.get::<NodeClaim>(&key(claim)).cloned()?;
        let was_pending = self.marks.pending_disruption.remove(claim.as_str());
        let was_marked = self.marks.to_be_deleted.remove(claim.as_str());
        (was_pending || was_marked).then(|| self.remarked(&known))
    }

    /// Marks a claim to be replaced, before its replacement is there and it is marked for deletion.
    pub fn mark_pending_disruption(&mut self, claim: &NodeClaimName) -> Option<Change> {
        let known = self.get::<NodeClaim>(&key(claim)).cloned()?;
        let name = known.metadata.name.clone();
        let is_new = !self.marks.to_be_deleted.contains(&name) && self.marks.pending_disruption.insert(name);
        is_new.then(|| self.remarked(&known))
    }

    /// Whether a claim of this name is among the last few thousand that went.
    pub fn is_gone(&self, claim: &str) -> bool {
        self.marks.gone.names.contains(claim)
    }

    /// The claims we marked for deletion, whether or not the API knows of it yet.
    pub fn marked_for_deletion(&self) -> impl Iterator<Item = NodeClaimName> {
        self.marks.to_be_deleted.iter().cloned().map(NodeClaimName::from)
    }

    /// Keeps a machine that got pods in a plan from being disrupted for a while; again, for longer. Nothing when there is
    /// no such machine. `id` is its provider ID, or the name of a node that has none.
    pub fn nominate(&mut self, id: &str, now: Timestamp, window: Duration) {
        let until = SignedDuration::try_from(window)
            .ok()
            .and_then(|window| now.checked_add(window).ok());
        if self.machine(id).is_some() {
            self.marks
                .nominated_until
                .insert(id.into(), until.unwrap_or(Timestamp::MAX));
        }
    }

    /// Whether a machine is about to get pods.
    pub fn is_nominated(&self, id: &str, now: Timestamp) -> bool {
        self.marks.nominated_until.get(id).is_some_and(|until| *until > now)
    }

    /// The machines that are about to get pods, in no order that means anything.
    pub fn nominated(&self, now: Timestamp) -> impl Iterator<Item = ProviderId> {
        let nominated = self.marks.nominated_until.iter();
        let nominated = nominated.filter(move |(_, until)| **until > now);
        nominated.map(|(id, _)| ProviderId::from(id.clone()))
    }

    /// On which machines the last plan put how many pods of capacity buffers, instead of what was known.
    pub fn set_buffer_pods(&mut self, counts: BTreeMap<ProviderId, usize>) {
        self.marks.buffer_pods = counts;
    }

    /// On which machines the last plan put how many pods of capacity buffers.
    pub fn all_buffer_pods(&self) -> &BTreeMap<ProviderId, usize> {
        &self.marks.buffer_pods
    }

    /// How many pods of capacity buffers the last plan put on a machine.
    pub fn buffer_pods(&self, id: &ProviderId) -> usize {
        self.marks.buffer_pods.get(id).copied().unwrap_or(0)
    }

    /// Says that something changed that may make consolidation possible. The state does so itself for what it sees; others
    /// do for what it does not, as for overlays that were put into force.
    pub fn mark_unconsolidated(&mut self) {
        self.marks.consolidation.is_changed = true;
    }

    /// When the cluster last changed in a way that may make consolidation possible, as seen by who asks; at most five
    /// minutes ago. Later than the last answer exactly when there is something to look at.
    pub fn consolidation_state(&mut self, now: Timestamp) -> Timestamp {
        let consolidation = &mut self.marks.consolidation;
        let is_old = now.duration_since(consolidation.at) >= CONSOLIDATION_REST;
        if std::mem::take(&mut consolidation.is_changed) || is_old {
            let just_after = consolidation.at.checked_add(SignedDuration::from_nanos(1));
            consolidation.at = now.max(just_after.unwrap_or(now));
        }
        consolidation.at
    }

    /// The machine of a claim counts differently now; whoever listens hears of the claim, which is as it was.
    fn remarked(&mut self, claim: &Arc<NodeClaim>) -> Change {
        if let Some(id) = machine_of_claim(claim).cloned() {
            self.recount(&id);
        }
        self.settle(claim);
        let same = Some(Arc::clone(claim));
        Change::NodeClaim(Transition {
            before: same.clone(),
            after: same,
        })
    }
}

fn key(claim: &NodeClaimName) -> ObjectKey {
    ObjectKey::cluster_scoped(claim.as_str())
}
