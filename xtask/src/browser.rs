//! The page in a real browser: its tests, and the pictures of it in the documentation.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result};

use crate::run;

fn folder() -> PathBuf {
    run::root().join("e2e").join("browser")
}

/// The driver of the browser, from npm, once.
fn install() -> Result<()> {
    if folder().join("node_modules").join("playwright-core").exists() {
        return Ok(());
    }
    run::run(
        Command::new("npm")
            .current_dir(folder())
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]),
    )
}

/// A script of the folder, with the binary and a directory to write to.
pub(crate) fn script(name: &str, binary: &Path, arguments: &[String]) -> Result<Command> {
    install()?;
    let directory = run::root().join("target").join("browser");
    fs::create_dir_all(&directory).with_context(|| format!("create {}", directory.display()))?;
    let mut command = Command::new("node");
    command
        .current_dir(folder())
        .arg(name)
        .arg(binary)
        .arg(directory)
        .args(arguments);
    Ok(command)
}

/// `cargo xtask browser`
#[derive(clap::Args)]
pub(crate) struct Browser {
    /// Only tests whose name has this in it
    word: Option<String>,
}

pub(crate) fn run(task: &Browser) -> Result<ExitCode> {
    let words: Vec<String> = task.word.iter().cloned().collect();
    run::run(&mut script("page.mjs", &run::binary()?, &words)?)?;
    Ok(ExitCode::SUCCESS)
}

/// `cargo xtask screenshots`: makes the pictures of docs/screens anew.
pub(crate) fn screenshots() -> Result<()> {
    let target = run::root().join("docs").join("screens");
    run::run(&mut script(
        "screens.mjs",
        &run::binary()?,
        &[target.display().to_string()],
    )?)
}
