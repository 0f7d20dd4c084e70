//! What NodeOverlays change about instance types: prices and extended resources, pool by pool.
//!
//! Heavier overlays come first, and the first to touch a price or a resource has it. Two of the same weight that touch
//! the same one contradict each other: the later is not applied anywhere.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use api::{
    karpenter::{NodeSelectorRequirementWithMinValues, validation::requirement_faults},
    labels::{LabelRules, NODEPOOL},
};
use model::{
    instance_type::{InstanceType, Offering},
    object::{NodeOverlay, NodePool, NodeSelectorRequirement, Text},
    requirement::{Operator, Requirement, Requirements, UndefinedLabels},
    resources::ResourceList,
    snapshot::Snapshot,
    vocabulary::Vocabulary,
};

use super::{
    stock::{Stock, Ware},
    template::specs,
};

/// A type within a pool.
type Place = (Text, Text);

/// What the overlays in force change.
#[derive(Debug, Default)]
pub(super) struct Overlays {
    updates: BTreeMap<Place, Update>,
    verdicts: Vec<(Text, OverlayVerdict)>,
}

/// Whether an overlay is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OverlayVerdict {
    /// It is.
    Accepted,
    /// It is not: this is wrong with it, in upstream's words.
    Invalid(String),
    /// It is not: one of the same weight touches the same price or resource.
    Conflict,
}

/// Whether each overlay of a snapshot is in force, by name; none while overlays are switched off.
pub fn overlay_verdicts(snapshot: &Snapshot) -> BTreeMap<Text, OverlayVerdict> {
    let stock = Stock::of(snapshot);
    let overlays = Overlays::of(snapshot, &stock, &mut stock.vocabulary());
    overlays.verdicts.into_iter().collect()
}

/// What overlays change of one type in one pool.
#[derive(Debug, Default)]
struct Update {
    prices: Vec<PriceUpdate>,
    capacity: ResourceList,
    /// The resources of the overlay that came last, and its weight.
    last_capacity: ResourceList,
    last_weight: i32,
}

#[derive(Debug)]
struct PriceUpdate {
    /// The offerings it is about: all with these requirements.
    offering: Requirements,
    change: Text,
    /// The weight of the overlay that came last, applied or not.
    last_weight: i32,
}

/// A type of a pool, with all that an overlay may select it by.
#[derive(Debug)]
struct Candidate {
    place: Place,
    labels: Requirements,
    instance_type: Arc<InstanceType>,
}

impl Overlays {
    /// Whether there are any, and they are not switched off.
    pub(super) fn take_part(snapshot: &Snapshot) -> bool {
        snapshot.settings().feature_gates.node_overlay && !snapshot.objects().node_overlays.is_empty()
    }

    /// The overlays of a snapshot that are valid and contradict no other; none while overlays are switched off.
    pub(super) fn of(snapshot: &Snapshot, stock: &Stock, vocabulary: &mut Vocabulary) -> Self {
        let mut overlays = Self::default();
        if !Self::take_part(snapshot) {
            return overlays;
        }
        let rules = vocabulary.rules().clone();
        let candidates = candidates(snapshot, stock, vocabulary);
        for overlay in in_order(snapshot) {
            let faults = faults(overlay, &rules);
            if !faults.is_empty() {
                overlays.judge(overlay, OverlayVerdict::Invalid(faults.join("; ")));
                continue;
            }
            let requirements = Requirements::from_specs(&specs(&overlay.spec.requirements), vocabulary);
            let selected: Vec<_> = candidates
                .iter()
                .filter_map(|candidate| candidate.selected_by(&requirements, vocabulary))
                .collect();
            let mut contradicted = selected.iter();
            if contradicted.any(|selection| overlays.is_contradicted_by(overlay, selection)) {
                overlays.judge(overlay, OverlayVerdict::Conflict);
            } else {
                overlays.add(overlay, &selected);
                overlays.judge(overlay, OverlayVerdict::Accepted);
            }
        }
        overlays
    }

    fn judge(&mut self, overlay: &NodeOverlay, verdict: OverlayVerdict) {
        self.verdicts.push((overlay.metadata.name.clone(), verdict));
    }

    /// A pool's types as the overlays have them.
    pub(super) fn applied(&self, pool: &NodePool, types: Vec<Ware>) -> Vec<Ware> {
        if self.updates.is_empty() {
            return types;
        }
        let apply = |ware: Ware| {
            let place = (pool.metadata.name.clone(), Arc::clone(&ware.entry.name));
            match self.updates.get(&place) {
                Some(update) => Ware::new(Arc::new(update.applied(&ware.entry))),
                None => ware,
            }
        };
        types.into_iter().map(apply).collect()
    }

