//! Where do our own seeded choices come from? SplitMix64: tiny, stable for ever, and independent of any library's version.

/// A seeded source of choices.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// A source that always gives the same sequence for the same seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..n`; 0 when `n` is 0. The bias of a plain remainder does not matter below 2³².
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { self.draw() % n }
    }

    /// A number in `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True `percent` times in a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let index = usize::try_from(self.below(from.len() as u64)).unwrap_or_default();
        &from[index]
    }

    /// Between `least` and all of several, in their order.
    pub fn some<T: Clone>(&mut self, from: &[T], least: usize) -> Vec<T> {
        let mut kept: Vec<T> = from.iter().filter(|_| self.chance(50)).cloned().collect();
        while kept.len() < least.min(from.len()) {
            kept = from.iter().filter(|_| self.chance(70)).cloned().collect();
        }
        kept
    }
}

/// A version-4 shaped UUID made of a name, so that ties broken by uid are the same in every run.
pub fn uid(name: &str) -> String {
    let seed = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut rng = Rng::new(seed);
    let (high, low) = (rng.draw(), rng.draw());
    format!(
        "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        (low >> 48) & 0xfff,
        low & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_gives_the_same_sequence() {
        // SplitMix64's published test vector for seed 1234567.
        let mut rng = Rng::new(1_234_567);
        assert_eq!(
            [rng.draw(), rng.draw()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]
        );
    }

    #[test]
    fn uids_differ_by_name_and_look_like_uuids() {
        assert_ne!(uid("a"), uid("b"));
        assert_eq!(uid("a").split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
    }
}
