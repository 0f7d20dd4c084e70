//! What time is it? The system's, or one that a test moves.

use std::sync::Arc;

use jiff::{Timestamp, Unit};
use tokio::time::Instant;

/// Tells the time. Waiting is tokio's business, so a test that pauses tokio's time moves this clock with it.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The system's clock.
    pub fn system() -> Self {
        #[expect(clippy::disallowed_methods, reason = "this is where time comes in")]
        Self(Arc::new(Timestamp::now))
    }

    /// A clock that reads `start` now and goes on with tokio's time. To be made inside a runtime.
    pub fn starting_at(start: Timestamp) -> Self {
        let began = Instant::now();
        Self(Arc::new(move || {
            start.saturating_add(began.elapsed()).unwrap_or(Timestamp::MAX)
        }))
    }

    /// A clock that reads what is told.
    pub fn told_by(tell: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }

    /// The time as the API writes it: whole seconds.
    pub fn now_in_seconds(&self) -> Timestamp {
        let now = self.now();
        now.round(
            jiff::TimestampRound::new()
                .smallest(Unit::Second)
                .mode(jiff::RoundMode::Trunc),
        )
        .unwrap_or(now)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_clock_of_a_test_goes_on_with_tokios_time() {
        let clock = Clock::starting_at("2026-11-16T03:00:00.25Z".parse().unwrap());
        tokio::time::advance(Duration::from_millis(1500)).await;
        assert_eq!(clock.now(), "2026-11-16T03:00:01.75Z".parse().unwrap());
        assert_eq!(clock.now_in_seconds(), "2026-11-16T03:00:01Z".parse().unwrap());
    }
}
