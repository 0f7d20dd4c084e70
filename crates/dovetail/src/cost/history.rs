//! `--window`: what was spent and saved in a window of time, by the machines that ran and the decisions about them.

use std::collections::BTreeMap;

use insight::{
    Dollars, View,
    money::{Money, Rows},
};
use jiff::{SignedDuration, Timestamp, ToSpan, tz::TimeZone};
use ledger::{Record, Usd};
use serde::Serialize;

use super::{
    Cost,
    book::{Book, Entry, Stint, Window},
};
use crate::{
    decisions::Shelf,
    failure::Failure,
    terminal::{Align, Cell, Screen, Table, grouped, hanging, span},
};

/// How long back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Span {
    /// So long.
    Last(SignedDuration),
    /// Since the first of the month.
    Month,
}

impl Span {
    pub(super) fn parsed(text: &str) -> Result<Self, String> {
        if text == "month" {
            return Ok(Self::Month);
        }
        crate::decisions::span(text).map(Self::Last)
    }

    fn from(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Last(span) => now.checked_sub(span).unwrap_or(now),
            Self::Month => {
                let today = now.to_zoned(TimeZone::UTC);
                let first = today.start_of_day().ok().and_then(|day| {
                    let days = i64::from(day.day()) - 1;
                    day.checked_sub(days.days()).ok()
                });
                first.map_or(now, |first| first.timestamp())
            }
        }
    }
}

/// What was spent and saved.
#[derive(Debug, Serialize)]
pub(super) struct History {
    from: Timestamp,
    to: Timestamp,
    #[serde(flatten)]
    total: Entry,
    /// In the proportion that packing saves now.
    saved_by_packing_usd: Usd,
    saved_usd: Usd,
    /// The dearest first.
    rows: Vec<Row>,
    /// By hour, where machines are split by pool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hours: Vec<Hour>,
}

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    spent_usd: Usd,
    /// None where only the shares of now are known.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    entry: Option<Entry>,
}

#[derive(Debug, Serialize)]
#[expect(clippy::struct_field_names, reason = "the column is called so")]
struct Hour {
    hour: Timestamp,
    pool: String,
    #[serde(flatten)]
    entry: Entry,
}

/// A failure to find decisions, in the words of who asked for a window.
pub(super) fn none(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<Failure>() {
        Some(failure) if failure.error.starts_with("no decisions in") => {
            let why = format!("the ledger lives in the controller's decisions, and {}", failure.why);
            let next = "drop --window for the rate now, or run against a cluster where dovetail leads";
            Failure::new("no history", why, next).into()
        }
        _ => error,
    }
}

impl History {
    pub(super) fn of(view: &View<'_>, money: &Money, by: &Rows, span: &Span, shelf: &Shelf) -> (Self, Vec<String>) {
        let to = view.now;
        let window = Window {
            from: span.from(to),
            to,
        };
        let records: Vec<&Record> = shelf.ring.iter().filter(|record| record.time <= to).collect();
        let book = Book::of(window, &running(view), &records);
        let total = book.total();
        let packing = scaled(total.spent_usd, money.saved.packing_usd_mo, money.spend_usd_mo);
        let saved = total.saved_by_spot_usd.0 + total.saved_by_consolidation_usd.0 + packing.0;
        let history = Self {
            from: window.from,
            to,
            total,
            saved_by_packing_usd: packing,
            saved_usd: Usd(saved),
            rows: rows(&book, by, money),
            hours: if by.key == "pool" { hours(&book) } else { Vec::new() },
        };
        (history, assumed(&book, by, &records))
    }
}

/// The machines that run now, each from when it was asked for.
fn running(view: &View<'_>) -> Vec<Stint> {
    let stint = |machine: &insight::Machine<'_>| {
        let claim = machine.member.claim.map(|claim| claim.metadata.name.to_string());
        Some(Stint {
            name: claim.unwrap_or_else(|| machine.name.to_string()),
            pool: machine.pool.as_deref().unwrap_or_default().to_owned(),
            from: machine.created().unwrap_or(Timestamp::MIN),
            to: None,
            usd_h: machine.price?.into(),
            on_demand_usd_h: machine.on_demand.filter(|_| machine.is_spot()).map(Usd::from),
        })
    };
    view.managed().filter_map(stint).collect()
}

/// An amount in the proportion of two others.
fn scaled(amount: Usd, part: Dollars, whole: Dollars) -> Usd {
    match whole.0 {
        0 => Usd(0),
        whole => Usd(
            i64::try_from(i128::from(amount.0) * (part.0 / 1_000_000) / (whole / 1_000_000).max(1)).unwrap_or_default(),
        ),
    }
}

fn rows(book: &Book, by: &Rows, money: &Money) -> Vec<Row> {
    let pools: BTreeMap<&str, Entry> = book.by_pool();
    let mut rows: Vec<Row> = if by.key == "pool" {
        let row = |(name, entry): (&str, Entry)| Row {
            name: name.to_owned(),
            spent_usd: entry.spent_usd,
            entry: Some(entry),
        };
        pools.into_iter().map(row).collect()
    } else {
        let spent = book.total().spent_usd;
        let row = |row: &insight::money::Row| Row {
            name: row.name.clone(),
            spent_usd: scaled(spent, row.usd_mo, money.spend_usd_mo),
            entry: None,
        };
        by.rows.iter().map(row).collect()
    };
    rows.sort_by(|a, b| (b.spent_usd, &a.name).cmp(&(a.spent_usd, &b.name)));
    rows
}

