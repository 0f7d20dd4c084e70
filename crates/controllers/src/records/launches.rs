//! Claims that are made: for which pods, as what, and what else they might have been.

use api::labels::{CAPACITY_TYPE, ZONE};
use ledger::{Action, Id, MOST_LISTED, Money, Offer, Phase, Record, Target};
use model::{
    object::{NodeClaim, Pod},
    price::Price,
    snapshot::{Catalog, CatalogOffering},
};

use crate::{
    Cluster,
    provisioning::{claim::Draft, is_stand_in},
};

/// So many other types are named beside the one that is expected.
const RUNNERS_UP: usize = 3;

/// The id of making a claim.
pub(crate) fn id_of_claim(name: &str) -> Id {
    Id::of("launch", [name])
}

/// The decision a draft belongs to; none when nobody writes it down.
pub(crate) fn decision_of(cluster: &Cluster, draft: &Draft) -> Option<Id> {
    let own = || id_of_claim(&draft.claim.metadata.name);
    cluster.book().is_on().then(|| draft.why.decision.unwrap_or_else(own))
}

/// Writes down that a claim was made.
pub(crate) fn launched(cluster: &Cluster, draft: &Draft, claim: &NodeClaim, decision: Id) {
    let now = cluster.now();
    let target = target(draft, claim);
    if draft.why.decision.is_some() {
        cluster.book().pages().ring.change(decision, |record| {
            if record.targets.len() < 2 * MOST_LISTED {
                record.targets.push(target);
            }
            record.step("created", now);
        });
        return;
    }
    let reason = if draft.pool.is_static() {
        "StaticCapacity"
    } else {
        "Provisioned"
    };
    let mut record = Record::new(decision, Action::Launch, Phase::UnderWay, reason, now);
    record.pool = draft.pool.metadata.name.to_string();
    record.nodes = 1;
    if let Some(price) = target.usd_h {
        record.money = Some(Money {
            before_usd_h: ledger::Usd(0),
            after_usd_h: price,
        });
    }
    let pods = || draft.pods.iter().filter(|pod| !is_stand_in(pod));
    record.pods = pods().take(MOST_LISTED).map(|pod| name_of(pod)).collect();
    record.pod_count = pods().count();
    if let Some(story) = &draft.why.story {
        record.time = story.at;
        record.inputs = story.inputs.clone();
        record.options = offers(draft, &story.catalog);
        record.options.extend(story.plans.iter().cloned());
        record.step("planned", story.at);
    }
    record.step("created", now);
    record.targets = vec![target];
    cluster.book().pages().ring.put(record);
}

/// A pod as records name it.
pub(super) fn name_of(pod: &Pod) -> String {
    format!("{}/{}", pod.metadata.namespace, pod.metadata.name)
}

fn target(draft: &Draft, claim: &NodeClaim) -> Target {
    let mut target = Target {
        claim: claim.metadata.name.to_string(),
        comes: true,
        ..Target::default()
    };
    if let Some(launch) = &draft.why.launch {
        target.instance_type = launch.instance_type.to_string();
        launch.zone.as_deref().unwrap_or_default().clone_into(&mut target.zone);
        let capacity = launch.capacity_type.as_deref().unwrap_or_default();
        capacity.clone_into(&mut target.capacity);
        target.usd_h = Some(launch.price.into());
    }
    target
}

/// What is expected to be launched, and the next types in order of preference.
fn offers(draft: &Draft, catalog: &Catalog) -> Vec<Offer> {
    let Some(launch) = &draft.why.launch else {
        return Vec::new();
    };
    let expected = Target {
        instance_type: launch.instance_type.to_string(),
        zone: launch.zone.as_deref().unwrap_or_default().to_owned(),
        capacity: launch.capacity_type.as_deref().unwrap_or_default().to_owned(),
        ..Target::default()
    };
    let mut offers = vec![Offer {
        offer: expected.to_string(),
        usd_h: Some(launch.price.into()),
        verdict: "chosen".to_owned(),
    }];
    let others = draft.why.options.iter().filter(|name| **name != launch.instance_type);
    for name in others.take(RUNNERS_UP) {
        let entry = catalog.get(name);
        let best = entry.and_then(|entry| {
            let open = entry.offerings.iter().filter(|offering| offering.available);
            let fitting = open.filter(|offering| is_allowed(draft, offering));
            fitting
                .map(|offering| (offering.price, offering))
                .min_by_key(|(price, _)| *price)
        });
        offers.push(match best {
            None => Offer {
                offer: name.to_string(),
                usd_h: None,
                verdict: "fits; no stock where the pods may run".to_owned(),
            },
            Some((price, offering)) => Offer {
                offer: Target {
                    instance_type: name.to_string(),
                    zone: value(offering, ZONE).to_owned(),
                    capacity: value(offering, CAPACITY_TYPE).to_owned(),
                    ..Target::default()
                }
                .to_string(),
                usd_h: Some(price.into()),
                verdict: if price > launch.price { "fits; dearer" } else { "fits" }.to_owned(),
            },
        });
    }
    offers
}

fn value<'a>(offering: &'a CatalogOffering, key: &str) -> &'a str {
    let found = offering
        .requirements
        .iter()
        .find(|requirement| *requirement.key == *key);
    found
        .and_then(|requirement| requirement.values.first())
        .map_or("", |value| value)
}

/// Whether the claim may be launched there, as far as its zones and capacity types say.
fn is_allowed(draft: &Draft, offering: &CatalogOffering) -> bool {
    [ZONE, CAPACITY_TYPE].into_iter().all(|key| {
        let mut requirements = draft.claim.spec.requirements.iter();
        let wanted = requirements.find(|requirement| *requirement.key == *key && *requirement.operator == *"In");
        wanted.is_none_or(|wanted| wanted.values.iter().any(|allowed| **allowed == *value(offering, key)))
    })
}

/// What a claim that was launched costs.
pub(super) fn price_of(catalog: &Catalog, target: &Target) -> Option<Price> {
    let entry = catalog.get(&target.instance_type.as_str().into())?;
    let mut offerings = entry.offerings.iter();
    let offering = offerings
        .find(|offering| *value(offering, ZONE) == target.zone && *value(offering, CAPACITY_TYPE) == target.capacity)?;
    Some(offering.price)
}
