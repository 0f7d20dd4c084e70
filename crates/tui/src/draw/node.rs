//! One node: its pods, why it stays, what would come of removing it, what that takes, and what was decided about it.

use insight::{Fill, Removal, outlook::Move, rule::Class, why::node::NodeExplanation};
use jiff::Timestamp;
use ratatui_core::layout::Rect;

use super::{
    WIDE, below, line_of,
    table::{self, Cell, left, right},
    timeline, title,
};
use crate::{
    answer::{Answer, Question},
    app::App,
    canvas::{Canvas, Line},
    figure,
    picture::{PodLine, Row},
    theme::Role,
};

const KEYS: &str = "esc back  j/k pod  enter why pod  w why  x what-if  y yaml  d describe  e events  c copy the change  [ ] node  ? help";
const NARROW_KEYS: &str = "esc back  j/k pod  w why  x what-if  y yaml  e events  c copy  [ ] node  ? help";
/// Columns of the pods where there is something beside them.
const HALF: u16 = 50;
/// Decisions that are listed.
const MOST_DECISIONS: usize = 6;
/// Lines that are left for pods where they come last.
const FOR_PODS: u16 = 6;

pub(super) fn draw(app: &mut App, canvas: &mut Canvas<'_>, area: Rect, now_ms: u64, name: &str) -> &'static str {
    let mut top = Line::default();
    top.add(Role::Secondary, "nodes > ").add(Role::Heading, name.to_owned());
    title(app, canvas, line_of(area, 0), now_ms, &top);
    let is_wide = area.width >= WIDE;
    let keys = if is_wide { KEYS } else { NARROW_KEYS };
    let Some(picture) = app.picture.clone() else {
        return keys;
    };
    let Some(row) = picture.row(name) else {
        let gone = "this node is gone: esc goes back";
        canvas.text(area.x + 1, area.y + 2, area.right(), Role::Warn, gone);
        return keys;
    };
    let now = app.now(now_ms).unwrap_or(picture.taken_at);
    canvas.text(
        area.x + 1,
        area.y + 1,
        area.right(),
        Role::Plain,
        &facts(app, row, now, is_wide),
    );
    canvas.line(
        area.x + 1,
        area.y + 2,
        area.right(),
        &room(row, is_wide, canvas.is_ascii()),
    );
    let body = below(area, 3);
    let why = match app.answer(&Question::Node(name.to_owned()), now_ms) {
        Ok(Answer::Node(why)) => Ok(why.as_ref().clone()),
        Ok(Answer::Failed(why)) => Err(why.clone()),
        Ok(_) => Err(String::new()),
        Err(wait) => Err(wait.to_owned()),
    };
    if is_wide {
        let pods = Rect { width: HALF, ..body };
        let decisions = decisions(app, row, now);
        let lines = u16::try_from(decisions.len()).unwrap_or_default() + 1;
        let pods_height = body.height.saturating_sub(lines);
        let of_pods = Rect {
            height: pods_height,
            ..pods
        };
        draw_pods(app, canvas, of_pods, why.as_ref().ok(), true);
        canvas.rule(line_of(pods, pods_height), "its decisions");
        for (at, line) in (1..).zip(&decisions) {
            canvas.line(pods.x + 1, body.y + pods_height + at, pods.right(), line);
        }
        let rest = Rect::new(body.x + HALF + 1, body.y, body.width - HALF - 1, body.height);
        paragraphs(app, canvas, rest, why.as_ref(), now, 0);
    } else {
        let lines = paragraphs(app, canvas, body, why.as_ref(), now, FOR_PODS);
        draw_pods(app, canvas, below(body, lines), why.as_ref().ok(), false);
    }
    keys
}

fn facts(app: &App, row: &Row, now: Timestamp, is_wide: bool) -> String {
    let node = &row.node;
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let capacity = match node.capacity_type.as_deref() {
        Some("on-demand") if !is_wide => "od".to_owned(),
        _ => text(&node.capacity_type),
    };
    let mut parts = vec![
        text(&node.pool),
        format!("{} {capacity}", text(&node.instance_type)),
        text(&node.zone),
    ];
    if let Some(price) = node.usd_h.filter(|_| app.choices.has_prices) {
        parts.push(format!("${}/h", figure::offer(price)));
        parts.push(format!("{}/mo", figure::dollars(price.monthly())));
    }
    parts.extend(row.age_s(now).map(figure::age));
    if node.drifted {
        parts.push("drifted".to_owned());
    }
    if is_wide && !node.image.is_empty() {
        parts.push(node.image.clone());
    }
    parts.extend(node.claim.as_ref().map(|claim| format!("claim {claim}")));
    parts.join(", ")
}

fn room(row: &Row, is_wide: bool, is_ascii: bool) -> Line {
    let mut line = Line::default();
    let signs = if is_wide { 20 } else { 14 };
    let mut add = |name: &str, fill: Fill, amount: &dyn Fn(u64) -> String, unit: &str| {
        let of = if is_wide { " of " } else { "/" };
        let words = format!(
            " {}  {}{of}{}{unit}   ",
            figure::whole_percent(fill),
            amount(fill.requested),
            amount(fill.allocatable)
        );
        line.add(Role::Plain, format!("{name} "))
            .add(Role::fill(fill), figure::bar(fill, signs, is_ascii))
            .add(Role::Plain, words);
    };
    add("cpu", row.node.cpu_m, &figure::cores, "");
    let (name, unit) = if is_wide { ("memory", " GiB") } else { ("mem", "") };
    add(name, row.node.memory_mib, &figure::gibs, unit);
    if is_wide {
        let pods = format!("  pods {} of {}", row.node.pods, row.node.pod_capacity);
        line.add(Role::Plain, pods);
    }
    line
}

fn draw_pods(app: &mut App, canvas: &mut Canvas<'_>, area: Rect, why: Option<&NodeExplanation>, is_wide: bool) {
    let (pods, cursor) = &mut app.pods;
    let heading = if is_wide {
        "pods".to_owned()
    } else {
        format!("pods {}", pods.len())
    };
    canvas.rule(line_of(area, 0), &heading);
    let place = below(area, 1);
    let columns = if is_wide {
        [
            left("NAMESPACE/NAME", 28),
            right("CPU", 4),
            right("GIB", 5),
            left("MOVES", 8),
        ]
    } else {
        [
            left("NAMESPACE/NAME", 40),
            right("CPU", 6),
            right("GIB", 8),
            left("MOVES", 20),
        ]
    };
    let row = |at: usize| -> Vec<Cell> {
        let pod = &pods[at];
        vec![
            (Role::Plain, pod.pod.clone()),
            (Role::Plain, figure::cores(pod.cpu_m)),
            (Role::Plain, figure::gibs(pod.memory_mib)),
            moves(pod, why, is_wide),
        ]
    };
    app.page = table::draw(canvas, place, &columns, cursor, pods.len(), row);
    app.hits.list = below(place, 1);
    app.hits.top = cursor.top;
}

/// Where a pod would go.
fn moves(pod: &PodLine, why: Option<&NodeExplanation>, is_wide: bool) -> Cell {
    if pod.is_daemon {
        return (Role::Secondary, "daemon".to_owned());
    }
    let Some(why) = why else {
        return (Role::Secondary, String::new());
    };
    let key = format!("pod {}", pod.pod);
    if why.stays.iter().any(|stay| stay.by == key && stay.class == Class::Held) {
        return (Role::Stop, "no: rule".to_owned());
    }
    let steps = why.goes.as_ref().map(|goes| &goes.moves);
    let steps = steps.or(why.if_removed.as_ref().map(|removal| &removal.moves));
    let to = steps.into_iter().flatten().find(|step| step.pod == pod.pod);
    let is_stuck = |removal: &Removal| removal.pending.iter().any(|stuck| stuck.pod == pod.pod);
    match (to, &why.if_removed) {
        (Some(step), _) if step.to.starts_with("new ") => (Role::Plain, "to new".to_owned()),
        (Some(_), _) if is_wide => (Role::Plain, "to other".to_owned()),
        (Some(step), _) => (Role::Plain, format!("to {}", figure::short_name(&step.to))),
        (None, Some(removal)) if is_stuck(removal) => (Role::Stop, "no place".to_owned()),
        _ => (Role::Plain, String::new()),
    }
}

type Said = Vec<(Role, String)>;

/// Why it stays or goes, what comes of removing it, what that takes; returns how many lines that took. `keep` lines are
/// left for what comes below.
fn paragraphs(
    app: &App,
    canvas: &mut Canvas<'_>,
    area: Rect,
    why: Result<&NodeExplanation, &String>,
    now: Timestamp,
    keep: u16,
) -> u16 {
    let width = usize::from(area.width).saturating_sub(2);
    let mut parts: Vec<(&str, Said)> = Vec::new();
    match why {
        Err(wait) => parts.push(("why it stays", vec![(Role::Secondary, wait.clone())])),
        Ok(why) => {
            parts.push(match &why.goes {
                Some(goes) => ("why it goes", going(goes, width)),
                None => ("why it stays", staying(why, now, width)),
            });
            if let Some(removal) = why.if_removed.as_ref().filter(|_| why.goes.is_none()) {
                parts.push(("if removed", wrapped(Role::Plain, &removed(app, removal), width)));
            }
            let takes = takes(why, width);
            if !takes.is_empty() {
                parts.push(("what it takes", takes));
            }
        }
    }
    let mut y = 0;
    let most = area.height.saturating_sub(keep);
    for (name, lines) in parts {
        if y + 1 >= most {
            break;
        }
        canvas.rule(line_of(area, y), name);
        y += 1;
        for (role, text) in lines.into_iter().take(usize::from(most - y)) {
            canvas.text(area.x + 1, area.y + y, area.right(), role, &text);
            y += 1;
        }
    }
    y
}

fn wrapped(role: Role, text: &str, width: usize) -> Said {
    let lines = figure::wrapped(text, width).into_iter();
    lines.map(|line| (role, line)).collect()
}

fn going(goes: &Move, width: usize) -> Said {
    let instead: Vec<String> = goes
        .new_nodes
        .iter()
        .map(|node| format!("{} {} in {}", node.instance_type, node.capacity_type, node.zone))
        .collect();
    let instead = match (instead.is_empty(), goes.pods) {
        (true, 0) => "nothing on it needs a place".to_owned(),
        (true, _) => "its pods go to nodes there are".to_owned(),
        (false, _) => format!("{} comes instead", instead.join(", ")),
    };
    let when = if goes.round == 1 {
        "now"
    } else {
        "when the moves before it are done"
    };
    let text = format!(
        "{} {when} ({}, {}): {instead}, {}/mo, {} moved",
        goes.action,
        goes.reason,
        goes.id.get(..4).unwrap_or_default(),
        figure::signed(goes.delta_usd_mo),
        figure::counted(goes.pods, "pod"),
    );
    wrapped(Role::Good, &text, width)
}

fn staying(why: &NodeExplanation, now: Timestamp, width: usize) -> Said {
    if !why.is_managed {
        let text = "it has no NodeClaim of a NodePool: it is used as room for pods, never removed";
        return wrapped(Role::Plain, text, width);
    }
    if why.stays.is_empty() {
        return vec![(Role::Plain, "nothing plans to remove it".to_owned())];
    }
    let mut lines = Vec::new();
    for stay in &why.stays {
        let is_hard = matches!(stay.class, Class::Held | Class::Waits);
        let (sign, role) = if is_hard { ("x", Role::Stop) } else { (" ", Role::Plain) };
        let until = stay
            .lifts_at
            .map(|at| format!(", until {} UTC", figure::moment(at, now)));
        let text = format!("{}{}", stay.text, until.unwrap_or_default());
        let start = format!("{sign} {:9} ", stay.word);
        let parts = figure::wrapped(&text, width.saturating_sub(start.len()));
        for (at, part) in parts.iter().enumerate() {
            let (role, start) = match at {
                0 => (role, start.clone()),
                _ => (Role::Plain, " ".repeat(start.len())),
            };
            lines.push((role, format!("{start}{}", part.trim_start())));
        }
    }
    lines
}

fn removed(app: &App, removal: &Removal) -> String {
    let new = match removal.new_nodes.as_slice() {
        [] => "nodes there are".to_owned(),
        [only] => format!("one new {} {} in {}", only.instance_type, only.capacity_type, only.zone),
        several => figure::counted(several.len(), "new node"),
    };
    let pending = match removal.pending.len() {
        0 => "none pending".to_owned(),
        count => format!("{} would be pending", figure::counted(count, "pod")),
    };
    let money = if app.choices.has_prices {
        format!("{}/mo: ", figure::signed(removal.delta_usd_mo))
    } else {
        String::new()
    };
    let pods = figure::counted(removal.moves.len(), "pod");
    format!("{money}{pods} to {new}, {pending}")
}

/// The changes that let it go, a patch where it is one field.
fn takes(why: &NodeExplanation, width: usize) -> Said {
    let held = why.stays.iter().filter(|stay| stay.class == Class::Held);
    let mut lines = Vec::new();
    for fix in held.filter_map(|stay| stay.fix.as_ref()) {
        let said = format!("{}: {}", fix.object, fix.change);
        lines.extend(wrapped(Role::Plain, &said, width));
        for line in fix.patch.iter().filter(|line| line.starts_with(['+', '-'])) {
            let role = if line.starts_with('+') { Role::Good } else { Role::Stop };
            let (sign, text) = line.split_at(1);
            lines.push((role, format!("  {sign} {}", text.trim_start())));
        }
    }
    lines
}

/// What was decided about it, newest first.
fn decisions(app: &App, row: &Row, now: Timestamp) -> Vec<Line> {
    let claim = row.node.claim.as_deref().unwrap_or_default();
    let records = app.timeline.records.iter();
    let about = records.filter(|record| record.concerns(&row.node.name) || !claim.is_empty() && record.concerns(claim));
    let line = |record: &ledger::Record| {
        let mut line = Line::default();
        line.add(Role::Plain, format!("{:<9} ", figure::moment(record.time, now)))
            .add(Role::Command, record.id.short(4))
            .add(Role::Plain, format!("  {:<10} {:<13} ", record.word(), record.reason))
            .add(Role::Plain, timeline::money(record));
        line
    };
    let mut lines: Vec<Line> = about.take(MOST_DECISIONS).map(line).collect();
    if lines.is_empty() {
        let note = if app.timeline.note.is_empty() {
            "none that is still kept"
        } else {
            app.timeline.note.lines().next().unwrap_or_default()
        };
        lines.push((Role::Secondary, note.to_owned()).into());
    }
    lines
}