fn hours(book: &Book) -> Vec<Hour> {
    let hour = |((hour, pool), entry): (&(Timestamp, String), &Entry)| Hour {
        hour: *hour,
        pool: pool.clone(),
        entry: *entry,
    };
    book.hours.iter().map(hour).collect()
}

fn assumed(book: &Book, by: &Rows, records: &[&Record]) -> Vec<String> {
    let mut assumed = vec![
        "prices were what they are now, and packing saved what it saves now, in proportion to the spend".to_owned(),
    ];
    let oldest = records.iter().map(|record| record.time).min();
    if let Some(oldest) = oldest.filter(|oldest| *oldest > book.window.from) {
        assumed.push(format!(
            "decisions are known from {oldest} on: machines that went before are not counted"
        ));
    }
    if book.of_unknown_begin > 0 {
        assumed.push(format!(
            "{} machines that are gone ran from the begin of the window on: nobody knows when they came",
            book.of_unknown_begin
        ));
    }
    if by.key != "pool" {
        assumed.push(format!("each {} had the share of the spend that it has now", by.key));
    }
    assumed
}

fn dollars(amount: Usd) -> String {
    let cents = (i128::from(amount.0.unsigned_abs()) + 5_000_000) / 10_000_000;
    let sign = if amount.0 < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", grouped((cents / 100).unsigned_abs()), cents % 100)
}

pub(super) fn render(cost: &Cost, screen: &Screen) -> String {
    let Some(history) = &cost.window else {
        return String::new();
    };
    let seconds = history.to.duration_since(history.from).as_secs().max(1);
    let mean =
        Usd(i64::try_from(i128::from(history.total.spent_usd.0) * 3600 / i128::from(seconds)).unwrap_or_default());
    let sentence = format!(
        "Last {}: ${} spent, ${} an hour on average; ${} saved: packing {}, spot {}, consolidation {}.",
        span(seconds),
        dollars(history.total.spent_usd),
        dollars(mean),
        dollars(history.saved_usd),
        dollars(history.saved_by_packing_usd),
        dollars(history.total.saved_by_spot_usd),
        dollars(history.total.saved_by_consolidation_usd),
    );
    let mut table = Table::default();
    table.column(&cost.by.key.to_uppercase(), Align::Left);
    table.column("SPENT $", Align::Right);
    let has_entries = history.rows.iter().any(|row| row.entry.is_some());
    if has_entries {
        for title in ["NODES, MEAN", "BY SPOT $", "BY CONSOLIDATION $"] {
            table.column(title, Align::Right);
        }
    }
    for row in &history.rows {
        table.row(cells(&row.name, row.spent_usd, row.entry, seconds, has_entries));
    }
    table.total(cells(
        "all",
        history.total.spent_usd,
        Some(history.total),
        seconds,
        has_entries,
    ));
    format!(
        "{}{}",
        hanging("", &sentence, screen.text_width()),
        table.render(screen)
    )
}

fn cells(name: &str, spent: Usd, entry: Option<Entry>, seconds: i64, has_entries: bool) -> Vec<Cell> {
    let mut cells: Vec<Cell> = vec![name.into(), dollars(spent).into()];
    if has_entries {
        let entry = entry.unwrap_or_default();
        let tenths = entry.machine_seconds * 10 / seconds;
        cells.push(format!("{}.{}", tenths / 10, tenths % 10).into());
        cells.push(dollars(entry.saved_by_spot_usd).into());
        cells.push(dollars(entry.saved_by_consolidation_usd).into());
    }
    cells
}

/// Rows for a spreadsheet: hours and pools, or who had which part.
pub(super) fn csv(cost: &Cost) -> String {
    let Some(history) = &cost.window else {
        return String::new();
    };
    if history.hours.is_empty() {
        let rows = history
            .rows
            .iter()
            .map(|row| format!("{},{}\n", super::table::quoted(&row.name), row.spent_usd.dollars()));
        return format!(
            "{},spent_usd\n{}",
            super::table::quoted(&cost.by.key),
            rows.collect::<String>()
        );
    }
    let mut text = "hour,pool,spent_usd,saved_by_spot_usd,saved_by_consolidation_usd,machine_hours\n".to_owned();
    for Hour { hour, pool, entry } in &history.hours {
        let (hours, rest) = (entry.machine_seconds / 3600, entry.machine_seconds % 3600 * 1000 / 3600);
        text.push_str(&format!(
            "{hour},{},{},{},{},{hours}.{rest:03}\n",
            super::table::quoted(pool),
            entry.spent_usd.dollars(),
            entry.saved_by_spot_usd.dollars(),
            entry.saved_by_consolidation_usd.dollars(),
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_a_span_or_the_month_so_far() {
        let now = "2026-11-16T15:42:00Z".parse().unwrap();
        let from = |text: &str| Span::parsed(text).map(|span| span.from(now).to_string());
        assert_eq!(from("24h").unwrap(), "2026-11-15T15:42:00Z");
        assert_eq!(from("7d").unwrap(), "2026-11-09T15:42:00Z");
        assert_eq!(from("month").unwrap(), "2026-11-01T00:00:00Z");
        assert!(from("yesterday").is_err());
    }

    #[test]
    fn amounts_keep_their_proportion_and_their_cents() {
        assert_eq!(
            scaled(
                Usd(551_200_000_000),
                Dollars(3_000_000_000_000),
                Dollars(4_000_000_000_000)
            ),
            Usd(413_400_000_000)
        );
        assert_eq!(dollars(Usd(1_234_567_000_000)), "1,234.57");
        assert_eq!(dollars(Usd(-5_000_000)), "-0.01");
    }
}
