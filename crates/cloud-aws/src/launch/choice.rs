//! Which types may a launch choose from, and as what kind of capacity?
//!
//! The filters and their order are the contract's: what comes out is what EC2 is asked for, so a plan that reckoned with
//! other offerings would be priced wrongly.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use api::labels::{self, aws as aws_labels};
use cloud::{CloudError, described_requests};
use model::{
    instance_type::{InstanceType, Offering, by_price, needed_for_min_values},
    object::NodeClaim,
    price::Price,
    requirement::{Operator, Requirement, Requirements, UndefinedLabels},
    vocabulary::{KeyId, ValueId, Vocabulary},
};

/// The most types a request names.
pub(super) const MAX_TYPES: usize = 60;

/// Resources that only types nobody asks for by accident have.
const EXOTIC: [&str; 5] = [
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
    "amd.com/gpu",
    "nvidia.com/gpu",
    "habana.ai/gaudi",
];

/// What a launch asks for.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    /// The types, the cheapest first; of their offerings only those that the filters left.
    pub(super) types: Vec<InstanceType>,
    /// `reserved`, `spot` or `on-demand`.
    pub(super) capacity_type: &'static str,
    /// `default` or `dedicated`.
    pub(super) tenancy: &'static str,
    /// The claim's requirements, with that capacity type.
    pub(super) requirements: Requirements,
}

/// What a claim requires. The API server refuses unknown operators, so one that slipped through asks for nothing we
/// could keep.
pub(super) fn requirements(claim: &NodeClaim, vocabulary: &mut Vocabulary) -> Requirements {
    let mut all = Requirements::default();
    for written in &claim.spec.requirements {
        let Ok(operator) = written.operator.parse::<Operator>() else {
            continue;
        };
        let values = written.values.iter().map(AsRef::as_ref);
        let requirement = Requirement::parse(&written.key, operator, values, vocabulary);
        let min_values = written.min_values.and_then(|it| u32::try_from(it).ok());
        all.add(requirement.with_min_values(min_values), vocabulary);
    }
    all
}

/// Chooses. `must_meet_min_values` is the policy Strict.
pub(super) fn choose(
    claim: &NodeClaim,
    types: Vec<InstanceType>,
    must_meet_min_values: bool,
    vocabulary: &mut Vocabulary,
) -> Result<Choice, CloudError> {
    let wanted = requirements(claim, vocabulary);
    let keys = ReservationKeys::of(vocabulary);
    let filters = Filters {
        wanted: &wanted,
        vocabulary,
        keys,
    };
    let left = filters.compatible_and_available(types, claim);
    let left = filters.one_kind_of_reservation(left);
    let left = filters.one_capacity_block(left);
    let left = filters.one_reservation_per_zone(left);
    let left = filters.nothing_exotic(left);
    let left = filters.no_dear_spot(left);
    if left.is_empty() {
        return Err(none_left("all requested instance types were unavailable during launch"));
    }
    let types = truncated(&left, &wanted, must_meet_min_values, vocabulary)?;
    let capacity_type = capacity_type(&types, &wanted, vocabulary);
    let mut requirements = wanted.clone();
    requirements.replace(Requirement::one_of(KeyId::CAPACITY_TYPE, [capacity_type.1]));
    Ok(Choice {
        types,
        capacity_type: capacity_type.0,
        tenancy: tenancy(&wanted, vocabulary),
        requirements,
    })
}

fn none_left(message: &str) -> CloudError {
    CloudError::InsufficientCapacity {
        message: message.to_owned(),
        offerings: Vec::new(),
    }
}

/// The labels that tell reservations apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReservationKeys {
    pub(super) id: KeyId,
    kind: KeyId,
    interruptible: KeyId,
}

impl ReservationKeys {
    /// The keys, if anything ever named them.
    pub(super) fn known(vocabulary: &Vocabulary) -> Option<Self> {
        Some(Self {
            id: vocabulary.key(aws_labels::CAPACITY_RESERVATION_ID)?,
            kind: vocabulary.key(aws_labels::CAPACITY_RESERVATION_TYPE)?,
            interruptible: vocabulary.key(aws_labels::CAPACITY_RESERVATION_INTERRUPTIBLE)?,
        })
    }

    pub(super) fn of(vocabulary: &mut Vocabulary) -> Self {
        Self {
            id: vocabulary.intern_key(aws_labels::CAPACITY_RESERVATION_ID),
            kind: vocabulary.intern_key(aws_labels::CAPACITY_RESERVATION_TYPE),
            interruptible: vocabulary.intern_key(aws_labels::CAPACITY_RESERVATION_INTERRUPTIBLE),
        }
    }
}

/// A reservation, as a launch speaks of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reservation {
    pub(crate) id: String,
    pub(crate) kind: ReservationKind,
}

/// The kinds of reservation that a request cannot mix, in the order that breaks ties of price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub(crate) enum ReservationKind {
    /// Held until released.
    Default,
    /// Bought for a fixed time.
    CapacityBlock,
    /// EC2 may take it back.
    Interruptible,
}

