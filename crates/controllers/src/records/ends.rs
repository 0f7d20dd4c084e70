//! Claims that end for a reason of their own: too old, without a machine, never launched, too many.

use cloud::NoticeKind;
use ledger::{Action, Id, Money, Phase, Record, Target, Usd};
use model::object::NodeClaim;

use super::launches::price_of;
use crate::{
    Cluster,
    node_claim::{Reason, label},
};

fn word(reason: Reason) -> &'static str {
    match reason {
        Reason::InsufficientCapacity => "InsufficientCapacity",
        Reason::NodeClassNotReady => "NodeClassNotReady",
        Reason::LaunchTimeout => "LaunchTimeout",
        Reason::RegistrationTimeout => "RegistrationTimeout",
        Reason::Expired => "Expired",
        Reason::GarbageCollected => "GarbageCollected",
        Reason::Unhealthy => "Unhealthy",
        Reason::Interrupted(_) => "Interrupted",
    }
}

/// What of the reason its word does not say: which notice it was.
fn detail(reason: Reason) -> &'static str {
    let Reason::Interrupted(kind) = reason else { return "" };
    match kind {
        NoticeKind::SpotInterruption => "spot interruption",
        NoticeKind::Rebalance => "rebalance recommendation",
        NoticeKind::ScheduledChange | NoticeKind::Impaired => "health warning",
        NoticeKind::Stopping => "stopping instance",
        NoticeKind::Terminating => "terminating instance",
        NoticeKind::ReservationInterruption => "reservation interruption",
    }
}

/// Whether a launch failed, rather than that a node ends.
fn is_failed_launch(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::InsufficientCapacity | Reason::NodeClassNotReady | Reason::LaunchTimeout | Reason::RegistrationTimeout
    )
}

/// Writes down that a claim was deleted.
pub(crate) fn ended(cluster: &Cluster, claim: &NodeClaim, reason: Reason) {
    if !cluster.book().is_on() {
        return;
    }
    let now = cluster.now();
    let of_claim = claim.metadata.annotations.get(api::annotations::DECISION);
    let launch: Option<Id> = of_claim.and_then(|text| text.parse().ok());
    if let Some(launch) = launch.filter(|_| is_failed_launch(reason)) {
        let mut pages = cluster.book().pages();
        let is_known = pages.ring.change(launch, |record| {
            if record.action == Action::Launch {
                record.phase = Phase::Aborted;
                word(reason).clone_into(&mut record.reason);
            }
            record.step(word(reason), now);
        });
        if is_known {
            return;
        }
    }
    gone(cluster, claim, word(reason), detail(reason));
}

/// Writes down that a static pool has one node less.
pub(crate) fn scaled_down(cluster: &Cluster, claim: &NodeClaim) {
    if cluster.book().is_on() {
        gone(cluster, claim, "ScaledDown", "");
    }
}

fn gone(cluster: &Cluster, claim: &NodeClaim, reason: &str, detail: &str) {
    let (name, now) = (&*claim.metadata.name, cluster.now());
    let id = Id::of("delete", [name]);
    let mut target = Target {
        node: claim
            .status
            .node_name
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        claim: name.to_owned(),
        instance_type: label(claim, api::labels::INSTANCE_TYPE).to_owned(),
        zone: label(claim, api::labels::ZONE).to_owned(),
        capacity: label(claim, api::labels::CAPACITY_TYPE).to_owned(),
        ..Target::default()
    };
    let (price, pods) = cluster.look(|state| {
        let pods = state.pods_on_node(&target.node).count();
        (price_of(state.catalog(), &target), pods)
    });
    target.usd_h = price.map(Usd::from);
    let mut pages = cluster.book().pages();
    if pages.leaving.contains_key(name) {
        // A command takes it already.
        return;
    }
    let mut record = Record::new(id, Action::Delete, Phase::UnderWay, reason, now);
    label(claim, api::labels::NODEPOOL).clone_into(&mut record.pool);
    detail.clone_into(&mut record.detail);
    record.nodes = 1;
    record.money = target.usd_h.map(|price| Money {
        before_usd_h: price,
        after_usd_h: Usd(0),
    });
    record.pod_count = pods;
    record.targets = vec![target];
    record.step("planned", now);
    pages.ring.put(record);
    pages.leave(id, [name]);
}
