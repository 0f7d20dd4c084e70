//! Chance as a function: of a seed, of what is decided, and of the thing it is decided about.

use std::time::Duration;

/// A seed. Draws of the same thing are the same, whatever else was drawn before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chance(u64);

/// What came of a draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw(u64);

impl Chance {
    /// The chances of a seed.
    pub fn new(seed: u64) -> Self {
        Self(mix(seed ^ 0x9e37_79b9_7f4a_7c15))
    }

    /// Draws for a question about a thing.
    pub fn of(self, question: &str, thing: &str) -> Draw {
        Draw(mix(fold(fold(self.0, question), thing)))
    }
}

impl Draw {
    /// Any number.
    pub fn number(self) -> u64 {
        self.0
    }

    /// A number below `bound`; zero when there is none.
    pub fn below(self, bound: u64) -> u64 {
        self.0.checked_rem(bound).unwrap_or(0)
    }

    /// Yes, in so many of a thousand cases.
    pub fn happens(self, per_mille: u32) -> bool {
        self.below(1000) < u64::from(per_mille)
    }

    /// A time between two, both included.
    pub fn between(self, least: Duration, most: Duration) -> Duration {
        let span = most.saturating_sub(least).as_millis();
        let span = u64::try_from(span).unwrap_or(u64::MAX).saturating_add(1);
        least + Duration::from_millis(self.below(span))
    }
}

/// FNV-1a, which is the same in every build.
fn fold(start: u64, text: &str) -> u64 {
    let text = text.bytes().fold(start ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    mix(text)
}

/// The last steps of splitmix64: neighbours come out far apart.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_depends_on_seed_question_and_thing_and_on_nothing_else() {
        let chance = Chance::new(7);
        let draw = chance.of("boot", "a");
        assert_eq!(chance.of("boot", "a"), draw);
        for other in [
            chance.of("boot", "b"),
            chance.of("fate", "a"),
            Chance::new(8).of("boot", "a"),
        ] {
            assert_ne!(other, draw);
        }
    }

    #[test]
    fn draws_keep_to_their_bounds_and_fill_them() {
        let (least, most) = (Duration::from_secs(20), Duration::from_secs(40));
        let drawn: Vec<Duration> = (0..500)
            .map(|thing: u32| Chance::new(1).of("boot", &thing.to_string()).between(least, most))
            .collect();
        assert!(drawn.iter().all(|time| (least..=most).contains(time)));
        assert!(drawn.iter().any(|time| *time < Duration::from_secs(22)));
        assert!(drawn.iter().any(|time| *time > Duration::from_secs(38)));
        let yes = (0..1000).filter(|thing: &u32| Chance::new(1).of("fate", &thing.to_string()).happens(100));
        let yes = yes.count();
        assert!((60..140).contains(&yes), "{yes} of 1000 happened, 100 should");
    }
}
