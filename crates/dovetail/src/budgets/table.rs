//! The windows of the coming days as a picture: a row for reasons that are alike, eight signs a day.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use super::{ReasonReport, Report, Window};
use crate::terminal::{Align, Cell, Role, Screen, Table, counted};

/// What one sign stands for.
const SIGN: SignedDuration = SignedDuration::from_hours(3);
/// How many of them make a day.
const SIGNS: i32 = 8;

/// How much of a span is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Whole,
    Part,
    Closed,
}

pub(super) fn render(report: &Report, screen: &Screen) -> String {
    let [open, part, closed] = signs(screen);
    let from = report.from.to_zoned(TimeZone::UTC);
    let start = format!(
        "Disruption windows from {} UTC; one sign is 3 h.",
        from.strftime("%a %-d %b %H:%M")
    );
    let key = format!("{open} open  {part} open for a part  {closed} closed");
    let days = days(report);
    // What does not fit is left out: first when it opens, then days, the last first.
    let sizes = std::iter::once((days.len(), true)).chain((1..=days.len()).rev().map(|count| (count, false)));
    let tables = sizes.map(|(count, has_next)| (count, calendar(report, &days[..count], has_next, screen)));
    let is_wide = |table: &Table| screen.width.is_some_and(|width| table.width() > width);
    let mut fitting = tables.skip_while(|(count, table)| *count > 1 && is_wide(table));
    let (shown, table) = fitting.next().unwrap_or_default();
    let left_out = match days.len() - shown {
        0 => String::new(),
        count => format!("; {} more left out", counted(count, "day")),
    };
    let is_narrow = screen.width.is_some_and(|width| width < FIRST_LINE);
    let between = if is_narrow { "\n" } else { "   " };
    format!("{start}{between}{key}{left_out}\n{}", table.render(screen))
}

/// Columns of the first line with what the signs mean.
const FIRST_LINE: usize = 100;

/// Pools and reasons, with a picture for each day.
fn calendar(report: &Report, days: &[Timestamp], has_next: bool, screen: &Screen) -> Table {
    let mut table = Table::default();
    table.column("NODEPOOL", Align::Left);
    table.column("REASON", Align::Left);
    for day in days {
        let title = day.to_zoned(TimeZone::UTC).strftime("%a %-d").to_string();
        table.column(&title.to_uppercase(), Align::Left);
    }
    table.column("NOW", Align::Right);
    if has_next {
        table.column("NEXT", Align::Left);
    }
    for pool in &report.pools {
        for (at, (reasons, alike)) in grouped(&pool.reasons).into_iter().enumerate() {
            let name = if at == 0 { pool.name.clone() } else { String::new() };
            let mut cells: Vec<Cell> = vec![name.into(), reasons.into()];
            for day in days {
                cells.push(picture(alike, *day, report.from, screen).into());
            }
            let now = alike.now.map_or("all".to_owned(), |nodes| nodes.to_string());
            let role = if alike.now == Some(0) { Role::Stop } else { Role::Good };
            cells.push(Cell::new(role, now));
            if has_next {
                cells.push(next(alike, report.from).into());
            }
            table.row(cells);
        }
        if let Some(closed) = &pool.closed {
            table.line(format!("x {}  {closed}", pool.name));
        }
    }
    table
}

fn signs(screen: &Screen) -> [char; 3] {
    if screen.is_ascii {
        ['#', '+', '.']
    } else {
        ['█', '▒', '·']
    }
}

/// The midnights of the days shown.
fn days(report: &Report) -> Vec<Timestamp> {
    let day = SIGN * SIGNS;
    let midnight = report.from.as_second() - report.from.as_second().rem_euclid(day.as_secs());
    let mut days = Vec::new();
    let mut next = Timestamp::from_second(midnight).unwrap_or(report.from);
    while next < report.to {
        days.push(next);
        next += day;
    }
    days
}

/// Reasons that are allowed the same, named together.
fn grouped(reasons: &[ReasonReport]) -> Vec<(String, &ReasonReport)> {
    let mut groups: Vec<(Vec<&str>, &ReasonReport)> = Vec::new();
    for reason in reasons {
        match groups.iter_mut().find(|(_, known)| known.windows == reason.windows) {
            Some((names, _)) => names.push(reason.reason),
            None => groups.push((vec![reason.reason], reason)),
        }
    }
    let is_one = groups.len() == 1;
    let named = groups.into_iter().map(|(names, first)| {
        let name = if is_one { "all".to_owned() } else { names.join(", ") };
        (name, first)
    });
    named.collect()
}

/// A day. What is over is left blank.
fn picture(reason: &ReasonReport, day: Timestamp, from: Timestamp, screen: &Screen) -> String {
    let [open, part, closed] = signs(screen);
    let sign = |at: i32| {
        let begin = day + SIGN * at;
        let end = begin + SIGN;
        if end <= from {
            return ' ';
        }
        match openness(&reason.windows, begin.max(from), end) {
            Some(Open::Whole) => open,
            Some(Open::Part) => part,
            Some(Open::Closed) => closed,
            None => ' ',
        }
    };
    (0..SIGNS).map(sign).collect()
}

fn openness(windows: &[Window], begin: Timestamp, end: Timestamp) -> Option<Open> {
    let overlapping = windows.iter().filter(|window| window.from < end && begin < window.to);
    let states: Vec<bool> = overlapping.map(|window| window.nodes != Some(0)).collect();
    let is_open = states.iter().any(|is_open| *is_open);
    let is_closed = states.iter().any(|is_open| !is_open);
    match (is_open, is_closed) {
        (true, true) => Some(Open::Part),
        (true, false) => Some(Open::Whole),
        (false, true) => Some(Open::Closed),
        (false, false) => None,
    }
}

/// When a reason that is closed opens.
fn next(reason: &ReasonReport, now: Timestamp) -> String {
    if reason.now != Some(0) {
        return "open".to_owned();
    }
    let Some(window) = reason.windows.iter().find(|window| window.nodes != Some(0)) else {
        return "closed throughout".to_owned();
    };
    let (at, today) = (window.from.to_zoned(TimeZone::UTC), now.to_zoned(TimeZone::UTC));
    let time = if at.date() == today.date() {
        at.strftime("%H:%M today").to_string()
    } else {
        at.strftime("%a %H:%M").to_string()
    };
    let nodes = window
        .nodes
        .map_or("all nodes".to_owned(), |nodes| counted(nodes as usize, "node"));
    format!("{time}, {nodes}")
}
