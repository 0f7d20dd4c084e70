//! How the program is called: by its own name, or as `kubectl dovetail`; and what was meant by a word it does not know.

use std::{ffi::OsString, path::Path};

use clap::{Command, CommandFactory, FromArgMatches};

use crate::failure::Failure;

/// The file name under which kubectl finds a plugin of ours.
const PLUGIN: &str = "kubectl-dovetail";

/// Reads the command line. Usage texts then name the program as it was called.
pub(crate) fn parsed<C: CommandFactory + FromArgMatches>() -> C {
    let called = std::env::args_os().next().unwrap_or_default();
    let mut command = named(C::command(), &called);
    let matches = command.get_matches_mut();
    C::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut command).exit())
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
    fn an_unknown_word_is_answered_with_the_nearest_one() {
        let failure = unknown("command", "lnt", ["lint", "plan"]);
        assert_eq!(failure.next, "lint is the nearest");
        let failure = unknown("command", "kubernetes", ["lint", "plan"]);
        assert_eq!(failure.next, "one of lint, plan");
    }
}
