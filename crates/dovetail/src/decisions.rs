//! `dovetail decisions` and `dovetail why ID`: what the autoscaler did and refused, with reasons and money.

mod csv;
mod report;
mod shelf;
mod table;
mod why;

use jiff::{SignedDuration, Timestamp};
use ledger::Record;

pub(crate) use self::{
    shelf::{Shelf, ShelfArgs, records_in, records_of},
    why::why,
};
use crate::{answer::Answer, document, reply::Reply};

/// What happened, in a few words.
pub(crate) fn what(record: &Record) -> String {
    let text = ledger::words::what(record, |name| name);
    format!("{text}{}", ledger::words::ready_in(record))
}

/// A decision as a document, with what else was possible.
pub(crate) fn document(record: &Record) -> serde_json::Value {
    report::one(record, true)
}

/// Print what was done and refused, newest first, with reasons and money.
///
/// Reads the decisions that the controller keeps in the ConfigMaps dovetail-decisions-0 to -9, a dump that holds them, or
/// the file of --decisions-file.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// `list` the newest, or `export` all as CSV.
    #[arg(value_enum, default_value_t = What::List)]
    what: What,
    /// Only of this time, such as 2h or 30d; otherwise the last 2 hours of a list, and everything of an export.
    #[arg(long, visible_alias = "window", value_name = "DURATION", value_parser = span)]
    since: Option<SignedDuration>,
    /// Only of this NodePool.
    #[arg(long, value_name = "NODEPOOL")]
    pool: Option<String>,
    /// Only about this node or NodeClaim.
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    /// Only for this reason, such as Underutilized or BudgetClosed.
    #[arg(long, value_name = "REASON")]
    reason: Option<String>,
    /// Only what was done.
    #[arg(long, conflicts_with = "refused")]
    acted: bool,
    /// Only what was refused or given up.
    #[arg(long)]
    refused: bool,
    /// How many rows a table has at most; 0 for all.
    #[arg(long, value_name = "ROWS", default_value_t = 40)]
    limit: usize,
    /// How to print it; otherwise a table, and CSV of an export.
    #[arg(short, long, value_enum)]
    output: Option<Format>,
    #[command(flatten)]
    pub(crate) shelf: ShelfArgs,
    #[command(flatten)]
    pub(crate) reply: Reply,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    List,
    Export,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Table,
    Json,
    Yaml,
    Csv,
    Name,
}

/// What a list shows.
#[derive(Debug)]
struct Chosen<'a> {
    /// Newest first.
    records: Vec<&'a Record>,
    /// How many there are of that span, whatever else was asked for.
    of_span: usize,
    /// Of which span; none for all there is.
    since: Option<SignedDuration>,
    now: Timestamp,
}

/// How long back a list goes unless it is told.
const RECENT: SignedDuration = SignedDuration::from_hours(2);

/// A span as people write it, with days and weeks.
pub(crate) fn span(text: &str) -> Result<SignedDuration, String> {
    let wrong = || format!("{text:?} is no span of time: write 30m, 2h, 7d or 2w");
    let days = |count: &str, hours: i64| {
        count
            .parse::<i64>()
            .ok()
            .map(|count| SignedDuration::from_hours(hours * count))
    };
    let found = match (text.strip_suffix('d'), text.strip_suffix('w')) {
        (Some(count), _) => days(count, 24),
        (_, Some(count)) => days(count, 24 * 7),
        _ => text.parse().ok(),
    };
    found.filter(SignedDuration::is_positive).ok_or_else(wrong)
}

pub(crate) fn answer(args: &Args) -> anyhow::Result<Answer> {
    let shelf = args.shelf.read()?;
    let since = args.since.or((args.what == What::List).then_some(RECENT));
    let chosen = chosen(shelf.ring.iter().collect(), args, since, shelf.now);
    let format = args.output.unwrap_or(match args.what {
        What::List => Format::Table,
        What::Export => Format::Csv,
    });
    let screen = args.reply.presentation.screen();
    let text = match format {
        Format::Table => table::render(&chosen, &shelf, args.limit, &screen),
        Format::Json => document::json(&shelf.envelope("Decisions", report::list(&chosen)))?,
        Format::Yaml => document::yaml(&shelf.envelope("Decisions", report::list(&chosen)))?,
        Format::Csv => csv::render(&chosen.records),
        Format::Name => chosen.records.iter().map(|record| format!("{}\n", record.id)).collect(),
    };
    let answer = args.reply.told(text, shelf.closing(&screen))?;
    Ok(Answer {
        is_finding: args.reply.exit_code && chosen.records.is_empty(),
        ..answer
    })
}

fn chosen<'a>(mut records: Vec<&'a Record>, args: &Args, since: Option<SignedDuration>, now: Timestamp) -> Chosen<'a> {
    let from = since.and_then(|since| now.checked_sub(since).ok());
    records.retain(|record| from.is_none_or(|from| record.time.max(record.last_seen) >= from));
    let of_span = records.len();
    let is_wanted = |record: &&Record| {
        args.pool
            .as_ref()
            .is_none_or(|pool| record.pool.split(',').any(|other| other == pool))
            && args.node.as_ref().is_none_or(|node| record.concerns(node))
            && args
                .reason
                .as_ref()
                .is_none_or(|reason| record.reason.eq_ignore_ascii_case(reason))
            && (!args.acted || record.is_acted())
            && (!args.refused || record.is_refused())
    };
    records.retain(is_wanted);
    records.sort_by_key(|record| std::cmp::Reverse((record.time, record.id)));
    Chosen {
        records,
        of_span,
        since,
        now,
    }
}

#[cfg(test)]
mod tests;
