//! Which lines are kept when the same is said over and over: zap's rule. Of equal messages at a level, the first hundred
//! in a second, then every hundredth.

use std::hash::Hasher;

use jiff::{SignedDuration, Timestamp};
use tracing::Level;

const FIRST: u64 = 100;
const THEREAFTER: u64 = 100;
const TICK: SignedDuration = SignedDuration::from_secs(1);
/// Messages share counters by hash, as zap's do: what is counted stays bounded.
const COUNTERS: usize = 1024;

/// Counts messages.
#[derive(Debug)]
pub(super) struct Sampler(Box<[Counter]>);

#[derive(Debug, Clone, Copy)]
struct Counter {
    until: Timestamp,
    count: u64,
}

impl Default for Sampler {
    fn default() -> Self {
        let idle = Counter {
            until: Timestamp::MIN,
            count: 0,
        };
        Self(vec![idle; COUNTERS].into())
    }
}

impl Sampler {
    /// Counts a message and says whether it is to be written.
    pub(super) fn keeps(&mut self, level: Level, message: &str, now: Timestamp) -> bool {
        let Some(counter) = self.0.get_mut(slot(level, message)) else {
            return true;
        };
        if now >= counter.until {
            *counter = Counter {
                until: now.saturating_add(TICK).unwrap_or(Timestamp::MAX),
                count: 0,
            };
        }
        counter.count += 1;
        counter.count <= FIRST || (counter.count - FIRST).is_multiple_of(THEREAFTER)
    }
}

fn slot(level: Level, message: &str) -> usize {
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(level.as_str().as_bytes());
    hasher.write(message.as_bytes());
    usize::try_from(hasher.finish() % COUNTERS as u64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_messages_the_first_hundred_in_a_second_are_kept_and_then_every_hundredth() {
        let mut sampler = Sampler::default();
        let start: Timestamp = "2026-11-16T10:00:00Z".parse().unwrap();
        let kept = (1..=350).filter(|_| sampler.keeps(Level::INFO, "again", start)).count();
        assert_eq!(kept, 102);
        assert!(
            sampler.keeps(Level::ERROR, "again", start),
            "another level is counted apart"
        );
        assert!(sampler.keeps(Level::INFO, "another", start));
        assert!(!sampler.keeps(Level::INFO, "again", start));
        assert!(
            sampler.keeps(Level::INFO, "again", start + TICK),
            "a second later all is forgotten"
        );
    }
}
