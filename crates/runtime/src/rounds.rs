//! What is done again and again while we lead.

use std::{fmt::Display, time::Duration};

use tokio::time::sleep;

/// When work that failed is done again, if not sooner anyway.
const AFTER_FAILURE: Duration = Duration::from_mins(1);

/// Does work, then pauses, until dropped. What failed is said in the name of a controller.
pub async fn every<W, E>(controller: &str, pause: Duration, work: impl Fn() -> W)
where
    W: Future<Output = Result<(), E>>,
    E: Display,
{
    loop {
        let pause = match work().await {
            Ok(()) => pause,
            Err(error) => {
                tracing::error!(controller, %error, "Reconciler error");
                AFTER_FAILURE.min(pause)
            }
        };
        sleep(pause).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    async fn done_within(time: Duration, pause: Duration, failures: u32) -> u32 {
        let done = AtomicU32::new(0);
        let work = || async {
            let is_failed = done.fetch_add(1, Ordering::Relaxed) < failures;
            if is_failed { Err("no answer") } else { Ok(()) }
        };
        let _ = tokio::time::timeout(time, every("test", pause, work)).await;
        done.load(Ordering::Relaxed)
    }

    #[tokio::test(start_paused = true)]
    async fn what_failed_is_done_again_after_a_minute_and_what_did_not_after_its_pause() {
        let hour = Duration::from_hours(1);
        assert_eq!(done_within(Duration::from_secs(3599), hour, 0).await, 1);
        assert_eq!(done_within(Duration::from_secs(3601), hour, 0).await, 2);
        assert_eq!(done_within(Duration::from_secs(61), hour, 1).await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_pause_is_kept_after_a_failure_too() {
        let pause = Duration::from_secs(10);
        assert_eq!(done_within(Duration::from_secs(25), pause, 9).await, 3);
    }
}
