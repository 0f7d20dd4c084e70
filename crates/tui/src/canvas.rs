//! A place on the screen to write on: text with a meaning, cut where the place ends.

use ratatui_core::{buffer::Buffer, layout::Rect};
use unicode_width::UnicodeWidthStr;

use crate::{
    figure,
    theme::{Look, Role},
};

/// A screen, or a part of it.
pub(crate) struct Canvas<'b> {
    pub(crate) buffer: &'b mut Buffer,
    pub(crate) look: Look,
    /// Rows of lists that were made for this frame.
    pub(crate) rows: usize,
}

/// Pieces of text in one line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line {
    pieces: Vec<(Role, String)>,
}

impl Line {
    /// Adds a piece.
    pub(crate) fn add(&mut self, role: Role, text: impl Into<String>) -> &mut Self {
        self.pieces.push((role, text.into()));
        self
    }

    /// Adds a piece that is cut or filled up to so many columns.
    pub(crate) fn left(&mut self, role: Role, text: &str, width: usize, is_ascii: bool) -> &mut Self {
        let text = figure::cut(text, width, is_ascii);
        let blanks = width.saturating_sub(text.width());
        self.add(role, text).add(Role::Plain, " ".repeat(blanks))
    }

    /// The same with a straight right edge.
    pub(crate) fn right(&mut self, role: Role, text: &str, width: usize, is_ascii: bool) -> &mut Self {
        let text = figure::cut(text, width, is_ascii);
        let blanks = width.saturating_sub(text.width());
        self.add(Role::Plain, " ".repeat(blanks)).add(role, text)
    }

    /// How many columns it takes.
    pub(crate) fn width(&self) -> usize {
        self.pieces.iter().map(|(_, text)| text.width()).sum()
    }
}

impl From<(Role, String)> for Line {
    fn from(piece: (Role, String)) -> Self {
        Self { pieces: vec![piece] }
    }
}

impl Canvas<'_> {
    pub(crate) fn is_ascii(&self) -> bool {
        self.look.is_ascii
    }

    /// Writes a text; returns the column after it.
    pub(crate) fn text(&mut self, x: u16, y: u16, right: u16, role: Role, text: &str) -> u16 {
        let area = self.buffer.area;
        let right = right.min(area.right());
        if y >= area.bottom() || x >= right {
            return x;
        }
        let style = self.look.style(role);
        let room = usize::from(right - x);
        let (after, _) = if self.look.is_ascii {
            self.buffer.set_stringn(x, y, plain_signs(text), room, style)
        } else {
            self.buffer.set_stringn(x, y, text, room, style)
        };
        after
    }

    /// Writes a line.
    pub(crate) fn line(&mut self, x: u16, y: u16, right: u16, line: &Line) -> u16 {
        line.pieces
            .iter()
            .fold(x, |x, (role, text)| self.text(x, y, right, *role, text))
    }

    /// Writes a line that ends at a column.
    pub(crate) fn line_to(&mut self, y: u16, right: u16, line: &Line) {
        let width = u16::try_from(line.width()).unwrap_or(u16::MAX);
        self.line(right.saturating_sub(width), y, right, line);
    }

    /// `── title ─────────`.
    pub(crate) fn rule(&mut self, area: Rect, title: &str) {
        let sign = if self.look.is_ascii { "-" } else { "─" };
        let text = format!("{sign}{sign} {title} ");
        let x = self.text(area.x, area.y, area.right(), Role::Secondary, &text);
        let rest = usize::from(area.right().saturating_sub(x));
        self.text(x, area.y, area.right(), Role::Secondary, &sign.repeat(rest));
    }

    /// A frame with a title; returns what is inside.
    pub(crate) fn frame(&mut self, area: Rect, title: &str, foot: &str) -> Rect {
        let [h, v, tl, tr, bl, br] = if self.look.is_ascii {
            ["-", "|", "+", "+", "+", "+"]
        } else {
            ["─", "│", "┌", "┐", "└", "┘"]
        };
        let (left, right) = (area.x, area.right());
        let inner = usize::from(area.width).saturating_sub(2);
        let blank = " ".repeat(inner);
        let bottom = area.bottom().saturating_sub(1);
        self.text(
            left,
            area.y,
            right,
            Role::Plain,
            &format!("{tl}{}{tr}", h.repeat(inner)),
        );
        self.text(left + 2, area.y, right, Role::Heading, &format!(" {title} "));
        for y in area.y + 1..bottom {
            self.text(left, y, right, Role::Plain, &format!("{v}{blank}{v}"));
        }
        self.text(
            left,
            bottom,
            right,
            Role::Plain,
            &format!("{bl}{}{br}", h.repeat(inner)),
        );
        let mut end = Line::default();
        end.add(Role::Secondary, format!(" {foot} "));
        self.line_to(bottom, right.saturating_sub(5), &end);
        Rect::new(
            area.x + 2,
            area.y + 1,
            area.width.saturating_sub(4),
            area.height.saturating_sub(2),
        )
    }

    /// Dims everything that is there.
    pub(crate) fn dim(&mut self) {
        let area = self.buffer.area;
        let style = self.look.style(Role::Secondary);
        self.buffer.set_style(area, style);
    }
}

/// The text in ASCII, sign for sign where there is one that looks alike.
fn plain_signs(text: &str) -> String {
    text.chars()
        .map(|sign| match sign {
            ' '..='~' => sign,

            '·' | '│' => '|',
            '─' | '–' => '-',
            '→' => '>',
            '█' | '▉' | '▊' | '▋' | '▌' | '▍' | '▎' | '▏' => '#',
            '░' | '…' => '.',
            '×' => 'x',
            '↑' => '^',
            '↓' => 'v',
            _ => '?',
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use ratatui_core::buffer::Cell;

    use super::*;
    use crate::theme::Depth;

    fn drawn(is_ascii: bool, draw: impl FnOnce(&mut Canvas<'_>)) -> Vec<String> {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 16, 3));
        let mut canvas = Canvas {
            buffer: &mut buffer,
            look: Look::best(Depth::Mono, is_ascii),
            rows: 0,
        };
        draw(&mut canvas);
        let cells = buffer.content().chunks(16);
        cells.map(|row| row.iter().map(Cell::symbol).collect()).collect()
    }

    #[test]
    fn text_ends_where_its_place_ends_and_control_signs_do_not_get_out() {
        let lines = drawn(false, |canvas| {
            canvas.text(2, 0, 8, Role::Plain, "longer than that");
            canvas.text(0, 1, 16, Role::Plain, "a\u{1b}[31mb");
            canvas.text(0, 9, 16, Role::Plain, "below the screen");
        });
        assert_eq!(lines[0].trim_end(), "  longer");
        assert_eq!(lines[1].trim_end(), "a[31mb");
    }

    #[test]
    fn a_frame_has_its_title_and_in_ascii_no_other_signs() {
        let lines = drawn(true, |canvas| {
            let inside = canvas.frame(Rect::new(0, 0, 16, 3), "keys", "esc");
            canvas.text(inside.x, inside.y, inside.right(), Role::Plain, "a → b");
        });
        assert_eq!(lines, ["+- keys -------+", "| a > b        |", "+----- esc ----+"]);
    }
}
