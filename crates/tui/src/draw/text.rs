//! An answer in words, as the command line gives it, that can be scrolled.

use ratatui_core::layout::Rect;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{below, line_of, title as top};
use crate::{
    answer::{Answer, Question},
    app::App,
    canvas::{Canvas, Line},
    figure,
    theme::Role,
};

const KEYS: &str = "esc back   j/k pgup pgdn scroll   c copy   : ask   ? help";
const OBJECT_KEYS: &str = "esc back  j/k scroll  y yaml  d describe  e events  c copy  ? help";
/// Columns of the names in front, where an object is described.
const NAMES: usize = 15;

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
    let width = usize::from(body.width).saturating_sub(2);
    let lines = match question {
        Question::Object { is_described, .. } => text
            .lines()
            .flat_map(|line| folded(line, width, if *is_described { NAMES } else { indent(line) + 2 }))
            .collect(),
        _ => figure::wrapped(&text, width),
    };
    let room = usize::from(body.height);
    app.page = room;
    app.scroll = app.scroll.min(lines.len().saturating_sub(room));
    for (at, line) in (0..).zip(lines.iter().skip(app.scroll).take(room)) {
        canvas.rows += 1;
        let line = match (role, question) {
            (Role::Plain, Question::Object { is_described, .. }) => of_object(line, *is_described),
            (Role::Plain, Question::Events { .. }) => (said(line), line.clone()).into(),
            (Role::Plain, _) => (shade(line), line.clone()).into(),
            (role, _) => (role, line.clone()).into(),
        };
        canvas.line(body.x + 1, body.y + at, body.right(), &line);
    }
    if question.object().is_some() { OBJECT_KEYS } else { KEYS }
}

/// How far in the text of a line begins.
fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches([' ', '-']).len()
}

/// A long line on several, the others so far in. Blanks stay as they are: columns of objects mean something.
fn folded(line: &str, width: usize, hang: usize) -> Vec<String> {
    let hang = " ".repeat(hang.min(width / 2));
    let (mut lines, mut rest) = (Vec::new(), line.to_owned());
    while rest.width() > width {
        let mut used = 0;
        let fits = rest.char_indices().find(|(_, sign)| {
            used += sign.width().unwrap_or_default();
            used > width
        });
        let most = fits.map_or(rest.len(), |(at, _)| at);
        // At a blank where there is one beyond the indent; what has none is cut.
        let blank = rest[..most].rfind(' ').filter(|at| *at > hang.len());
        let after = rest.split_off(blank.unwrap_or(most));
        lines.push(std::mem::replace(&mut rest, format!("{hang}{}", after.trim_start())));
    }
    lines.push(rest);
    lines
}

/// A line of an object: names in one colour, what they are in another.
fn of_object(line: &str, is_described: bool) -> Line {
    if line.starts_with('#') {
        return (Role::Secondary, line.to_owned()).into();
    }
    let at = if is_described {
        line.char_indices().nth(NAMES).map_or(line.len(), |(at, _)| at)
    } else {
        key_end(line)
    };
    if is_described && line.contains("  Warning  ") {
        return (Role::Warn, line.to_owned()).into();
    }
    let (name, value) = line.split_at(at);
    let mut parts = Line::default();
    parts.add(Role::Command, name).add(Role::Plain, value);
    parts
}

/// Where the key of a line of YAML ends; at its beginning where it has none.
fn key_end(line: &str) -> usize {
    let key = line.trim_start_matches([' ', '-']);
    let start = line.len() - key.len();
    let end = key.find(": ").or_else(|| key.strip_suffix(':').map(str::len));
    match end {
        // A text may hold a colon; keys have neither blanks nor quotes around them.
        Some(end) if !key[..end].contains([' ', '"', '\'']) => start + end + 1,
        _ => 0,
    }
}

/// Warnings among events.
fn said(line: &str) -> Role {
    if line.contains("  Warning  ") {
        Role::Warn
    } else {
        Role::Plain
    }
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

#[cfg(test)]
mod tests {
    use super::{folded, key_end};

    #[test]
    fn a_long_line_goes_on_below_its_beginning_and_always_ends() {
        assert_eq!(folded("Name:   a  long one", 14, 4), ["Name:   a ", "    long one"]);
        assert_eq!(folded("結合結合結合結合", 9, 2), ["結合結合", "  結合結", "  合"]);
        assert_eq!(folded("", 9, 2), [""]);
    }

    #[test]
    fn the_key_of_a_line_ends_at_its_colon_and_texts_have_none() {
        let cases = [
            ("  name: a", 7),
            ("  - key: gpu", 8),
            ("labels:", 7),
            ("  - a text: with a colon", 0),
            ("  message: no: not now", 10),
            ("  - \"x: y\"", 0),
            ("", 0),
        ];
        for (line, end) in cases {
            assert_eq!(key_end(line), end, "{line}");
        }
    }
}
