//! Which values of one label are acceptable, and how two such conditions combine.
//!
//! A requirement is a set of values, or all values but a set (a complement), within optional integer bounds. The rules
//! are upstream's, including the ones that surprise: a bound makes every non-integer unacceptable, two complements are
//! taken to overlap whatever they exclude, and a concrete set forgets its bounds once they were applied.
//! Values are bits of the key's [`Vocabulary`]; requirements are only comparable within one vocabulary.

mod alike;
mod bounds;
mod compatibility;
mod operator;
mod set;
mod spec;
mod text;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;

pub use alike::AlikeReader;
pub use compatibility::{Conflict, Incompatible, UndefinedLabels};
pub use operator::{Operator, UnknownOperator};
pub use set::Requirements;
pub use spec::{RequirementSpec, SpecError};

use self::bounds::Bounds;
use crate::{
    bitset::BitSet,
    vocabulary::{KeyId, ValueId, Vocabulary},
};

/// A condition on one label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    key: KeyId,
    /// The acceptable values are all but `values`.
    complement: bool,
    values: BitSet,
    /// Only ever set on complements.
    bounds: Bounds,
    min_values: Option<u32>,
}

impl Requirement {
    /// The label must have one of the values; with none this is [`Requirement::does_not_exist`].
    pub fn one_of(key: KeyId, values: impl IntoIterator<Item = ValueId>) -> Self {
        Self {
            complement: false,
            ..Self::none_of(key, values)
        }
    }

    /// The label must not have any of the values; with none this is [`Requirement::exists`].
    pub fn none_of(key: KeyId, values: impl IntoIterator<Item = ValueId>) -> Self {
        let values = values.into_iter().map(ValueId::bit).collect();
        Self {
            key,
            complement: true,
            values,
            bounds: Bounds::NONE,
            min_values: None,
        }
    }

    /// The label must be there.
    pub fn exists(key: KeyId) -> Self {
        Self::none_of(key, [])
    }

    /// The label must not be there.
    pub fn does_not_exist(key: KeyId) -> Self {
        Self::one_of(key, [])
    }

    /// The label must be an integer within the inclusive bounds.
    pub fn within(key: KeyId, at_least: Option<i64>, at_most: Option<i64>) -> Self {
        Self {
            bounds: Bounds { at_least, at_most },
            ..Self::exists(key)
        }
    }

    /// The same condition, asking for this many different values among the instance types chosen.
    #[must_use]
    pub fn with_min_values(self, min_values: Option<u32>) -> Self {
        Self { min_values, ..self }
    }

    /// The label.
    pub fn key(&self) -> KeyId {
        self.key
    }

    /// How many different values the instance types chosen must have.
    pub fn min_values(&self) -> Option<u32> {
        self.min_values
    }

    /// Whether all values but the listed ones are acceptable.
    pub fn is_complement(&self) -> bool {
        self.complement
    }

    /// The values listed: the acceptable ones, or for a complement the excluded ones.
    pub fn values(&self) -> impl Iterator<Item = ValueId> {
        self.values.iter().map(ValueId::from_bit)
    }

    /// The values listed, as a set of [`ValueId`] bits.
    pub fn value_set(&self) -> &BitSet {
        &self.values
    }

    /// The inclusive lower and upper bound.
    pub fn bounds(&self) -> (Option<i64>, Option<i64>) {
        (self.bounds.at_least, self.bounds.at_most)
    }

    /// What kind of condition it is. Bounds do not show: a bounded one is `Exists`, or `NotIn` if it excludes values.
    pub fn operator(&self) -> Operator {
        match (self.complement, self.values.is_empty()) {
            (true, true) => Operator::Exists,
            (true, false) => Operator::NotIn,
            (false, true) => Operator::DoesNotExist,
            (false, false) => Operator::In,
        }
    }

    /// Whether a missing label satisfies it.
    pub fn accepts_absence(&self) -> bool {
        matches!(self.operator(), Operator::NotIn | Operator::DoesNotExist)
    }

    /// How many values are acceptable; for a complement the largest number there is, less the excluded ones.
    pub fn len(&self) -> i64 {
        let listed = i64::try_from(self.values.len()).unwrap_or(i64::MAX);
        if self.complement { i64::MAX - listed } else { listed }
    }

    /// Whether no value is acceptable.
    pub fn is_empty(&self) -> bool {
        !self.complement && self.values.is_empty()
    }

    /// Whether the value is acceptable.
    pub fn admits(&self, value: ValueId, vocabulary: &Vocabulary) -> bool {
        self.values.contains(value.bit()) != self.complement
            && self.bounds.admit(|| vocabulary.integer(self.key, value))
    }

    /// Whether the value is acceptable, be it in the vocabulary or not.
    pub fn has(&self, value: &str, vocabulary: &Vocabulary) -> bool {
        let is_listed = vocabulary
            .value(self.key, value)
            .is_some_and(|value| self.values.contains(value.bit()));
        is_listed != self.complement && self.bounds.admit(|| value.parse().ok())
    }

    /// The values that satisfy both conditions on the same label.
    #[must_use]
    pub fn intersection(&self, other: &Self, vocabulary: &Vocabulary) -> Self {
        let min_values = self.min_values.max(other.min_values);
        let bounds = self.bounds.tightened(other.bounds);
        if bounds.is_contradiction() {
            return Self::does_not_exist(self.key).with_min_values(min_values);
        }
        let complement = self.complement && other.complement;
        let values = bounds.filter(self.combine(other), self.key, vocabulary);
        let bounds = if complement { bounds } else { Bounds::NONE };
        Self {
            key: self.key,
            complement,
            values,
            bounds,
            min_values,
        }
    }

    /// Whether some value satisfies both; two complements are taken to leave one.
    pub fn overlaps(&self, other: &Self, vocabulary: &Vocabulary) -> bool {
        let bounds = self.bounds.tightened(other.bounds);
        if bounds.is_contradiction() {
            return false;
        }
        match (self.complement, other.complement) {
            (true, true) => true,
            _ if !bounds.is_none() => !bounds.filter(self.combine(other), self.key, vocabulary).is_empty(),
            (true, false) => !other.values.is_subset(&self.values),
            (false, true) => !self.values.is_subset(&other.values),
            (false, false) => self.values.intersects(&other.values),
        }
    }

    /// One acceptable value, if the label may be there at all: the first by name of a concrete set, otherwise the
    /// integer that `draw` picks within the bounds. The caller owns the randomness.
    pub fn any(&self, vocabulary: &Vocabulary, draw: u64) -> Option<String> {
        if self.complement {
            return self
                .bounds
                .integers_from(draw)
                .map(|integer| integer.to_string())
                .find(|it| self.has(it, vocabulary));
        }
        self.values()
            .map(|value| vocabulary.value_name(self.key, value))
            .min()
            .map(str::to_owned)
    }

    fn combine(&self, other: &Self) -> BitSet {
        match (self.complement, other.complement) {
            (true, true) => self.values.union(&other.values),
            (true, false) => other.values.difference(&self.values),
            (false, true) => self.values.difference(&other.values),
            (false, false) => self.values.intersection(&other.values),
        }
    }
}
