//! Running other programs: visible, from the workspace root, with errors that say what was run.

use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

/// `cargo` in the workspace root, in the toolchain that the workspace pins.
pub(crate) fn cargo() -> Command {
    program("cargo")
}

/// What every tier of tests selects, whichever part of it then runs: for another selection cargo chooses other features of
/// shared dependencies, and builds k8s-openapi, the SDK of AWS and most of our own crates once more.
pub(crate) const SELECTION: [&str; 3] = ["--workspace", "--features=dovetail/aws", "--locked"];

/// Our binary as the tests were built. A test of its package brings it along; `cargo build` would choose other features.
pub(crate) fn binary() -> Result<PathBuf> {
    let one = ["--quiet", "--no-run", "--test", "words"];
    run(cargo().arg("test").args(SELECTION).args(one))?;
    Ok(std::env::current_exe()?.with_file_name("dovetail"))
}

/// A program in the workspace root.
pub(crate) fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root());
    command
}

/// The workspace root.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Runs to success or fails with the command line.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("starting {}", line(command)))?;
    if status.success() {
        return Ok(());
    }
    bail!("{} ended with {status}", line(command))
}

/// Runs to success and returns what it printed.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("starting {}", line(command)))?;
    if !output.status.success() {
        bail!("{} ended with {}", line(command), output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("{} printed something that is not UTF-8", line(command)))
}

/// Runs while passing each line of its output on and showing it to `watch`; tells whether it succeeded.
pub(crate) fn watch(command: &mut Command, mut watch: impl FnMut(&str)) -> Result<bool> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting {}", line(command)))?;
    let output = child.stdout.take().context("a piped child has a standard output")?;
    let mut screen = std::io::stdout();
    for text in BufReader::new(output).lines() {
        let text = text.context("reading a child's output")?;
        writeln!(screen, "{text}").context("writing to standard output")?;
        watch(&text);
    }
    Ok(child.wait().context("waiting for a child")?.success())
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    format!(
        "`{}`",
        words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    )
}
