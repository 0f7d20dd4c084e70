//! What would be done next, step by step; what waits and for what; what a rule keeps.

use insight::outlook::{Kept, Move, Outlook, Target};
use jiff::Timestamp;
use ratatui_core::layout::Rect;

use super::{
    WIDE, below, line_of,
    table::{self, Cell, Column, left, right},
    title,
};
use crate::{
    app::App,
    canvas::{Canvas, Line},
    figure,
    theme::Role,
};

const KEYS: &str = "esc back   j/k line   enter the node   w why   x what-if   ? help";

pub(super) fn draw(app: &mut App, canvas: &mut Canvas<'_>, area: Rect, now_ms: u64) -> &'static str {
    let Some(ahead) = app.ahead.clone() else {
        title(
            app,
            canvas,
            line_of(area, 0),
            now_ms,
            &(Role::Heading, "plan".to_owned()).into(),
        );
        canvas.text(area.x + 1, area.y + 2, area.right(), Role::Secondary, "computing…");
        return KEYS;
    };
    let outlook = &ahead.outlook;
    title(app, canvas, line_of(area, 0), now_ms, &summary(outlook));
    let is_wide = area.width >= WIDE;
    let columns = columns(area.width);
    let now = app.picture.as_ref().map(|picture| picture.taken_at).unwrap_or_default();
    let waits = outlook.waits.iter().map(|kept| (kept, true));
    let held = outlook.held.iter().map(|kept| (kept, false));
    let kept: Vec<(&Kept, bool)> = waits.chain(held).collect();
    let moves = &outlook.moves;
    let row = |at: usize| match (moves.get(at), kept.get(at.saturating_sub(moves.len()))) {
        (Some(step), _) => step_cells(step, is_wide),
        (None, Some((kept, waits))) => kept_cells(kept, *waits, now, is_wide),
        (None, None) => Vec::new(),
    };
    let lines = moves.len() + kept.len();
    let list = below(area, 1);
    app.page = table::draw(canvas, list, &columns, &mut app.plan, lines, row);
    app.hits.list = below(list, 1);
    app.hits.top = app.plan.top;
    let end = list.y + 1 + u16::try_from(lines).unwrap_or(u16::MAX).min(list.height);
    if end < area.bottom() {
        canvas.text(area.x + 1, end, area.right(), Role::Secondary, &after(outlook));
    }
    KEYS
}

fn summary(outlook: &Outlook) -> Line {
    let total = &outlook.total;
    let moves = match outlook.moves.len() {
        0 => "nothing to move".to_owned(),
        count => {
            let saved = figure::signed(total.delta_usd_mo);
            format!("{}, {saved}/mo", figure::counted(count, "move"))
        }
    };
    let mut line = Line::default();
    line.add(Role::Heading, moves);
    line.add(Role::Plain, format!("; {} held", total.held_nodes));
    line
}

fn after(outlook: &Outlook) -> String {
    let total = &outlook.total;
    let more = if total.is_cut { "; there may be more to do" } else { "" };
    format!(
        "after the moves: {}, {}/h, {}/mo{more}",
        figure::counted(total.nodes_after, "node"),
        figure::two_places(total.usd_h_after),
        figure::dollars(total.usd_h_after.monthly())
    )
}

fn columns(width: u16) -> Vec<Column> {
    let is_wide = width >= WIDE;
    let mut columns = vec![left("ID", 5), left("WHEN", 9), left("ACTION", 8)];
    let rest = if is_wide {
        vec![left("POOL", 13), left("REASON", 15), right("$/MO", 8), right("PODS", 4)]
    } else {
        vec![left("REASON", 9), right("$/MO", 8)]
    };
    let used: usize = columns.iter().chain(&rest).map(|column| column.width + 1).sum();
    columns.push(left("TARGET", usize::from(width).saturating_sub(used + 2)));
    columns.extend(rest);
    columns
}

fn target(target: &Target) -> String {
    let name = figure::short_name(&target.node);
    format!("{name} {}", figure::short_type(&target.instance_type))
}

fn step_cells(step: &Move, is_wide: bool) -> Vec<Cell> {
    let plain = |text: String| (Role::Plain, text);
    let names: Vec<String> = step.targets.iter().map(target).collect();
    let news: Vec<String> = step
        .new_nodes
        .iter()
        .map(|node| format!("{} {}", figure::short_type(&node.instance_type), node.capacity_type))
        .collect();
    let arrow = if news.is_empty() {
        String::new()
    } else {
        format!(" → {}", news.join(", "))
    };
    let when = if step.round == 1 { "now" } else { "next" };
    let mut cells = vec![
        (Role::Command, step.id.get(..4).unwrap_or_default().to_owned()),
        plain(when.to_owned()),
        (Role::Good, step.action.to_owned()),
        plain(format!("{}{arrow}", names.join(", "))),
    ];
    if is_wide {
        cells.push(plain(step.pools.join(",")));
    }
    cells.push(plain(step.reason.to_owned()));
    cells.push(plain(figure::signed(step.delta_usd_mo)));
    cells.push(plain(step.pods.to_string()));
    cells
}

fn kept_cells(kept: &Kept, waits: bool, now: Timestamp, is_wide: bool) -> Vec<Cell> {
    let plain = |text: String| (Role::Plain, text);
    let name = kept.targets.first().map(target).unwrap_or_default();
    let more = match kept.targets.len() {
        0 | 1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    let when = kept.lifts_at.map_or("-".to_owned(), |at| figure::moment(at, now));
    let worth = kept.saving_usd_mo;
    let worth = worth.map_or("-".to_owned(), |saving| format!("({})", figure::dollars(saving)));
    let (word, role) = if waits {
        ("waits", Role::Plain)
    } else {
        ("held", Role::Warn)
    };
    let mut cells = vec![
        (role, word.to_owned()),
        plain(when),
        plain("keep".to_owned()),
        plain(format!("{name}{more}")),
    ];
    if is_wide {
        cells.push(plain(kept.pool.clone()));
    }
    cells.push(plain(kept.rule.to_owned()));
    cells.push(plain(worth));
    cells.push(plain(kept.pods.to_string()));
    cells
}
