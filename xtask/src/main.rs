//! The task runner: `cargo xtask` lists what it can do.

mod bench;
mod browser;
mod catalogue;
mod cluster;
mod conformance;
mod debian;
mod insight;
mod layers;
mod packing;
mod programs;
mod race;
mod run;
mod scores;
mod soak;
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
    /// The checks, then all tests: without a cluster, in a browser (needs node and chromium), on a real control plane (needs Go)
    Test,
    /// The page in a real browser (needs node, npm and chromium); with a word, only tests that have it in their name
    Browser(browser::Browser),
    /// Makes the pictures of docs/screens from a running demo
    Screenshots,
    /// Fail when a crate sees what it must not
    Layers,
    /// Generates workloads and asks the reference about them; alone it lists the shapes
    Bench(bench::Bench),
    /// Compares our plans with upstream's on random clusters, `--seeds 1..2000 --shard 0/4`, or on snapshot files
    Differential(packing::Forwarded),
    /// Compares which nodes go with upstream's decisions on seeded clusters, `--seeds 1..1001`
    DisruptionDifferential(packing::Forwarded),
    /// Plays all stories with hostile seeds for as long as you like, `--seeds 100000 --minutes 60`
    Soak(soak::Soak),
    /// A real control plane on this machine, to try things by hand
    #[command(subcommand)]
    Cluster(cluster::Cluster),
    /// Runs upstream's own suites against a controller and writes a table of verdicts
    Conformance(conformance::Conformance),
    /// Writes the tables of upstream's unit specs and our tests
    Specs,
    Catalogue(catalogue::Catalogue),
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Check => test::check().map(|()| ExitCode::SUCCESS),
        Task::Test => test::all(in_ci()).map(|()| ExitCode::SUCCESS),
        Task::Browser(task) => browser::run(&task),
        Task::Screenshots => browser::screenshots().map(|()| ExitCode::SUCCESS),
        Task::Layers => layers::check().map(|_| ExitCode::SUCCESS),
        Task::Bench(task) => bench::run(&task),
        Task::Differential(task) => packing::run("packing-bench", "differential", &task),
        Task::DisruptionDifferential(task) => packing::run("disruption-bench", "differential", &task),
        Task::Soak(task) => soak::run(&task),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Most of them need Go or minutes, so they are only parsed.
    #[test]
    fn the_commands_of_the_readme_exist() {
        let page = std::fs::read_to_string(run::root().join("README.md")).unwrap();
        let commands = page.lines().filter_map(|line| line.strip_prefix("$ cargo xtask "));
        let mut count = 0;
        for command in commands {
            let command = command.split(" #").next().unwrap_or_default();
            // Quotes hold a pattern together.
            let words = command.split('\'').enumerate().flat_map(|(at, part)| match at % 2 {
                0 => part.split_whitespace().collect(),
                _ => vec![part],
            });
            if let Err(error) = Cli::try_parse_from(std::iter::once("xtask").chain(words)) {
                panic!("README.md: cargo xtask {command}: {error}");
            }
            count += 1;
        }
        assert!(count >= 6, "only {count} commands found in README.md");
    }
}
