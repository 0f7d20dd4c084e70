//! What was observed as a table: theirs, ours, the gap.

use super::{Batches, Observation};
use crate::terminal::{Align, Cell, Role, Screen, Table, hanging, span};

pub(super) fn render(seen: &Observation, screen: &Screen) -> String {
    let gap = seen.ours.spent_usd - seen.theirs.spent_usd;
    let lasted = span(seen.to.duration_since(seen.from).as_secs());
    let less = if gap <= 0.0 { "less" } else { "more" };
    let sentence = format!(
        "{}, {lasted} beside them in {} looks: same pods, ${:.2} {less} by dovetail's plans (simulated, not a bill).",
        screen.zone.at(seen.from).strftime("%a %-d %b %H:%M"),
        seen.looks,
        gap.abs()
    );
    let mut table = Table::default();
    table.column("", Align::Left);
    for title in ["THEIRS", "DOVETAIL PLAN", "GAP"] {
        table.column(title, Align::Right);
    }
    table.column("", Align::Left);
    let mut row = |name: &str, theirs: String, ours: String, gap: String, note: String| {
        table.row(vec![
            name.into(),
            theirs.into(),
            ours.into(),
            gap.into(),
            Cell::new(Role::Secondary, note),
        ]);
    };
    let signed = |amount: f64| format!("{}${:.2}", if amount < 0.0 { "-" } else { "+" }, amount.abs());
    let (theirs, ours) = (&seen.theirs, &seen.ours);
    row(
        "spend",
        format!("${:.2}", theirs.spent_usd),
        format!("${:.2}", ours.spent_usd),
        signed(gap),
        String::new(),
    );
    row(
        "spend per month",
        format!("${:.0}", theirs.mean_usd_h * super::MONTH),
        format!("${:.0}", ours.mean_usd_h * super::MONTH),
        signed((ours.mean_usd_h - theirs.mean_usd_h) * super::MONTH),
        "at the mean rate".to_owned(),
    );
    row(
        "nodes, mean",
        format!("{:.1}", theirs.mean_nodes),
        format!("{:.1}", ours.mean_nodes),
        format!("{:+.1}", ours.mean_nodes - theirs.mean_nodes),
        String::new(),
    );
    let Batches {
        all,
        same,
        cheaper,
        dearer,
    } = seen.batches;
    row(
        "launches / removals",
        format!("{} / {}", seen.launches, seen.removals),
        "-".to_owned(),
        String::new(),
        format!("{all} looks with pods that waited: {same} same, {cheaper} cheaper, {dearer} dearer"),
    );
    let waited = |wait: Option<i64>| wait.map_or("-".to_owned(), span);
    row(
        "pods waiting p50 / p95",
        format!("{} / {}", waited(seen.waited_p50_s), waited(seen.waited_p95_s)),
        "-".to_owned(),
        String::new(),
        "from when a pod is made until it has a node".to_owned(),
    );
    let mut text = format!(
        "{}{}",
        hanging("", &sentence, screen.text_width()),
        table.render(screen)
    );
    if let Some(miss) = seen.differences.iter().find(|difference| difference.delta_usd_mo > 0.0) {
        let miss = format!(
            "{} {} pods: ours ${:.4}/h, theirs ${:.4}/h",
            screen.zone.moment(miss.time, seen.to),
            miss.pods,
            miss.ours_usd_h,
            miss.theirs_usd_h
        );
        text.push_str(&hanging("worst miss of ours  ", &miss, screen.text_width()));
    }
    text
}
