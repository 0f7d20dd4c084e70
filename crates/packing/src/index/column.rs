//! Which rows have at least so much of one resource.

use crate::bitmap::{intersects, put};

/// The distinct values of a resource, ascending, each with the rows that have at least it.
#[derive(Debug)]
pub(crate) struct Column {
    values: Vec<i64>,
    /// One mask more than values: above the largest there is nothing.
    at_least: Vec<u64>,
    words: usize,
}

impl Column {
    pub(super) fn new(amounts: impl Iterator<Item = i64>, words: usize) -> Self {
        let mut rows: Vec<(i64, u32)> = amounts.zip(0..).collect();
        rows.sort_unstable();
        let mut values: Vec<i64> = rows.iter().map(|(amount, _)| *amount).collect();
        values.dedup();
        let mut at_least = vec![0; (values.len() + 1) * words];
        let mut rank = values.len();
        for (amount, row) in rows.iter().rev() {
            if values.get(rank) != Some(amount) {
                rank -= 1;
                at_least.copy_within((rank + 1) * words..(rank + 2) * words, rank * words);
            }
            put(&mut at_least[rank * words..], *row as usize);
        }
        Self {
            values,
            at_least,
            words,
        }
    }

    /// The rows that have at least the amount.
    #[inline]
    pub(crate) fn at_least(&self, amount: i64) -> &[u64] {
        self.mask(self.rank(amount))
    }

    /// Takes out of a mask the rows that have more than the amount.
    pub(crate) fn keep_at_most(&self, amount: i64, mask: &mut [u64]) {
        let above = self.mask(self.values.partition_point(|value| *value <= amount));
        for (kept, above) in mask.iter_mut().zip(above) {
            *kept &= !above;
        }
    }

    /// The largest value among the rows of a mask; none for an empty mask.
    pub(crate) fn largest(&self, mask: &[u64]) -> Option<i64> {
        // The masks are nested, so "some row has at least this" holds up to a point.
        let mut ranks = (0, self.values.len());
        while ranks.0 < ranks.1 {
            let middle = ranks.0.midpoint(ranks.1);
            if intersects(self.mask(middle), mask) {
                ranks.0 = middle + 1;
            } else {
                ranks.1 = middle;
            }
        }
        ranks.0.checked_sub(1).map(|rank| self.values[rank])
    }

    #[inline]
    fn rank(&self, amount: i64) -> usize {
        self.values.partition_point(|value| *value < amount)
    }

    #[inline]
    fn mask(&self, rank: usize) -> &[u64] {
        &self.at_least[rank * self.words..(rank + 1) * self.words]
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::bitmap::{has, words_for};

    proptest! {
        #[test]
        fn columns_answer_as_a_scan_would(amounts in vec(0..20_i64, 1..150), asked in -1..22_i64, picked in vec(any::<bool>(), 150)) {
            let words = words_for(amounts.len());
            let column = Column::new(amounts.iter().copied(), words);
            for (row, amount) in amounts.iter().enumerate() {
                prop_assert_eq!(has(column.at_least(asked), row), *amount >= asked);
            }
            let mut mask = vec![0; words];
            let chosen: Vec<usize> = (0..amounts.len()).filter(|row| picked[*row]).collect();
            for row in &chosen {
                put(&mut mask, *row);
            }
            prop_assert_eq!(column.largest(&mask), chosen.iter().map(|row| amounts[*row]).max());
            column.keep_at_most(asked, &mut mask);
            for (row, amount) in amounts.iter().enumerate() {
                prop_assert_eq!(has(&mask, row), picked[row] && *amount <= asked);
            }
        }
    }
}
