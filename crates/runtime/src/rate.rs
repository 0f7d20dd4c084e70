//! How often something may happen: so many per second, and so many at once.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// A rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// How many per second, in the long run.
    pub per_second: f64,
    /// How many at once, after a pause.
    pub burst: u32,
}

/// A bucket of tokens that fills at a rate.
#[derive(Debug)]
pub struct TokenBucket {
    rate: Rate,
    level: Mutex<Level>,
}

#[derive(Debug)]
struct Level {
    /// Below zero when somebody waits for what is not there yet.
    tokens: f64,
    at: Instant,
}

impl TokenBucket {
    /// A full bucket.
    pub fn new(rate: Rate) -> Self {
        let level = Level {
            tokens: f64::from(rate.burst),
            at: Instant::now(),
        };
        Self {
            rate,
            level: Mutex::new(level),
        }
    }

    /// Takes a token if there is one.
    pub fn try_take(&self) -> bool {
        self.reserve(Duration::ZERO).is_some()
    }

    /// Takes a token that is there after the returned time; nothing is taken if that were longer than `patience`. Who
    /// reserves first, waits less: nobody is overtaken.
    pub fn reserve(&self, patience: Duration) -> Option<Duration> {
        let mut level = self.filled();
        let missing = (1.0 - level.tokens).max(0.0);
        let wait = Duration::try_from_secs_f64(missing / self.rate.per_second).unwrap_or(Duration::MAX);
        if wait > patience {
            return None;
        }
        level.tokens -= 1.0;
        Some(wait)
    }

    fn filled(&self) -> MutexGuard<'_, Level> {
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let gained = now.saturating_duration_since(level.at).as_secs_f64() * self.rate.per_second;
        level.tokens = (level.tokens + gained).min(f64::from(self.rate.burst));
        level.at = now;
        level
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate {
        per_second: 5.0,
        burst: 10,
    };

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_and_the_rest_comes_at_the_rate() {
        let bucket = TokenBucket::new(RATE);
        assert_eq!((0..20).filter(|_| bucket.try_take()).count(), 10);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!((0..20).filter(|_| bucket.try_take()).count(), 5);
        tokio::time::advance(Duration::from_mins(1)).await;
        assert_eq!((0..20).filter(|_| bucket.try_take()).count(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_wait_are_served_in_turn_and_nobody_waits_past_their_patience() {
        let bucket = TokenBucket::new(RATE);
        for _ in 0..10 {
            assert_eq!(bucket.reserve(Duration::ZERO), Some(Duration::ZERO));
        }
        let patience = Duration::from_millis(500);
        let waits: Vec<Option<Duration>> = (0..3).map(|_| bucket.reserve(patience)).collect();
        let milliseconds = |number| Some(Duration::from_millis(number));
        assert_eq!(waits, [milliseconds(200), milliseconds(400), None]);
    }
}
