//! Sets of positions that grow and shrink, walked a word at a time.

/// A growing set of positions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bitmap {
    words: Vec<u64>,
}

impl Bitmap {
    /// The 64 positions from `64 * at` on; none past the end.
    #[inline]
    pub(crate) fn word(&self, at: usize) -> u64 {
        self.words.get(at).copied().unwrap_or(0)
    }

    #[inline]
    pub(crate) fn insert(&mut self, position: usize) {
        if self.words.len() <= position / 64 {
            self.words.resize(position / 64 + 1, 0);
        }
        self.words[position / 64] |= 1 << (position % 64);
    }

    #[inline]
    pub(crate) fn remove(&mut self, position: usize) {
        if let Some(word) = self.words.get_mut(position / 64) {
            *word &= !(1 << (position % 64));
        }
    }

    /// Takes all positions out.
    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
    }

    /// The first position at or after a place.
    #[inline]
    pub(crate) fn next(&self, from: usize) -> Option<usize> {
        let mut at = from / 64;
        let mut word = self.word(at) & (u64::MAX << (from % 64));
        while word == 0 {
            at += 1;
            word = *self.words.get(at)?;
        }
        Some(at * 64 + word.trailing_zeros() as usize)
    }
}

/// A set whose empty stretches are skipped: a summary bit per non-empty word.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bucket {
    words: Bitmap,
    summary: Bitmap,
    len: usize,
}

impl Bucket {
    pub(crate) fn insert(&mut self, position: usize) {
        self.words.insert(position);
        self.summary.insert(position / 64);
        self.len += 1;
    }

    pub(crate) fn remove(&mut self, position: usize) {
        self.words.remove(position);
        if self.words.word(position / 64) == 0 {
            self.summary.remove(position / 64);
        }
        self.len -= 1;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first non-empty word at or after a place, and where it is.
    #[inline]
    pub(crate) fn next_word(&self, from: usize) -> Option<(usize, u64)> {
        let mut at = from / 64;
        let mut summary = self.summary.word(at) & (u64::MAX << (from % 64));
        while summary == 0 {
            at += 1;
            summary = *self.summary.words.get(at)?;
        }
        let place = at * 64 + summary.trailing_zeros() as usize;
        Some((place, self.words.word(place)))
    }
}

/// The positions of the bits of a word, lowest first.
#[inline]
pub(crate) fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros();
        (word != 0).then(|| {
            word &= word - 1;
            bit as usize
        })
    })
}

/// The positions of the bits of several words.
#[inline]
pub(crate) fn positions(words: &[u64]) -> impl Iterator<Item = usize> + '_ {
    words
        .iter()
        .enumerate()
        .flat_map(|(at, word)| bits(*word).map(move |bit| at * 64 + bit))
}

/// How many words hold so many positions.
pub(crate) const fn words_for(positions: usize) -> usize {
    positions.div_ceil(64)
}

/// Whether the position is in the set.
#[inline]
pub(crate) fn has(words: &[u64], position: usize) -> bool {
    words
        .get(position / 64)
        .is_some_and(|word| word >> (position % 64) & 1 == 1)
}

#[inline]
pub(crate) fn put(words: &mut [u64], position: usize) {
    if let Some(word) = words.get_mut(position / 64) {
        *word |= 1 << (position % 64);
    }
}

/// Whether two sets share a position.
#[inline]
pub(crate) fn intersects(a: &[u64], b: &[u64]) -> bool {
    a.iter().zip(b).any(|(a, b)| a & b != 0)
}

pub(crate) fn is_empty(words: &[u64]) -> bool {
    words.iter().all(|word| *word == 0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::{collection::vec, prelude::*};

    use super::*;

    proptest! {
        #[test]
        fn a_bucket_behaves_like_a_set_and_skips_nothing(steps in vec((0..500_usize, any::<bool>()), 0..200)) {
            let (mut bucket, mut set) = (Bucket::default(), BTreeSet::new());
            for (position, insert) in steps {
                if insert {
                    if set.insert(position) {
                        bucket.insert(position);
                    }
                } else if set.remove(&position) {
                    bucket.remove(position);
                }
            }
            let (mut walked, mut from) = (Vec::new(), 0);
            while let Some((at, word)) = bucket.next_word(from) {
                walked.extend(bits(word).map(|bit| at * 64 + bit));
                from = at + 1;
            }
            prop_assert_eq!(walked, set.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(bucket.is_empty(), set.is_empty());
        }
    }
}
