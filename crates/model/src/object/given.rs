//! A list or map that remembers whether it was written down: to the drift hash `taints: []` is not the same as no taints.

use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Labels, List, map};

/// A value, and whether somebody wrote it. Reads as the value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Given<T> {
    value: T,
    is_written: bool,
}

impl<T> Given<T> {
    /// True when nobody wrote it.
    pub fn is_absent(&self) -> bool {
        !self.is_written
    }
}

impl<T> Deref for Given<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> From<T> for Given<T> {
    fn from(value: T) -> Self {
        Self {
            value,
            is_written: true,
        }
    }
}

impl<'a, T> IntoIterator for &'a Given<List<T>> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.value.iter()
    }
}

impl<T: Serialize> Serialize for Given<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

/// `null` is not written: Go reads it as nothing.
impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for Given<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::<T>::deserialize(deserializer)?
            .map(Self::from)
            .unwrap_or_default())
    }
}

/// For labels and annotations, whose form on the wire is a map.
pub(super) mod labels {
    use super::{Deserialize, Deserializer, Given, Labels, Serializer, map};

    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Wire(#[serde(with = "map")] Labels);

    pub(crate) fn serialize<S: Serializer>(labels: &Given<Labels>, serializer: S) -> Result<S::Ok, S::Error> {
        map::serialize(labels, serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Given<Labels>, D::Error> {
        let written = Option::<Wire>::deserialize(deserializer)?;
        Ok(written.map(|Wire(labels)| Given::from(labels)).unwrap_or_default())
    }
}
