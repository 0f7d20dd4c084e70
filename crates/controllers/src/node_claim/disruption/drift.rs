//! When is drift looked for, and is what a claim was launched as still offered? What its pool says of it is decided by the
//! crate `disruption`, what the cloud thinks is asked of the cloud.

use std::time::Duration;

use api::{
    condition::names::nodeclaim::{INSTANCE_TYPE_NOT_FOUND, LAUNCHED},
    labels::{CAPACITY_TYPE_RESERVED, INSTANCE_TYPE},
};
use jiff::{SignedDuration, Timestamp};
use model::{
    object::{List, NodeClaim, NodePool, Text, condition},
    requirement::{Requirement, Requirements},
    snapshot::{Catalog, CatalogType},
    vocabulary::{KeyId, ValueId, Vocabulary},
};

/// How often a claim is looked at.
pub(super) const PERIOD: Duration = Duration::from_mins(5);
/// How long an instance type that was found counts as found.
pub(super) const TYPE_CHECKED: SignedDuration = SignedDuration::from_mins(30);
/// Younger claims were launched from what is offered now.
const TYPE_CHECKED_FROM: SignedDuration = SignedDuration::from_hours(1);
/// How the label ends that names a capacity reservation, whatever the cloud.
const RESERVATION: &str = "reservation-id";

/// What is known of a claim's drift.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Drift {
    /// Nothing: who would know did not say.
    Unknown,
    /// It has not drifted.
    None,
    /// It has, for this reason.
    Drifted(Text),
}

/// Whether there is anything that could drift.
pub(super) fn is_launched(claim: &NodeClaim) -> bool {
    condition::holds(&claim.status.conditions, LAUNCHED)
}

fn labels_of(claim: &NodeClaim, vocabulary: &mut Vocabulary) -> Requirements {
    let labels = claim.metadata.labels.iter();
    Requirements::from_labels(labels.map(|(key, value)| (&**key, &**value)), vocabulary)
}

/// Whether it is time to look whether the pool still offers the claim's instance type.
pub(super) fn is_type_due(claim: &NodeClaim, last: Option<Timestamp>, now: Timestamp) -> bool {
    let age = claim.metadata.creation_timestamp.map(|at| now.duration_since(at));
    let is_old = age.is_some_and(|age| age > TYPE_CHECKED_FROM);
    is_old && last.is_none_or(|last| now.duration_since(last) >= TYPE_CHECKED)
}

/// Whether the pool no longer offers what the claim was launched as. A pool of whose types nothing is known, as when its
/// cloud does not answer, has lost none.
pub(super) fn of_instance_type(claim: &NodeClaim, pool: &NodePool, catalog: &Catalog) -> Option<&'static str> {
    let pool = pool.name();
    let offered = catalog.node_pool_instance_types.get(&pool);
    if offered.is_none_or(List::is_empty) {
        return None;
    }
    let name = claim.metadata.labels.get(INSTANCE_TYPE);
    let mut types = catalog.of_pool(&pool);
    let known = name.and_then(|name| types.find(|entry| *entry.name.as_str() == **name));
    let is_offered = known.is_some_and(|known| is_offered(claim, known, catalog));
    (!is_offered).then_some(INSTANCE_TYPE_NOT_FOUND)
}

/// Whether some offering of a type has the claim's labels. A reservation may have lapsed into on-demand since the launch.
fn is_offered(claim: &NodeClaim, entry: &CatalogType, catalog: &Catalog) -> bool {
    let mut vocabulary = Vocabulary::new();
    for label in &catalog.well_known_labels {
        vocabulary.add_well_known(label);
    }
    let mut labels = labels_of(claim, &mut vocabulary);
    let entry = entry.instance_type(&mut vocabulary);
    let is_reserved = claim.metadata.labels.get(api::labels::CAPACITY_TYPE);
    if is_reserved.is_some_and(|kind| **kind == *CAPACITY_TYPE_RESERVED) {
        let either = [ValueId::RESERVED, ValueId::ON_DEMAND];
        labels.replace(Requirement::one_of(KeyId::CAPACITY_TYPE, either));
        let ids: Vec<KeyId> = labels.iter().map(Requirement::key).collect();
        for key in ids {
            if vocabulary.key_name(key).ends_with(RESERVATION) {
                labels.remove(key);
            }
        }
    }
    let mut offerings = entry.offerings.iter();
    offerings.any(|offering| offering.is_compatible(&labels, &vocabulary))
}

