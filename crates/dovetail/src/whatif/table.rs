//! The answer for people: a sentence, a table of both sides, and who is concerned.

use std::collections::BTreeMap;

use forecast::{Answer, NewNode, Settled, Side};
use model::price::Price;

use super::report::Report;
use crate::terminal::{Align, Cell, Role, Screen, Table, change, counted, grouped, hanging, hourly, monthly, percent};

/// So many are listed; the rest is counted, or told by `-o wide`.
const LISTED: usize = 6;

pub(super) fn render(answer: &Answer, report: &Report, is_wide: bool, screen: &Screen) -> String {
    let mut text = hanging("", &sentence(answer), screen.text_width());
    text.push_str(&sides(answer, screen));
    let most = if is_wide { usize::MAX } else { LISTED };
    let new = new_nodes(&answer.new_nodes, most);
    for (start, line) in [
        ("new nodes   ", new),
        ("removed     ", listed(&report.removed_nodes, most)),
        ("no place    ", stuck(answer, most)),
        ("lost        ", listed(&report.lost, most)),
    ] {
        if !line.is_empty() {
            text.push_str(&hanging(start, &line, screen.text_width()));
        }
    }
    if is_wide {
        for it in &answer.moved {
            let to = it
                .to
                .as_ref()
                .map_or_else(|| "no place".to_owned(), ToString::to_string);
            text.push_str(&format!(
                "moved       {}  {} {} {to}\n",
                it.pod,
                it.from,
                screen.arrow()
            ));
        }
    }
    text
}

/// What the case is, and why it matters.
fn sentence(answer: &Answer) -> String {
    let said = capital(&answer.said.join(", "));
    let (before, after) = (&answer.before, &answer.after);
    let mut parts = Vec::new();
    let placed = answer.moved.iter().filter(|it| it.to.is_some()).count();
    if placed > 0 {
        parts.push(format!("{} find{} a new place", counted(placed, "pod"), ending(placed)));
    }
    if !answer.stuck.is_empty() {
        let stuck = answer.stuck.len();
        parts.push(format!("{} find{} none", counted(stuck, "pod"), ending(stuck)));
    }
    if !answer.lost.is_empty() {
        let lost = answer.lost.len();
        parts.push(format!(
            "{} that nobody makes again {} lost",
            counted(lost, "pod"),
            are(lost)
        ));
    }
    if before.running != after.running && answer.moved.is_empty() {
        let (was, is) = (before.running, after.running);
        parts.push(format!(
            "{} run instead of {}",
            counted(is, "pod"),
            grouped(was as u128)
        ));
    }
    let settled = settled(answer).filter(|(was, is)| was.price != is.price);
    let money = match (before.price == after.price, settled) {
        (false, Some((was, is))) if (was.price, is.price) != (before.price, after.price) => format!(
            "{} at once, {} once the fleet has settled",
            change(before.price, after.price),
            change(was.price, is.price)
        ),
        (true, Some((was, is))) => format!("{} once the fleet has settled", change(was.price, is.price)),
        (false, _) => change(before.price, after.price),
        (true, None) => "no difference in money".to_owned(),
    };
    parts.push(money);
    format!("{said}: {}.", parts.join(", "))
}

fn settled(answer: &Answer) -> Option<(&Settled, &Settled)> {
    answer.before.settled.as_ref().zip(answer.after.settled.as_ref())
}

fn sides(answer: &Answer, screen: &Screen) -> String {
    let (before, after) = (&answer.before, &answer.after);
    let mut table = Table::default();
    for (title, align) in [("", Align::Left), ("BEFORE", Align::Right), ("AFTER", Align::Right)] {
        table.column(title, align);
    }
    table.column("CHANGE", Align::Right);
    table.column("", Align::Left);
    table.wrap_last();
    let mut row = |name: &str, was: String, is: String, change: Cell, remark: String| {
        table.row(vec![
            name.into(),
            was.into(),
            is.into(),
            change,
            Cell::new(Role::Secondary, remark),
        ]);
    };
    let count = |was: usize, is: usize| difference(was, is);
    row(
        "nodes",
        grouped(before.nodes as u128),
        grouped(after.nodes as u128),
        count(before.nodes, after.nodes).into(),
        came_and_went(answer),
    );
    row(
        "spend per hour",
        hourly(before.price),
        hourly(after.price),
        money(before.price, after.price, hourly),
        by_pool(before, after),
    );
    row(
        "spend per month",
        monthly(before.price),
        monthly(after.price),
        money(before.price, after.price, monthly),
        String::new(),
    );
    if let Some((was, is)) = settled(answer) {
        let remark = if was.is_at_rest && is.is_at_rest {
            "after every move that saves money"
        } else {
            "after many moves that save money, not yet at rest"
        };
        let change = money(was.price, is.price, monthly);
        row(
            "settled per month",
            monthly(was.price),
            monthly(is.price),
            change,
            remark.to_owned(),
        );
        let nodes = count(was.nodes, is.nodes).into();
        row(
            "settled nodes",
            was.nodes.to_string(),
            is.nodes.to_string(),
            nodes,
            String::new(),
        );
    }
    row(
        "cpu / memory requested",
        fill(before),
        fill(after),
        Cell::default(),
        String::new(),
    );
    row(
        "pods running",
        grouped(before.running as u128),
        grouped(after.running as u128),
        count(before.running, after.running).into(),
        String::new(),
    );
    let change = count(before.unplaced, after.unplaced);
    let role = if after.unplaced > before.unplaced {
        Role::Stop
    } else {
        Role::Plain
    };
    row(
        "cannot be placed",
        grouped(before.unplaced as u128),
        grouped(after.unplaced as u128),
        Cell::new(role, change),
        String::new(),
    );
    table.render(screen)
}

