//! The `dovetail` binary: reads the command line, answers on standard output.

mod answer;
mod crds;
mod document;
mod failure;
mod plan;
mod terminal;
mod version;

use std::process::ExitCode;

use clap::Parser;

use crate::answer::Answer;

/// A node autoscaler for Kubernetes that speaks Karpenter's API.
#[derive(Debug, Parser)]
#[command(name = "dovetail", version, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Plan(plan::Args),
    Crds(crds::Args),
    Version(version::Args),
}

fn main() -> ExitCode {
    match answer(Cli::parse()).and_then(|answer| answer.print()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{}", failure::text(&error));
            ExitCode::FAILURE
        }
    }
}

fn answer(cli: Cli) -> anyhow::Result<Answer> {
    match cli.command {
        Command::Plan(args) => plan::answer(&args),
        Command::Crds(args) => crds::answer(&args).map(Answer::from),
        Command::Version(args) => version::answer(&args).map(Answer::from),
    }
}
