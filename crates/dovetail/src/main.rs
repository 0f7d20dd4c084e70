//! The `dovetail` binary: reads the command line, answers on standard output.

mod crds;
mod document;
mod version;

use std::{io::Write, process::ExitCode};

use clap::Parser;

/// A node autoscaler for Kubernetes that speaks Karpenter's API.
#[derive(Debug, Parser)]
#[command(name = "dovetail", version, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Crds(crds::Args),
    Version(version::Args),
}

fn main() -> ExitCode {
    match answer(Cli::parse()).and_then(|answer| print(&answer)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dovetail: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn answer(cli: Cli) -> anyhow::Result<String> {
    match cli.command {
        Command::Crds(args) => crds::answer(&args),
        Command::Version(args) => version::answer(&args),
    }
}

/// A reader that closes the pipe early, such as `head`, has what it wanted.
fn print(answer: &str) -> anyhow::Result<()> {
    match std::io::stdout().write_all(answer.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn an_unknown_provider_is_wrong_usage() {
        let error = Cli::try_parse_from(["dovetail", "crds", "--only", "gcp"]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
    }
}
