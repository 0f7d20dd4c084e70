//! What the solver and this crate call hosts, instance types and claims when they talk to each other.

use std::collections::BTreeMap;

/// Where a pod may be placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostId {
    /// A node that exists or is on its way, by its place in the run's list.
    Node(u32),
    /// A NodeClaim of this run, by a number that stays its own for the whole run.
    Claim(u32),
}

/// An instance type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(u32);

impl TypeId {
    /// The type of a node that no NodePool of the run offers: it has no devices to come and no attribute bindings.
    pub const UNLISTED: Self = Self(0);

    pub(crate) fn at(position: usize) -> Self {
        Self(number(position).saturating_add(1))
    }

    /// Its place in the catalogue.
    pub fn position(self) -> Option<usize> {
        self.0.checked_sub(1).map(|at| at as usize)
    }

    /// As a member of a set of types.
    pub(crate) fn bit(self) -> u32 {
        self.0
    }
}

/// Instance types that come with the same devices. What is found out for one holds for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct KindId(pub(crate) u32);

impl KindId {
    /// Types that come with no devices.
    pub(crate) const BARE: Self = Self(0);
}

/// A ResourceClaim of the snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimId(pub(crate) u32);

impl ClaimId {
    pub(crate) fn position(self) -> usize {
        self.0 as usize
    }
}

/// Gives out numbers in the order of first sight.
#[derive(Debug)]
pub(crate) struct Numbers<T>(BTreeMap<T, u32>);

impl<T> Default for Numbers<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Ord> Numbers<T> {
    pub(crate) fn of(&mut self, item: T) -> u32 {
        let next = number(self.0.len());
        *self.0.entry(item).or_insert(next)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// A position as a number; there are never four thousand million of anything.
pub(crate) fn number(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}
