//! What a cloud can launch: a shape, where it can be had and at what price, and how much of it pods may use.
//!
//! Offerings may replace parts of the shape (a zone where the type has another capacity); the offerings of one shape
//! form a row, and a pod must fit a row that also has a compatible offering.

mod choice;
mod offering;

#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

pub use choice::{MinValuesUnmet, by_price, needed_for_min_values};
pub use offering::{Offering, worst_launch_price};

use crate::{
    price::Price,
    quantity::Quantity,
    requirement::{Requirements, UndefinedLabels},
    resources::{ResourceList, ResourceName},
    vocabulary::Vocabulary,
};

/// A type of node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceType {
    /// The value of `node.kubernetes.io/instance-type`.
    pub name: Arc<str>,
    /// The labels its nodes can have.
    pub requirements: Requirements,
    /// Where and how it can be had.
    pub offerings: Vec<Offering>,
    /// What a node has.
    pub capacity: ResourceList,
    /// What a node keeps for itself.
    pub overhead: Overhead,
    /// How many volumes of a CSI driver a node is expected to attach; a driver that is not named has no known limit.
    pub volume_limits: BTreeMap<Arc<str>, usize>,
    /// A NodeOverlay changed the capacity.
    pub is_capacity_overlaid: bool,
}

/// What of a node is not for pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Overhead {
    /// For the kubelet and the container runtime.
    pub kube_reserved: ResourceList,
    /// For the operating system.
    pub system_reserved: ResourceList,
    /// Kept free, so that eviction starts in time.
    pub eviction_threshold: ResourceList,
}

impl Overhead {
    /// All of it.
    pub fn total(&self) -> ResourceList {
        let mut total = self.kube_reserved.clone();
        total.add(&self.system_reserved);
        total.add(&self.eviction_threshold);
        total
    }

    /// All of it of one resource.
    fn amount(&self, name: &ResourceName) -> Quantity {
        let parts = [&self.kube_reserved, &self.system_reserved, &self.eviction_threshold];
        let named = parts.into_iter().filter_map(|part| part.get_named(name));
        named.reduce(|sum, part| sum + part).unwrap_or(Quantity::ZERO)
    }
}

/// A shape of an instance type, and the available offerings that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocatableRow<'a> {
    /// What pods may use.
    pub allocatable: ResourceList,
    /// The available offerings of this shape, in the type's order.
    pub offerings: Vec<&'a Offering>,
}

impl InstanceType {
    /// What pods may use of a node without an offering's overrides.
    pub fn allocatable(&self) -> ResourceList {
        self.allocatable_with(&ResourceList::EMPTY, None)
    }

    /// All shapes of the type: the base first, even if no offering has it, then the others as they first appear.
    pub fn allocatable_rows(&self) -> Vec<AllocatableRow<'_>> {
        let no_override = ResourceList::EMPTY;
        let mut rows = vec![((&no_override, None), Vec::new())];
        for offering in self.offerings.iter().filter(|offering| offering.is_available) {
            let shape = offering.shape();
            match rows.iter_mut().find(|(other, _)| *other == shape) {
                Some((_, offerings)) => offerings.push(offering),
                None => rows.push((shape, vec![offering])),
            }
        }
        let row = |((capacity, overhead), offerings)| AllocatableRow {
            allocatable: self.allocatable_with(capacity, overhead),
            offerings,
        };
        rows.into_iter().map(row).collect()
    }

    /// The cheapest price at which a node that meets the requirements can be launched now.
    pub fn cheapest_launch(&self, requirements: &Requirements, vocabulary: &Vocabulary) -> Option<Price> {
        let launchable = self
            .offerings
            .iter()
            .filter(|offering| offering.is_launchable(vocabulary));
        launchable
            .filter(|offering| offering.is_compatible(requirements, vocabulary))
            .map(|offering| offering.price)
            .min()
    }

    /// Whether some available offering meets the requirements.
    pub fn is_available_for(&self, requirements: &Requirements, vocabulary: &Vocabulary) -> bool {
        let mut available = self.offerings.iter().filter(|offering| offering.is_available);
        available.any(|offering| offering.is_compatible(requirements, vocabulary))
    }

    /// Changes the capacity as a NodeOverlay says.
    pub fn overlay_capacity(&mut self, capacity: &ResourceList) {
        self.capacity = self.capacity.overlaid_with(capacity);
        self.is_capacity_overlaid = true;
    }

    /// Whether a NodeOverlay changed a price.
    pub fn is_price_overlaid(&self) -> bool {
        self.offerings.iter().any(|offering| offering.is_price_overlaid)
    }

    fn allocatable_with(&self, capacity: &ResourceList, overhead: Option<&Overhead>) -> ResourceList {
        let capacity = if capacity.is_empty() {
            Cow::Borrowed(&self.capacity)
        } else {
            Cow::Owned(self.capacity.overlaid_with(capacity))
        };
        let overhead = overhead.map_or_else(ResourceList::default, Overhead::total);
        let kept = |name: &ResourceName| {
            let named = overhead.get_named(name);
            named.unwrap_or_else(|| self.overhead.amount(name))
        };
        let mut allocatable = capacity.map(|name, has| has - kept(name));
        // Pages set aside are memory no other pod can use.
        for (_, pages) in capacity.iter().filter(|(name, _)| name.is_huge_pages()) {
            let memory = allocatable.amount("memory") - pages;
            allocatable.set(ResourceName::Memory, memory.max(Quantity::ZERO));
        }
        allocatable
    }
}

/// A NodeClaim's requirements meet an offering's when the well-known labels it leaves open can still be set at launch.
const AT_LAUNCH: UndefinedLabels = UndefinedLabels::AllowedIfWellKnown;
