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
#[derive(Debug, Clone)]
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