/// The reservation behind an offering; none when it is of another capacity type.
pub(super) fn reservation(offering: &Offering, keys: ReservationKeys, vocabulary: &Vocabulary) -> Option<Reservation> {
    if offering.value(KeyId::CAPACITY_TYPE) != Some(ValueId::RESERVED) {
        return None;
    }
    let value = |key| offering.value(key).map(|value| vocabulary.value_name(key, value));
    let kind = match (value(keys.kind), value(keys.interruptible)) {
        (Some("capacity-block"), _) => ReservationKind::CapacityBlock,
        (_, Some("true")) => ReservationKind::Interruptible,
        _ => ReservationKind::Default,
    };
    Some(Reservation {
        id: value(keys.id)?.to_owned(),
        kind,
    })
}

struct Filters<'a> {
    wanted: &'a Requirements,
    vocabulary: &'a Vocabulary,
    keys: ReservationKeys,
}

impl Filters<'_> {
    fn allows(&self, capacity_type: ValueId) -> bool {
        let wanted = self.wanted.get(KeyId::CAPACITY_TYPE);
        wanted.is_none_or(|it| it.admits(capacity_type, self.vocabulary))
    }

    fn usable<'t>(&self, entry: &'t InstanceType) -> impl Iterator<Item = &'t Offering> {
        let fits = |offering: &&Offering| offering.is_available && offering.is_compatible(self.wanted, self.vocabulary);
        entry.offerings.iter().filter(fits)
    }

    fn usable_reservations<'t>(&self, entry: &'t InstanceType) -> impl Iterator<Item = (&'t Offering, Reservation)> {
        let of = |offering: &'t Offering| Some((offering, reservation(offering, self.keys, self.vocabulary)?));
        self.usable(entry).filter_map(of)
    }

    fn compatible_and_available(&self, types: Vec<InstanceType>, claim: &NodeClaim) -> Vec<InstanceType> {
        let requests = described_requests(claim);
        let fits = |entry: &InstanceType| {
            let undefined = UndefinedLabels::AllowedIfWellKnown;
            if !self
                .wanted
                .is_compatible(&entry.requirements, undefined, self.vocabulary)
            {
                return false;
            }
            entry.allocatable_rows().iter().any(|row| {
                let can_be_had = |offering: &&Offering| offering.is_compatible(self.wanted, self.vocabulary);
                requests.fits(&row.allocatable) && row.offerings.iter().any(can_be_had)
            })
        };
        types.into_iter().filter(fits).collect()
    }

    /// A request is of one market: the kind of reservation with the cheapest offering, and nothing else.
    fn one_kind_of_reservation(&self, types: Vec<InstanceType>) -> Vec<InstanceType> {
        if !self.allows(ValueId::RESERVED) {
            return types;
        }
        let all = types.iter().flat_map(|entry| self.usable_reservations(entry));
        let best = all.map(|(offering, it)| (offering.price, it.kind)).min();
        let Some((_, kind)) = best else {
            return types;
        };
        let is_kind = |offering: &Offering| {
            let found = reservation(offering, self.keys, self.vocabulary);
            found.is_some_and(|it| it.kind == kind)
        };
        let mut left = Vec::new();
        for mut entry in types {
            let has_any = self.usable_reservations(&entry).any(|(_, it)| it.kind == kind);
            if has_any {
                entry.offerings.retain(is_kind);
                left.push(entry);
            }
        }
        left
    }

    /// A request takes one capacity block.
    fn one_capacity_block(&self, types: Vec<InstanceType>) -> Vec<InstanceType> {
        let blocks = |entry: &InstanceType| {
            let found = self
                .usable_reservations(entry)
                .filter(|(_, it)| it.kind == ReservationKind::CapacityBlock);
            found
                .map(|(offering, _)| offering.clone())
                .min_by_key(|offering| offering.price)
        };
        if !self.allows(ValueId::RESERVED) {
            return types;
        }
        let cheapest = types
            .iter()
            .enumerate()
            .filter_map(|(at, entry)| blocks(entry).map(|offering| (offering.price, at, offering)))
            .min_by_key(|(price, at, _)| (*price, *at));
        let Some((_, at, offering)) = cheapest else {
            return types;
        };
        let chosen = types.into_iter().nth(at);
        chosen
            .map(|mut entry| {
                entry.offerings = vec![offering];
                entry
            })
            .into_iter()
            .collect()
    }

    /// Of several reservations of a type in a zone, the one with most room.
    fn one_reservation_per_zone(&self, types: Vec<InstanceType>) -> Vec<InstanceType> {
        if !self.allows(ValueId::RESERVED) {
            return types;
        }
        let mut left = Vec::new();
        for entry in &types {
            let mut by_zone: BTreeMap<Option<u32>, &Offering> = BTreeMap::new();
            for (offering, _) in self.usable_reservations(entry) {
                let zone = offering.value(KeyId::ZONE).map(ValueId::bit);
                let kept = by_zone.entry(zone).or_insert(offering);
                if offering.reservation_capacity > kept.reservation_capacity {
                    *kept = offering;
                }
            }
            if !by_zone.is_empty() {
                let offerings = by_zone.into_values().cloned().collect();
                left.push(InstanceType {
                    offerings,
                    ..entry.clone()
                });
            }
        }
        if left.is_empty() { types } else { left }
    }

    /// Metal and accelerators, unless nothing else is left or the claim's flexibility must be kept.
    fn nothing_exotic(&self, types: Vec<InstanceType>) -> Vec<InstanceType> {
        if self.wanted.has_min_values() {
            return types;
        }
        let size = self.vocabulary.key(aws_labels::INSTANCE_SIZE);
        let is_metal = |entry: &InstanceType| {
            let Some(key) = size else { return false };
            let mut sizes = entry.requirements.get(key).into_iter().flat_map(Requirement::values);
            sizes.any(|value| self.vocabulary.value_name(key, value).contains("metal"))
        };
        let has_accelerator = |entry: &InstanceType| {
            let mut amounts = EXOTIC.iter().map(|resource| entry.capacity.amount(resource));
            amounts.any(|amount| amount > model::quantity::Quantity::ZERO)
        };
        let is_ordinary = |entry: &InstanceType| !is_metal(entry) && !has_accelerator(entry);
        if types.iter().any(is_ordinary) {
            return types.into_iter().filter(is_ordinary).collect();
        }
        types
    }

    /// Spot that costs more than the cheapest on-demand is no bargain.
    fn no_dear_spot(&self, types: Vec<InstanceType>) -> Vec<InstanceType> {
        let is_mixed = self.allows(ValueId::SPOT) && self.allows(ValueId::ON_DEMAND);
        if self.wanted.has_min_values() || !is_mixed {
            return types;
        }
        let is_of = |offering: &Offering, kind: ValueId| offering.value(KeyId::CAPACITY_TYPE) == Some(kind);
        let prices = |kind: ValueId| -> Vec<Price> {
            let usable = types.iter().flat_map(|entry| self.usable(entry));
            usable
                .filter(|offering| is_of(offering, kind))
                .map(|offering| offering.price)
                .collect()
        };
        let (spot, on_demand) = (prices(ValueId::SPOT), prices(ValueId::ON_DEMAND));
        let Some(limit) = on_demand.into_iter().min().filter(|_| !spot.is_empty()) else {
            return types;
        };
        let mut left = Vec::new();
        for mut entry in types {
            entry
                .offerings
                .retain(|offering| !is_of(offering, ValueId::SPOT) || offering.price <= limit);
            if self.usable(&entry).next().is_some() {
                left.push(entry);
            }
        }
        left
    }
}

