//! Which programs do the tests consist of? Built once for all tiers, and linted while they are built.
//!
//! Clippy is a compiler that says more. `cargo clippy` stops it before it makes code, so that everything, the SDK of AWS
//! too, would be read once for the lints and once more for the tests; here both come from one build.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::run;

/// What the build of all tests leaves.
pub(crate) struct Built {
    /// In the order of their packages and names.
    pub(crate) tests: Vec<Program>,
    /// Our binary, with every cloud in it.
    pub(crate) dovetail: PathBuf,
}

/// A program of tests.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Program {
    /// The folder of its package, from the root of the workspace.
    pub(crate) package: String,
    /// The package itself for its unit tests.
    pub(crate) name: String,
    path: PathBuf,
}

impl Program {
    /// Ready to run as cargo runs it: in the folder of its package.
    pub(crate) fn command(&self) -> Command {
        let folder = run::root().join(&self.package);
        let mut command = Command::new(&self.path);
        command.current_dir(&folder).env("CARGO_MANIFEST_DIR", folder);
        command
    }
}

/// Builds every program of tests; a lint that objects is an error.
pub(crate) fn build() -> Result<Built> {
    let build = ["--no-run", "--message-format=json-render-diagnostics"];
    let printed = run::capture(linting(run::cargo().arg("test").args(run::SELECTION))?.args(build))?;
    let artifacts: Vec<Value> = printed
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let mut tests: Vec<Program> = artifacts.iter().filter_map(|it| program(it, run::root())).collect();
    tests.sort();
    if tests.is_empty() {
        bail!("cargo named no programs of tests");
    }
    let dovetail = artifacts.iter().find_map(binary);
    Ok(Built {
        tests,
        dovetail: dovetail.context("cargo built no binary called dovetail")?,
    })
}

/// Examples in comments, which rustdoc builds by itself. To be run after [`build`], whose libraries they use.
pub(crate) fn examples() -> Result<Command> {
    let mut command = run::cargo();
    linting(command.arg("test").args(run::SELECTION).arg("--doc"))?;
    Ok(command)
}

/// Lets clippy compile the workspace's own packages, with every warning an error, as `cargo clippy -- -D warnings` does.
fn linting(command: &mut Command) -> Result<&mut Command> {
    let sysroot = run::capture(run::program("rustc").args(["--print", "sysroot"]))?;
    let driver = Path::new(sysroot.trim()).join("bin").join("clippy-driver");
    if !driver.exists() {
        bail!("{} is missing: run `rustup component add clippy`", driver.display());
    }
    let arguments = "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__";
    Ok(command
        .env("RUSTC_WORKSPACE_WRAPPER", driver)
        .env("CLIPPY_ARGS", arguments))
}

/// Reads one of cargo's messages; none unless it names a program of tests.
fn program(message: &Value, root: &Path) -> Option<Program> {
    let path = message["executable"].as_str()?;
    let package = Path::new(message["manifest_path"].as_str()?).parent()?;
    (message["profile"]["test"] == true).then_some(())?;
    Some(Program {
        package: package.strip_prefix(root).ok()?.to_str()?.to_owned(),
        name: message["target"]["name"].as_str()?.to_owned(),
        path: path.into(),
    })
}

/// Reads one of cargo's messages; none unless it names our binary itself.
fn binary(message: &Value) -> Option<PathBuf> {
    let is_meant = message["target"]["name"] == "dovetail" && message["profile"]["test"] == false;
    let path = message["executable"].as_str()?;
    is_meant.then(|| path.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(name: &str, package: &str, is_test: bool, executable: &Value) -> Value {
        json!({
            "reason": "compiler-artifact",
            "manifest_path": format!("/src/{package}/Cargo.toml"),
            "target": {"name": name},
            "profile": {"test": is_test},
            "executable": executable,
        })
    }

    #[test]
    fn programs_of_tests_are_told_from_libraries_and_binaries() {
        let read = |message: &Value| program(message, Path::new("/src"));
        let found = read(&message("aws", "e2e", true, &json!("/target/aws-1")));
        let expected = Program {
            package: "e2e".to_owned(),
            name: "aws".to_owned(),
            path: "/target/aws-1".into(),
        };
        assert_eq!(found, Some(expected));
        assert_eq!(read(&message("e2e", "e2e", false, &Value::Null)), None);
        assert_eq!(
            read(&message(
                "dovetail",
                "crates/dovetail",
                false,
                &json!("/target/dovetail")
            )),
            None
        );
        assert_eq!(read(&json!({"reason": "build-finished", "success": true})), None);
    }

    #[test]
    fn our_binary_is_not_the_program_of_its_tests() {
        let own = message("dovetail", "crates/dovetail", false, &json!("/target/dovetail"));
        assert_eq!(binary(&own), Some("/target/dovetail".into()));
        assert_eq!(
            binary(&message("dovetail", "crates/dovetail", true, &json!("/target/x"))),
            None
        );
        assert_eq!(binary(&message("xtask", "xtask", false, &json!("/target/xtask"))), None);
    }
}
