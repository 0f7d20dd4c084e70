//! Running every tier of tests, and saying plainly which one did not run.
//!
//! Two lines of tests run at once: tests on a control plane mostly wait for it, the others mostly compute.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{
    browser, conformance, debian, layers,
    programs::{self, Built, Program},
    run,
    scores::{Scores, Tally, say},
    tidy,
};

/// The package of the tests that need a control plane.
const ON_A_CONTROL_PLANE: &str = "e2e";

/// `cargo xtask check`: format, lints, layering, tidiness.
pub(crate) fn check() -> Result<()> {
    quick()?;
    step("lints");
    let lint = ["clippy", "--all-targets"];
    run::run(
        run::cargo()
            .args(lint)
            .args(run::SELECTION)
            .args(["--", "-D", "warnings"]),
    )
}

/// The checks that need no build.
fn quick() -> Result<()> {
    step("format");
    run::run(run::cargo().args(["fmt", "--all", "--check"]))?;
    step("tidy");
    say(&tidy::check()?);
    step("layers");
    say(&format!("{} crates see only what they may", layers::check()?));
    Ok(())
}

/// `cargo xtask test`: the checks, then every tier. What a tier needs and is not there skips it at a desk and fails in CI.
pub(crate) fn all(in_ci: bool) -> Result<()> {
    quick()?;
    if in_ci {
        step("programs of the distribution");
        debian::install()?;
    }
    let scores = Scores::default();
    let has = Has::look(in_ci, &scores)?;
    step("build and lints");
    let built = programs::build()?;
    step("tests");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| on_a_control_plane(&built, &has, &scores));
        let computing = without_a_cluster(&built, &has, &scores);
        let waiting = waiting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        computing.and(waiting)
    })?;
    let (closing, broken) = scores.close();
    say(&format!("\n{closing}"));
    if broken.is_empty() {
        return Ok(());
    }
    bail!("failed: {}; their output is in target/tests", broken.join(", "))
}

/// What this machine has for the tiers.
struct Has {
    go: bool,
    moto: bool,
    terminal: bool,
    browser: bool,
}

impl Has {
    fn look(in_ci: bool, scores: &Scores) -> Result<Self> {
        let (page, terminal) = (debian::missing_for_the_page(), debian::missing_for_the_terminal());
        let has = Self {
            go: is_there("go"),
            moto: rig::moto::has_python(),
            terminal: terminal.is_empty(),
            browser: page.is_empty(),
        };
        let missing = [
            (has.go, "on a real control plane", "Go 1.26 or newer".to_owned()),
            (
                has.moto,
                "of the AWS provider",
                "Python 3.10 or newer, for moto, which plays AWS".to_owned(),
            ),
            (has.terminal, "on a terminal", terminal.join(", ")),
            (has.browser, "in a browser", page.join(", ")),
        ];
        for (_, tier, needs) in missing.into_iter().filter(|(is_there, ..)| !is_there) {
            if in_ci {
                bail!("CI cannot run the tier {tier}: it needs {needs}");
            }
            say(&format!(
                "the tier {tier} is not run: install {needs} and run `cargo xtask test` again"
            ));
            scores.skip(tier);
        }
        Ok(has)
    }

    fn allows(&self, program: &Program) -> bool {
        self.moto || !(program.package.ends_with("cloud-aws") || program.name == "aws")
    }
}

fn without_a_cluster(built: &Built, has: &Has, scores: &Scores) -> Result<()> {
    if has.moto {
        // Tests hide what they print, and the first time this takes a minute.
        rig::moto::environment()?;
    }
    let tests = built.tests.iter().filter(|test| test.package != ON_A_CONTROL_PLANE);
    for test in tests.filter(|test| has.allows(test)) {
        let mut command = test.command();
        if !has.terminal {
            command.args(["--skip", "on_a_terminal::"]);
        }
        scores.run(&name(test), &mut command)?;
    }
    scores.run("examples in comments", &mut programs::examples()?)?;
    if has.browser {
        scores.run(
            "the page in a browser",
            &mut browser::script("page.mjs", &built.dovetail, &[])?,
        )?;
    }
    Ok(())
}

/// What has to be built for it first is built here, where a person can watch.
fn on_a_control_plane(built: &Built, has: &Has, scores: &Scores) -> Result<()> {
    if !has.go {
        return Ok(());
    }
    rig::build::control_plane(&rig::build::KubernetesVersion::default())?;
    rig::reference::program()?;
    rig::tool::helm()?;
    rig::tool::hclfmt()?;
    let tests = built.tests.iter().filter(|test| test.package == ON_A_CONTROL_PLANE);
    for test in tests.filter(|test| has.allows(test)) {
        let mut command = test.command();
        scores.run(&name(test), command.env("DOVETAIL_BINARY", &built.dovetail))?;
    }
    // The longest specs of the suites wait for many minutes; this shard is chosen to be short.
    let conformance::Count { passed, failed } =
        conformance::shard(&built.dovetail).context("a shard of upstream's suites")?;
    let tally = Tally {
        passed: passed as u64,
        failed: failed as u64,
        ignored: 0,
    };
    scores.add("a shard of upstream's suites", tally);
    Ok(())
}

/// `crates/packing specs`; the package alone for its unit tests.
fn name(test: &Program) -> String {
    let own = test.package.rsplit('/').next().unwrap_or_default().replace('-', "_");
    if own == test.name {
        return test.package.clone();
    }
    format!("{} {}", test.package, test.name)
}

fn is_there(program: &str) -> bool {
    let asked = Command::new(program).arg("version").output();
    asked.is_ok_and(|output| output.status.success())
}

fn step(name: &str) {
    say(&format!("\n── {name}"));
}
