//! `cargo xtask conformance`: does a controller behave as upstream's suites demand?
//!
//! Every spec is a unit of its own, so that a queue of them keeps all clusters busy and a failure costs one spec. A
//! cluster serves spec after spec until one fails on it; the next spec gets a fresh one. What failed is repeated once at
//! the end, alone on the machine, because the suites' deadlines do not allow for a busy one.

mod bench;
mod performance;
mod queue;
mod report;
mod shard;
mod spec;
mod upstream;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use bench::Bench;
use queue::Queue;
use report::Report;
pub(crate) use shard::{Count, shard};
use spec::{Outcome, Spec, Verdict};
pub(crate) use upstream::{MODULE, Upstream, VERSION};

/// What to run, and against what.
#[derive(Args)]
pub(crate) struct Conformance {
    /// The suites to run; several share the clusters
    #[arg(long = "suite", value_enum, default_values_t = [Suite::Regression])]
    suites: Vec<Suite>,
    /// How many clusters work side by side; performance and dra run on one
    #[arg(long, default_value_t = 4)]
    shards: usize,
    /// Only specs whose text matches this regular expression; the tables then stay as they are
    #[arg(long)]
    focus: Option<String>,
    /// No specs whose text matches this regular expression; the tables then stay as they are
    #[arg(long)]
    skip: Option<String>,
    /// Put the verdicts of some specs into the tables, beside those of earlier runs
    #[arg(long)]
    update: bool,
    /// The controller to judge
    #[arg(long, required_unless_present_any = ["reference", "quick"])]
    binary: Option<PathBuf>,
    /// Judge upstream's own kwok controller: the tables every other run is held against
    #[arg(long, conflicts_with = "binary")]
    reference: bool,
    /// Only the specs that ask for much and wait for little, against the binary of this source; no tables
    #[arg(long, conflicts_with_all = ["binary", "reference", "focus", "skip", "update"])]
    quick: bool,
    /// Where the logs of failed specs go
    #[arg(long, default_value = "target/conformance")]
    out: PathBuf,
}

#[expect(clippy::print_stdout, reason = "a task runner talks to a person")]
fn quick() -> Result<ExitCode> {
    let Count { passed, failed } = shard(&crate::run::binary()?)?;
    println!("{passed} passed, {failed} failed");
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Upstream's suites.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Debug)]
pub(crate) enum Suite {
    /// Provisioning, buffers, static capacity, validation
    Regression,
    /// Drift, expiration, termination, repair
    Disruption,
    /// Scale-out and consolidation against thresholds
    Performance,
    /// Dynamic resource allocation
    Dra,
}

impl Suite {
    /// Whether it, or what it needs beside it, counts on fixed ports, so that one machine has room for one of it.
    fn alone(self) -> bool {
        matches!(self, Self::Performance | Self::Dra)
    }

    /// As in the suite's folder and in the file names of its tables.
    fn name(self) -> &'static str {
        match self {
            Self::Regression => "regression",
            Self::Disruption => "disruption",
            Self::Performance => "performance",
            Self::Dra => "dra",
        }
    }
}

/// Runs the suites; fails when a spec failed.
pub(crate) fn run(task: &Conformance) -> Result<ExitCode> {
    if task.quick {
        return quick();
    }
    let upstream = Upstream::prepare(&task.suites)?;
    let program = match &task.binary {
        Some(binary) => binary
            .canonicalize()
            .with_context(|| format!("--binary {}", binary.display()))?,
        None => Upstream::controller()?,
    };
    fs::create_dir_all(&task.out)?;
    let out = task.out.canonicalize()?;
    let name = if task.reference { "reference" } else { "dovetail" };
    let is_part = task.focus.is_some() || task.skip.is_some();
    let tables = if is_part && !task.update {
        out.clone()
    } else {
        workspace().join("docs/conformance")
    };
    let specs = upstream.specs(&task.suites, task.focus.as_deref(), task.skip.as_deref())?;
    let mut report = if is_part && task.update {
        Report::new(tables.clone(), name, &upstream.specs(&task.suites, None, None)?).with_earlier_verdicts()
    } else {
        Report::new(tables.clone(), name, &specs)
    };
    let run = Run {
        upstream: &upstream,
        program: &program,
        out: &out,
    };
    let shards = if task.suites.iter().any(|suite| suite.alone()) {
        1
    } else {
        task.shards
    };
    let reports = bench::reports(&out);
    // What another controller left must not pass for this one's.
    let _ = fs::remove_dir_all(&reports);
    fs::create_dir_all(&reports)?;
    let failed = run.all(specs, shards, &mut report)?;
    let left = run.again(failed, &mut report)?;
    if task.suites.contains(&Suite::Performance) {
        performance::gather(&reports, &tables, name)?;
    }
    eprintln!("{}", report.summary());
    Ok(if left == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

struct Run<'a> {
    upstream: &'a Upstream,
    program: &'a Path,
    out: &'a Path,
}

impl Run<'_> {
    /// Runs all specs on `shards` clusters, the longest first, and returns those that failed.
    fn all(&self, mut specs: Vec<Spec>, shards: usize, report: &mut Report) -> Result<Vec<Spec>> {
        specs.sort_by(|a, b| report.expected_seconds(b).total_cmp(&report.expected_seconds(a)));
        let queue = Queue::new(specs);
        let report = Mutex::new(report);
        let failed = Mutex::new(Vec::new());
        thread::scope(|scope| {
            let shards: Vec<_> = (0..shards)
                .map(|shard| {
                    scope.spawn({
                        let (queue, report, failed) = (&queue, &report, &failed);
                        move || self.shard(shard, queue, report, failed)
                    })
                })
                .collect();
            shards
                .into_iter()
                .try_for_each(|shard| shard.join().unwrap_or_else(|_| anyhow::bail!("a shard panicked")))
        })?;
        Ok(failed.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn shard(&self, shard: usize, queue: &Queue, report: &Mutex<&mut Report>, failed: &Mutex<Vec<Spec>>) -> Result<()> {
        let mut bench = Bench::new(self.upstream, self.program, self.out, format!("shard-{shard}"));
        while let Some(spec) = queue.take() {
            let outcome = bench.run(&spec).unwrap_or_else(|error| Outcome::impossible(&error));
            queue.done(&spec);
            lock(report).record(&spec, &outcome)?;
            if outcome.verdict == Verdict::Failed {
                lock(failed).push(spec);
            }
        }
        Ok(())
    }

    /// Repeats what failed, one after the other; returns how many failed again.
    fn again(&self, failed: Vec<Spec>, report: &mut Report) -> Result<usize> {
        let mut bench = Bench::new(self.upstream, self.program, self.out, "again".to_owned());
        let mut left = 0;
        for spec in failed {
            let outcome = Outcome {
                repeated: true,
                ..bench.run(&spec).unwrap_or_else(|error| Outcome::impossible(&error))
            };
            left += usize::from(outcome.verdict == Verdict::Failed);
            report.record(&spec, &outcome)?;
        }
        Ok(left)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The root of this repository.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
