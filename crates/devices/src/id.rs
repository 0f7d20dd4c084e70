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

/// An instance type, by its place in the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(pub(crate) u32);

impl TypeId {
    /// The type of a node that no NodePool of the run offers: it has no devices to come and no attribute bindings.
    pub const UNLISTED: Self = Self(u32::MAX);

    /// Its place in the catalogue.
    pub fn position(self) -> usize {
        self.0 as usize
    }
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
