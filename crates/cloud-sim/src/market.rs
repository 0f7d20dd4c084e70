//! What the region sells: a catalogue, prices of spot that walk, and which offers a claim admits.

use std::{cmp::Reverse, collections::BTreeMap, fmt, sync::Arc};

use api::labels::{CAPACITY_TYPE, CAPACITY_TYPE_SPOT, INSTANCE_TYPE, ZONE};
use catalogue::{Damaged, Source};
use cloud::UnavailableOffering;
use model::{
    instance_type::InstanceType,
    object::{NodeClaim, Text},
    price::Price,
    requirement::{Operator, Requirement, Requirements},
    snapshot::{CatalogOffering, CatalogType},
    vocabulary::Vocabulary,
};

use crate::Chance;

/// What a region sells at its list prices. It never changes, so that many regions may share one.
#[derive(Debug)]
pub struct Market {
    source: Source,
    region: String,
    types: Vec<Arc<CatalogType>>,
    shapes: BTreeMap<Arc<str>, (usize, InstanceType)>,
    vocabulary: Vocabulary,
    well_known: Vec<String>,
}

/// Which offers are meant; an absent part means all.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scope {
    /// The type.
    pub instance_type: Option<String>,
    /// The zone.
    pub zone: Option<String>,
    /// `spot` or `on-demand`.
    pub capacity_type: Option<String>,
}

impl Scope {
    /// Whether an offer is meant.
    pub fn includes(&self, instance_type: &str, zone: &str, capacity_type: &str) -> bool {
        let fits = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|wanted| wanted == is);
        fits(&self.instance_type, instance_type) && fits(&self.zone, zone) && fits(&self.capacity_type, capacity_type)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |part: &Option<String>| part.clone().unwrap_or_else(|| "*".to_owned());
        write!(
            f,
            "{}/{}/{}",
            part(&self.instance_type),
            part(&self.zone),
            part(&self.capacity_type)
        )
    }
}

/// An offer that a claim admits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offer<'a> {
    pub(crate) described: &'a CatalogType,
    pub(crate) shape: &'a InstanceType,
    pub(crate) offering: &'a CatalogOffering,
    pub(crate) zone: &'a str,
    pub(crate) capacity_type: &'a str,
}

impl Offer<'_> {
    /// As an error names it.
    pub(crate) fn unavailable(&self, reason: &str) -> UnavailableOffering {
        UnavailableOffering {
            instance_type: Some(self.described.name.clone()),
            zone: Some(self.zone.into()),
            capacity_type: Some(self.capacity_type.into()),
            reason: Text::from(reason),
            retry_after: None,
        }
    }
}

/// By how much spot prices swing around their list price, in per mille to either side.
const SWING: u64 = 250;
/// How many steps of the walk lie between two prices that were drawn; those between are on the way.
const STRIDE: u64 = 6;

impl Market {
    /// The catalogue of a cloud in its default region.
    pub fn load(source: Source) -> Result<Self, Damaged> {
        let loaded = catalogue::load(source, None, &[])?;
        let well_known = loaded.catalog.well_known_labels.iter().map(ToString::to_string);
        Ok(Self::of(
            source,
            loaded.region,
            loaded.catalog.instance_types,
            well_known.collect(),
        ))
    }

    fn of(source: Source, region: String, types: Vec<Arc<CatalogType>>, well_known: Vec<String>) -> Self {
        let mut vocabulary = Vocabulary::new();
        for key in &well_known {
            vocabulary.add_well_known(key);
        }
        let shape = |(at, entry): (usize, &Arc<CatalogType>)| {
            let shape = entry.instance_type(&mut vocabulary);
            (Arc::clone(&shape.name), (at, shape))
        };
        let shapes = types.iter().enumerate().rev().map(shape).collect();
        Self {
            source,
            region,
            types,
            shapes,
            vocabulary,
            well_known,
        }
    }

    /// Whose catalogue it is.
    pub fn source(&self) -> Source {
        self.source
    }

    /// The region; empty where regions mean nothing.
    pub fn region(&self) -> &str {
        &self.region
    }

    /// The zones it sells in.
    pub fn zones(&self) -> Vec<String> {
        let offerings = self.types.iter().flat_map(|entry| &entry.offerings);
        let mut zones: Vec<String> = offerings.filter_map(|it| only(it, ZONE)).map(str::to_owned).collect();
        zones.sort_unstable();
        zones.dedup();
        zones
    }

    /// All types at list prices.
    pub fn types(&self) -> &[Arc<CatalogType>] {
        &self.types
    }

    pub(crate) fn well_known(&self) -> Vec<String> {
        self.well_known.clone()
    }

    /// All types at the prices of a step of the walk: on-demand stands still, spot moves.
    pub(crate) fn priced(&self, chance: Chance, step: u64) -> Vec<Arc<CatalogType>> {
        let moved = |entry: &Arc<CatalogType>| {
            let mut moved = CatalogType::clone(entry);
            for offering in &mut moved.offerings {
                if only(offering, CAPACITY_TYPE) == Some(CAPACITY_TYPE_SPOT) {
                    let thing = format!("{}/{}", entry.name, only(offering, ZONE).unwrap_or_default());
                    offering.price = walked(offering.price, chance, &thing, step);
                }
            }
            Arc::new(moved)
        };
        self.types.iter().map(moved).collect()
    }

