//! A set of small numbers, one bit each. Numbers below 64 need no heap memory.

/// A set of `u32`, kept without trailing empty words so that equal sets compare equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitSet {
    first: u64,
    rest: Vec<u64>,
}

impl BitSet {
    /// Whether the number is in the set.
    pub fn contains(&self, number: u32) -> bool {
        let (word, bit) = place(number);
        self.word(word) & bit != 0
    }

    /// Puts a number in.
    pub fn insert(&mut self, number: u32) {
        let (word, bit) = place(number);
        match word.checked_sub(1) {
            None => self.first |= bit,
            Some(at) => {
                if self.rest.len() <= at {
                    self.rest.resize(at + 1, 0);
                }
                if let Some(word) = self.rest.get_mut(at) {
                    *word |= bit;
                }
            }
        }
    }

    /// Puts all numbers of another set in.
    pub fn extend(&mut self, other: &Self) {
        self.first |= other.first;
        if self.rest.len() < other.rest.len() {
            self.rest.resize(other.rest.len(), 0);
        }
        for (word, other) in self.rest.iter_mut().zip(&other.rest) {
            *word |= other;
        }
    }

    /// How many numbers are in the set.
    pub fn len(&self) -> usize {
        self.words().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether no number is in the set.
    pub fn is_empty(&self) -> bool {
        self.first == 0 && self.rest.is_empty()
    }

    /// The numbers from small to large.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        let some = |rest: u64| (rest != 0).then_some(rest);
        let of_word = move |(start, word): (u32, u64)| {
            let rests = std::iter::successors(some(word), move |rest| some(rest & (rest - 1)));
            rests.map(move |rest| start + rest.trailing_zeros())
        };
        (0..).step_by(64).zip(self.words()).flat_map(of_word)
    }

    /// The numbers in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.combine(other, |a, b| a | b)
    }

    /// The numbers in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.combine(other, |a, b| a & b)
    }

    /// The numbers in this set that the other lacks.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.combine(other, |a, b| a & !b)
    }

    /// Whether a number is in both sets.
    pub fn intersects(&self, other: &Self) -> bool {
        self.words().zip(other.words()).any(|(a, b)| a & b != 0)
    }

    /// Whether every number of this set is in the other.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.words().enumerate().all(|(at, word)| word & !other.word(at) == 0)
    }

    fn words(&self) -> impl Iterator<Item = u64> {
        std::iter::once(self.first).chain(self.rest.iter().copied())
    }

    fn word(&self, at: usize) -> u64 {
        at.checked_sub(1)
            .map_or(self.first, |at| self.rest.get(at).copied().unwrap_or(0))
    }

    fn combine(&self, other: &Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        let words = self.rest.len().max(other.rest.len());
        let mut rest: Vec<_> = (1..=words).map(|at| combine(self.word(at), other.word(at))).collect();
        while rest.last() == Some(&0) {
            rest.pop();
        }
        Self {
            first: combine(self.first, other.first),
            rest,
        }
    }
}

impl FromIterator<u32> for BitSet {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut set = Self::default();
        for number in numbers {
            set.insert(number);
        }
        set
    }
}

fn place(number: u32) -> (usize, u64) {
    ((number / 64) as usize, 1 << (number % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::{collection::btree_set, prelude::*};

    use super::BitSet;

    fn numbers() -> impl Strategy<Value = BTreeSet<u32>> {
        btree_set(0..200_u32, 0..20)
    }

    fn bits(numbers: impl IntoIterator<Item = u32>) -> BitSet {
        numbers.into_iter().collect()
    }

    proptest! {
        #[test]
        fn bits_behave_like_a_set_of_numbers(a in numbers(), b in numbers(), probe in 0..220_u32) {
            let (x, y) = (bits(a.clone()), bits(b.clone()));
            prop_assert_eq!(x.iter().collect::<BTreeSet<_>>(), a.clone());
            prop_assert_eq!(x.len(), a.len());
            prop_assert_eq!(x.is_empty(), a.is_empty());
            prop_assert_eq!(x.contains(probe), a.contains(&probe));
            prop_assert_eq!(x.union(&y), bits(a.union(&b).copied()));
            let mut extended = x.clone();
            extended.extend(&y);
            prop_assert_eq!(extended, x.union(&y));
            prop_assert_eq!(x.intersection(&y), bits(a.intersection(&b).copied()));
            prop_assert_eq!(x.difference(&y), bits(a.difference(&b).copied()));
            prop_assert_eq!(x.intersects(&y), !a.is_disjoint(&b));
            prop_assert_eq!(x.is_subset(&y), a.is_subset(&b));
        }
    }
}
