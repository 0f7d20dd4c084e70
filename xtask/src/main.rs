//! The task runner: `cargo xtask` lists what it can do.

mod cluster;
mod conformance;

use std::process::ExitCode;

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
    /// A real control plane on this machine, to try things by hand
    #[command(subcommand)]
    Cluster(cluster::Cluster),
    /// Runs upstream's own suites against a controller and writes a table of verdicts
    Conformance(conformance::Conformance),
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Cluster(task) => cluster::run(task),
        Task::Conformance(task) => conformance::run(&task),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
