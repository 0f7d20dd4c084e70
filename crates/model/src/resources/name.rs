//! What a resource is called, without heap memory for the names every pod uses.

use std::{borrow::Borrow, cmp::Ordering, fmt, hash, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A resource's name. Ordered, compared and hashed as its text.
#[derive(Clone, Debug)]
pub enum ResourceName {
    /// `cpu`
    Cpu,
    /// `memory`
    Memory,
    /// `ephemeral-storage`
    EphemeralStorage,
    /// `pods`
    Pods,
    /// `nodes`: how many nodes a pool may have; only limits and usage of a NodePool name it.
    Nodes,
    /// Anything else: hugepages, accelerators, other extended resources.
    Other(Arc<str>),
}

impl ResourceName {
    /// The name as the API spells it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::EphemeralStorage => "ephemeral-storage",
            Self::Pods => "pods",
            Self::Nodes => "nodes",
            Self::Other(name) => name,
        }
    }

    /// Place in the alphabet among the names every pod uses.
    fn rank(&self) -> Option<u8> {
        match self {
            Self::Cpu => Some(0),
            Self::EphemeralStorage => Some(1),
            Self::Memory => Some(2),
            Self::Nodes => Some(3),
            Self::Pods => Some(4),
            Self::Other(_) => None,
        }
    }

    /// Whether it is memory set aside in pages of a fixed size (`hugepages-2Mi`).
    pub fn is_huge_pages(&self) -> bool {
        self.as_str().starts_with("hugepages-")
    }
}

impl From<&str> for ResourceName {
    fn from(name: &str) -> Self {
        match name {
            "cpu" => Self::Cpu,
            "memory" => Self::Memory,
            "ephemeral-storage" => Self::EphemeralStorage,
            "pods" => Self::Pods,
            "nodes" => Self::Nodes,
            other => Self::Other(other.into()),
        }
    }
}

impl PartialEq for ResourceName {
    fn eq(&self, other: &Self) -> bool {
        match (self.rank(), other.rank()) {
            (Some(mine), Some(theirs)) => mine == theirs,
            _ => self.as_str() == other.as_str(),
        }
    }
}

impl Eq for ResourceName {}

impl PartialOrd for ResourceName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ResourceName {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.rank(), other.rank()) {
            (Some(mine), Some(theirs)) => mine.cmp(&theirs),
            _ => self.as_str().cmp(other.as_str()),
        }
    }
}

impl hash::Hash for ResourceName {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl Borrow<str> for ResourceName {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for ResourceName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ResourceName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::from(String::deserialize(deserializer)?.as_str()))
    }
}
