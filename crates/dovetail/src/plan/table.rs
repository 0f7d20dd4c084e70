//! The answer for a person: a sentence first, then the nodes, then what stays pending, then what it costs.

mod nodes;

use std::fmt::Write;

use insight::{
    funnel::Funnel,
    launch::{FixedPool, Hold, Pending, Report},
};

use model::price::Price;

use super::funnel;
use crate::terminal::{Role, Screen, change, counted, hanging, hourly, monthly, percent};

pub(super) fn render(report: &Report, with_pods: bool, screen: &Screen) -> String {
    let mut text = hanging("", &sentence(report), screen.text_width());
    if !report.new_nodes.is_empty() {
        let _ = write!(text, "\n{}", nodes::new(&report.new_nodes, with_pods, screen));
    }
    if !report.existing_nodes.is_empty() {
        let _ = write!(text, "\n{}", nodes::existing(&report.existing_nodes, with_pods, screen));
    }
    if !report.pending.is_empty() {
        let _ = write!(text, "\n{}", pending(&report.pending, report.pods.pending, screen));
    }
    if report.pods.waiting > 0 {
        let _ = write!(text, "\n{}", costs(report, screen));
    }
    text
}

/// What is the case, in one sentence.
fn sentence(report: &Report) -> String {
    let pods = &report.pods;
    if pods.waiting == 0 {
        return "No pod waits for a node: there is nothing to launch.".to_owned();
    }
    let nodes = |number: usize, kind: &str| (counted(number, kind), if number == 1 { "takes" } else { "take" });
    let (new, take) = nodes(report.new_nodes.len(), "new node");
    let (hour, month) = (hourly(report.total.usd_h), monthly(report.total.usd_h));
    let on_new = format!("{new} at {hour} ({month}) {take} {}", pods.on_new_nodes);
    let (existing, take) = nodes(report.existing_nodes.len(), "existing node");
    let on_existing = format!("{existing} {take} {}", pods.on_existing_nodes);
    let stays = format!(
        "{} pending",
        if pods.pending == 1 {
            "1 stays".into()
        } else {
            format!("{} stay", pods.pending)
        }
    );
    let parts = [
        (pods.on_new_nodes > 0, on_new),
        (pods.on_existing_nodes > 0, on_existing),
        (pods.pending > 0, stays),
    ];
    let parts: Vec<_> = parts
        .into_iter()
        .filter(|(is_so, _)| *is_so)
        .map(|(_, part)| part)
        .collect();
    let waits = if pods.waiting == 1 { "waits" } else { "wait" };
    format!("{} {waits}: {}.", counted(pods.waiting, "pod"), parts.join(", "))
}

fn pending(groups: &[Pending], pods: usize, screen: &Screen) -> String {
    let heading = format!("STAYS PENDING  {}", counted(pods, "pod"));
    let mut text = format!("{}\n", screen.paint(Role::Heading, &heading));
    for group in groups {
        let wants: Vec<_> = group
            .requests
            .iter()
            .map(|(name, amount)| format!("{amount} {name}"))
            .collect();
        let wants = if wants.is_empty() {
            "nothing".to_owned()
        } else {
            wants.join(", ")
        };
        let who = match group.pods.as_slice() {
            [only] => format!("{only} wants"),
            several => format!("{}: {} that each want", group.workload, counted(several.len(), "pod")),
        };
        let stop = group.funnel.as_ref().and_then(Funnel::stops_at);
        let stop = stop.map_or_else(String::new, |step| format!(", stops at {}", step.name));
        let head = hanging("x  ", &format!("{who} {wants}{stop}"), screen.text_width());
        text.push_str(&head.replacen('x', &screen.paint(Role::Stop, "x"), 1));
        match &group.funnel {
            Some(way) => text.push_str(&funnel::render(way, screen)),
            None => text.push_str(&refusals(&group.message, screen)),
        }
    }
    text
}

/// Upstream's words: one refusal per NodePool, joined into one line.
fn refusals(message: &str, screen: &Screen) -> String {
    let refusals: Vec<_> = message.split("; ").collect();
    let start = if refusals.len() == 1 { "   " } else { "   - " };
    let lines = refusals
        .iter()
        .map(|refusal| hanging(start, refusal, screen.text_width()));
    lines.collect()
}

