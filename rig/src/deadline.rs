//! How long may a step of the rig still take? The one place of this crate that reads the clock.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// The time since a step began, and the time it is allowed.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    start: Instant,
    limit: Duration,
}

impl Deadline {
    /// A step that begins now.
    #[allow(
        clippy::disallowed_methods,
        reason = "the rig waits for real processes, so it needs the real clock"
    )]
    pub fn within(limit: Duration) -> Self {
        Self {
            start: Instant::now(),
            limit,
        }
    }

    /// How long the step has been running.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Whether its time is up.
    pub fn passed(&self) -> bool {
        self.elapsed() >= self.limit
    }

    /// Waits a moment before the next look, or gives up with what was seen `last`.
    pub fn pause(&self, what: &str, last: String, moment: Duration) -> Result<()> {
        if self.passed() {
            return Err(Error::Deadline {
                what: what.to_owned(),
                limit: self.limit,
                last,
            });
        }
        sleep(moment);
        Ok(())
    }
}
