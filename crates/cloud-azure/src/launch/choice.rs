//! Which size, where and as what kind of capacity? The cheapest offering of a claim, spot before on-demand and a zone
//! before none at equal price; of equal ones chance decides, so that zones fill evenly.

use std::sync::Arc;

use api::labels::{
    CAPACITY_TYPE_ON_DEMAND, CAPACITY_TYPE_SPOT, INSTANCE_TYPE,
    azure::{REGIONAL_ZONE, SKU_HYPERV_GENERATION, SKU_STORAGE_ULTRA_SSD, WELL_KNOWN},
};
use cloud::{CloudError, described_requests};
use model::{
    instance_type::{InstanceType, Offering},
    object::NodeClaim,
    price::Price,
    requirement::{Operator, Requirement, Requirements, UndefinedLabels},
    snapshot::CatalogType,
    vocabulary::{KeyId, ValueId, Vocabulary},
};
use runtime::random::Random;

/// What is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Chosen {
    pub(crate) entry: Arc<CatalogType>,
    /// As the label has it; `0` for none in particular.
    pub(crate) zone: String,
    pub(crate) capacity_type: &'static str,
    /// The claim will have nothing else than ultra disks.
    pub(crate) needs_ultra_ssd: bool,
}

impl Chosen {
    /// The zone's number; none for none in particular.
    pub(crate) fn zone_number(&self) -> Option<&str> {
        self.zone.rsplit_once('-').map(|(_, number)| number)
    }

    pub(crate) fn is_spot(&self) -> bool {
        self.capacity_type == CAPACITY_TYPE_SPOT
    }
}

/// The order of offerings: price, then spot, then a zone.
type Rank = (Price, bool, bool);

/// What a claim requires.
pub(crate) fn requirements(claim: &NodeClaim, vocabulary: &mut Vocabulary) -> Requirements {
    let mut all = Requirements::default();
    for written in &claim.spec.requirements {
        let Ok(operator) = written.operator.parse::<Operator>() else {
            continue;
        };
        let values = written.values.iter().map(AsRef::as_ref);
        let requirement = Requirement::parse(&written.key, operator, values, vocabulary);
        all.add(requirement, vocabulary);
    }
    all
}

fn vocabulary() -> Vocabulary {
    let mut vocabulary = Vocabulary::new();
    for key in WELL_KNOWN {
        vocabulary.add_well_known(key);
    }
    vocabulary.add_well_known(SKU_HYPERV_GENERATION);
    vocabulary
}

/// The types that a claim names, or all.
fn named<'a>(claim: &NodeClaim, types: &'a [Arc<CatalogType>]) -> Vec<&'a Arc<CatalogType>> {
    let is_list = |it: &&model::object::NodeSelectorRequirement| *it.key == *INSTANCE_TYPE && *it.operator == *"In";
    let lists: Vec<_> = claim.spec.requirements.iter().filter(is_list).collect();
    let is_named = |entry: &&Arc<CatalogType>| {
        lists
            .iter()
            .all(|list| list.values.iter().any(|value| **value == *entry.name.as_str()))
    };
    types.iter().filter(is_named).collect()
}

