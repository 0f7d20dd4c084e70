//! Chance, as an input: jitter and identities come from a seed that a test chooses.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// A source of chance (splitmix64). Clones draw from the same sequence. Not for secrets.
#[derive(Debug, Clone)]
pub struct Random(Arc<AtomicU64>);

/// The step of splitmix64.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// The sequence of a seed.
    pub fn seeded(seed: u64) -> Self {
        Self(Arc::new(AtomicU64::new(seed)))
    }

    /// A sequence that no other process has: the seed is the one the system gives to hash tables.
    pub fn from_system() -> Self {
        Self::seeded(RandomState::new().build_hasher().finish())
    }

    /// Any number.
    pub fn next(&self) -> u64 {
        let mut mixed = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from zero up to, but without, one.
    pub fn fraction(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "53 bits are what a float holds exactly")]
        let fraction = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        fraction
    }

    /// A duration, or up to `factor` times longer.
    pub fn jittered(&self, duration: Duration, factor: f64) -> Duration {
        duration.mul_f64(1.0 + factor * self.fraction())
    }

    /// A version 4 UUID.
    pub fn uuid(&self) -> String {
        let bits = (u128::from(self.next()) << 64) | u128::from(self.next());
        let bits = (bits & !(0xf << 76) | (4 << 76)) & !(0x3 << 62) | (0x2 << 62);
        let hex = format!("{bits:032x}");
        let parts: Vec<&str> = [0..8, 8..12, 12..16, 16..20, 20..32]
            .into_iter()
            .filter_map(|range| hex.get(range))
            .collect();
        parts.join("-")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_published_sequence_of_splitmix64() {
        let random = Random::seeded(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([random.next(), random.next()], expected);
    }

    #[test]
    fn clones_share_a_sequence_and_fractions_stay_below_one() {
        let random = Random::seeded(7);
        let other = random.clone();
        assert_ne!(random.next(), other.next());
        assert!((0..1000).map(|_| random.fraction()).all(|x| (0.0..1.0).contains(&x)));
    }

    #[test]
    fn a_uuid_says_that_it_is_random() {
        let uuid = Random::seeded(3).uuid();
        let shape: String = uuid
            .chars()
            .map(|c| if c.is_ascii_hexdigit() { 'x' } else { c })
            .collect();
        assert_eq!(shape, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx");
        assert_eq!(uuid.as_bytes()[14], b'4');
        assert!(matches!(uuid.as_bytes()[19], b'8' | b'9' | b'a' | b'b'));
    }
}