    fn is_contradicted_by(&self, overlay: &NodeOverlay, (candidate, offerings): &Selection<'_>) -> bool {
        let Some(update) = self.updates.get(&candidate.place) else {
            return false;
        };
        let changes_price = price_change(overlay).is_some();
        let is_contested = |offering: &&Offering| {
            let known = update.price_of(offering);
            known.is_some_and(|known| known.last_weight == weight(overlay))
        };
        changes_price && offerings.iter().any(is_contested) || update.is_capacity_contested(overlay)
    }

    fn add(&mut self, overlay: &NodeOverlay, selected: &[Selection<'_>]) {
        for (candidate, offerings) in selected {
            let update = self.updates.entry(candidate.place.clone()).or_default();
            if let Some(change) = price_change(overlay) {
                for offering in offerings {
                    update.add_price(offering, change, weight(overlay));
                }
            }
            if !overlay.spec.capacity.is_empty() {
                update.add_capacity(overlay);
            }
        }
    }
}

/// A type that an overlay selects, with the offerings it does.
type Selection<'a> = (&'a Candidate, Vec<&'a Offering>);

impl Candidate {
    fn selected_by(&self, requirements: &Requirements, vocabulary: &Vocabulary) -> Option<Selection<'_>> {
        let labels = &self.labels;
        if !labels.is_compatible(requirements, UndefinedLabels::Denied, vocabulary) {
            return None;
        }
        let offerings = self.instance_type.offerings.iter();
        let compatible = offerings.filter(|offering| offering.is_compatible(requirements, vocabulary));
        let offerings: Vec<_> = compatible.collect();
        (!offerings.is_empty()).then_some((self, offerings))
    }
}

impl Update {
    fn price_of(&self, offering: &Offering) -> Option<&PriceUpdate> {
        self.prices.iter().find(|known| known.offering == offering.requirements)
    }

    fn add_price(&mut self, offering: &Offering, change: &Text, weight: i32) {
        let known = self
            .prices
            .iter_mut()
            .find(|known| known.offering == offering.requirements);
        if let Some(known) = known {
            known.last_weight = weight;
            return;
        }
        self.prices.push(PriceUpdate {
            offering: offering.requirements.clone(),
            change: change.clone(),
            last_weight: weight,
        });
    }

    fn add_capacity(&mut self, overlay: &NodeOverlay) {
        let capacity = &overlay.spec.capacity;
        self.capacity = capacity.overlaid_with(&self.capacity);
        self.last_capacity = capacity.clone();
        self.last_weight = weight(overlay);
    }

    fn is_capacity_contested(&self, overlay: &NodeOverlay) -> bool {
        let mut names = overlay.spec.capacity.iter().map(|(name, _)| name);
        self.last_weight == weight(overlay) && names.any(|name| self.last_capacity.get(name.as_str()).is_some())
    }

    fn applied(&self, instance_type: &InstanceType) -> InstanceType {
        let mut applied = instance_type.clone();
        if !self.capacity.is_empty() {
            applied.overlay_capacity(&self.capacity);
        }
        for offering in &mut applied.offerings {
            let Some(update) = self.price_of(offering) else {
                continue;
            };
            // The schema admits no other texts; one that came in regardless changes nothing.
            if offering.overlay_price(&update.change).is_ok() {
                // Upstream forgets these when it copies the offering.
                offering.capacity_override = ResourceList::EMPTY;
                offering.overhead_override = None;
            }
        }
        applied
    }
}

/// The types of all pools, also of those that take no part: a contradiction there counts too.
fn candidates(snapshot: &Snapshot, stock: &Stock, vocabulary: &mut Vocabulary) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for pool in snapshot.objects().node_pools.iter() {
        let name = &pool.metadata.name;
        let labels = pool.spec.template.metadata.labels.iter();
        let mut of_pool = Requirements::from_labels(labels.map(|(key, value)| (&**key, &**value)), vocabulary);
        let named = Requirement::parse(NODEPOOL, Operator::In, [&**name], vocabulary);
        of_pool.add(named, vocabulary);
        for ware in stock.offered(pool) {
            let mut labels = of_pool.clone();
            labels.add_all(&ware.entry.requirements, vocabulary);
            candidates.push(Candidate {
                place: (name.clone(), Arc::clone(&ware.entry.name)),
                labels,
                instance_type: ware.entry,
            });
        }
    }
    candidates
}

/// Heaviest first; of equally heavy ones the one later in the alphabet.
fn in_order(snapshot: &Snapshot) -> Vec<&Arc<NodeOverlay>> {
    let mut overlays: Vec<_> = snapshot.objects().node_overlays.iter().collect();
    overlays.sort_by_key(|overlay| Reverse((weight(overlay), &overlay.metadata.name)));
    overlays
}

fn weight(overlay: &NodeOverlay) -> i32 {
    overlay.spec.weight.unwrap_or(0)
}