    /// What a claim admits of these types, the cheapest first; among equals by type, zone and capacity type.
    pub(crate) fn admitted<'a>(&'a self, claim: &NodeClaim, types: &'a [Arc<CatalogType>]) -> Vec<Offer<'a>> {
        let mut vocabulary = self.vocabulary.clone();
        let wanted = requirements(claim, &mut vocabulary);
        let named = claim.spec.requirements.iter().find(|it| *it.key == *INSTANCE_TYPE);
        let is_named = |name: &str| named.is_none_or(|it| it.values.iter().any(|value| **value == *name));
        let mut offers: Vec<Offer<'a>> = Vec::new();
        for entry in types.iter().filter(|entry| is_named(entry.name.as_str())) {
            let Some((_, shape)) = self.shapes.get(entry.name.as_str()) else {
                continue;
            };
            if !shape.requirements.intersects(&wanted, &vocabulary) {
                continue;
            }
            // Prices move, requirements do not: the list's offerings are in the same order.
            for (offering, read) in entry.offerings.iter().zip(&shape.offerings) {
                if offering.available && read.is_compatible(&wanted, &vocabulary) {
                    offers.push(Offer {
                        described: entry,
                        shape,
                        offering,
                        zone: only(offering, ZONE).unwrap_or_default(),
                        capacity_type: only(offering, CAPACITY_TYPE).unwrap_or_default(),
                    });
                }
            }
        }
        offers.sort_by_key(|it| {
            let name = it.described.name.as_str();
            (it.offering.price, name, it.zone, Reverse(it.capacity_type))
        });
        offers
    }
}

/// Where a price stands at a step: between two drawn ones, on a straight line.
fn walked(list: Price, chance: Chance, thing: &str, step: u64) -> Price {
    let drawn = |at: u64| 1000 - SWING + chance.of("spot price", &format!("{thing}@{at}")).below(2 * SWING + 1);
    let (from, to) = (drawn(step / STRIDE), drawn(step / STRIDE + 1));
    let done = step % STRIDE;
    let share = (from * (STRIDE - done) + to * done) / STRIDE;
    let picos = u128::from(list.picos()) * u128::from(share) / 1000;
    Price::from_picos(u64::try_from(picos).unwrap_or(u64::MAX))
}

fn only<'a>(offering: &'a CatalogOffering, key: &str) -> Option<&'a str> {
    let requirement = offering.requirements.iter().find(|it| it.key == key)?;
    match (requirement.operator, requirement.values.as_slice()) {
        (Operator::In, [value]) => Some(value),
        _ => None,
    }
}

fn requirements(claim: &NodeClaim, vocabulary: &mut Vocabulary) -> Requirements {
    let mut all = Requirements::default();
    for written in &claim.spec.requirements {
        // The API server refuses unknown operators, so one that slipped through asks for nothing we could keep.
        if let Ok(operator) = written.operator.parse::<Operator>() {
            let values = written.values.iter().map(AsRef::as_ref);
            all.add(
                Requirement::parse(&written.key, operator, values, vocabulary),
                vocabulary,
            );
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spot_walks_within_its_swing_and_on_demand_stands_still() {
        let market = Market::load(Source::Kwok).unwrap();
        let chance = Chance::new(3);
        let mut seen = std::collections::BTreeSet::new();
        for step in 0..40 {
            let types = market.priced(chance, step);
            for (listed, now) in market.types()[0].offerings.iter().zip(&types[0].offerings) {
                if only(listed, CAPACITY_TYPE) == Some(CAPACITY_TYPE_SPOT) {
                    let share = now.price.picos() * 1000 / listed.price.picos();
                    assert!((748..=1250).contains(&share), "{share} per mille");
                    seen.insert(share);
                } else {
                    assert_eq!(now.price, listed.price);
                }
            }
        }
        assert!(seen.len() > 20, "{seen:?}");
    }

    #[test]
    fn a_claim_is_sold_only_what_meets_its_requirements() {
        let market = Market::load(Source::Aws).unwrap();
        let claim: NodeClaim = serde_json::from_value(serde_json::json!({"spec": {"requirements": [
            {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m"]},
            {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["4"]},
        ]}}))
        .unwrap();
        let offers = market.admitted(&claim, market.types());
        assert!(!offers.is_empty());
        for offer in offers {
            let value = |key: &str| {
                let known = offer.described.requirements.iter().find(|it| it.key == key);
                known.and_then(|it| it.values.first().cloned()).unwrap_or_default()
            };
            let category = value("karpenter.k8s.aws/instance-category");
            let generation: u32 = value("karpenter.k8s.aws/instance-generation").parse().unwrap();
            assert!(["c", "m"].contains(&&*category), "{}", offer.described.name);
            assert!(generation > 4, "{}", offer.described.name);
        }
    }

    #[test]
    fn every_cloud_has_a_market_with_zones() {
        for source in Source::ALL {
            let market = Market::load(source).unwrap();
            assert!(market.zones().len() >= 3, "{source:?}: {:?}", market.zones());
        }
    }
}
