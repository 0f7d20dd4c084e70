//! How does it go on? Claims tell: launched, registered, ready; drained, gone.

use std::sync::{Arc, Weak};

use api::{
    annotations::DECISION,
    condition::names::nodeclaim::{DRAINED, INITIALIZED, LAUNCHED, REGISTERED},
    labels::{CAPACITY_TYPE, INSTANCE_TYPE, ZONE},
};
use jiff::Timestamp;
use ledger::{Action, Id, Money, Phase, Record, Usd};
use model::{
    object::{NodeClaim, condition},
    snapshot::Catalog,
};
use state::{Change, Transition};

use super::{book::Pages, launches::price_of};
use crate::Cluster;

/// The conditions that are steps, and the words for them.
const STEPS: [(&str, &str); 3] = [
    (LAUNCHED, "launched"),
    (REGISTERED, "registered"),
    (INITIALIZED, "ready"),
];

/// From now on, follows what becomes of decisions.
pub(crate) fn follow(cluster: &Arc<Cluster>) {
    if !cluster.book().is_on() {
        return;
    }
    let weak: Weak<Cluster> = Arc::downgrade(cluster);
    cluster.listen(Box::new(move |change, state| {
        let Change::NodeClaim(claim) = change else { return };
        if let Some(cluster) = weak.upgrade() {
            seen(&mut cluster.book().pages(), claim, state.catalog(), cluster.now());
        }
    }));
}

fn holds(claim: Option<&Arc<NodeClaim>>, kind: &str) -> bool {
    claim.is_some_and(|claim| condition::holds(&claim.status.conditions, kind))
}

fn seen(pages: &mut Pages, claim: &Transition<NodeClaim>, catalog: &Catalog, now: Timestamp) {
    let Some(latest) = claim.latest() else { return };
    let name = &*latest.metadata.name;
    let decision = latest.metadata.annotations.get(DECISION);
    let decision: Option<Id> = decision.and_then(|text| text.parse().ok());
    let becomes = |kind: &str| !holds(claim.before.as_ref(), kind) && holds(claim.after.as_ref(), kind);
    let new: Vec<&str> = STEPS
        .iter()
        .filter(|(kind, _)| becomes(kind))
        .map(|(_, step)| *step)
        .collect();
    if let Some(id) = decision.filter(|_| !new.is_empty()) {
        pages.ring.change(id, |record| came(record, latest, &new, catalog, now));
    }
    if becomes(DRAINED)
        && let Some(id) = pages.leaving.get(name).copied()
    {
        pages.ring.change(id, |record| record.step("drained", now));
    }
    if claim.is_gone() {
        pages.left(name, now);
        if let Some(id) = decision {
            lost(pages, id, now);
        }
    }
}

/// A claim has come a step further.
fn came(record: &mut Record, claim: &NodeClaim, steps: &[&str], catalog: &Catalog, now: Timestamp) {
    for step in steps {
        record.step(step, now);
    }
    let label = |key: &str| claim.metadata.labels.get(key).map(ToString::to_string);
    let mut targets = record.targets.iter_mut();
    if let Some(target) = targets.find(|target| *target.claim == *claim.metadata.name) {
        for (to, key) in [
            (&mut target.instance_type, INSTANCE_TYPE),
            (&mut target.zone, ZONE),
            (&mut target.capacity, CAPACITY_TYPE),
        ] {
            if let Some(value) = label(key) {
                *to = value;
            }
        }
        if let Some(node) = &claim.status.node_name {
            target.node = node.to_string();
        }
        if let Some(price) = price_of(catalog, target) {
            target.usd_h = Some(price.into());
        }
        if record.action == Action::Launch
            && let Some(price) = target.usd_h
        {
            record.money = Some(Money {
                before_usd_h: Usd(0),
                after_usd_h: price,
            });
        }
    }
    if record.action == Action::Launch && steps.contains(&"ready") {
        record.phase = Phase::Done;
    }
}

/// A claim is gone that was to come.
fn lost(pages: &mut Pages, id: Id, now: Timestamp) {
    let is_open = pages
        .ring
        .get(id)
        .is_some_and(|record| record.action == Action::Launch && record.phase == Phase::UnderWay);
    if is_open {
        pages.ring.change(id, |record| {
            record.phase = Phase::Aborted;
            if record.detail.is_empty() {
                "its NodeClaim was deleted before its node was ready".clone_into(&mut record.detail);
            }
            record.step("given up", now);
        });
    }
}
