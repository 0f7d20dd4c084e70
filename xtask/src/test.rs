//! Running every tier of tests, and saying plainly which one did not run.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, bail};
use serde_json::Value;

use crate::{browser, conformance, debian, layers, run, tidy};

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
        "--features",
        "dovetail/aws",
        "--locked",
        "--",
        "-D",
        "warnings",
    ]))
}

/// `cargo xtask test`: the checks, then every tier. What a tier needs and is not there skips it at a desk and fails in CI.
pub(crate) fn all(in_ci: bool) -> Result<()> {
    check()?;
    let mut tally = Tally::default();
    let (mut broken, mut skipped_tiers) = (Vec::new(), Vec::new());
    if in_ci {
        step("programs of the distribution");
        debian::install()?;
    }

    step("tests without a cluster");
    let mut pure = vec!["--exclude", "e2e", "--no-fail-fast"];
    let has_aws = has_moto(in_ci)?;
    if has_aws {
        // Tests hide what they print, and the first time this takes a minute.
        rig::moto::environment()?;
    } else {
        pure.extend(["--exclude", "cloud-aws"]);
    }
    if !debian::missing_for_the_terminal().is_empty() {
        say("tests of the terminal view are not run: they need tmux.");
        pure.extend(["--", "--skip", "on_a_terminal::"]);
        skipped_tiers.push("on a terminal");
    }
    if !tests(run::cargo().arg("test").args(run::SELECTION).args(pure), &mut tally)? {
        broken.push("tests without a cluster");
    }

    step("the page in a browser");
    let missing = debian::missing_for_the_page();
    if missing.is_empty() {
        if !tests(&mut browser::script("page.mjs", &[])?, &mut tally)? {
            broken.push("the page in a browser");
        }
    } else {
        say(&format!(
            "not run: install {} and run `cargo xtask test` again.",
            missing.join(", ")
        ));
        skipped_tiers.push("in a browser");
    }

    step("tests on a real control plane");
    let skipped = !has_go();
    if skipped && in_ci {
        bail!("CI needs Go for the tests on a real control plane: put `go` on the PATH");
    }
    if skipped {
        say(
            "not run: they build etcd, kube-apiserver, kube-scheduler, kube-controller-manager, kwok and Helm, which needs Go.",
        );
        say("Install Go 1.26 or newer and run `cargo xtask test` again.");
        skipped_tiers.push("on a real control plane");
    } else {
        if !on_a_control_plane(&mut tally, has_aws)? {
            broken.push("tests on a real control plane");
        }
        step("a shard of upstream's suites");
        if !conforms(&mut tally)? {
            broken.push("a shard of upstream's suites");
        }
    }

    say(&format!("\n{}", closing(tally, &skipped_tiers)));
    if broken.is_empty() {
        return Ok(());
    }
    bail!("failed: {}", broken.join(", "))
}

/// Tests hide what they print, and a first build takes minutes: it is made here, where a person can watch.
fn on_a_control_plane(tally: &mut Tally, has_aws: bool) -> Result<bool> {
    rig::build::control_plane(&rig::build::KubernetesVersion::default())?;
    rig::reference::program()?;
    rig::tool::helm()?;
    rig::tool::hclfmt()?;
    let mut has_passed = true;
    for program in programs_of("e2e")? {
        if program.name == "aws" && !has_aws {
            continue;
        }
        say(&format!("\n     Running {}", program.name));
        let folder = run::root().join("e2e");
        has_passed &= tests(Command::new(&program.path).current_dir(folder), tally)?;
    }
    Ok(has_passed)
}

/// A program of tests.
#[derive(Debug, PartialEq, Eq)]
struct Program {
    name: String,
    path: PathBuf,
}

/// The programs of tests of a package. `cargo test --package` would build most dependencies anew, with other features.
fn programs_of(package: &str) -> Result<Vec<Program>> {
    let build = ["--no-run", "--message-format=json-render-diagnostics"];
    let printed = run::capture(run::cargo().arg("test").args(run::SELECTION).args(build))?;
    let folder = run::root().join(package);
    let mut programs: Vec<Program> = printed.lines().filter_map(|line| program(line, &folder)).collect();
    programs.sort_by(|one, two| one.name.cmp(&two.name));
    if programs.is_empty() {
        bail!("cargo named no tests of {package}");
    }
    Ok(programs)
}

/// Reads one of cargo's messages; none unless it names a program of tests whose source lies in the folder.
fn program(message: &str, folder: &Path) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    let (target, path) = (&message["target"], message["executable"].as_str()?);
    let is_meant = Path::new(target["src_path"].as_str()?).starts_with(folder);
    (is_meant && message["profile"]["test"] == true).then(|| Program {
        name: target["name"].as_str().unwrap_or_default().to_owned(),
        path: path.into(),
    })
}

/// Whether an AWS for tests can be played here; says so where not.
fn has_moto(in_ci: bool) -> Result<bool> {
    if rig::moto::has_python() {
        return Ok(true);
    }
    if in_ci {
        bail!("CI needs Python for the tests of the AWS provider: put `python3` on the PATH");
    }
    say("tests of cloud-aws are not run: moto, which plays AWS for them, needs Python 3.10 or newer.");
    Ok(false)
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

fn closing(tally: Tally, skipped: &[&str]) -> String {
    let Tally {
        passed,
        failed,
        ignored,
    } = tally;
    let note: String = skipped
        .iter()
        .map(|tier| format!("the tier {tier} did not run\n"))
        .collect();
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
    use serde_json::json;

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
    fn only_programs_of_tests_of_the_package_are_run() {
        let message = |src: &str, test: bool, executable: Value| {
            let target = json!({"name": "aws", "src_path": src});
            json!({"reason": "compiler-artifact", "target": target, "profile": {"test": test}, "executable": executable})
                .to_string()
        };
        let read = |message: &str| program(message, Path::new("/src/e2e"));
        let found = read(&message("/src/e2e/tests/aws.rs", true, json!("/target/aws-1")));
        assert_eq!(
            found,
            Some(Program {
                name: "aws".to_owned(),
                path: "/target/aws-1".into()
            })
        );
        assert_eq!(
            read(&message("/src/rig/tests/aws.rs", true, json!("/target/aws-1"))),
            None
        );
        assert_eq!(read(&message("/src/e2e/src/lib.rs", false, Value::Null)), None);
        assert_eq!(read("   Compiling e2e"), None);
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
            closing(tally, &["in a browser", "on a real control plane"]),
            "the tier in a browser did not run\nthe tier on a real control plane did not run\n7 passed, 0 failed, 0 skipped"
        );
    }
}
