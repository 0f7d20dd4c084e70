//! How the program is called: by its own name, or as `kubectl dovetail`; and what was meant by a word it does not know.

use std::{ffi::OsString, path::Path, process::ExitCode};

use clap::{Command, CommandFactory, FromArgMatches};

use crate::{
    failure::{Code, Failure},
    terminal::aside,
};

/// The file name under which kubectl finds a plugin of ours.
const PLUGIN: &str = "kubectl-dovetail";

/// Reads the command line; how the process ends where that asks for help, or cannot be read. Usage texts name the program
/// as it was called.
pub(crate) fn parsed<C: CommandFactory + FromArgMatches>() -> Result<C, ExitCode> {
    let called = std::env::args_os().next().unwrap_or_default();
    let mut command = named(C::command(), &called);
    let read = command.try_get_matches_from_mut(std::env::args_os());
    let read = read.and_then(|matches| C::from_arg_matches(&matches).map_err(|error| error.format(&mut command)));
    read.map_err(|error| refused(&error))
}

fn refused(error: &clap::Error) -> ExitCode {
    // Without a command there is a list of them, which is no error of anybody's.
    let is_list = error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if is_list || !error.use_stderr() {
        let _ = error.print();
        return u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from);
    }
    aside(&format!("{}\n", told(&error.render().to_string())));
    ExitCode::from(Code::Usage as u8)
}

/// What the parser says, in three lines.
fn told(text: &str) -> Failure {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default().trim_start_matches("error: ");
    let (mut error, mut why, mut next) = (first.to_owned(), Vec::new(), "--help lists what there is".to_owned());
    if let Some((what, because)) = first.split_once("': ") {
        error = format!("{what}'");
        why.push(because.to_owned());
    }
    for line in lines.filter(|line| !line.starts_with("For more information")) {
        if let Some(tip) = line.strip_prefix("tip: ") {
            tip.clone_into(&mut next);
        } else if let Some(usage) = line.strip_prefix("Usage: ") {
            why.push(format!("it is used as {usage}"));
        } else {
            why.push(line.trim_matches(['[', ']']).to_owned());
        }
    }
    if why.is_empty() {
        why.push("the command line cannot be read".to_owned());
    }
    Failure::usage(error.trim_end_matches(':'), why.join("; "), next)
}

fn named(command: Command, called: &OsString) -> Command {
    let stem = Path::new(called)
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    if stem.as_deref() == Some(PLUGIN) {
        return command.bin_name("kubectl dovetail");
    }
    command.bin_name("dovetail")
}

/// A word that is none of those there are: the nearest of them, or all.
pub(crate) fn unknown<'a>(what: &str, word: &str, words: impl IntoIterator<Item = &'a str>) -> Failure {
    let words: Vec<&str> = words.into_iter().collect();
    let next = match lint::nearest(word, words.iter().copied()) {
        Some(near) => format!("{near} is the nearest"),
        None => format!("one of {}", words.join(", ")),
    };
    Failure::usage(
        format!("no {what} {word}"),
        format!("there is no {what} of this name"),
        next,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_names_the_program_as_kubectl_calls_it() {
        let usage = |called: &str| {
            let sub = Command::new("lint").about("x");
            let mut command = named(Command::new("dovetail").subcommand(sub), &called.into());
            command.build();
            let lint = command.find_subcommand_mut("lint").unwrap();
            lint.render_usage().to_string()
        };
        assert_eq!(usage("/usr/local/bin/kubectl-dovetail"), "Usage: kubectl dovetail lint");
        assert_eq!(usage("target/debug/dovetail"), "Usage: dovetail lint");
    }

    #[test]
    fn what_the_parser_says_is_told_in_three_lines() {
        let unknown = told(
            "error: unrecognized subcommand 'stats'\n\n  tip: a similar subcommand exists: 'status'\n\nUsage: dovetail <COMMAND>\n\nFor more information, try '--help'.\n",
        );
        assert_eq!(unknown.error, "unrecognized subcommand 'stats'");
        assert_eq!(unknown.why, "it is used as dovetail <COMMAND>");
        assert_eq!(unknown.next, "a similar subcommand exists: 'status'");
        let wrong = told(
            "error: invalid value '7x' for '--window <SPAN>': \"7x\" is no span of time: write 30m\n\nFor more information, try '--help'.\n",
        );
        assert_eq!(wrong.error, "invalid value '7x' for '--window <SPAN>'");
        assert_eq!(wrong.why, "\"7x\" is no span of time: write 30m");
        let missing = told(
            "error: the following required arguments were not provided:\n  --record <DIR|FILE>\n\nUsage: dovetail replay --record <DIR|FILE>\n",
        );
        assert_eq!(missing.error, "the following required arguments were not provided");
        assert!(
            missing.why.starts_with("--record <DIR|FILE>; it is used as"),
            "{}",
            missing.why
        );
    }

    #[test]
    fn an_unknown_word_is_answered_with_the_nearest_one() {
        let failure = unknown("command", "lnt", ["lint", "plan"]);
        assert_eq!(failure.next, "lint is the nearest");
        let failure = unknown("command", "kubernetes", ["lint", "plan"]);
        assert_eq!(failure.next, "one of lint, plan");
    }
}
