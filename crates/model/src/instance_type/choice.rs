//! Which of several instance types come first, and how many of them keep a claim as flexible as it asks to be.

use std::collections::BTreeMap;

use super::InstanceType;
use crate::{
    bitset::BitSet,
    requirement::{Requirement, Requirements},
    vocabulary::{KeyId, Vocabulary},
};

/// Instance types that offer fewer different values of some labels than `minValues` asks for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("minValues requirement is not met for label(s) (label(s)=[{}])", .labels.keys().cloned().collect::<Vec<_>>().join(" "))]
pub struct MinValuesUnmet {
    /// How many different values there are, by label.
    pub labels: BTreeMap<String, usize>,
}

/// The types in the order of their cheapest launch that meets the requirements; those without one last, ties as they
/// were.
pub fn by_price<'a>(
    types: impl IntoIterator<Item = &'a InstanceType>,
    requirements: &Requirements,
    vocabulary: &Vocabulary,
) -> Vec<&'a InstanceType> {
    let mut types: Vec<_> = types.into_iter().collect();
    types.sort_by_cached_key(|candidate| {
        let cheapest = candidate.cheapest_launch(requirements, vocabulary);
        (cheapest.is_none(), cheapest)
    });
    types
}

/// How many of the types, from the first, it takes to offer as many different values as `minValues` asks for. Only
/// values that the requirements still admit count, and no types at all are taken to offer enough.
pub fn needed_for_min_values<'a>(
    types: impl IntoIterator<Item = &'a InstanceType>,
    requirements: &Requirements,
    vocabulary: &Vocabulary,
) -> Result<usize, MinValuesUnmet> {
    let mut tallies: Vec<_> = requirements.iter().filter_map(Tally::of).collect();
    if tallies.is_empty() {
        return Ok(0);
    }
    let mut count = 0;
    for candidate in types {
        for tally in &mut tallies {
            tally.count(candidate, vocabulary);
        }
        count += 1;
        if tallies.iter().all(Tally::is_met) {
            return Ok(count);
        }
    }
    if count == 0 {
        return Ok(0);
    }
    let unmet = tallies.iter().filter(|tally| !tally.is_met());
    Err(MinValuesUnmet {
        labels: unmet.map(|tally| tally.entry(vocabulary)).collect(),
    })
}

/// The different values met of one label.
struct Tally<'a> {
    requirement: &'a Requirement,
    needed: usize,
    seen: BitSet,
}

impl<'a> Tally<'a> {
    fn of(requirement: &'a Requirement) -> Option<Self> {
        let needed = requirement.min_values()? as usize;
        Some(Self {
            requirement,
            needed,
            seen: BitSet::default(),
        })
    }

    fn key(&self) -> KeyId {
        self.requirement.key()
    }

    fn count(&mut self, candidate: &InstanceType, vocabulary: &Vocabulary) {
        let offered = candidate
            .requirements
            .get(self.key())
            .into_iter()
            .flat_map(Requirement::values);
        for value in offered.filter(|value| self.requirement.admits(*value, vocabulary)) {
            self.seen.insert(value.bit());
        }
    }

    fn is_met(&self) -> bool {
        self.seen.len() >= self.needed
    }

    fn entry(&self, vocabulary: &Vocabulary) -> (String, usize) {
        (vocabulary.key_name(self.key()).to_owned(), self.seen.len())
    }
}