#[cfg(test)]
#[allow(
    clippy::needless_pass_by_value,
    reason = "a literal reads better without a reference"
)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pool(annotations: Value, requirements: Value) -> NodePool {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "annotations": annotations},
            "spec": {"template": {"spec": {"requirements": requirements}}},
        }))
        .unwrap()
    }

    fn claim(annotations: Value, labels: Value) -> NodeClaim {
        serde_json::from_value(json!({"metadata": {
            "name": "c", "annotations": annotations, "labels": labels, "creationTimestamp": "2026-11-16T10:00:00Z",
        }}))
        .unwrap()
    }

    #[test]
    fn the_type_is_looked_at_after_an_hour_and_then_every_half() {
        let claim = claim(json!({}), json!({}));
        let at = |time: &str| -> Timestamp { format!("2026-11-16T{time}:00Z").parse().unwrap() };
        let cases = [
            (None, "11:00", false),
            (None, "11:01", true),
            (Some("11:01"), "11:30", false),
            (Some("11:01"), "11:31", true),
        ];
        for (last, now, expected) in cases {
            assert_eq!(
                is_type_due(&claim, last.map(at), at(now)),
                expected,
                "{last:?} at {now}"
            );
        }
    }

    fn catalog(capacity_types: &[&str]) -> Catalog {
        let offering = |kind: &&str| {
            let mut requirements = vec![
                json!({"key": "karpenter.sh/capacity-type", "operator": "In", "values": [kind]}),
                json!({"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z"]}),
            ];
            if *kind == "reserved" {
                requirements.push(json!({"key": "cloud/reservation-id", "operator": "In", "values": ["r2"]}));
            }
            json!({"price": "1", "available": false, "requirements": requirements})
        };
        let offerings: Vec<_> = capacity_types.iter().map(offering).collect();
        let entry = json!({"name": "small", "offerings": offerings});
        Catalog {
            instance_types: vec![serde_json::from_value(entry).unwrap()],
            node_pool_instance_types: [("p".into(), ["small".into()].into_iter().collect())].into(),
            // A cloud with reservations says so.
            well_known_labels: ["cloud/reservation-id".into()].into_iter().collect(),
            ..Catalog::default()
        }
    }

    #[test]
    fn a_type_that_is_no_longer_offered_is_drift_and_one_that_ran_out_is_not() {
        let labels = |kind: &str, capacity: &str| {
            json!({"node.kubernetes.io/instance-type": kind, "karpenter.sh/capacity-type": capacity,
                "topology.kubernetes.io/zone": "z", "cloud/reservation-id": "r1"})
        };
        let gone = Some("InstanceTypeNotFound");
        let cases = [
            (labels("small", "on-demand"), catalog(&["on-demand"]), None),
            (labels("large", "on-demand"), catalog(&["on-demand"]), gone),
            (labels("small", "on-demand"), catalog(&["spot"]), gone),
            (labels("small", "reserved"), catalog(&["reserved"]), None),
            (labels("small", "reserved"), catalog(&["on-demand"]), None),
            (labels("small", "reserved"), catalog(&["spot"]), gone),
            (labels("small", "on-demand"), Catalog::default(), None),
        ];
        for (labels, catalog, expected) in cases {
            let claim = claim(json!({}), labels.clone());
            let pool = pool(json!({}), json!([]));
            assert_eq!(of_instance_type(&claim, &pool, &catalog), expected, "{labels}");
        }
    }
}
