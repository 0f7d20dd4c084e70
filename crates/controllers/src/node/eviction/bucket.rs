//! How fast pods are asked again: a bucket that holds ten seconds' worth of retries.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// Fills at a rate and is drawn from by every retry.
#[derive(Debug)]
pub(super) struct Bucket {
    per_second: u32,
    /// When the bucket will be full.
    full_at: Mutex<Option<Instant>>,
}

/// How many seconds' worth it holds.
const HOLDS: Duration = Duration::from_secs(10);

impl Bucket {
    /// A full bucket.
    pub(super) fn new(per_second: usize) -> Self {
        Self {
            per_second: u32::try_from(per_second).unwrap_or(u32::MAX).max(1),
            full_at: Mutex::new(None),
        }
    }

    /// Draws once; tells how long to wait for it.
    pub(super) fn take(&self) -> Duration {
        let now = Instant::now();
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let full = full_at.map_or(now, |at| at.max(now)) + Duration::from_secs(1) / self.per_second;
        *full_at = Some(full);
        (full - now).saturating_sub(HOLDS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ten_seconds_worth_is_free_and_then_each_draw_waits_its_turn() {
        let bucket = Bucket::new(100);
        assert!((0..1000).all(|_| bucket.take().is_zero()));
        assert_eq!(bucket.take(), Duration::from_millis(10));
        assert_eq!(bucket.take(), Duration::from_millis(20));
        tokio::time::advance(Duration::from_secs(10)).await;
        assert!((0..998).all(|_| bucket.take().is_zero()));
        assert_eq!(bucket.take(), Duration::from_millis(10));
    }
}
