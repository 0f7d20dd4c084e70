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
    let tiers = Tiers::look(in_ci, &scores)?;
    step("build and lints");
    let built = programs::build()?;
    step("tests");
    let unsteady = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| on_a_control_plane(&built, &tiers, &scores));
        let computing = without_a_cluster(&built, &tiers, &scores);
        let waiting = waiting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        computing.and(waiting)
    })?;
    for (test, failed) in unsteady {
        let mut command = test.command();
        command.env("DOVETAIL_BINARY", &built.dovetail).arg("--test-threads=1");
        scores.again(&name(test), &failed, &mut command)?;
    }
    let (closing, broken) = scores.close();
    say(&format!("\n{closing}"));
    if broken.is_empty() {
        return Ok(());
    }
    bail!("failed: {}; their output is in target/tests", broken.join(", "))
}

/// A part of the tests that needs more than Rust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tier {
    ControlPlane,
    Aws,
    Terminal,
    Browser,
}

impl Tier {
    const ALL: [Self; 4] = [Self::ControlPlane, Self::Aws, Self::Terminal, Self::Browser];

    fn name(self) -> &'static str {
        match self {
            Self::ControlPlane => "on a real control plane",
            Self::Aws => "of the AWS provider",
            Self::Terminal => "on a terminal",
            Self::Browser => "in a browser",
        }
    }

    /// What it lacks here.
    fn lacks(self) -> Option<String> {
        let packages = |missing: Vec<&str>| (!missing.is_empty()).then(|| missing.join(", "));
        match self {
            Self::ControlPlane => (!is_there("go")).then(|| "Go 1.26 or newer".to_owned()),
            Self::Aws => {
                (!rig::moto::has_python()).then(|| "Python 3.10 or newer, for moto, which plays AWS".to_owned())
            }
            Self::Terminal => packages(debian::missing_for_the_terminal()),
            Self::Browser => packages(debian::missing_for_the_page()),
        }
    }
}

/// The tiers that can run here.
struct Tiers(Vec<Tier>);

impl Tiers {
    fn look(in_ci: bool, scores: &Scores) -> Result<Self> {
        let mut tiers = Vec::new();
        for tier in Tier::ALL {
            let Some(needs) = tier.lacks() else {
                tiers.push(tier);
                continue;
            };
            let name = tier.name();
            if in_ci {
                bail!("CI cannot run the tier {name}: it needs {needs}");
            }
            say(&format!(
                "the tier {name} is not run: install {needs} and run `cargo xtask test` again"
            ));
            scores.skip(name);
        }
        Ok(Self(tiers))
    }

    fn has(&self, tier: Tier) -> bool {
        self.0.contains(&tier)
    }

    fn allow(&self, program: &Program) -> bool {
        self.has(Tier::Aws) || !(program.package.ends_with("cloud-aws") || program.name == "aws")
    }
}

fn without_a_cluster(built: &Built, tiers: &Tiers, scores: &Scores) -> Result<()> {
    if tiers.has(Tier::Aws) {
        // Tests hide what they print, and the first time this takes a minute.
        rig::moto::environment()?;
    }
    let tests = built.tests.iter().filter(|test| test.package != ON_A_CONTROL_PLANE);
    for test in tests.filter(|test| tiers.allow(test)) {
        let mut command = test.command();
        if !tiers.has(Tier::Terminal) {
            command.args(["--skip", "on_a_terminal::"]);
        }
        scores.run(&name(test), &mut command)?;
    }
    scores.run("examples in comments", &mut programs::examples()?)?;
    if tiers.has(Tier::Browser) {
        scores.run(
            "the page in a browser",
            &mut browser::script("page.mjs", &built.dovetail, &[])?,
        )?;
    }
    Ok(())
}

/// A program of tests, and those of it that failed on a busy machine.
type Unsteady<'a> = Vec<(&'a Program, Vec<String>)>;

/// What has to be built for it first is built here, where a person can watch.
fn on_a_control_plane<'a>(built: &'a Built, tiers: &Tiers, scores: &Scores) -> Result<Unsteady<'a>> {
    let mut unsteady = Vec::new();
    if !tiers.has(Tier::ControlPlane) {
        return Ok(unsteady);
    }
    rig::build::control_plane(&rig::build::KubernetesVersion::default())?;
    rig::reference::program()?;
    rig::tool::helm()?;
    rig::tool::hclfmt()?;
    let tests = built.tests.iter().filter(|test| test.package == ON_A_CONTROL_PLANE);
    for test in tests.filter(|test| tiers.allow(test)) {
        let mut command = test.command();
        let failed = scores.run_waiting(&name(test), command.env("DOVETAIL_BINARY", &built.dovetail))?;
        if !failed.is_empty() {
            unsteady.push((test, failed));
        }
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
    Ok(unsteady)
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
