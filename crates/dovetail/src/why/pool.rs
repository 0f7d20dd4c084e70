//! Why a NodePool is not ready, at its limits, or launches nothing, for a person.

use insight::{
    fleet::Pool,
    why::pool::{ConditionRow, LimitRow, NodePoolExplanation},
};
use model::object::ConditionStatus;

use crate::{
    plan::funnel,
    terminal::{
        Align, Amount, Cell, Role, Screen, Table, bar, counted, cut_in_the_middle, hanging, hourly, monthly, span,
    },
};

/// Signs of a bar.
const BAR: usize = 10;
/// Pods that are named.
const MOST: usize = 8;
/// Columns of a limit besides who waits for it.
const AROUND: usize = 68;
/// Names narrower than this tell little.
const LEAST: usize = 14;

pub(super) fn render(why: &NodePoolExplanation, screen: &Screen) -> String {
    let width = screen.text_width();
    let name = format!("nodepool/{}", why.pool.name);
    let mut text = hanging("", &sentence(why, &name), width);
    text = text.replacen(&name, &screen.paint(Role::Heading, &name), 1);
    if !why.pool.ready {
        text.push_str(&conditions(why, screen));
    }
    if !why.limits.is_empty() {
        text.push_str(&limits(&why.limits, screen));
    }
    let part = |name: &str, rest: &str| hanging(&format!("  {name:13} "), rest, width);
    let pool = &why.pool;
    text.push_str(&part(
        "has",
        &format!(
            "{} ({} spot) for {}{}",
            counted(pool.nodes, "node"),
            pool.spot,
            pool.spend_usd_h.an_hour(),
            policy(pool)
        ),
    ));
    let others: Vec<_> = why
        .refused
        .iter()
        .filter(|refused| !refused.stops_at.starts_with("limit "))
        .collect();
    for (at, refused) in others.iter().take(MOST).enumerate() {
        let start = if at == 0 { "does not take" } else { "" };
        let why = format!("{}: {}", refused.pod, funnel::brief(&refused.why));
        text.push_str(&part(start, &why));
    }
    if let Some(fix) = &why.fix {
        let price = fix
            .usd_h
            .map(|price| format!(", about +{}, +{}", hourly(price), monthly(price)));
        text.push_str(&part(
            "smallest fix",
            &format!("{}{}", fix.text, price.unwrap_or_default()),
        ));
        for line in &fix.patch {
            let role = if line.starts_with('+') { Role::Good } else { Role::Plain };
            text.push_str(&format!("     {}\n", screen.paint(role, line)));
        }
    }
    text
}

/// When nodes are consolidated; nothing where no API server has written its defaults.
fn policy(pool: &Pool) -> String {
    match (pool.policy.as_str(), pool.consolidate_after.as_str()) {
        ("", _) => String::new(),
        (policy, "") => format!("; {policy}"),
        (policy, "Never") => format!("; {policy}, but never, by consolidateAfter"),
        (policy, after) => format!("; {policy} after {after}"),
    }
}

