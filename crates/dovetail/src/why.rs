//! `dovetail why`: why something is as it is.

use crate::{
    answer::Answer,
    decisions::{self, ShelfArgs, WhyFormat},
    terminal::Presentation,
};

/// Print one decision in full: what, why, what else was possible, on which inputs.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A decision's id, or its first digits, at least four. It is in the log line, the event and on the NodeClaim.
    #[arg(value_name = "ID")]
    id: String,
    /// How to print it.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(flatten)]
    shelf: ShelfArgs,
    #[command(flatten)]
    presentation: Presentation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Table,
    Json,
    Yaml,
}

pub(crate) fn answer(args: &Args) -> anyhow::Result<Answer> {
    let format = match args.output {
        Format::Table => WhyFormat::Table,
        Format::Json => WhyFormat::Json,
        Format::Yaml => WhyFormat::Yaml,
    };
    decisions::why(&args.id, &args.shelf, format, args.presentation)
}
