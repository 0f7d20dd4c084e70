//! What does one call cost? Time here, memory in a process of its own, because counting allocations slows them.

use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use packing::Packing;
use serde::{Deserialize, Serialize};

/// A turn lasts at least this long, and at least three calls.
const TURN: Duration = Duration::from_millis(300);
const CALLS: usize = 3;
/// Enough to know a call that takes microseconds.
const MOST_CALLS: usize = 2000;

/// What the calls of one turn took.
#[derive(Debug, Clone, Default)]
pub struct Timing(Vec<Duration>);

/// Calls until a turn is over.
#[expect(clippy::disallowed_methods, reason = "measuring time is what this is for")]
pub fn time<T>(mut call: impl FnMut() -> T) -> Timing {
    let begin = Instant::now();
    let mut samples = Vec::new();
    while samples.len() < CALLS || (begin.elapsed() < TURN && samples.len() < MOST_CALLS) {
        let start = Instant::now();
        black_box(call());
        samples.push(start.elapsed());
    }
    Timing(samples)
}

impl Timing {
    /// What a number of calls took.
    pub fn of<T>(calls: usize, mut call: impl FnMut() -> T) -> Self {
        let mut timing = Self::default();
        for _ in 0..calls {
            drop(timing.add(&mut call));
        }
        timing
    }

    /// One more call. What it returns is dropped outside the time.
    #[expect(clippy::disallowed_methods, reason = "measuring time is what this is for")]
    pub fn add<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let answer = black_box(call());
        self.0.push(start.elapsed());
        answer
    }

    /// The time, in milliseconds, that this share of the calls stayed within.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of thousands of calls"
    )]
    pub fn quantile(&self, share: f64) -> f64 {
        let mut all = self.0.clone();
        all.sort_unstable();
        let at = (all.len() as f64 * share) as usize;
        all.get(at.min(all.len().saturating_sub(1)))
            .map_or(0.0, |time| time.as_secs_f64() * 1e3)
    }

    /// The mean, in milliseconds.
    #[allow(clippy::cast_precision_loss, reason = "thousands of calls")]
    pub fn mean(&self) -> f64 {
        let sum: Duration = self.0.iter().sum();
        sum.as_secs_f64() * 1e3 / self.0.len().max(1) as f64
    }

    /// The median of all turns' calls, in milliseconds.
    pub fn median(turns: &[Self]) -> f64 {
        let mut all: Vec<Duration> = turns.iter().flat_map(|turn| turn.0.iter().copied()).collect();
        all.sort_unstable();
        let middle = all.get(all.len() / 2).copied().unwrap_or_default();
        middle.as_secs_f64() * 1e3
    }
}

/// What one call allocates, in total.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Bytes asked for.
    pub bytes: u64,
    /// How often.
    pub allocations: u64,
}

/// What our planner allocates for a file: asks the program beside this one that counts.
pub fn memory(file: &Path, packing: Packing) -> Result<Memory> {
    let program = std::env::current_exe()?.with_file_name("packing-memory");
    let mut command = Command::new(&program);
    command.arg(file);
    if packing == Packing::Faithful {
        command.arg("--faithful");
    }
    let output = command
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    if !output.status.success() {
        bail!("{} failed on {}", program.display(), file.display());
    }
    serde_json::from_slice(&output.stdout).with_context(|| format!("the answer of {}", program.display()))
}
