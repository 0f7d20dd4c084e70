//! Conditions on several labels at once, at most one per key.
//!
//! A key that is absent is not the same as a key of which every value is acceptable: see [`Requirements::get`].

use std::sync::Arc;

use super::{Requirement, RequirementSpec};
use crate::{
    bitset::BitSet,
    vocabulary::{KeyId, Vocabulary},
};

/// Requirements by key. Cloning them is one reference count: thousands of offerings and states have few different ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Requirements {
    /// Sorted by key, so that lookups are quick and iteration is reproducible.
    sorted: Arc<[Requirement]>,
}

impl Requirements {
    /// All requirements of a list; several on one key are intersected.
    pub fn from_specs<'a>(specs: impl IntoIterator<Item = &'a RequirementSpec>, vocabulary: &mut Vocabulary) -> Self {
        let specs = specs.into_iter();
        let mut sorted = Vec::with_capacity(specs.size_hint().0);
        for spec in specs {
            let requirement = Requirement::from_spec(spec, vocabulary);
            narrow(&mut sorted, requirement, vocabulary);
        }
        Self { sorted: sorted.into() }
    }

    /// Exactly these labels. A label under both its old and its new name gives the intersection of the two.
    pub fn from_labels<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>, vocabulary: &mut Vocabulary) -> Self {
        let mut sorted = Vec::new();
        for (key, value) in labels {
            let requirement = Requirement::parse(key, super::Operator::In, [value], vocabulary);
            narrow(&mut sorted, requirement, vocabulary);
        }
        Self { sorted: sorted.into() }
    }

    /// Adds a condition; one on a key that is there already narrows it.
    pub fn add(&mut self, requirement: Requirement, vocabulary: &Vocabulary) {
        self.edit(|sorted| narrow(sorted, requirement, vocabulary));
    }

    /// Adds every condition of another set.
    pub fn add_all(&mut self, others: &Self, vocabulary: &Vocabulary) {
        if self.is_empty() {
            self.sorted = Arc::clone(&others.sorted);
            return;
        }
        self.edit(|sorted| {
            for requirement in others.iter() {
                narrow(sorted, requirement.clone(), vocabulary);
            }
        });
    }

    /// Puts a condition in place of the one on its key.
    pub fn replace(&mut self, requirement: Requirement) {
        self.edit(|sorted| match position(sorted, requirement.key()) {
            Ok(at) => {
                if let Some(existing) = sorted.get_mut(at) {
                    *existing = requirement;
                }
            }
            Err(at) => sorted.insert(at, requirement),
        });
    }

    /// Takes the condition on a key out.
    pub fn remove(&mut self, key: KeyId) -> Option<Requirement> {
        let at = self.position(key).ok()?;
        let mut removed = None;
        self.edit(|sorted| removed = Some(sorted.remove(at)));
        removed
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

    /// Where the conditions are in memory. Clones of a set share it, so it tells equal sets apart from others without
    /// looking at them, for as long as one of the clones lives.
    pub fn address(&self) -> usize {
        self.sorted.as_ptr() as usize
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

    /// The same conditions but for those that `other` puts in their place, by position in the order of keys.
    pub(super) fn with(&self, mut other: impl FnMut(usize, &Requirement) -> Option<Requirement>) -> Self {
        let each = self.iter().enumerate();
        Self {
            sorted: each
                .map(|(at, it)| other(at, it).unwrap_or_else(|| it.clone()))
                .collect(),
        }
    }

    fn position(&self, key: KeyId) -> Result<usize, usize> {
        position(&self.sorted, key)
    }

    fn edit(&mut self, change: impl FnOnce(&mut Vec<Requirement>)) {
        let mut sorted = Vec::with_capacity(self.sorted.len() + 1);
        sorted.extend_from_slice(&self.sorted);
        change(&mut sorted);
        self.sorted = sorted.into();
    }
}

fn position(sorted: &[Requirement], key: KeyId) -> Result<usize, usize> {
    sorted.binary_search_by_key(&key, Requirement::key)
}

/// Adds a condition to sorted ones; one on a key that is there already narrows it.
fn narrow(sorted: &mut Vec<Requirement>, requirement: Requirement, vocabulary: &Vocabulary) {
    // Types of a catalogue name their labels in one order, which soon is that of the numbers.
    if sorted.last().is_none_or(|last| last.key() < requirement.key()) {
        sorted.push(requirement);
        return;
    }
    match position(sorted, requirement.key()) {
        Ok(at) => {
            if let Some(existing) = sorted.get_mut(at) {
                *existing = requirement.intersection(existing, vocabulary);
            }
        }
        Err(at) => sorted.insert(at, requirement),
    }
}