/// Chooses. `why_not` says why an offering cannot be had, for the words of a refusal.
pub(crate) fn choose(
    claim: &NodeClaim,
    types: &[Arc<CatalogType>],
    random: &Random,
    why_not: impl Fn(&str, &str, &str) -> Option<String>,
) -> Result<Chosen, CloudError> {
    let mut vocabulary = vocabulary();
    let wanted = requirements(claim, &mut vocabulary);
    let mut best: Option<(Rank, &Arc<CatalogType>, Offering)> = None;
    let mut reasons: Vec<String> = Vec::new();
    for entry in named(claim, types) {
        let shape = entry.instance_type(&mut vocabulary);
        if !wanted.is_compatible(&shape.requirements, UndefinedLabels::AllowedIfWellKnown, &vocabulary) {
            continue;
        }
        note_reasons(&shape, &wanted, &vocabulary, &why_not, &mut reasons);
        let Some((rank, offering)) = best_of(&shape, claim, &wanted, &vocabulary, random) else {
            continue;
        };
        let is_better = best
            .as_ref()
            .is_none_or(|(known, other, _)| (rank, &entry.name) < (*known, &other.name));
        if is_better {
            best = Some((rank, entry, offering));
        }
    }
    let Some((_, entry, offering)) = best else {
        return Err(none_left(reasons));
    };
    let zone = offering
        .value(KeyId::ZONE)
        .map(|value| vocabulary.value_name(KeyId::ZONE, value).to_owned());
    let is_spot = offering.value(KeyId::CAPACITY_TYPE) == Some(ValueId::SPOT);
    let ultra = vocabulary.key(SKU_STORAGE_ULTRA_SSD).and_then(|key| wanted.get(key));
    Ok(Chosen {
        entry: Arc::clone(entry),
        zone: zone.unwrap_or_else(|| REGIONAL_ZONE.to_owned()),
        capacity_type: if is_spot {
            CAPACITY_TYPE_SPOT
        } else {
            CAPACITY_TYPE_ON_DEMAND
        },
        needs_ultra_ssd: ultra.is_some_and(|it| it.has("true", &vocabulary) && !it.has("false", &vocabulary)),
    })
}

/// The best available offering of a type for a claim; of equal ones any.
fn best_of(
    shape: &InstanceType,
    claim: &NodeClaim,
    wanted: &Requirements,
    vocabulary: &Vocabulary,
    random: &Random,
) -> Option<(Rank, Offering)> {
    let requests = described_requests(claim);
    let rows = shape.allocatable_rows();
    let fitting = rows.iter().filter(|row| requests.fits(&row.allocatable));
    let usable = fitting.flat_map(|row| row.offerings.iter().copied());
    let ranked: Vec<(Rank, &Offering)> = usable
        .filter(|offering| offering.is_compatible(wanted, vocabulary))
        .map(|offering| (rank(offering, vocabulary), offering))
        .collect();
    let best = ranked.iter().map(|(rank, _)| *rank).min()?;
    let equal: Vec<&Offering> = ranked
        .iter()
        .filter(|(rank, _)| *rank == best)
        .map(|(_, it)| *it)
        .collect();
    let drawn = usize::try_from(random.next() % equal.len().max(1) as u64).unwrap_or_default();
    equal.get(drawn).map(|offering| (best, (*offering).clone()))
}

fn rank(offering: &Offering, vocabulary: &Vocabulary) -> Rank {
    let is_spot = offering.value(KeyId::CAPACITY_TYPE) == Some(ValueId::SPOT);
    let zone = offering
        .value(KeyId::ZONE)
        .map(|value| vocabulary.value_name(KeyId::ZONE, value));
    (offering.price, !is_spot, zone == Some(REGIONAL_ZONE))
}

/// Notes why offerings that would do cannot be had.
fn note_reasons(
    shape: &InstanceType,
    wanted: &Requirements,
    vocabulary: &Vocabulary,
    why_not: &impl Fn(&str, &str, &str) -> Option<String>,
    reasons: &mut Vec<String>,
) {
    let is_out = |it: &&Offering| !it.is_available && it.is_compatible(wanted, vocabulary);
    for offering in shape.offerings.iter().filter(is_out) {
        let value = |key| {
            offering
                .value(key)
                .map(|value| vocabulary.value_name(key, value))
                .unwrap_or_default()
        };
        let (zone, kind) = (value(KeyId::ZONE), value(KeyId::CAPACITY_TYPE));
        if let Some(why) = why_not(&shape.name, zone, kind) {
            let reason = format!("{} {kind}: {why}", shape.name);
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
    }
}

/// How many reasons are told.
const TOLD: usize = 5;

fn none_left(mut reasons: Vec<String>) -> CloudError {
    let more = reasons.len().saturating_sub(TOLD);
    reasons.truncate(TOLD);
    let mut message = "all requested instance types were unavailable during launch".to_owned();
    if !reasons.is_empty() {
        message.push_str(&format!(" ({}", reasons.join("; ")));
        message.push_str(&if more > 0 {
            format!("; and {more} more)")
        } else {
            ")".to_owned()
        });
    }
    CloudError::InsufficientCapacity {
        message,
        offerings: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
