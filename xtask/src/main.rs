//! The task runner: `cargo xtask` lists what it can do.

mod bench;
mod catalogue;
mod cluster;
mod conformance;
mod layers;
mod packing;
mod run;
mod specs;
mod test;
mod tidy;

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
    /// Format, lints, layering and tidiness: what a change must pass before anyone reads it
    Check,
    /// The checks, then all tests: without a cluster, then on a real control plane (needs Go)
    Test,
    /// Fail when a crate sees what it must not
    Layers,
    /// Generates workloads and asks the reference about them; alone it lists the shapes
    Bench(bench::Bench),
    /// Compares our plans with upstream's on random clusters, `--seeds 1..2000 --shard 0/4`, or on snapshot files
    Differential(packing::Forwarded),
    /// A real control plane on this machine, to try things by hand
    #[command(subcommand)]
    Cluster(cluster::Cluster),
    /// Runs upstream's own suites against a controller and writes a table of verdicts
    Conformance(conformance::Conformance),
    /// Writes the table of upstream's scheduling specs and our tests
    Specs,
    Catalogue(catalogue::Catalogue),
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Check => test::check().map(|()| ExitCode::SUCCESS),
        Task::Test => test::all(in_ci()).map(|()| ExitCode::SUCCESS),
        Task::Layers => layers::check().map(|_| ExitCode::SUCCESS),
        Task::Bench(task) => bench::run(&task),
        Task::Differential(task) => packing::run("differential", &task),
        Task::Cluster(task) => cluster::run(task),
        Task::Conformance(task) => conformance::run(&task),
        Task::Specs => specs::run().map(|()| ExitCode::SUCCESS),
        Task::Catalogue(task) => catalogue::run(&task),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the composition root of the task runner")]
fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}
