//! `dovetail run`: the autoscaler in a cluster.
//!
//! Two threads. On the edge: the lease and the probes, which must answer whatever else happens. In the middle: watches,
//! state and controllers. Plans are computed on threads of their own. Losing the lease ends a term: everything that acts is
//! dropped, and the next term begins with an empty state.

mod term;

use std::process::ExitCode;

use anyhow::Context;

/// Runs the autoscaler: watches the cluster, launches nodes for pods that find none, removes nodes that are to go
///
/// Flags and environment variables are Karpenter's: `dovetail run --log-level=debug` and `LOG_LEVEL=debug dovetail run` are
/// the same. Without a command, but with Karpenter's environment, `dovetail` runs too: it drops into Karpenter's Deployment.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// Karpenter's flags
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    flags: Vec<String>,
}

/// Runs until a signal asks for the end.
pub(crate) fn answer(args: &Args) -> anyhow::Result<ExitCode> {
    let _ = &args.flags;
    let settings = runtime::Settings::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the runtime")?;
    runtime.block_on(term::serve(settings))?;
    Ok(ExitCode::SUCCESS)
}
