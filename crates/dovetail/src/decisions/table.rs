//! Decisions for people: a sentence, then the newest, one a row.

use std::collections::BTreeSet;

use ledger::{
    Id,
    words::{in_a_list, lasting, monthly_change},
};

use super::{Chosen, report::Summary, shelf::Shelf, what};
use crate::terminal::{Align, Cell, Role, Screen, Table, counted, cut_in_the_middle, grouped, hanging};

/// What the columns beside WHAT take about.
const OTHERS: usize = 74;
/// What WHAT has at least.
const LEAST: usize = 24;

pub(super) fn render(chosen: &Chosen<'_>, shelf: &Shelf, limit: usize, screen: &Screen) -> String {
    let digits = Id::digits_needed(shelf.ring.iter().map(|record| record.id));
    let span = chosen.since.map(|since| format!(" in the last {}", lasting(since)));
    let span = span.unwrap_or_default();
    if chosen.records.is_empty() && chosen.of_span > 0 {
        return hanging("", &others(chosen, shelf, &span), screen.text_width());
    }
    if chosen.records.is_empty() {
        let newest = shelf.ring.iter().max_by_key(|record| record.time);
        let newest = newest.map(|record| {
            let (id, time) = (
                record.id.short(digits),
                screen.zone.to_the_second(record.time, chosen.now),
            );
            format!(" The newest is {id}, {time}.")
        });
        return format!("No decision{span}.{}\n", newest.unwrap_or_default());
    }
    let summary = Summary::of(&chosen.records);
    let mut head = format!(
        "{}{span}: {} acted, {} refused or aborted.",
        grouped(summary.all as u128),
        grouped(summary.acted as u128),
        grouped(summary.refused as u128)
    );
    if summary.consolidation.0 != 0 {
        head.push_str(&format!(" Consolidation {}.", monthly_change(summary.consolidation)));
    }
    let shown = if limit == 0 { usize::MAX } else { limit };
    if chosen.records.len() > shown {
        head.push_str(&format!(" Newest {shown} shown."));
    }
    let mut table = Table::default();
    for title in ["TIME", "ID", "ACTION", "WHAT", "REASON", "POOL"] {
        table.column(title, Align::Left);
    }
    table.column("PODS", Align::Right);
    table.column("$/MO", Align::Right);
    for record in chosen.records.iter().take(shown) {
        let what = match screen.width {
            Some(width) => cut_in_the_middle(&what(record), width.saturating_sub(OTHERS).max(LEAST), screen.is_ascii),
            None => what(record),
        };
        table.row(vec![
            screen.zone.to_the_second(record.time, chosen.now).into(),
            record.id.short(digits).into(),
            Cell::new(role(record), record.word()),
            what.into(),
            record.reason.clone().into(),
            record.pool.clone().into(),
            record.pod_count.to_string().into(),
            in_a_list(record).into(),
        ]);
    }
    format!("{head}\n{}", table.render(screen))
}

/// There are decisions, and none is as asked for.
fn others(chosen: &Chosen<'_>, shelf: &Shelf, span: &str) -> String {
    let reasons: BTreeSet<&str> = shelf.ring.iter().map(|record| record.reason.as_str()).collect();
    let reasons: Vec<&str> = reasons.into_iter().collect();
    format!(
        "None of {}{span} is as asked for. Reasons there are: {}.",
        counted(chosen.of_span, "decision"),
        reasons.join(", ")
    )
}

fn role(record: &ledger::Record) -> Role {
    if record.is_refused() {
        Role::Stop
    } else if record.is_acted() {
        Role::Good
    } else {
        Role::Plain
    }
}
