//! `dovetail plan`: which nodes the pending pods of a dump would get, what they cost, and what stays pending and why.

mod check;
mod engine;
mod funnel;
mod input;
mod offers;
mod report;
mod table;

use std::path::PathBuf;

use jiff::Timestamp;

use crate::{
    answer::Answer,
    document,
    terminal::{Presentation, Role, Screen, hanging},
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
    /// Dumps or a snapshot file: directories, files, or `-` for standard input.
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    from: Vec<PathBuf>,
    /// What the cloud offers: aws, azure, kwok or a file with instanceTypes; otherwise as the dump's node classes suggest.
    #[arg(long, value_name = "aws|azure|kwok|FILE")]
    catalogue: Option<String>,
    /// The region whose prices count; otherwise the one of the dump's nodes.
    #[arg(long, value_name = "REGION")]
    region: Option<String>,
    /// Which algorithm: the cheapest plan found, or upstream Karpenter's.
    #[arg(long, value_enum, default_value_t = Packing::Cheapest)]
    packing: Packing,
    /// List the pods of each node.
    #[arg(long)]
    pods: bool,
    /// How to print it.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    /// Exit with 3 when a pod stays pending.
    #[arg(long)]
    fail_on_pending: bool,
    /// The time of the dump, which kubectl does not write down; otherwise now.
    #[arg(long, value_name = "RFC3339")]
    at: Option<Timestamp>,
    #[command(flatten)]
    presentation: Presentation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Packing {
    Cheapest,
    Faithful,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    Table,
    Json,
    Yaml,
}

pub(crate) use input::source;

pub(crate) fn answer(args: &Args) -> anyhow::Result<Answer> {
    let input = input::read(args)?;
    let planned = engine::plan(&input.snapshot, args.packing);
    let report = report::Report::of(&input, &planned);
    let screen = args.presentation.screen();
    let text = match args.output {
        Format::Table => table::render(&report, args.pods, &screen),
        Format::Json => document::json(&report)?,
        Format::Yaml => document::yaml(&report)?,
    };
    Ok(Answer {
        text,
        notes: notes(&report, &screen),
        is_finding: args.fail_on_pending && !report.pending.is_empty(),
        is_failure: false,
    })
}

/// Where the answer comes from, and what the source could not know.
fn notes(report: &report::Report, screen: &Screen) -> String {
    let mut notes = hanging("source   ", &report.source.to_string(), screen.text_width());
    for assumed in &report.assumed {
        notes.push_str(&hanging("assumed  ", assumed, screen.text_width()));
    }
    let dimmed = notes.lines().map(|line| screen.paint(Role::Secondary, line));
    dimmed.fold(String::new(), |notes, line| notes + &line + "\n")
}

#[cfg(test)]
mod tests;
