//! Decisions over time: a lane for each pool, and a list with reasons and money.

use insight::Dollars;
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use ledger::{Action, Phase, Record};
use ratatui_core::layout::Rect;

use super::{
    WIDE, below, line_of,
    table::{self, Cell, left, right},
    title,
};
use crate::{
    app::{App, Narrowed},
    canvas::{Canvas, Line},
    figure,
    theme::Role,
};

const KEYS: &str =
    "esc back   j/k decision   enter why   f acted, refused, reason, pool   n this node   e csv   +/- time   ? help";
const NARROW_KEYS: &str = "esc back  j/k  enter why  f acted  n this node  +/- zoom  e csv  ? help";
/// Pools that have a lane.
const LANES: usize = 6;

pub(super) fn draw(app: &mut App, canvas: &mut Canvas<'_>, area: Rect, now_ms: u64) -> &'static str {
    let is_wide = area.width >= WIDE;
    let keys = if is_wide { KEYS } else { NARROW_KEYS };
    title(app, canvas, line_of(area, 0), now_ms, &summary(app, is_wide));
    let body = below(area, 1);
    if app.timeline.records.is_empty() {
        let lines = figure::wrapped(&app.timeline.note, usize::from(body.width) - 2);
        for (at, line) in (1..).zip(lines) {
            canvas.text(body.x + 1, body.y + at, body.right(), Role::Secondary, &line);
        }
        return keys;
    }
    let used = lanes(app, canvas, body, is_wide);
    let list = below(body, used);
    let columns = columns(area.width);
    let what_room = columns
        .iter()
        .find(|column| column.title == "WHAT")
        .map_or(0, |column| column.width);
    let now = app.now(now_ms).unwrap_or_default();
    let timeline = &mut app.timeline;
    let (records, shown) = (&timeline.records, &timeline.shown);
    let is_ascii = canvas.is_ascii();
    let row = |at: usize| -> Vec<Cell> {
        let record = &records[shown[at]];
        let acted = if record.is_refused() { Role::Warn } else { Role::Good };
        let mut cells = vec![
            (Role::Plain, when(record.time, now, is_wide)),
            (Role::Command, record.id.short(4)),
            (acted, record.word().to_owned()),
            (Role::Plain, figure::cut_end(&what(record), what_room, is_ascii)),
        ];
        if is_wide {
            cells.push((Role::Plain, record.reason.clone()));
            cells.push((Role::Plain, record.pool.clone()));
            cells.push((Role::Plain, figure::grouped(record.pod_count as u128)));
        }
        cells.push((Role::Plain, money(record)));
        cells
    };
    app.page = table::draw(canvas, list, &columns, &mut timeline.cursor, shown.len(), row);
    app.hits.list = below(list, 1);
    app.hits.top = timeline.cursor.top;
    keys
}

fn columns(width: u16) -> Vec<table::Column> {
    let width = usize::from(width) - 1;
    let mut columns = vec![left("TIME", 9), left("ID", 5), left("ACTION", 10)];
    let rest = if width >= usize::from(WIDE) - 1 {
        vec![left("REASON", 13), left("POOL", 11), right("PODS", 4), right("$/MO", 7)]
    } else {
        vec![right("$/MO", 8)]
    };
    let used: usize = columns.iter().chain(&rest).map(|column| column.width + 1).sum();
    columns.push(left("WHAT", width.saturating_sub(used + 1)));
    columns.extend(rest);
    columns
}

fn when(time: Timestamp, now: Timestamp, is_wide: bool) -> String {
    let is_today = time.to_zoned(TimeZone::UTC).date() == now.to_zoned(TimeZone::UTC).date();
    if is_wide && is_today {
        figure::clock(time)
    } else {
        figure::moment(time, now)
    }
}

fn summary(app: &App, is_wide: bool) -> Line {
    let timeline = &app.timeline;
    let (mut acted, mut saved) = (0, Dollars::ZERO);
    for record in shown(app).filter(|record| record.is_acted()) {
        acted += 1;
        let is_move = record.action != Action::Launch;
        let delta = record.money.filter(|_| is_move).map(|money| money.delta().monthly());
        saved += delta.map(figure::of_ledger).unwrap_or_default();
    }
    let all = timeline.shown.len();
    let of = figure::span(timeline.span_s);
    let back = match timeline.back_s {
        0 => format!("last {of}"),
        back => format!("{of} until {} ago", figure::span(back)),
    };
    let mut line = Line::default();
    line.add(Role::Heading, "decisions");
    line.add(Role::Plain, format!(", {back}: {all}, {acted} acted"));
    if is_wide {
        line.add(Role::Plain, format!(", {} refused or aborted", all - acted));
    }
    if app.choices.has_prices {
        line.add(Role::Plain, format!(", moves {}/mo", figure::signed(saved)));
    }
    line.add(
        Role::Plain,
        match &timeline.narrowed {
            Narrowed::All => String::new(),
            Narrowed::Acted => "; only acted".to_owned(),
            Narrowed::Refused => "; only refused".to_owned(),
            Narrowed::Reason(reason) => format!("; only {reason}"),
            Narrowed::Pool(pool) => format!("; only pool {pool}"),
        },
    );
    if !app.filters[2].is_empty() {
        line.add(Role::Plain, format!("; filter {}", app.filters[2]));
    }
    line
}

fn shown(app: &App) -> impl DoubleEndedIterator<Item = &Record> {
    let timeline = &app.timeline;
    timeline.shown.iter().filter_map(|at| timeline.records.get(*at))
}

/// Where times are on a lane.
#[derive(Clone, Copy)]
struct Scale {
    label: usize,
    width: usize,
    end: Timestamp,
    span_s: i64,
}

impl Scale {
    fn column(self, time: Timestamp) -> Option<usize> {
        let age = self.end.duration_since(time).as_secs().max(0);
        let from_left = self.span_s.checked_sub(age).filter(|left| *left >= 0)?;
        let last = self.width.saturating_sub(1);
        let at = usize::try_from(from_left).ok()? * last / usize::try_from(self.span_s.max(1)).ok()?;
        Some(at.min(last))
    }
}

/// The lanes, the times below them and what the signs mean; returns how many lines that took.
fn lanes(app: &App, canvas: &mut Canvas<'_>, area: Rect, is_wide: bool) -> u16 {
    let Some(end) = end(app) else {
        return 0;
    };
    let mut pools: Vec<&str> = shown(app).map(pool).collect();
    pools.sort_unstable();
    pools.dedup();
    let label = pools.iter().map(|pool| pool.len()).max().unwrap_or(4).clamp(4, 14);
    let scale = Scale {
        label,
        width: usize::from(area.width).saturating_sub(label + 4).max(10),
        end,
        span_s: app.timeline.span_s,
    };
    let mut y = 0;
    for name in pools.iter().take(LANES) {
        // Oldest first, so that what is newest is on top.
        let records = shown(app).rev().filter(|record| pool(record) == *name);
        lane(canvas, line_of(area, y), name, records, scale);
        y += 1;
    }
    if pools.len() > LANES {
        let more = format!("and {} more pools", pools.len() - LANES);
        canvas.text(area.x + 1, area.y + y, area.right(), Role::Secondary, &more);
        y += 1;
    }
    times(canvas, line_of(area, y), scale);
    y += 1;
    if is_wide {
        let legend = if canvas.is_ascii() {
            "L launch  R replace  D delete  I interrupted  o refused  / aborted"
        } else {
            "▲ launch  ◆ replace  ▼ delete  ✕ interrupted  ○ refused  ⊘ aborted"
        };
        canvas.text(area.x + 1, area.y + y, area.right(), Role::Secondary, legend);
        y += 1;
    }
    y
}

fn lane<'r>(canvas: &mut Canvas<'_>, place: Rect, name: &str, records: impl Iterator<Item = &'r Record>, scale: Scale) {
    let is_ascii = canvas.is_ascii();
    let line = if is_ascii { '-' } else { '─' };
    let mut signs = vec![(line, Role::Secondary); scale.width];
    for record in records {
        if let Some(at) = scale.column(record.time) {
            signs[at] = sign(record, is_ascii);
        }
    }
    let mut text = Line::default();
    let name = if name.is_empty() { "-" } else { name };
    text.left(Role::Plain, name, scale.label, is_ascii)
        .add(Role::Plain, " ");
    for (sign, role) in signs {
        text.add(role, sign);
    }
    canvas.line(place.x + 1, place.y, place.right(), &text);
}

