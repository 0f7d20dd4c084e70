//! One way to get a node of a type: where, as what kind of capacity, at what price.

use super::{AT_LAUNCH, Overhead};
use crate::{
    price::{AdjustmentError, Price},
    requirement::{Requirement, Requirements},
    resources::ResourceList,
    vocabulary::{KeyId, ValueId, Vocabulary},
};

/// Where an instance type can be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offering {
    /// Zone, capacity type and whatever else goes with them.
    pub requirements: Requirements,
    /// What an hour costs.
    pub price: Price,
    /// The cloud is believed to have it. A full reservation is available too: that it is full is another matter.
    pub is_available: bool,
    /// How many nodes the reservation still has room for; only for capacity type `reserved`.
    pub reservation_capacity: u32,
    /// What a node has here instead of the type's capacity, by resource.
    pub capacity_override: ResourceList,
    /// What a node keeps for itself here instead of the type's overhead, by resource of the total.
    pub overhead_override: Option<Overhead>,
    /// A NodeOverlay changed the price.
    pub is_price_overlaid: bool,
}

impl Offering {
    /// Whether a node can be launched now: the offering is available, and a reservation has room.
    pub fn is_launchable(&self, vocabulary: &Vocabulary) -> bool {
        self.is_available && (self.reservation_capacity > 0 || !self.is_reserved(vocabulary))
    }

    /// Whether its capacity may come from a reservation.
    pub fn is_reserved(&self, vocabulary: &Vocabulary) -> bool {
        let capacity_type = self.requirements.get(KeyId::CAPACITY_TYPE);
        capacity_type.is_some_and(|capacity_type| capacity_type.admits(ValueId::RESERVED, vocabulary))
    }

    /// Whether a claim with these requirements can be launched here.
    pub fn is_compatible(&self, claim: &Requirements, vocabulary: &Vocabulary) -> bool {
        claim.is_compatible(&self.requirements, AT_LAUNCH, vocabulary)
    }

    /// Its zone, capacity type or reservation: the value of a label it names exactly one of.
    pub fn value(&self, key: KeyId) -> Option<ValueId> {
        let requirement = self
            .requirements
            .get(key)
            .filter(|requirement| requirement.len() == 1)?;
        requirement.values().next()
    }

    /// Changes the price as a NodeOverlay says: a new price, a difference or a percentage.
    pub fn overlay_price(&mut self, change: &str) -> Result<(), AdjustmentError> {
        self.price = change.parse().or_else(|_| self.price.adjusted(change))?;
        self.is_price_overlaid = true;
        Ok(())
    }

    /// Whether a node here differs from the type's others in what it has or keeps.
    pub fn has_own_shape(&self) -> bool {
        !self.capacity_override.is_empty() || self.overhead_override.is_some()
    }

    pub(super) fn shape(&self) -> (&ResourceList, Option<&Overhead>) {
        (&self.capacity_override, self.overhead_override.as_ref())
    }
}

/// The most a launch can cost. Reserved capacity is used before spot, spot before on-demand, so the dearest compatible
/// offering of the first kind that has one is the worst case.
pub fn worst_launch_price<'a>(
    offerings: impl IntoIterator<Item = &'a Offering>,
    claim: &Requirements,
    vocabulary: &Vocabulary,
) -> Option<Price> {
    let compatible: Vec<_> = offerings
        .into_iter()
        .filter(|offering| offering.is_compatible(claim, vocabulary))
        .collect();
    [ValueId::RESERVED, ValueId::SPOT, ValueId::ON_DEMAND]
        .into_iter()
        .find_map(|capacity_type| {
            let mut only = Requirements::default();
            only.replace(Requirement::one_of(KeyId::CAPACITY_TYPE, [capacity_type]));
            let of_kind = compatible
                .iter()
                .filter(|offering| offering.is_compatible(&only, vocabulary));
            of_kind.map(|offering| offering.price).max()
        })
}