/// The cheapest types, as many as a request may name.
fn truncated(
    types: &[InstanceType],
    wanted: &Requirements,
    must_meet_min_values: bool,
    vocabulary: &Vocabulary,
) -> Result<Vec<InstanceType>, CloudError> {
    let sorted = by_price(types, wanted, vocabulary);
    let kept: Vec<InstanceType> = sorted.into_iter().take(MAX_TYPES).cloned().collect();
    if wanted.has_min_values() && must_meet_min_values {
        needed_for_min_values(&kept, wanted, vocabulary).map_err(|unmet| {
            none_left(&format!(
                "truncating instance types based on the passed-in requirements, {unmet}"
            ))
        })?;
    }
    Ok(kept)
}

/// Reserved before spot before on-demand, as far as the claim allows and there is some.
fn capacity_type(types: &[InstanceType], wanted: &Requirements, vocabulary: &Vocabulary) -> (&'static str, ValueId) {
    let kinds = [
        (labels::CAPACITY_TYPE_RESERVED, ValueId::RESERVED),
        (labels::CAPACITY_TYPE_SPOT, ValueId::SPOT),
    ];
    let is_there = |kind: ValueId| {
        let allowed = wanted.get(KeyId::CAPACITY_TYPE);
        if !allowed.is_none_or(|it| it.admits(kind, vocabulary)) {
            return false;
        }
        let mut only = wanted.clone();
        only.replace(Requirement::one_of(KeyId::CAPACITY_TYPE, [kind]));
        types.iter().any(|entry| entry.is_available_for(&only, vocabulary))
    };
    let found = kinds.into_iter().find(|(_, kind)| is_there(*kind));
    found.unwrap_or((labels::CAPACITY_TYPE_ON_DEMAND, ValueId::ON_DEMAND))
}

fn tenancy(wanted: &Requirements, vocabulary: &Vocabulary) -> &'static str {
    let requirement = vocabulary
        .key(aws_labels::INSTANCE_TENANCY)
        .and_then(|key| wanted.get(key));
    let allows = |tenancy: &&str| requirement.is_none_or(|it| it.has(tenancy, vocabulary));
    ["default", "dedicated"].into_iter().find(allows).unwrap_or("default")
}