fn price_change(overlay: &NodeOverlay) -> Option<&Text> {
    overlay.spec.price.as_ref().or(overlay.spec.price_adjustment.as_ref())
}

/// What the schema cannot check and is wrong: requirements that cannot be met, and resources that the provider states
/// itself.
fn faults(overlay: &NodeOverlay, rules: &LabelRules) -> Vec<String> {
    let requirements = overlay.spec.requirements.iter();
    let mut faults: Vec<String> = requirements
        .flat_map(|requirement| requirement_problems(requirement, rules))
        .collect();
    let resources = overlay.spec.capacity.iter().map(|(name, _)| name);
    let stated = resources.filter(|name| rules.is_well_known_resource(name.as_str()));
    faults.extend(stated.map(|name| format!("invalid capacity: {name} in resource, restricted")));
    faults
}

fn requirement_problems(requirement: &NodeSelectorRequirement, rules: &LabelRules) -> Vec<String> {
    let as_written = NodeSelectorRequirementWithMinValues {
        key: requirement.key.to_string(),
        operator: (&*requirement.operator).into(),
        values: requirement.values.iter().map(ToString::to_string).collect(),
        min_values: None,
    };
    let mut problems = Vec::new();
    let faults: Vec<_> = requirement_faults(&as_written, rules)
        .iter()
        .map(ToString::to_string)
        .collect();
    if !faults.is_empty() {
        problems.push(format!(
            "invalid value: {} in requirements, restricted",
            faults.join("; ")
        ));
    }
    if *requirement.operator == *"NotIn" && requirement.values.is_empty() {
        let key = &requirement.key;
        problems.push(format!("key {key} with operator NotIn must have a value defined"));
    }
    problems
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "literals read better by value")]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        demand::fixture::{instance_type, node_pool, object, snapshot_with},
        supply::pool::Pools,
    };

    fn overlay(name: &str, weight: i32, spec: Value) -> Value {
        let mut overlay = object(
            "karpenter.sh/v1alpha1",
            "NodeOverlay",
            "",
            name,
            json!({ "spec": spec }),
        );
        overlay["spec"]["weight"] = weight.into();
        overlay
    }

    fn on(key: &str, value: &str) -> Value {
        json!([{ "key": key, "operator": "In", "values": [value] }])
    }

    const TYPE: &str = "node.kubernetes.io/instance-type";
    const ZONE: &str = "topology.kubernetes.io/zone";

    /// The types a (z1, z2) and b (z1) of the pools p and q as `pool/type resources prices`, where something changed.
    fn changed(is_on: bool, overlays: Vec<Value>) -> Vec<String> {
        let mut a = instance_type("a", "1", &["z1", "z2"]);
        a["offerings"][0]["capacityOverride"] = json!({ "cpu": "2" });
        let file = json!({ "instanceTypes": [a, instance_type("b", "1", &["z1"])],
            "settings": { "featureGates": { "NodeOverlay": is_on } } });
        let pools = ["p", "q"].map(|name| node_pool(name, json!({})));
        let snapshot = snapshot_with(file, [pools.to_vec(), overlays].concat());
        let pools = Pools::read(&snapshot).0;
        let mut changed = Vec::new();
        for offer in pools.iter() {
            for it in offer
                .types
                .iter()
                .map(|ware| &ware.entry)
                .filter(|it| it.is_capacity_overlaid || it.is_price_overlaid())
            {
                let prices: Vec<_> = it
                    .offerings
                    .iter()
                    .map(|offering| offering.price.to_decimal())
                    .collect();
                let device = it
                    .capacity
                    .get("device")
                    .map_or(String::new(), |count| format!(" device={count}"));
                changed.push(format!(
                    "{}/{}{device} {}",
                    offer.pool.metadata.name,
                    it.name,
                    prices.join(" ")
                ));
            }
        }
        changed
    }

    #[test]
    fn overlay_changes_the_offerings_and_types_it_selects_in_every_pool_it_names() {
        let cases = [
            (
                json!({ "requirements": on(TYPE, "b"), "price": "0.5" }),
                vec!["q/b 0.5", "p/b 0.5"],
            ),
            (
                json!({ "requirements": on(ZONE, "z2"), "priceAdjustment": "-10%" }),
                vec!["q/a 1 0.9", "p/a 1 0.9"],
            ),
            (
                json!({ "requirements": on(NODEPOOL, "p"), "priceAdjustment": "+0.25" }),
                vec!["p/a 1.25 1.25", "p/b 1.25"],
            ),
            (
                json!({ "requirements": on(ZONE, "z2"), "capacity": { "device": "2" } }),
                vec!["q/a device=2 1 1", "p/a device=2 1 1"],
            ),
            (json!({ "requirements": on("team", "x"), "price": "0.5" }), vec![]),
            (
                json!({ "requirements": on("kubernetes.io/hostname", "x"), "price": "0.5" }),
                vec![],
            ),
            (
                json!({ "requirements": on(TYPE, "b"), "capacity": { "cpu": "2" } }),
                vec![],
            ),
            (
                json!({ "requirements": [{ "key": TYPE, "operator": "NotIn" }], "price": "0.5" }),
                vec![],
            ),
        ];
        for (spec, expected) in cases {
            assert_eq!(changed(true, vec![overlay("o", 1, spec.clone())]), expected, "{spec}");
            assert_eq!(changed(false, vec![overlay("o", 1, spec)]), [""; 0]);
        }
    }

    #[test]
    fn every_overlay_is_told_whether_it_is_in_force_and_why_not() {
        let price = |requirements: Value| json!({ "requirements": requirements, "price": "0.5" });
        let overlays = vec![
            overlay("z-first", 1, price(on(TYPE, "b"))),
            overlay("a-second", 1, price(on(TYPE, "b"))),
            overlay("lighter", 0, price(on(TYPE, "b"))),
            overlay("hollow", 1, price(json!([{ "key": TYPE, "operator": "NotIn" }]))),
            overlay(
                "greedy",
                1,
                json!({ "requirements": on(TYPE, "a"), "capacity": { "cpu": "2" } }),
            ),
        ];
        let file = json!({ "instanceTypes": [instance_type("a", "1", &["z1"]), instance_type("b", "1", &["z1"])],
            "settings": { "featureGates": { "NodeOverlay": true } } });
        let snapshot = snapshot_with(file, [vec![node_pool("p", json!({}))], overlays].concat());
        let verdicts: Vec<_> = overlay_verdicts(&snapshot)
            .into_iter()
            .map(|(name, verdict)| (name.to_string(), verdict))
            .collect();
        let invalid = |why: &str| OverlayVerdict::Invalid(why.to_owned());
        let expected = [
            ("a-second", OverlayVerdict::Conflict),
            ("greedy", invalid("invalid capacity: cpu in resource, restricted")),
            (
                "hollow",
                invalid("key node.kubernetes.io/instance-type with operator NotIn must have a value defined"),
            ),
            ("lighter", OverlayVerdict::Accepted),
            ("z-first", OverlayVerdict::Accepted),
        ];
        assert_eq!(verdicts, expected.map(|(name, verdict)| (name.to_owned(), verdict)));
    }

    #[test]
    fn heavier_overlay_has_the_price_and_the_resource_first() {
        let spec = |price: &str, count: &str| json!({ "requirements": on(TYPE, "b"), "price": price, "capacity": { "device": count } });
        let overlays = vec![
            overlay("light", 1, spec("0.1", "1")),
            overlay("heavy", 2, spec("0.2", "2")),
        ];
        assert_eq!(changed(true, overlays), ["q/b device=2 0.2", "p/b device=2 0.2"]);
    }

    #[test]
    fn later_of_two_equally_heavy_overlays_that_touch_the_same_is_not_applied_anywhere() {
        let price = |requirements: Value, price: &str| json!({ "requirements": requirements, "price": price });
        let in_p = json!([on(NODEPOOL, "p")[0], on(TYPE, "a")[0]]);
        let overlays = vec![
            overlay("z-first", 1, price(in_p, "0.1")),
            overlay("a-second", 1, price(on(ZONE, "z1"), "0.2")),
        ];
        assert_eq!(changed(true, overlays), ["p/a 0.1 0.1"]);
        let capacity = |name, resource: &str| {
            overlay(
                name,
                1,
                json!({ "requirements": on(TYPE, "b"), "capacity": { resource: "1" } }),
            )
        };
        assert_eq!(
            changed(true, vec![capacity("a", "device"), capacity("b", "other")]).len(),
            2
        );
        let twice = overlay(
            "a",
            1,
            json!({ "requirements": on(TYPE, "b"), "price": "0.1", "capacity": { "device": "9" } }),
        );
        assert_eq!(
            changed(true, vec![twice, capacity("b", "device")]),
            ["q/b device=1 1", "p/b device=1 1"]
        );
    }

    #[test]
    fn offering_with_a_new_price_loses_its_overrides() {
        let cheap = overlay("o", 1, json!({ "requirements": on(TYPE, "a"), "price": "0.5" }));
        let mut a = instance_type("a", "1", &["z1"]);
        a["offerings"][0]["capacityOverride"] = json!({ "cpu": "2" });
        let file = json!({ "instanceTypes": [a], "settings": { "featureGates": { "NodeOverlay": true } } });
        let snapshot = snapshot_with(file, vec![node_pool("p", json!({})), cheap]);
        let pools = Pools::read(&snapshot).0;
        let offering = &pools.get("p").unwrap().types[0].entry.offerings[0];
        assert_eq!(
            (offering.capacity_override.is_empty(), offering.is_price_overlaid),
            (true, true)
        );
    }
}
