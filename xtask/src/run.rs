//! Running other programs: visible, from the workspace root, with errors that say what was run.

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

/// `cargo` in the workspace root, in the toolchain that the workspace pins.
pub(crate) fn cargo() -> Command {
    program("cargo")
}

/// What every tier of tests selects, whichever part of it then runs: for another selection cargo chooses other features of
/// shared dependencies, and builds k8s-openapi, the SDK of AWS and most of our own crates once more.
pub(crate) const SELECTION: [&str; 3] = ["--workspace", "--features=dovetail/aws,dovetail/azure", "--locked"];

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

/// Runs with everything it prints going to a file; tells whether it succeeded. What does not end in time is ended.
#[expect(clippy::disallowed_methods, reason = "a deadline for programs that hang")]
pub(crate) fn logged(command: &mut Command, log: &Path, deadline: Duration) -> Result<bool> {
    let file = File::create(log).with_context(|| format!("create {}", log.display()))?;
    let mut child = command
        .stdin(Stdio::null())
        .stderr(file.try_clone().context("a second handle of a log")?)
        .stdout(file)
        .spawn()
        .with_context(|| format!("starting {}", line(command)))?;
    let end = Instant::now() + deadline;
    loop {
        if let Some(status) = child.try_wait().context("waiting for a child")? {
            return Ok(status.success());
        }
        if Instant::now() > end {
            child.kill().with_context(|| format!("ending {}", line(command)))?;
            child.wait().context("waiting for a child")?;
            let mut log = File::options().append(true).open(log).context("open a log again")?;
            writeln!(
                log,
                "ended by force: it did not end within {} minutes",
                deadline.as_secs() / 60
            )?;
            return Ok(false);
        }
        // A child cannot be awaited with a deadline.
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    format!(
        "`{}`",
        words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_end_in_time_is_ended_and_its_log_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let mut endless = Command::new("sh");
        endless.args(["-c", "echo begun; exec sleep 600"]);
        assert!(!logged(&mut endless, &log, Duration::ZERO).unwrap());
        let said = std::fs::read_to_string(&log).unwrap();
        assert!(said.contains("ended by force"), "{said}");
    }
}
