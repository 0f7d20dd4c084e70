//! `dovetail completion` and `dovetail man`: what a shell completes, and the pages of the manual.

use std::{fmt::Write, path::PathBuf};

use anyhow::Context;
use clap::Command;

use crate::{failure::Failure, plugin};

/// Print what a shell needs to complete commands and flags.
///
/// Example: dovetail completion bash > /etc/bash_completion.d/dovetail
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

/// Print a page of the manual: of one command, or of the whole.
///
/// Example: dovetail man lint | man -l -
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// The command.
    command: Option<String>,
    /// Write all pages into this directory instead, and print their paths.
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    directory: Option<PathBuf>,
}

pub(crate) fn completion(args: &CompletionArgs, mut command: Command) -> anyhow::Result<String> {
    let mut text = Vec::new();
    let name = command.get_name().to_owned();
    clap_complete::generate(args.shell, &mut command, name, &mut text);
    Ok(String::from_utf8(text)?)
}

pub(crate) fn man(args: &ManArgs, command: Command) -> anyhow::Result<String> {
    let pages = pages(command);
    if let Some(directory) = &args.directory {
        std::fs::create_dir_all(directory).with_context(|| format!("make {}", directory.display()))?;
        let mut paths = String::new();
        for (name, page) in pages {
            let path = directory.join(format!("{name}.1"));
            std::fs::write(&path, rendered(page)?).with_context(|| format!("write {}", path.display()))?;
            let _ = writeln!(paths, "{}", path.display());
        }
        return Ok(paths);
    }
    let names: Vec<String> = pages.iter().map(|(name, _)| name.clone()).collect();
    let wanted = match &args.command {
        Some(word) => format!("dovetail-{word}"),
        None => "dovetail".to_owned(),
    };
    let page = pages.into_iter().find(|(name, _)| *name == wanted);
    let Some((_, page)) = page else {
        let words = names.iter().filter_map(|name| name.strip_prefix("dovetail-"));
        return Err(plugin::unknown("command", args.command.as_deref().unwrap_or_default(), words).into());
    };
    Ok(String::from_utf8(rendered(page)?)?)
}

/// The pages by name: the whole, and a command each.
fn pages(mut command: Command) -> Vec<(String, Command)> {
    command.build();
    let shown = |sub: &&Command| !sub.is_hide_set() && sub.get_name() != "help";
    // Building gives each command the name of its page: the words to type, with a dash between them.
    let named = |sub: &Command| (sub.get_display_name().unwrap_or_default().to_owned(), sub.clone());
    let mut pages: Vec<_> = command.get_subcommands().filter(shown).map(named).collect();
    pages.insert(0, ("dovetail".to_owned(), command));
    pages
}

fn rendered(page: Command) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    clap_mangen::Man::new(page)
        .render(&mut text)
        .map_err(|error| Failure::new("cannot write the page", error.to_string(), "report this"))?;
    Ok(text)
}