fn sentence(why: &NodePoolExplanation, name: &str) -> String {
    let pool = &why.pool;
    if !pool.ready {
        let ready = why.conditions.iter().find(|it| it.name == "Ready");
        let since = ready
            .and_then(|ready| ready.since_s)
            .map(|since| format!(" for {}", span(since)));
        let cause = why
            .conditions
            .iter()
            .chain(why.class.iter().flat_map(|class| &class.conditions))
            .find(|it| it.status != ConditionStatus::True && it.name != "Ready");
        let cause = match (cause, &why.class) {
            (_, Some(class)) if !class.is_known => format!("{} is not there", class.name),
            (Some(cause), _) if !cause.message.is_empty() => format!("{}: {}", cause.name, cause.message),
            (Some(cause), _) => format!("{} is {:?}", cause.name, cause.status),
            (None, _) => "no controller has said that it is".to_owned(),
        };
        return format!("{name} has not been ready{}: {cause}.", since.unwrap_or_default());
    }
    let blocking = why.limits.iter().find(|limit| !limit.blocks.is_empty());
    if let Some(LimitRow { limit, blocks }) = blocking {
        let verb = if blocks.len() == 1 { "waits" } else { "wait" };
        return format!(
            "{name} is ready but at limits.{}: {} of {} used, {} left; {} {verb} for it.",
            limit.resource,
            limit.used,
            limit.limit,
            limit.left,
            counted(blocks.len(), "pod")
        );
    }
    let near = pool.nearest_limit();
    if let Some(limit) = near.filter(|limit| limit.percent >= 100) {
        return format!(
            "{name} is ready but at limits.{}: {} of {} used, so it launches nothing.",
            limit.resource, limit.used, limit.limit
        );
    }
    let limit = near.map(|limit| format!(", {} of {} {} used", limit.used, limit.limit, limit.resource));
    let limit = limit.unwrap_or_else(|| ", no limits".to_owned());
    match why.refused.len() {
        0 => format!("{name} is ready{limit}; no pod waits that it refuses. Nothing to explain."),
        count => format!(
            "{name} is ready{limit}; {} it does not take.",
            counted(count, "waiting pod")
        ),
    }
}

fn conditions(why: &NodePoolExplanation, screen: &Screen) -> String {
    let mut text = String::new();
    for condition in &why.conditions {
        text.push_str(&condition_line(condition, "  ", screen));
        if condition.name == "NodeClassReady"
            && let Some(class) = &why.class
        {
            if !class.is_known {
                text.push_str(&format!("    x {} is not in the source\n", class.name));
            }
            for condition in &class.conditions {
                text.push_str(&condition_line(condition, "    ", screen));
            }
        }
    }
    text
}

fn condition_line(condition: &ConditionRow, indent: &str, screen: &Screen) -> String {
    let holds = condition.status == ConditionStatus::True;
    let mark = if holds { " " } else { "x" };
    let said = if condition.message.is_empty() || holds {
        String::new()
    } else {
        format!(": {}", condition.message)
    };
    let since = condition.since_s.map(span).unwrap_or_default();
    let name = format!("{indent}{mark} {}", condition.name);
    let start = format!("{name:29} {since:7} ");
    let line = hanging(&start, &format!("{:?}{said}", condition.status), screen.text_width());
    if holds {
        return line;
    }
    line.replacen("x ", &format!("{} ", screen.paint(Role::Stop, "x")), 1)
}

fn limits(limits: &[LimitRow], screen: &Screen) -> String {
    let mut table = Table::default();
    table.column("  LIMIT", Align::Left);
    for name in ["IN USE", "LAUNCHING", "LIMIT"] {
        table.column(name, Align::Right);
    }
    table.column("", Align::Left);
    table.column("LEFT", Align::Right);
    table.column("WAITING FOR IT", Align::Left);
    for LimitRow { limit, blocks } in limits {
        let role = Role::Fill(u32::try_from(limit.percent).unwrap_or(100));
        let share = format!("{}%", limit.percent);
        let picture = if screen.has_bars() {
            format!("{} {share:>4}", bar(limit.percent, 100, BAR, screen.is_ascii))
        } else {
            share
        };
        let room = screen.text_width().saturating_sub(AROUND).max(LEAST);
        let waiting = match blocks.as_slice() {
            [] => "-".to_owned(),
            [only] => only.clone(),
            [first, rest @ ..] => format!("{first} and {} more", rest.len()),
        };
        table.row(vec![
            format!("  {}", limit.resource).into(),
            limit.used.clone().into(),
            limit.in_flight.clone().into(),
            limit.limit.clone().into(),
            Cell::new(role, picture),
            limit.left.clone().into(),
            cut_in_the_middle(&waiting, room, screen.is_ascii).into(),
        ]);
    }
    table.render(screen)
}
