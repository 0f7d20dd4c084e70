//! Our decisions beside upstream's: the programs that compare them are built optimised and run on their own, because this
//! task runner is not.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use crate::run;

/// What the program itself takes; `--help` tells.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Forwarded {
    /// Arguments of the comparison; `--help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// Builds a package of comparisons, `packing-bench` or `disruption-bench`, and runs one.
pub(crate) fn run(program: &str, task: &str, forwarded: &Forwarded) -> Result<ExitCode> {
    let package = ["--profile", "measure", "--quiet", "--package", program];
    run::run(run::cargo().arg("build").args(package))?;
    let status = run::cargo()
        .arg("run")
        .args(package)
        .args(["--bin", program, "--", task])
        .args(&forwarded.args)
        .status()
        .context("cannot run cargo")?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
