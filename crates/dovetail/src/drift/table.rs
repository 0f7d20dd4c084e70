//! Drift for people: the answer in a sentence, a row for each node or pool, and when it would happen.

use std::collections::BTreeMap;

use super::{PoolReport, Report};
use crate::terminal::{Align, Cell, Role, Screen, Table, counted, cut_in_the_middle, hanging};

/// Names of nodes narrower than this tell little.
const LEAST_NAME: usize = 20;
/// Columns that a sentence beside a row needs, the gap before it included.
const LEAST_WHAT: usize = 32;

pub(super) fn render(report: &Report, screen: &Screen) -> String {
    if report.change.is_empty() {
        today(report, screen)
    } else {
        preview(report, screen)
    }
}

fn rolling(report: &Report) -> usize {
    report.pools.iter().map(|pool| pool.nodes.len()).sum()
}

/// `9 AMIDrift, 2 NodePoolDrifted`
fn reasons<'a>(pools: impl IntoIterator<Item = &'a PoolReport>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for node in pools.into_iter().flat_map(|pool| &pool.nodes) {
        *counts.entry(&node.why).or_default() += 1;
    }
    let told: Vec<String> = counts
        .into_iter()
        .map(|(why, count)| format!("{count} {why}"))
        .collect();
    told.join(", ")
}

fn today(report: &Report, screen: &Screen) -> String {
    let drifted = rolling(report);
    if drifted == 0 {
        return format!("No node has drifted: {} looked at.\n", counted(report.nodes, "node"));
    }
    let beside = rows(report, screen, true);
    let fits = screen
        .width
        .is_none_or(|width| rows(report, screen, false).width() + LEAST_WHAT <= width);
    let table = if fits { beside } else { rows(report, screen, false) };
    let are = if drifted == 1 { "has" } else { "have" };
    let first = format!(
        "{drifted} of {} {are} drifted: {}{}.",
        counted(report.nodes, "node"),
        reasons(&report.pools),
        unmarked(report)
    );
    let first = hanging("", &first, screen.text_width());
    format!("{first}{}{}", table.render(screen), times(report, screen))
}

/// A row for each node; what it is about stands beside it, or where that leaves no room, below.
fn rows(report: &Report, screen: &Screen, is_beside: bool) -> Table {
    let mut table = Table::default();
    for (title, align) in [
        ("NODE", Align::Left),
        ("POOL", Align::Left),
        ("PODS", Align::Right),
        ("WHY", Align::Left),
    ] {
        table.column(title, align);
    }
    if is_beside {
        table.column("WHAT", Align::Left);
        table.wrap_last();
    }
    let part = |parts: usize| screen.width.map_or(usize::MAX, |width| (width / parts).max(LEAST_NAME));
    for pool in &report.pools {
        for node in &pool.nodes {
            let name = if node.node.is_empty() {
                &node.nodeclaim
            } else {
                &node.node
            };
            let mut cells: Vec<Cell> = vec![
                cut_in_the_middle(name, part(3), screen.is_ascii).into(),
                cut_in_the_middle(&pool.name, part(4), screen.is_ascii).into(),
                node.pods.to_string().into(),
                node.why.clone().into(),
            ];
            if is_beside {
                cells.push(Cell::new(Role::Secondary, node.detail.clone()));
            }
            table.row(cells);
            if !is_beside && !node.detail.is_empty() && node.detail != node.why {
                let below = hanging("    ", &node.detail, screen.text_width());
                table.line(below.trim_end().to_owned());
            }
        }
    }
    table
}

/// What the controller has not said yet: other commands go by its word.
fn unmarked(report: &Report) -> String {
    let nodes = report.pools.iter().flat_map(|pool| &pool.nodes);
    let unmarked = nodes.filter(|node| !node.marked).count();
    match (unmarked, rolling(report)) {
        (0, _) => String::new(),
        (count, all) if count == all => {
            "; the controller has marked none of them yet, and status counts what it marks".to_owned()
        }
        (count, _) => format!("; the controller has not marked {count} of them yet, and status counts what it marks"),
    }
}

/// When the drifted nodes of each pool go.
fn times(report: &Report, screen: &Screen) -> String {
    let pools = report.pools.iter().filter(|pool| !pool.nodes.is_empty());
    let width = screen.text_width();
    let lines = pools.map(|pool| hanging("roll    ", &format!("{}: {}", pool.name, when(pool, screen)), width));
    lines.collect::<Vec<_>>().concat()
}

fn when(pool: &PoolReport, screen: &Screen) -> String {
    let roll = &pool.roll;
    if let Some(why) = &roll.closed {
        return format!("does not begin: {why}");
    }
    let zone = screen.zone;
    let at = |time: jiff::Timestamp| format!("{} {}", zone.at(time).strftime("%a %d %b %H:%M"), zone.short(time));
    let starts = roll.starts_at.map(at).unwrap_or_default();
    let ends = roll
        .ends_at
        .map_or("not within 60 days".to_owned(), |ends| format!("~{}", at(ends)));
    format!(
        "from {starts}, {} at a time, {} of {} min (assumed), ends {ends}",
        roll.at_a_time,
        counted(roll.waves, "wave"),
        roll.wave_minutes
    )
}

fn preview(report: &Report, screen: &Screen) -> String {
    let count = rolling(report);
    if count == 0 {
        return "No node would roll: the change touches nothing that drift looks at (spec.disruption, limits, weight).\n".to_owned();
    }
    let pods: usize = report.pools.iter().map(|pool| pool.pods).sum();
    let mut table = Table::default();
    for (title, align) in [
        ("POOL", Align::Left),
        ("ROLL", Align::Right),
        ("NOW DRIFTED", Align::Right),
        ("PODS", Align::Right),
        ("WHY", Align::Left),
        ("WHEN", Align::Left),
    ] {
        table.column(title, align);
    }
    table.wrap_last();
    for pool in &report.pools {
        let (why, when) = if pool.nodes.is_empty() {
            ("-".to_owned(), "-".to_owned())
        } else {
            (reasons([pool]), when(pool, screen))
        };
        table.row(vec![
            pool.name.clone().into(),
            pool.nodes.len().to_string().into(),
            pool.now_drifted.to_string().into(),
            pool.pods.to_string().into(),
            why.into(),
            when.into(),
        ]);
    }
    let first = format!(
        "Applying {} would roll {count} of {}, {}: {}.",
        report.change,
        counted(report.nodes, "node"),
        counted(pods, "pod"),
        reasons(&report.pools)
    );
    let first = hanging("", &first, screen.text_width());
    let mut details: Vec<&str> = report
        .pools
        .iter()
        .flat_map(|pool| &pool.nodes)
        .map(|node| node.detail.as_str())
        .collect();
    details.sort_unstable();
    details.dedup();
    let told: Vec<String> = details
        .iter()
        .take(4)
        .map(|detail| hanging("because  ", detail, screen.text_width()))
        .collect();
    format!("{first}{}{}", table.render(screen), told.concat())
}
