//! What does Go's `math/rand` draw after `rand.NewSource(42)`? Upstream's benchmark pods depend on it.
//!
//! Go seeds its generator from a table of constants in its source, which we do not copy. It is not needed: the generator
//! is additive with lags 607 and 273, so its own first 607 outputs determine all later ones. Those outputs are data:
//! `data/math-rand-seed-42.txt` is what `bench/reference draws --seed 42 -n 607` prints, and an e2e test keeps it so.

use std::collections::VecDeque;

const LONG_LAG: usize = 607;
const SHORT_LAG: usize = 273;

/// The sequence of seed 42, from its beginning.
#[derive(Debug, Clone)]
pub struct GoRand {
    /// The outputs still to come, at least 607 of them.
    ahead: VecDeque<u64>,
}

/// The recorded outputs, one hexadecimal word per line.
pub const SEED_42: &str = include_str!("../data/math-rand-seed-42.txt");

impl GoRand {
    /// Seed 42, the only one recorded.
    pub fn seed_42() -> Self {
        let ahead: VecDeque<u64> = SEED_42
            .lines()
            .filter_map(|line| u64::from_str_radix(line, 16).ok())
            .collect();
        debug_assert_eq!(ahead.len(), LONG_LAG, "data/math-rand-seed-42.txt is damaged");
        Self { ahead }
    }

    /// Go's `Source64.Uint64`.
    pub fn uint64(&mut self) -> u64 {
        let next = self.ahead[0].wrapping_add(self.ahead[LONG_LAG - SHORT_LAG]);
        self.ahead.push_back(next);
        self.ahead.pop_front().unwrap_or_default()
    }

    /// Go's `Rand.Int63`.
    pub fn int63(&mut self) -> u64 {
        self.uint64() & (u64::MAX >> 1)
    }

    /// Go's `Rand.Intn` for `0 < n < 2³¹`.
    pub fn intn(&mut self, n: u64) -> usize {
        const RANGE: u64 = 1 << 31;
        // A power of two divides the range, so its rejection zone is empty and the remainder equals Go's mask.
        let limit = RANGE - 1 - RANGE % n;
        loop {
            let draw = self.int63() >> 32;
            if draw <= limit {
                return usize::try_from(draw % n).unwrap_or_default();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_42_draws_what_go_draws() {
        let mut rng = GoRand::seed_42();
        let drawn: Vec<usize> = (0..10).map(|_| rng.intn(100)).collect();
        assert_eq!(drawn, [5, 87, 68, 50, 23, 45, 57, 76, 28, 43]);
        let mut rng = GoRand::seed_42();
        let drawn: Vec<u64> = (0..3).map(|_| rng.int63()).collect();
        assert_eq!(
            drawn,
            [
                3_440_579_354_231_278_675,
                608_747_136_543_856_411,
                5_571_782_338_101_878_760
            ]
        );
    }
}