/// A paragraph for each NodePool that has another number of nodes than it should.
pub(super) fn fixed(pools: &[FixedPool], screen: &Screen) -> String {
    let mut text = String::new();
    for pool in pools {
        let _ = write!(text, "\n{}", hanging("", &fixed_sentence(pool), screen.text_width()));
    }
    text
}

fn fixed_sentence(pool: &FixedPool) -> String {
    let head = format!(
        "Static NodePool {} is to have {} and has {}",
        pool.node_pool,
        counted(pool.replicas, "node"),
        pool.nodes
    );
    let lacking = pool.replicas.saturating_sub(pool.nodes);
    let kind = match (&pool.instance_type, &pool.capacity_type, &pool.zone) {
        (Some(name), Some(capacity), Some(zone)) => format!("{name} {capacity} in {zone}"),
        _ => "nothing it allows is on offer".to_owned(),
    };
    let each = pool.usd_h.map_or_else(String::new, |price| {
        format!(" at {} ({}) each", hourly(price), monthly(price))
    });
    let what = match (lacking, pool.launches, pool.removes) {
        (0, _, removes) => format!("{} removed, those that disturb least first", are(removes)),
        (_, 0, _) => format!("{} missing", are(lacking)),
        (_, launches, _) => format!("{} launched, {kind}{each}", are(launches)),
    };
    let held = match pool.held_by {
        Some(Hold::NotReady) => "; none comes until the NodePool is ready",
        Some(Hold::Limit) => "; its limits.nodes has no room for more",
        None => "",
    };
    let gate = if pool.is_gate_on {
        ""
    } else {
        " The controller does so with the feature gate StaticCapacity, which is off unless asked for."
    };
    format!("{head}: {what}{held}.{gate}")
}

fn are(nodes: usize) -> String {
    format!("{nodes} {}", if nodes == 1 { "is" } else { "are" })
}

fn costs(report: &Report, screen: &Screen) -> String {
    let total = &report.total;
    let mut lines = vec![line("cost", total.usd_h, "")];
    if let Some(bound) = total.lower_bound_usd_h {
        lines.push(line("lower bound", bound, &above(total.usd_h, bound)));
    }
    if let Some(upstream) = total.upstream_usd_h {
        lines.push(line("upstream", upstream, &against_upstream(report, upstream)));
    }
    let lines = lines
        .iter()
        .map(|(start, remark)| hanging(start, remark, screen.text_width()));
    lines.fold(String::new(), |text, line| text + line.trim_end() + "\n")
}

fn line(name: &str, price: Price, remark: &str) -> (String, String) {
    (
        format!("{name:11}  {:>10}  {:>11}  ", hourly(price), monthly(price)),
        remark.to_owned(),
    )
}

fn above(price: Price, bound: Price) -> String {
    if price <= bound {
        return "no plan can cost less".to_owned();
    }
    let more = percent(price.picos() - bound.picos(), bound.picos());
    format!("no plan can cost less; this one is at most {more} above")
}

/// What upstream's algorithm would have paid for the same pods.
fn against_upstream(report: &Report, upstream: Price) -> String {
    let ours = report.total.usd_h;
    let nodes = counted(report.total.upstream_new_nodes.unwrap_or_default(), "node");
    let unplaced = report.total.upstream_pending.unwrap_or_default();
    let pods = if unplaced == report.pods.pending {
        String::new()
    } else {
        format!("; it leaves {} pending", counted(unplaced, "pod"))
    };
    if unplaced > report.pods.pending && ours > upstream {
        let more = counted(unplaced - report.pods.pending, "more pod");
        return format!("its own algorithm takes {nodes} and leaves {more} without one");
    }
    if ours >= upstream {
        return format!("what its own algorithm pays, with {nodes}{pods}");
    }
    let share = percent(upstream.picos() - ours.picos(), upstream.picos());
    format!(
        "its own algorithm takes {nodes}; this plan saves {share}, {}{pods}",
        change(upstream, ours)
    )
}
