//! Asks for a reboot: written on the claim, where the controller that carries it out finds it.

use api::{
    annotations::REBOOT_TERMINATION_GRACE_PERIOD,
    condition::names::nodeclaim::{DISRUPTION_REASON, REBOOT_REQUESTED, REBOOTING, TYPES},
    duration::Duration,
};
use disruption::{Candidate, Reason};
use jiff::{SignedDuration, Timestamp};
use model::object::{Labels, NodeClaim, ObjectKey, condition};

use super::memory::Memory;
use crate::{Cluster, Problem, conditions, patch::Lock};

/// Asks for the reboot of a candidate's machine; false when it is gone, going, or rebooting already.
pub(super) async fn commit(cluster: &Cluster, memory: &Memory, candidate: &Candidate) -> Result<bool, Problem> {
    let key = ObjectKey::cluster_scoped(candidate.claim.as_str());
    let fresh: NodeClaim = match cluster.api().get(&key).await {
        Err(error) if error.is_not_found() => return Ok(false),
        read => read?,
    };
    if fresh.metadata.is_deleting() || condition::holds(&fresh.status.conditions, REBOOTING) {
        return Ok(false);
    }
    let bound = bound_of(candidate.drain_bound, &fresh);
    let written = cluster.update(&fresh, &bounded(&fresh, bound), Lock::Version).await?;
    let claim = written.unwrap_or(fresh);
    let why = candidate.repair.as_ref();
    let why = why.map(|repair| format!("rebooting for {}/{}", repair.condition, repair.reason));
    let now = cluster.now();
    let after = requested(&claim, &why.unwrap_or_default(), now);
    cluster.update_status(&claim, &after, Lock::Version).await?;
    memory.rebooted(&claim.metadata.uid, now);
    Ok(true)
}

/// How long the drain before a reboot may take: as long as the repair policy says, or else as the claim does.
fn bound_of(policy: Option<SignedDuration>, claim: &NodeClaim) -> Option<Duration> {
    let policy = policy.and_then(|bound| i64::try_from(bound.as_nanos()).ok());
    policy.map(Duration::from_nanos).or(claim.spec.termination_grace_period)
}

/// The claim with the bound its drain has, and no other.
fn bounded(claim: &NodeClaim, bound: Option<Duration>) -> NodeClaim {
    let mut after = claim.clone();
    let others = claim.metadata.annotations.iter();
    let others = others
        .filter(|(key, _)| **key != *REBOOT_TERMINATION_GRACE_PERIOD)
        .cloned();
    let bound = bound.map(|bound| (REBOOT_TERMINATION_GRACE_PERIOD.into(), bound.to_string().into()));
    after.metadata.annotations = Labels::from_pairs(others.chain(bound).collect());
    after
}

fn requested(claim: &NodeClaim, message: &str, now: Timestamp) -> NodeClaim {
    let mut after = claim.clone();
    let reason = Reason::Unhealthy.as_str();
    let (metadata, list) = (&claim.metadata, &mut after.status.conditions);
    conditions::change(TYPES, metadata, list, now, |set| {
        set.set_true_with_reason(DISRUPTION_REASON, reason, reason);
        set.set_true_with_reason(REBOOTING, REBOOT_REQUESTED, message);
    });
    after
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reboot_drains_for_as_long_as_its_policy_says_or_else_its_claim() {
        let claim = |spec| -> NodeClaim { serde_json::from_value(json!({"spec": spec})).unwrap() };
        let hour = claim(json!({"terminationGracePeriod": "1h"}));
        let minutes = |bound: Option<Duration>| bound.map(|bound| bound.to_signed().as_mins());
        assert_eq!(minutes(bound_of(Some(SignedDuration::from_mins(5)), &hour)), Some(5));
        assert_eq!(minutes(bound_of(None, &hour)), Some(60));
        assert_eq!(minutes(bound_of(None, &claim(json!({})))), None);
    }

    #[test]
    fn the_bound_of_a_drain_is_written_and_a_stale_one_is_not_kept() {
        let claim: NodeClaim = serde_json::from_value(json!({"metadata": {"annotations": {"a": "b"}}})).unwrap();
        let five = bounded(&claim, Some(Duration::from_secs(300)));
        let written = five.metadata.annotations.get(REBOOT_TERMINATION_GRACE_PERIOD);
        assert_eq!(written.map(|text| &**text), Some("5m0s"));
        assert_eq!(bounded(&five, None), claim);
    }
}
