//! Running every tier of tests, and saying plainly which one did not run.

use std::process::Command;

use anyhow::{Result, bail};

use crate::{conformance, layers, run, tidy};

/// How many tests ended how, read from the closing lines of `cargo test`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
}

/// `cargo xtask check`: format, lints, layering, tidiness.
pub(crate) fn check() -> Result<()> {
    step("format");
    run::run(run::cargo().args(["fmt", "--all", "--check"]))?;
    step("tidy");
    say(&tidy::check()?);
    step("layers");
    say(&format!("{} crates see only what they may", layers::check()?));
    step("lints");
    run::run(run::cargo().args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ]))
}

/// `cargo xtask test`: the checks, then every tier. A missing Go skips the last tier at a desk and fails in CI.
pub(crate) fn all(in_ci: bool) -> Result<()> {
    check()?;
    let mut tally = Tally::default();
    let mut broken = Vec::new();

    step("tests without a cluster");
    let pure = ["test", "--workspace", "--exclude", "e2e", "--locked", "--no-fail-fast"];
    if !tests(run::cargo().args(pure), &mut tally)? {
        broken.push("tests without a cluster");
    }

    step("tests on a real control plane");
    let skipped = !has_go();
    if skipped && in_ci {
        bail!("CI needs Go for the tests on a real control plane: put `go` on the PATH");
    }
    if skipped {
        say(
            "not run: they build etcd, kube-apiserver, kube-scheduler, kube-controller-manager and kwok, which needs Go.",
        );
        say("Install Go 1.26 or newer and run `cargo xtask test` again.");
    } else {
        if !on_a_control_plane(&mut tally)? {
            broken.push("tests on a real control plane");
        }
        step("a shard of upstream's suites");
        if !conforms(&mut tally)? {
            broken.push("a shard of upstream's suites");
        }
    }

    say(&format!("\n{}", closing(tally, skipped)));
    if broken.is_empty() {
        return Ok(());
    }
    bail!("failed: {}", broken.join(", "))
}

/// Tests hide what they print, and a first build takes minutes: it is made here, where a person can watch.
fn on_a_control_plane(tally: &mut Tally) -> Result<bool> {
    rig::build::control_plane(&rig::build::KubernetesVersion::default())?;
    rig::reference::program()?;
    let real = ["test", "--package", "e2e", "--locked", "--no-fail-fast"];
    tests(run::cargo().args(real), tally)
}

/// The longest specs of the suites wait for many minutes; this shard is chosen to be short.
fn conforms(tally: &mut Tally) -> Result<bool> {
    let conformance::Count { passed, failed } = conformance::shard()?;
    tally.passed += passed as u64;
    tally.failed += failed as u64;
    Ok(failed == 0)
}

fn tests(command: &mut Command, tally: &mut Tally) -> Result<bool> {
    run::watch(command, |line| {
        if let Some(more) = parse(line) {
            tally.passed += more.passed;
            tally.failed += more.failed;
            tally.ignored += more.ignored;
        }
    })
}

/// Reads `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
fn parse(line: &str) -> Option<Tally> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let count = |word: &str| {
        let part = counts.split("; ").find_map(|part| part.strip_suffix(word))?;
        part.trim().parse().ok()
    };
    Some(Tally {
        passed: count("passed")?,
        failed: count("failed")?,
        ignored: count("ignored")?,
    })
}

fn closing(tally: Tally, skipped: bool) -> String {
    let Tally {
        passed,
        failed,
        ignored,
    } = tally;
    let note = if skipped {
        "the tier on a real control plane did not run\n"
    } else {
        ""
    };
    format!("{note}{passed} passed, {failed} failed, {ignored} skipped")
}

fn has_go() -> bool {
    Command::new("go")
        .arg("version")
        .output()
        .is_ok_and(|output| output.status.success())
}

fn step(name: &str) {
    say(&format!("\n── {name}"));
}

#[expect(clippy::print_stdout, reason = "a task runner talks to a person")]
fn say(text: &str) {
    println!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closing_line_of_cargo_test_is_counted() {
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s";
        assert_eq!(
            parse(line),
            Some(Tally {
                passed: 12,
                failed: 3,
                ignored: 1
            })
        );
    }

    #[test]
    fn other_lines_count_nothing() {
        assert_eq!(parse("test hash::tests::a_map_is_order_free ... ok"), None);
    }

    #[test]
    fn the_closing_line_admits_a_tier_that_did_not_run() {
        let tally = Tally {
            passed: 7,
            failed: 0,
            ignored: 0,
        };
        assert_eq!(
            closing(tally, true),
            "the tier on a real control plane did not run\n7 passed, 0 failed, 0 skipped"
        );
    }
}
