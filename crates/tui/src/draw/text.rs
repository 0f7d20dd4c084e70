//! An answer in words, as the command line gives it, that can be scrolled.

use ratatui_core::layout::Rect;

use super::{below, line_of, title as top};
use crate::{
    answer::{Answer, Question},
    app::App,
    canvas::{Canvas, Line},
    figure,
    theme::Role,
};

const KEYS: &str = "esc back   j/k pgup pgdn scroll   c copy   : ask   ? help";

pub(super) fn draw(
    app: &mut App,
    canvas: &mut Canvas<'_>,
    area: Rect,
    now_ms: u64,
    title: &str,
    question: &Question,
) -> &'static str {
    let line: Line = (Role::Heading, title.to_owned()).into();
    top(app, canvas, line_of(area, 0), now_ms, &line);
    let body = below(area, 2);
    let (role, text) = match app.answer(question, now_ms) {
        Ok(Answer::Text(text)) => (Role::Plain, text.clone()),
        Ok(Answer::Failed(text)) => (Role::Stop, text.clone()),
        Ok(_) => (Role::Plain, String::new()),
        Err(wait) => (Role::Secondary, wait.to_owned()),
    };
    if app.is_stale(now_ms) {
        let note = "from the last snapshot, which is stale";
        canvas.text(area.x + 1, area.y + 1, area.right(), Role::Warn, note);
    }
    let lines = figure::wrapped(&text, usize::from(body.width).saturating_sub(2));
    let room = usize::from(body.height);
    app.page = room;
    app.scroll = app.scroll.min(lines.len().saturating_sub(room));
    for (at, line) in (0..).zip(lines.iter().skip(app.scroll).take(room)) {
        canvas.rows += 1;
        let role = if role == Role::Plain { shade(line) } else { role };
        canvas.text(body.x + 1, body.y + at, body.right(), role, line);
    }
    KEYS
}

/// Lines of a patch, and lines about where the answer comes from, are not like the others.
fn shade(line: &str) -> Role {
    match line.trim_start().chars().next() {
        Some('+') => Role::Good,
        Some('-') if line.starts_with(' ') => Role::Stop,
        _ if line.starts_with("source ") || line.starts_with("assumed ") => Role::Secondary,
        _ => Role::Plain,
    }
}
