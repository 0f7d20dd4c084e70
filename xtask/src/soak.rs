//! Hostile seeds over all stories for as long as one likes: the binary is built optimised and does it on every core.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use crate::run;

/// Plays all stories with hostile seeds, on every core. Failures are saved as small scenarios; the exit code is 1 when
/// there are any.
#[derive(Args)]
pub(crate) struct Soak {
    /// So many seeds of each story
    #[arg(long, default_value_t = 100_000, value_name = "N")]
    seeds: u64,
    /// The first seed; the next soak goes on where this one ended
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
    /// Begin no run after so many minutes
    #[arg(long, value_name = "M")]
    minutes: Option<u64>,
    /// Let the autoscaler die at every step of every story instead, one run each
    #[arg(long)]
    sweep: bool,
    /// Run so many at a time; 0: one a core
    #[arg(long, default_value_t = 0, value_name = "N")]
    jobs: usize,
    /// Where failures are saved
    #[arg(long, default_value = "target/soak", value_name = "DIR")]
    save: String,
    /// Stories and files; none: all stories, and the life of a fleet
    scenarios: Vec<String>,
}

pub(crate) fn run(soak: &Soak) -> Result<ExitCode> {
    let package = ["--profile", "measure", "--quiet", "--package", "dovetail"];
    run::run(run::cargo().arg("build").args(package))?;
    let mut command = run::cargo();
    command
        .arg("run")
        .args(package)
        .args(["--", "simulate", "--progress", "--save", &soak.save]);
    command.args(["--seed", &soak.seed.to_string(), "--jobs", &soak.jobs.to_string()]);
    if soak.sweep {
        command.arg("--sweep");
    } else {
        command.args(["--faults", "hostile", "--seeds", &soak.seeds.to_string()]);
    }
    if let Some(minutes) = soak.minutes {
        command.args(["--minutes", &minutes.to_string()]);
    }
    if soak.scenarios.is_empty() {
        command.args(["scenarios", "crates/scenario/tests/life.yaml"]);
    }
    let status = command.args(&soak.scenarios).status().context("cannot run cargo")?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
