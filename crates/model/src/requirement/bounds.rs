//! Inclusive integer bounds on a label's value.

use crate::{
    bitset::BitSet,
    vocabulary::{KeyId, ValueId, Vocabulary},
};

/// At least, at most, both or neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Bounds {
    pub(super) at_least: Option<i64>,
    pub(super) at_most: Option<i64>,
}

impl Bounds {
    pub(super) const NONE: Self = Self {
        at_least: None,
        at_most: None,
    };

    pub(super) fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// Whether no number is within.
    pub(super) fn is_contradiction(self) -> bool {
        matches!((self.at_least, self.at_most), (Some(least), Some(most)) if least > most)
    }

    /// Both bounds at once.
    pub(super) fn tightened(self, other: Self) -> Self {
        let at_most = match (self.at_most, other.at_most) {
            (Some(ours), Some(theirs)) => Some(ours.min(theirs)),
            (ours, theirs) => ours.or(theirs),
        };
        Self {
            at_least: self.at_least.max(other.at_least),
            at_most,
        }
    }

    /// Whether a value is within; with any bound, what is no integer is out.
    pub(super) fn admit(self, integer: impl FnOnce() -> Option<i64>) -> bool {
        self.is_none() || integer().is_some_and(|integer| self.contains(integer))
    }

    /// The values of a key that are within.
    pub(super) fn filter(self, values: BitSet, key: KeyId, vocabulary: &Vocabulary) -> BitSet {
        if self.is_none() {
            return values;
        }
        let within = |bit: &u32| self.admit(|| vocabulary.integer(key, ValueId::from_bit(*bit)));
        values.iter().filter(within).collect()
    }

    /// The integers within, from the drawn one upwards. Unbounded below means from zero.
    pub(super) fn integers_from(self, draw: u64) -> impl Iterator<Item = i64> {
        let (least, most) = (
            i128::from(self.at_least.unwrap_or(0)),
            i128::from(self.at_most.unwrap_or(i64::MAX)),
        );
        let count = (most - least + 1).max(1);
        (least + i128::from(draw) % count..=most).filter_map(|integer| i64::try_from(integer).ok())
    }

    fn contains(self, integer: i64) -> bool {
        self.at_least.is_none_or(|least| integer >= least) && self.at_most.is_none_or(|most| integer <= most)
    }
}
