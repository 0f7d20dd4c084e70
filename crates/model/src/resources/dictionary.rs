//! Which place in a dense vector belongs to which resource.

use std::collections::BTreeMap;

use super::ResourceName;

/// The place of a resource in every vector over the same dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId(u32);

impl ResourceId {
    /// As an index into a vector.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    pub(super) fn bit(self) -> u32 {
        self.0
    }

    pub(super) fn from_bit(bit: u32) -> Self {
        Self(bit)
    }
}

/// The resource names of one snapshot or planning run, numbered in the order they were first met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceDictionary {
    names: Vec<ResourceName>,
    ids: BTreeMap<ResourceName, ResourceId>,
}

impl ResourceDictionary {
    /// The resource's number, given out on first sight.
    pub fn intern(&mut self, name: &ResourceName) -> ResourceId {
        if let Some(id) = self.id(name.as_str()) {
            return id;
        }
        let id = ResourceId(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        self.names.push(name.clone());
        self.ids.insert(name.clone(), id);
        id
    }

    /// The resource's number, if it was met before.
    pub fn id(&self, name: &str) -> Option<ResourceId> {
        self.ids.get(name).copied()
    }

    /// The resource a number belongs to.
    pub fn name(&self, id: ResourceId) -> Option<&ResourceName> {
        self.names.get(id.index())
    }

    /// How many resources have a number.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether no resource was met yet.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// All names in the order of their numbers.
    pub fn names(&self) -> impl Iterator<Item = (ResourceId, &ResourceName)> {
        (0..).map(ResourceId).zip(&self.names)
    }
}
