//! `dovetail plan`: which nodes pods that wait would get, what would be moved or removed now and next, and what may not be.

pub(crate) mod funnel;
mod moves;
mod table;

use std::num::NonZero;

use insight::{
    launch::{self, Report},
    outlook::{Kept, Move, Outlook, PausedPool, Reach, Total},
};
use serde::Serialize;

pub(crate) use self::moves::short_id;
use crate::{
    answer::Answer,
    reply::{Format, Reply, formats},
    source::{self, Needs, SourceArgs},
    together::together,
};

/// Print what would be done now and next: nodes for pods that wait, nodes that go, what waits, what is held by which rule.
///
/// Reads the cluster kubectl speaks to, or with --from what `kubectl get -o yaml` printed: that needs neither a cluster nor
/// a cloud, instance types and prices come with the program. A dump for it is made by
///
///     kubectl get nodes,pods,nodepools,nodeclaims,daemonsets,deployments,replicasets,pdb,pvc,pv,storageclasses,csinodes -A -o yaml > dump.yaml
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Which algorithm: the cheapest plan found, or upstream Karpenter's.
    #[arg(long, value_enum, default_value_t = Packing::Cheapest)]
    packing: Packing,
    /// List the pods of each node.
    #[arg(long)]
    pods: bool,
    /// List every node that waits or is held.
    #[arg(long)]
    all: bool,
    /// How to print it.
    #[arg(short, long, default_value = "table", value_parser = formats(&["table", "wide", "json", "yaml", "name"]))]
    output: Format,
    /// Exit with 3 when a pod stays pending.
    #[arg(long)]
    fail_on_pending: bool,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) reply: Reply,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Packing {
    Cheapest,
    Faithful,
}

/// The answer as a document: nodes for pods that wait, and what happens to those there are.
#[derive(Debug, Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    launches: &'a Report,
    moves: &'a [Move],
    waits: &'a [Kept],
    held: &'a [Kept],
    paused: &'a [PausedPool],
    outlook: &'a Total,
}

pub(crate) fn answer(args: &Args) -> anyhow::Result<Answer> {
    let input = source::read(&args.source, Needs::Decisions)?.about_moves();
    let options = packing::Options {
        packing: match args.packing {
            Packing::Faithful => packing::Packing::Faithful,
            Packing::Cheapest => packing::Packing::Cheapest,
        },
        threads: threads(),
        ..packing::Options::default()
    };
    let view = input.view();
    let (report, outlook) = together(
        || Report::of(input.planning(), &launch::plan(input.planning(), &options)),
        || Outlook::of(&view, Reach::for_machines(view.machines.len(), threads())),
    );
    let document = Document {
        launches: &report,
        moves: &outlook.moves,
        waits: &outlook.waits,
        held: &outlook.held,
        paused: &outlook.paused,
        outlook: &outlook.total,
    };
    let is_empty = report.pods.waiting == 0 && outlook.moves.is_empty() && report.fixed_pools.is_empty();
    let mut answer = args
        .reply
        .answer(&input, ("Plan", &document), args.output, is_empty, |screen| {
            if args.output == Format::Name {
                return outlook.moves.iter().map(|step| format!("{}\n", step.id)).collect();
            }
            let launches = table::render(&report, args.pods, screen);
            let text = moves::joined(&launches, &report, &outlook, view.now, args.all, screen);
            text + &table::fixed(&report.fixed_pools, screen)
        })?;
    answer.is_finding |= args.fail_on_pending && !report.pending.is_empty();
    Ok(answer)
}

/// Threads to compute on.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

#[cfg(test)]
mod tests;
