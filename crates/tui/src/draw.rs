//! A frame: what the screen on top looks like now. Only what is visible is made.

mod cost;
mod head;
mod node;
mod nodes;
mod overlay;
mod pending;
mod plan;
mod pools;
mod table;
mod text;
mod timeline;

use ratatui_core::{buffer::Buffer, layout::Rect};

pub(crate) use self::timeline::what;
use crate::{
    app::{App, Asked, Overlay, Screen},
    canvas::{Canvas, Line},
    theme::Role,
};

/// The least that everything fits on.
const LEAST: (u16, u16) = (80, 24);
/// From here on there is room for two panes.
pub(crate) const WIDE: u16 = 120;

/// What a frame took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drawn {
    /// Rows of lists for which cells were made.
    pub rows: usize,
}

/// Draws a frame at a time in milliseconds of the clock that events have.
pub fn draw(app: &mut App, buffer: &mut Buffer, now_ms: u64) -> Drawn {
    let area = buffer.area;
    let mut canvas = Canvas {
        buffer,
        look: app.look,
        rows: 0,
    };
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let sign = if canvas.is_ascii() { "x" } else { "×" };
        let text = format!(
            "needs {}{sign}{}, has {}{sign}{}",
            LEAST.0, LEAST.1, area.width, area.height
        );
        canvas.text(area.x, area.y, area.right(), Role::Plain, &text);
        return Drawn::default();
    }
    app.hits.headings.clear();
    app.hits.list = Rect::default();
    let inside = Rect::new(area.x, area.y, area.width, area.height - 1);
    let foot = Rect::new(area.x, area.bottom() - 1, area.width, 1);
    let keys = match app.screen().clone() {
        Screen::Nodes => nodes::draw(app, &mut canvas, inside, now_ms),
        Screen::Pools => pools::draw(app, &mut canvas, inside, now_ms),
        Screen::Plan => plan::draw(app, &mut canvas, inside, now_ms),
        Screen::Pending => pending::draw(app, &mut canvas, inside, now_ms),
        Screen::Timeline => timeline::draw(app, &mut canvas, inside, now_ms),
        Screen::Cost => cost::draw(app, &mut canvas, inside, now_ms),
        Screen::Node(name) => node::draw(app, &mut canvas, inside, now_ms, &name),
        Screen::Text { title, question } => text::draw(app, &mut canvas, inside, now_ms, &title, &question),
    };
    footer(app, &mut canvas, foot, now_ms, keys);
    match app.overlay.clone() {
        Some(Overlay::Help) => overlay::help(&mut canvas, area),
        Some(Overlay::WhatIf(names)) => overlay::what_if(app, &mut canvas, area, now_ms, &names),
        None => {}
    }
    Drawn { rows: canvas.rows }
}

/// What is typed, or what was just done, or which keys there are.
fn footer(app: &App, canvas: &mut Canvas<'_>, area: Rect, now_ms: u64, keys: &str) {
    let (x, right) = (area.x, area.right());
    if let Some(prompt) = &app.prompt {
        let (sign, hint) = match prompt.asked {
            Asked::Filter => ("/", "  words  pool=data  cpu<40  $>0.5  age>7d  held  spot  !drifted"),
            Asked::Command => (":", "  status  plan  why pod NAME  whatif --zone-down b  cost  lint"),
        };
        let x = canvas.text(x, area.y, right, Role::Command, sign);
        let x = canvas.text(x, area.y, right, Role::Plain, &prompt.text);
        let x = canvas.text(x, area.y, right, Role::Plain, "_");
        canvas.text(x, area.y, right, Role::Secondary, hint);
        return;
    }
    if let Some(said) = app.said(now_ms) {
        canvas.text(x + 1, area.y, right, Role::Good, said);
        return;
    }
    canvas.text(x + 1, area.y, right, Role::Secondary, keys);
}

/// The top line of a screen: where one is, and how fresh it all is.
pub(crate) fn title(app: &App, canvas: &mut Canvas<'_>, area: Rect, now_ms: u64, title: &Line) {
    let (role, text) = app.freshness(now_ms);
    let mut right = Line::default();
    right.add(role, text);
    if let Some(now) = app.now(now_ms) {
        let zone = if area.width >= WIDE { " UTC" } else { "" };
        right.add(Role::Plain, format!("   {}{zone}", crate::figure::clock(now)));
    }
    right.add(Role::Plain, " ");
    let width = u16::try_from(right.width()).unwrap_or_default();
    let room = area.right().saturating_sub(width + 1);
    canvas.line(area.x + 1, area.y, room, title);
    canvas.line_to(area.y, area.right(), &right);
}

/// A part of an area: the lines from one on.
pub(crate) fn below(area: Rect, lines: u16) -> Rect {
    let lines = lines.min(area.height);
    Rect::new(area.x, area.y + lines, area.width, area.height - lines)
}

/// A line of an area.
pub(crate) fn line_of(area: Rect, at: u16) -> Rect {
    Rect::new(area.x, area.y + at.min(area.height.saturating_sub(1)), area.width, 1)
}

/// Marks the line the cursor is on.
pub(crate) fn mark(canvas: &mut Canvas<'_>, line: Rect) {
    canvas.text(line.x, line.y, line.right(), Role::Plain, ">");
    let style = canvas.look.cursor();
    canvas.buffer.set_style(line, style);
}
