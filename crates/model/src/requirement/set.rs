//! Conditions on several labels at once, at most one per key.
//!
//! A key that is absent is not the same as a key of which every value is acceptable: see [`Requirements::get`].

use super::{Requirement, RequirementSpec};
use crate::{
    bitset::BitSet,
    vocabulary::{KeyId, Vocabulary},
};

/// Requirements by key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Requirements {
    /// Sorted by key, so that lookups are quick and iteration is reproducible.
    sorted: Vec<Requirement>,
}

impl Requirements {
    /// All requirements of a list; several on one key are intersected.
    pub fn from_specs<'a>(specs: impl IntoIterator<Item = &'a RequirementSpec>, vocabulary: &mut Vocabulary) -> Self {
        let mut requirements = Self::default();
        for spec in specs {
            let requirement = Requirement::from_spec(spec, vocabulary);
            requirements.add(requirement, vocabulary);
        }
        requirements
    }

    /// Exactly these labels. A label under both its old and its new name gives the intersection of the two.
    pub fn from_labels<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>, vocabulary: &mut Vocabulary) -> Self {
        let mut requirements = Self::default();
        for (key, value) in labels {
            let requirement = Requirement::parse(key, super::Operator::In, [value], vocabulary);
            requirements.add(requirement, vocabulary);
        }
        requirements
    }

    /// Adds a condition; one on a key that is there already narrows it.
    pub fn add(&mut self, requirement: Requirement, vocabulary: &Vocabulary) {
        match self.position(requirement.key()) {
            Ok(at) => {
                if let Some(existing) = self.sorted.get_mut(at) {
                    *existing = requirement.intersection(existing, vocabulary);
                }
            }
            Err(at) => self.sorted.insert(at, requirement),
        }
    }

    /// Adds every condition of another set.
    pub fn add_all(&mut self, others: &Self, vocabulary: &Vocabulary) {
        for requirement in others.iter() {
            self.add(requirement.clone(), vocabulary);
        }
    }

    /// Puts a condition in place of the one on its key.
    pub fn replace(&mut self, requirement: Requirement) {
        match self.position(requirement.key()) {
            Ok(at) => {
                if let Some(existing) = self.sorted.get_mut(at) {
                    *existing = requirement;
                }
            }
            Err(at) => self.sorted.insert(at, requirement),
        }
    }

    /// Takes the condition on a key out.
    pub fn remove(&mut self, key: KeyId) -> Option<Requirement> {
        self.position(key).ok().map(|at| self.sorted.remove(at))
    }

    /// The condition on a key. None is weaker than `Exists`: it does not promise that the label will be there.
    pub fn get(&self, key: KeyId) -> Option<&Requirement> {
        self.position(key).ok().and_then(|at| self.sorted.get(at))
    }

    /// Whether there is a condition on the key.
    pub fn defines(&self, key: KeyId) -> bool {
        self.position(key).is_ok()
    }

    /// The conditions in the order of their keys' numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Requirement> {
        self.sorted.iter()
    }

    /// How many keys have a condition.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether there is no condition.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Whether some condition asks for a number of different values.
    pub fn has_min_values(&self) -> bool {
        self.iter().any(|requirement| requirement.min_values().is_some())
    }

    /// As the API writes them, sorted by key.
    pub fn to_specs(&self, vocabulary: &Vocabulary) -> Vec<RequirementSpec> {
        let mut sorted: Vec<_> = self.iter().collect();
        sorted.sort_by_key(|requirement| vocabulary.key_name(requirement.key()));
        sorted
            .into_iter()
            .flat_map(|requirement| requirement.to_specs(vocabulary))
            .collect()
    }

    /// One concrete label per condition that can be met, for all keys but the `left_out` ones, sorted by key.
    pub fn labels<'a>(&self, left_out: &BitSet, vocabulary: &'a Vocabulary, draw: u64) -> Vec<(&'a str, String)> {
        let kept = self
            .iter()
            .filter(|requirement| !left_out.contains(requirement.key().bit()));
        let label = |requirement: &Requirement| {
            requirement
                .any(vocabulary, draw)
                .map(|value| (vocabulary.key_name(requirement.key()), value))
        };
        let mut labels: Vec<_> = kept.filter_map(label).collect();
        labels.sort_unstable();
        labels
    }

    fn position(&self, key: KeyId) -> Result<usize, usize> {
        self.sorted.binary_search_by_key(&key, Requirement::key)
    }
}