fn times(canvas: &mut Canvas<'_>, place: Rect, scale: Scale) {
    let column = |at: usize| place.x + 2 + u16::try_from(scale.label + at).unwrap_or_default();
    for quarter in 0..=3_i64 {
        let age = SignedDuration::from_secs(scale.span_s * (4 - quarter) / 4);
        let Ok(time) = scale.end.checked_sub(age) else {
            continue;
        };
        let x = column(scale.width * usize::try_from(quarter).unwrap_or_default() / 4);
        let text = figure::moment(time, scale.end);
        canvas.text(x, place.y, place.right(), Role::Secondary, &text);
    }
    let now: Line = (Role::Secondary, figure::moment(scale.end, scale.end)).into();
    canvas.line_to(place.y, column(scale.width), &now);
}

/// Where the window ends.
fn end(app: &App) -> Option<Timestamp> {
    let newest = app.timeline.records.first().map(|record| record.time);
    let now = app.picture.as_ref().map(|picture| picture.taken_at).max(newest)?;
    now.checked_sub(SignedDuration::from_secs(app.timeline.back_s)).ok()
}

fn pool(record: &Record) -> &str {
    record.pool.split(',').next().unwrap_or_default()
}

fn sign(record: &Record, is_ascii: bool) -> (char, Role) {
    let (sign, plain, role) = match (record.action, record.phase, record.reason.as_str()) {
        (Action::Refuse | Action::Keep, ..) => ('○', 'o', Role::Warn),
        (_, Phase::Aborted, _) => ('⊘', '/', Role::Stop),
        (_, _, "Interrupted") => ('✕', 'I', Role::Stop),
        (Action::Launch, ..) => ('▲', 'L', Role::Good),
        (Action::Replace | Action::Reboot, ..) => ('◆', 'R', Role::Command),
        (Action::Delete, ..) => ('▼', 'D', Role::Spot),
    };
    (if is_ascii { plain } else { sign }, role)
}

/// What a month costs more or less by it; in brackets what is forgone.
pub(super) fn money(record: &Record) -> String {
    if let Some(money) = record.money.filter(|_| !record.is_refused()) {
        let month = figure::of_ledger(money.delta().monthly());
        let sign = if month.0 > 0 { "+" } else { "" };
        return format!("{sign}{}", figure::plain(month));
    }
    match record.forgone_usd_h.filter(|_| record.is_refused()) {
        Some(forgone) => format!("({})", figure::plain(figure::of_ledger(forgone.monthly()))),
        None => "-".to_owned(),
    }
}

/// What happened, in a few words.
pub(crate) fn what(record: &Record) -> String {
    ledger::words::what(record, figure::short_name)
}
