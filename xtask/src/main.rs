//! The task runner: `cargo xtask` lists what it can do.

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
enum Task {}

fn main() -> ExitCode {
    match Cli::parse().task {}
}
