//! The `dovetail` binary: reads the command line, answers on standard output.

mod answer;
mod budgets;
mod completion;
mod cost;
mod crds;
mod decisions;
mod demo;
mod doctor;
mod document;
mod drift;
mod failure;
mod lint;
mod live;
mod notice;
mod observe;
mod page;
mod pause;
mod place;
mod plan;
mod plugin;
mod prices;
mod raw;
mod replay;
mod reply;
mod run;
mod schema;
mod simulate;
mod snapshot;
mod source;
mod status;
mod terminal;
mod together;
mod top;
mod trace;
mod version;
mod watch;
mod whatif;
mod why;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::answer::Answer;

/// Plans, dumps and conversations are many small objects for a short time, which is what it is good at
/// (docs/decisions/0020-allocator.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A node autoscaler for Kubernetes that speaks Karpenter's API.
#[derive(Debug, Parser)]
#[command(name = "dovetail", version, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Demo(demo::Args),
    Simulate(simulate::Args),
    Run(run::Args),
    Page(page::Args),
    Status(status::Args),
    Top(Box<top::Args>),
    #[command(visible_alias = "explain")]
    Why(why::Args),
    Plan(plan::Args),
    Whatif(whatif::Args),
    Cost(cost::Args),
    Budgets(budgets::Args),
    #[command(alias = "history")]
    Decisions(Box<decisions::Args>),
    Replay(replay::Args),
    Observe(observe::Args),
    Pause(pause::PauseArgs),
    Resume(pause::ResumeArgs),
    Lint(lint::Args),
    Drift(drift::Args),
    Doctor(doctor::Args),
    Snapshot(snapshot::Args),
    Prices(Box<prices::Args>),
    Crds(crds::Args),
    Completion(completion::CompletionArgs),
    Man(completion::ManArgs),
    Schema(schema::Args),
    Version(version::Args),
}

fn main() -> ExitCode {
    let command = match command() {
        Ok(command) => command,
        Err(code) => return code,
    };
    match answer(command) {
        Ok(code) => code,
        Err(error) => {
            terminal::aside(&format!("{}\n", failure::text(&error)));
            failure::exit_code(&error)
        }
    }
}

/// What is asked: a command, or nothing but what Karpenter's Deployment gives its container.
fn command() -> Result<Command, ExitCode> {
    let flags: Vec<String> = std::env::args().skip(1).collect();
    if run::is_meant(&flags) {
        return Ok(Command::Run(run::Args { flags }));
    }
    plugin::parsed::<Cli>().map(|cli| cli.command)
}

fn answer(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Demo(args) => demo::answer(&args),
        Command::Simulate(args) => simulate::answer(&args)?.print(),
        Command::Run(args) => run::answer(&args),
        Command::Page(args) => page::answer(&args),
        Command::Top(args) => top::answer(&args),
        Command::Status(args) => watch::answered(args.reply, &args.source.place, || status::answer(&args)),
        Command::Why(args) => watch::answered(args.reply, &args.source.place, || why::answer(&args)),
        Command::Cost(args) => watch::answered(args.reply, &args.source.place, || cost::answer(&args)),
        Command::Plan(args) => watch::answered(args.reply, &args.source.place, || plan::answer(&args)),
        Command::Whatif(args) => watch::answered(args.reply, &args.source.place, || whatif::answer(&args)),
        Command::Budgets(args) => watch::answered(args.reply, &args.source.place, || budgets::answer(&args)),
        Command::Decisions(args) => watch::answered(args.reply, &args.shelf.place, || decisions::answer(&args)),
        Command::Observe(args) => observe::answer(&args)?.print(),
        Command::Replay(args) => replay::answer(&args)?.print(),
        Command::Pause(args) => pause::pause(&args)?.print(),
        Command::Resume(args) => pause::resume(&args)?.print(),
        Command::Lint(args) => watch::answered(args.reply, &args.place, || lint::answer(&args)),
        Command::Drift(args) => watch::answered(args.reply, &args.place, || drift::answer(&args)),
        Command::Doctor(args) => watch::answered(args.reply, &args.place, || doctor::answer(&args)),
        Command::Snapshot(args) => snapshot::answer(&args)?.print(),
        Command::Prices(args) => prices::answer(&args)?.print(),
        Command::Completion(args) => completion::completion(&args, Cli::command()).map(Answer::from)?.print(),
        Command::Man(args) => completion::man(&args, Cli::command()).map(Answer::from)?.print(),
        Command::Crds(args) => crds::answer(&args)?.print(),
        Command::Schema(args) => schema::answer(&args).map(Answer::from)?.print(),
        Command::Version(args) => version::answer(&args).map(Answer::from)?.print(),
    }
}
