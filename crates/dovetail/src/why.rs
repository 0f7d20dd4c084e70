//! `dovetail why`: why something is as it is.

use crate::{
    answer::Answer,
    decisions::{self, ShelfArgs},
    reply::{Format, Reply, formats},
    source::SourceArgs,
};

/// Print one decision in full: what, why, what else was possible, on which inputs.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A decision's id, or its first digits, at least four. It is in the log line, the event and on the NodeClaim.
    #[arg(value_name = "ID")]
    id: String,
    /// The namespace of the controller; otherwise all are looked through.
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// How to print it.
    #[arg(short, long, default_value = "table", value_parser = formats(&["table", "json", "yaml", "name"]))]
    output: Format,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    reply: Reply,
}

pub(crate) fn answer(args: &Args) -> anyhow::Result<Answer> {
    let shelf = ShelfArgs::of(&args.source, args.namespace.as_deref());
    decisions::why(&args.id, &shelf, args.output, args.reply.presentation)
}