/// A difference of money: less is good.
fn money(before: Price, after: Price, written: fn(Price) -> String) -> Cell {
    if before == after {
        return Cell::default();
    }
    let apart = Price::from_picos(before.picos().abs_diff(after.picos()));
    let amount = written(apart);
    if after < before {
        Cell::new(Role::Good, format!("-{amount}"))
    } else {
        Cell::new(Role::OnDemand, format!("+{amount}"))
    }
}

fn difference(was: usize, is: usize) -> String {
    match is.cmp(&was) {
        std::cmp::Ordering::Less => format!("-{}", grouped((was - is) as u128)),
        std::cmp::Ordering::Equal => String::new(),
        std::cmp::Ordering::Greater => format!("+{}", grouped((is - was) as u128)),
    }
}

fn came_and_went(answer: &Answer) -> String {
    // Nodes of somebody else's go with their zone, and count in no figure of NodePools.
    let others = answer.before.unmanaged.saturating_sub(answer.after.unmanaged);
    let (lost, new) = (answer.removed.len().saturating_sub(others), answer.new_nodes.len());
    let mut parts = Vec::new();
    if lost > 0 {
        parts.push(format!("{lost} gone"));
    }
    if new > 0 {
        parts.push(format!("{new} new"));
    }
    if others > 0 {
        parts.push(format!("{others} of somebody else's gone"));
    }
    parts.join(", ")
}

/// The pools whose spend changes, the largest change first.
fn by_pool(before: &Side, after: &Side) -> String {
    let names = before.pools.keys().chain(after.pools.keys());
    let names: std::collections::BTreeSet<_> = names.collect();
    let price = |side: &Side, name| side.pools.get(name).copied().unwrap_or_default();
    let mut changes: Vec<(Price, String)> = names
        .into_iter()
        .filter_map(|name| {
            let (was, is) = (price(before, name), price(after, name));
            let apart = Price::from_picos(was.picos().abs_diff(is.picos()));
            let sign = if is < was { "-" } else { "+" };
            (was != is).then(|| (apart, format!("{name} {sign}{}", hourly(apart).trim_end_matches("/h"))))
        })
        .collect();
    if changes.len() < 2 {
        return String::new();
    }
    changes.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let told: Vec<String> = changes.into_iter().take(4).map(|(_, text)| text).collect();
    told.join(", ")
}

fn fill(side: &Side) -> String {
    let part = |(asked, has): (i64, i64)| percent(u64::try_from(asked).unwrap_or(0), u64::try_from(has).unwrap_or(0));
    format!("{}/{}", part(side.cpu), part(side.memory))
}

/// Alike nodes are counted: `general 2 c7g.2xlarge spot, 1 m7g.large spot · gpu 1 g6.xlarge spot`.
fn new_nodes(nodes: &[NewNode], most: usize) -> String {
    let mut pools: BTreeMap<&str, BTreeMap<(&str, &str), usize>> = BTreeMap::new();
    for node in nodes {
        let kinds = pools.entry(node.node_pool.as_str()).or_default();
        *kinds.entry((&node.instance_type, &node.capacity_type)).or_default() += 1;
    }
    let told = pools.into_iter().map(|(pool, kinds)| {
        let mut kinds: Vec<_> = kinds.into_iter().collect();
        kinds.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let rest: usize = kinds.iter().skip(most).map(|(_, count)| count).sum();
        let mut words: Vec<String> = kinds
            .iter()
            .take(most)
            .map(|((kind, capacity), count)| format!("{count} {kind} {capacity}"))
            .collect();
        if rest > 0 {
            words.push(format!("{rest} more"));
        }
        format!("{pool} {}", words.join(", "))
    });
    told.collect::<Vec<_>>().join(" · ")
}

fn listed(names: &[String], most: usize) -> String {
    let mut told: Vec<String> = names.iter().take(most).cloned().collect();
    if names.len() > most {
        told.push(format!("{} more (-o wide)", names.len() - most));
    }
    told.join(", ")
}

/// Pods without a place; the same reason is told once.
fn stuck(answer: &Answer, most: usize) -> String {
    let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for it in &answer.stuck {
        reasons.entry(&it.why).or_default().push(it.pod.to_string());
    }
    let told = reasons
        .into_iter()
        .map(|(why, pods)| format!("{}: {why}", listed(&pods, most)));
    told.collect::<Vec<_>>().join("; ")
}

fn ending(count: usize) -> &'static str {
    if count == 1 { "s" } else { "" }
}

fn are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// Begins a sentence, unless that begins with a path, which is written as it is.
fn capital(text: &str) -> String {
    if text.split_whitespace().next().is_some_and(|word| word.contains('/')) {
        return text.to_owned();
    }
    let mut signs = text.chars();
    signs
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(signs).collect())
}
