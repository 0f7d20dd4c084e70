//! Resource amounts as a vector over a dictionary: the engine's arithmetic without names.

use super::{ResourceDictionary, ResourceId, ResourceList};
use crate::{
    bitset::BitSet,
    quantity::{Format, Quantity},
};

/// Nano-units per resource. Vectors over the same dictionary may differ in length: what is beyond the end is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Resources {
    /// Zero wherever `named` has no bit, so that arithmetic need not ask.
    nanos: Vec<i128>,
    named: BitSet,
}

impl Resources {
    /// The amounts of a list, its names entered in the dictionary.
    pub fn intern(list: &ResourceList, dictionary: &mut ResourceDictionary) -> Self {
        let mut resources = Self::default();
        for (name, quantity) in list.iter() {
            resources.set(dictionary.intern(name), quantity.nanos());
        }
        resources
    }

    /// The amounts as the API's map. Notation is not kept here: memory and storage print in powers of 1024.
    pub fn to_list(&self, dictionary: &ResourceDictionary) -> ResourceList {
        let named = dictionary.names().filter(|(id, _)| self.names(*id));
        named
            .map(|(id, name)| {
                let is_bytes = name.is_huge_pages() || matches!(name.as_str(), "memory" | "ephemeral-storage");
                let format = if is_bytes { Format::BinarySi } else { Format::DecimalSi };
                (name.clone(), Quantity::from_nanos(self.nanos(id), format))
            })
            .collect()
    }

    /// Nano-units of a resource; zero when it is not named.
    pub fn nanos(&self, id: ResourceId) -> i128 {
        self.nanos.get(id.index()).copied().unwrap_or(0)
    }

    /// Whether the resource is named, be it with zero.
    pub fn names(&self, id: ResourceId) -> bool {
        self.named.contains(id.bit())
    }

    /// Names a resource, or gives a named one another amount.
    pub fn set(&mut self, id: ResourceId, nanos: i128) {
        self.named.insert(id.bit());
        self.grow(id.index() + 1);
        if let Some(place) = self.nanos.get_mut(id.index()) {
            *place = nanos;
        }
    }

    /// Adds every amount; resources named only there are taken over.
    pub fn add(&mut self, other: &Self) {
        self.combine(other, i128::saturating_add);
    }

    /// Takes every amount away; a resource named only there becomes negative.
    pub fn subtract_from(&mut self, other: &Self) {
        self.combine(other, i128::saturating_sub);
    }

    /// What is left without the other; resources only the other names are ignored.
    #[must_use]
    pub fn subtract(&self, other: &Self) -> Self {
        let mut rest = self.clone();
        for (at, (mine, theirs)) in (0..).zip(rest.nanos.iter_mut().zip(&other.nanos)) {
            if self.named.contains(at) {
                *mine = mine.saturating_sub(*theirs);
            }
        }
        rest
    }

    /// Raises every amount to at least the other's; resources named only there are taken over.
    pub fn raise_to(&mut self, other: &Self) {
        let mine = self.named.clone();
        self.grow(other.nanos.len());
        for at in other.named.iter() {
            let (id, theirs) = (ResourceId::from_bit(at), other.nanos(ResourceId::from_bit(at)));
            let raised = if mine.contains(at) {
                self.nanos(id).max(theirs)
            } else {
                theirs
            };
            self.set(id, raised);
        }
    }

    /// Whether all of it fits in `total`. Nothing fits in a total that is overdrawn in any resource, even one that
    /// is not asked for.
    pub fn fits(&self, total: &Self) -> bool {
        !total.is_overdrawn() && self.exceeds(total).is_none()
    }

    /// Whether any amount is below zero.
    pub fn is_overdrawn(&self) -> bool {
        self.nanos.iter().any(|nanos| *nanos < 0)
    }

    /// The first resource of which there is more here than in `total`.
    pub fn exceeds(&self, total: &Self) -> Option<ResourceId> {
        let over = |id: &ResourceId| self.nanos(*id) > total.nanos(*id);
        self.named.iter().map(ResourceId::from_bit).find(over)
    }

    fn combine(&mut self, other: &Self, combine: fn(i128, i128) -> i128) {
        self.grow(other.nanos.len());
        self.named = self.named.union(&other.named);
        for (mine, theirs) in self.nanos.iter_mut().zip(&other.nanos) {
            *mine = combine(*mine, *theirs);
        }
    }

    fn grow(&mut self, length: usize) {
        if self.nanos.len() < length {
            self.nanos.resize(length, 0);
        }
    }
}
