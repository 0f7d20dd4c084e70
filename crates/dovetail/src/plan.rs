//! `dovetail plan`: which nodes the pending pods of a dump would get, what they cost, and what stays pending and why.

mod engine;
mod funnel;
mod report;
mod table;

use crate::{
    answer::Answer,
    reply::{Format, Reply, formats},
    source::{self, Needs, SourceArgs},
};

/// Print the nodes that pending pods would get, with prices, and why the rest stays pending.
///
/// Reads what `kubectl get -o yaml` printed, and needs neither a cluster nor a cloud: instance types and prices come
/// with the program. A dump for it is made by
///
///     kubectl get nodes,pods,nodepools,nodeclaims,daemonsets,deployments,replicasets,pvc,pv,storageclasses,csinodes -A -o yaml > dump.yaml
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Which algorithm: the cheapest plan found, or upstream Karpenter's.
    #[arg(long, value_enum, default_value_t = Packing::Cheapest)]
    packing: Packing,
    /// List the pods of each node.
    #[arg(long)]
    pods: bool,
    /// How to print it.
    #[arg(short, long, default_value = "table", value_parser = formats(&["table", "json", "yaml"]))]
    output: Format,
    /// Exit with 3 when a pod stays pending.
    #[arg(long)]
    fail_on_pending: bool,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    reply: Reply,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Packing {
    Cheapest,
    Faithful,
}

pub(crate) fn answer(args: &Args) -> anyhow::Result<Answer> {
    let input = source::read(&args.source, Needs::Decisions)?;
    let planned = engine::plan(&input.snapshot, args.packing);
    let report = report::Report::of(&input.snapshot, &planned);
    let mut answer = args
        .reply
        .answer(&input, ("Plan", &report), args.output, false, |screen| {
            table::render(&report, args.pods, screen)
        })?;
    answer.is_finding |= args.fail_on_pending && !report.pending.is_empty();
    Ok(answer)
}

#[cfg(test)]
mod tests;
