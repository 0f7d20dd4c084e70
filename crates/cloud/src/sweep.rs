//! Machines without a claim, and claims without a machine: which of them may be acted on?
//!
//! A cloud's list lags behind its launches, so nothing follows from one look: what is missing must be old enough and
//! missing twice in a row. And because a broken list could condemn a whole fleet, only so many machines go at a time.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use api::condition::names::nodeclaim::LAUNCHED;
use jiff::Timestamp;
use model::object::{ConditionStatus, NodeClaim, NodeClaimName, ProviderId, Uid};

use crate::Instance;

/// How old a machine or a launch must be before its counterpart can be missed.
pub const GRACE: Duration = Duration::from_secs(90);
/// The time over which deletions are counted.
const WINDOW: Duration = Duration::from_mins(5);
/// Deletions within the window that are always allowed.
const ALWAYS: usize = 10;

/// What earlier looks have shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Machines that had no claim at the last look, and since when.
    orphans: BTreeMap<ProviderId, Timestamp>,
    /// Claims that had no machine at the last look.
    bereft: BTreeSet<Uid>,
    /// Machines that were condemned, and when first.
    condemned: BTreeMap<ProviderId, Timestamp>,
}

/// What follows from a look.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Findings {
    /// Machines to delete, the oldest first.
    pub delete: Vec<Instance>,
    /// Machines without a claim that stay for now.
    pub held: Vec<(ProviderId, Held)>,
    /// Claims whose machine is gone. Whether their node is still Ready is for the caller to see.
    pub bereft: Vec<NodeClaimName>,
}

/// Why a machine without a claim stays for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Held {
    /// Its claim may not have been seen yet.
    #[error("launched less than {} s ago; its NodeClaim may not have been seen yet", GRACE.as_secs())]
    Young,
    /// It was seen without a claim for the first time.
    #[error("seen without a NodeClaim for the first time; it is deleted if the next look agrees")]
    SeenOnce,
    /// Nothing says which claim it was for.
    #[error("tagged as ours but for no NodeClaim; delete it by hand if nobody needs it")]
    Untagged,
    /// Enough machines were deleted.
    #[error("{limit} machines without a NodeClaim were deleted within {} min already; it waits", WINDOW.as_secs() / 60)]
    TooMany {
        /// How many may go within five minutes.
        limit: usize,
    },
}

impl Sweep {
    /// Looks at all machines of this cluster and all claims. The claims must be complete, and read after the machines
    /// were listed: a claim is created before its machine.
    pub fn look<'a>(
        &mut self,
        instances: &[Instance],
        claims: impl IntoIterator<Item = &'a NodeClaim>,
        now: Timestamp,
    ) -> Findings {
        let claims: Vec<&NodeClaim> = claims.into_iter().collect();
        let (delete, held) = self.machines(instances, &claims, now);
        let bereft = self.claims(instances, &claims, now);
        Findings { delete, held, bereft }
    }

    fn machines(
        &mut self,
        instances: &[Instance],
        claims: &[&NodeClaim],
        now: Timestamp,
    ) -> (Vec<Instance>, Vec<(ProviderId, Held)>) {
        let owners = Owners::of(claims);
        let mut orphans: Vec<_> = instances
            .iter()
            .filter(|instance| !instance.is_terminating && !owners.own(instance))
            .collect();
        orphans.sort_by_key(|instance| (instance.launched_at, instance.provider_id.clone()));
        let before = std::mem::take(&mut self.orphans);
        for orphan in &orphans {
            let since = before.get(&orphan.provider_id).copied().unwrap_or(now);
            self.orphans.insert(orphan.provider_id.clone(), since);
        }
        self.condemned.retain(|_, at| is_within(*at, now, WINDOW));
        let limit = ALWAYS.max(instances.len() / 10);
        let (mut delete, mut held) = (Vec::new(), Vec::new());
        for orphan in orphans {
            let was_orphan = before.contains_key(&orphan.provider_id);
            if let Some(reason) = self.reason_to_hold(orphan, was_orphan, limit, now) {
                held.push((orphan.provider_id.clone(), reason));
            } else {
                self.condemned.entry(orphan.provider_id.clone()).or_insert(now);
                delete.push(orphan.clone());
            }
        }
        (delete, held)
    }

    fn reason_to_hold(&self, orphan: &Instance, was_orphan: bool, limit: usize, now: Timestamp) -> Option<Held> {
        let id = &orphan.provider_id;
        let since = orphan
            .launched_at
            .or_else(|| self.orphans.get(id).copied())
            .unwrap_or(now);
        if is_within(since, now, GRACE) {
            return Some(Held::Young);
        }
        if orphan.claim.is_none() && orphan.claim_uid.is_none() {
            return Some(Held::Untagged);
        }
        if !was_orphan {
            return Some(Held::SeenOnce);
        }
        let is_new = !self.condemned.contains_key(id);
        (is_new && self.condemned.len() >= limit).then_some(Held::TooMany { limit })
    }

    fn claims(&mut self, instances: &[Instance], claims: &[&NodeClaim], now: Timestamp) -> Vec<NodeClaimName> {
        let staying: BTreeSet<&ProviderId> = instances
            .iter()
            .filter(|instance| !instance.is_terminating)
            .map(|instance| &instance.provider_id)
            .collect();
        let is_missing = |claim: &&&NodeClaim| {
            let id = claim.status.provider_id.as_ref();
            id.is_some_and(|id| !staying.contains(id)) && !is_within(launched_at(claim, now), now, GRACE)
        };
        let missing: Vec<_> = claims.iter().filter(is_missing).collect();
        let uids = missing.iter().map(|claim| claim.metadata.uid.clone()).collect();
        let before = std::mem::replace(&mut self.bereft, uids);
        let missed_twice = missing.into_iter().filter(|claim| before.contains(&claim.metadata.uid));
        missed_twice.map(|claim| claim.name()).collect()
    }
}

/// Whose machines are whose: by the recorded machine or the tagged identity. A name alone proves nothing while the
/// identity is known, because names are used again.
struct Owners<'a> {
    machines: BTreeSet<&'a ProviderId>,
    uids: BTreeSet<&'a Uid>,
    names: BTreeSet<&'a str>,
}

impl<'a> Owners<'a> {
    fn of(claims: &[&'a NodeClaim]) -> Self {
        Self {
            machines: claims.iter().filter_map(|it| it.status.provider_id.as_ref()).collect(),
            uids: claims.iter().map(|it| &it.metadata.uid).collect(),
            names: claims.iter().map(|it| &*it.metadata.name).collect(),
        }
    }

    fn own(&self, instance: &Instance) -> bool {
        let by_tag = match (&instance.claim_uid, &instance.claim) {
            (Some(uid), _) => self.uids.contains(uid),
            (None, Some(name)) => self.names.contains(name.as_str()),
            (None, None) => false,
        };
        by_tag || self.machines.contains(&instance.provider_id)
    }
}

/// When a claim's machine was launched; a launch whose time is not known is as young as can be.
fn launched_at(claim: &NodeClaim, now: Timestamp) -> Timestamp {
    let launched = claim
        .condition(LAUNCHED)
        .filter(|it| it.status == ConditionStatus::True);
    launched.and_then(|it| it.last_transition_time).unwrap_or(now)
}

fn is_within(past: Timestamp, now: Timestamp, span: Duration) -> bool {
    let age = now.duration_since(past);
    age.is_negative() || age.unsigned_abs() < span
}

#[cfg(test)]
mod tests;
