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
    let new: Vec<(&str, Timestamp)> = STEPS
        .iter()
        .filter(|(kind, _)| becomes(kind))
        .map(|(_, step)| (*step, now))
        .collect();
    if let Some(id) = decision.filter(|_| !new.is_empty()) {
        pages.ring.change(id, |record| came(record, latest, &new, catalog));
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

/// Takes up launches that went on while nobody looked; when, their claims say.
pub(super) fn catch_up(pages: &mut Pages, claim: &NodeClaim, catalog: &Catalog) {
    let decision = claim.metadata.annotations.get(DECISION);
    let decision: Option<Id> = decision.and_then(|text| text.parse().ok());
    let open = |id: &Id| {
        pages
            .ring
            .get(*id)
            .is_some_and(|record| record.phase == Phase::UnderWay)
    };
    let Some(id) = decision.filter(open) else { return };
    let steps = STEPS.iter().filter_map(|(kind, step)| {
        let condition = condition::find(&claim.status.conditions, kind)?;
        let at = condition
            .last_transition_time
            .filter(|_| condition::holds(&claim.status.conditions, kind))?;
        Some((*step, at))
    });
    let steps: Vec<_> = steps.collect();
    if !steps.is_empty() {
        pages.ring.change(id, |record| came(record, claim, &steps, catalog));
    }
}

/// A claim has come a step further.
fn came(record: &mut Record, claim: &NodeClaim, steps: &[(&str, Timestamp)], catalog: &Catalog) {
    for (step, at) in steps {
        record.step(step, *at);
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
    if record.action == Action::Launch && steps.iter().any(|(step, _)| *step == "ready") {
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

#[cfg(test)]
mod tests {
    use ledger::Target;
    use serde_json::json;

    use super::*;

    fn claim(id: Id, conditions: &[(&str, &str)]) -> Arc<NodeClaim> {
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(kind, at)| json!({"type": kind, "status": "True", "lastTransitionTime": at}))
            .collect();
        let claim = json!({
            "metadata": {"name": "general-x7k2p", "annotations": {DECISION: id.to_string()},
                "labels": {INSTANCE_TYPE: "m7g.large", ZONE: "1c", CAPACITY_TYPE: "spot"}},
            "status": {"nodeName": "ip-1", "conditions": conditions},
        });
        Arc::new(serde_json::from_value(claim).unwrap())
    }

    fn launching() -> (Pages, Id) {
        let id = Id::of("launch", ["general-x7k2p"]);
        let mut record = Record::new(
            id,
            Action::Launch,
            Phase::UnderWay,
            "Provisioned",
            Timestamp::UNIX_EPOCH,
        );
        record.targets = vec![Target {
            claim: "general-x7k2p".to_owned(),
            comes: true,
            ..Target::default()
        }];
        let mut pages = Pages::default();
        pages.ring.put(record);
        (pages, id)
    }

    const UP: [(&str, &str); 2] = [
        (LAUNCHED, "2026-11-16T10:00:10Z"),
        (INITIALIZED, "2026-11-16T10:00:40Z"),
    ];

    #[test]
    fn a_launch_is_followed_until_its_node_is_ready_and_told_as_what_it_became() {
        let (mut pages, id) = launching();
        let now = "2026-11-16T10:00:41Z".parse().unwrap();
        let change = Transition {
            before: Some(claim(id, &UP[..1])),
            after: Some(claim(id, &UP)),
        };
        seen(&mut pages, &change, &Catalog::default(), now);
        let record = pages.ring.get(id).unwrap();
        assert_eq!(
            (record.phase, record.steps.len(), record.steps[0].at),
            (Phase::Done, 1, now)
        );
        assert_eq!(record.targets[0].to_string(), "m7g.large spot in 1c");
        assert_eq!(record.targets[0].node, "ip-1");
    }

    #[test]
    fn a_claim_that_goes_before_its_node_is_ready_ends_its_launch() {
        let (mut pages, id) = launching();
        let change = Transition {
            before: Some(claim(id, &UP[..1])),
            after: None,
        };
        seen(&mut pages, &change, &Catalog::default(), Timestamp::UNIX_EPOCH);
        let record = pages.ring.get(id).unwrap();
        assert_eq!((record.phase, record.word()), (Phase::Aborted, "aborted"));
    }

    #[test]
    fn what_went_on_while_nobody_looked_has_the_times_of_the_claim() {
        let (mut pages, id) = launching();
        catch_up(&mut pages, &claim(id, &UP), &Catalog::default());
        let record = pages.ring.get(id).unwrap();
        let steps: Vec<_> = record
            .steps
            .iter()
            .map(|step| (&*step.step, step.at.to_string()))
            .collect();
        let expected = [("launched", "2026-11-16T10:00:10Z"), ("ready", "2026-11-16T10:00:40Z")];
        assert_eq!(steps, expected.map(|(step, at)| (step, at.to_owned())));
        assert_eq!(record.phase, Phase::Done);
    }
}
