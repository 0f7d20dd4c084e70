//! The task runner: `cargo xtask` lists what it can do.

mod layers;
mod run;
mod test;
mod tidy;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Dovetail's task runner.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Format, lints, layering and tidiness: what a change must pass before anyone reads it
    Check,
    /// The checks, then all tests: without a cluster, then on a real control plane (needs Go)
    Test,
    /// Fail when a crate sees what it must not
    Layers,
}

fn main() -> Result<()> {
    match Cli::parse().task {
        Task::Check => test::check(),
        Task::Test => test::all(in_ci()),
        Task::Layers => layers::check().map(|_| ()),
    }
}

#[expect(clippy::disallowed_methods, reason = "the composition root of the task runner")]
fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}
