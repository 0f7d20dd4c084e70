//! A list with headings of which only the lines that show are made.

use ratatui_core::layout::Rect;

use super::{line_of, mark};
use crate::{
    canvas::{Canvas, Line},
    listing::Cursor,
    theme::Role,
};

/// A column: its heading, its width, and which edge is straight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) title: &'static str,
    pub(super) width: usize,
    pub(super) is_right: bool,
}

pub(super) const fn left(title: &'static str, width: usize) -> Column {
    Column {
        title,
        width,
        is_right: false,
    }
}

pub(super) const fn right(title: &'static str, width: usize) -> Column {
    Column {
        title,
        width,
        is_right: true,
    }
}

/// A cell: what it means, and its text.
pub(super) type Cell = (Role, String);

/// Draws headings and the lines that show, each made by `row`; returns how many lines there is room for.
pub(super) fn draw(
    canvas: &mut Canvas<'_>,
    area: Rect,
    columns: &[Column],
    cursor: &mut Cursor,
    lines: usize,
    row: impl Fn(usize) -> Vec<Cell>,
) -> usize {
    let heading: Vec<Cell> = columns
        .iter()
        .map(|column| (Role::Heading, column.title.to_owned()))
        .collect();
    let room = usize::from(area.height.saturating_sub(1));
    canvas.line(
        area.x + 1,
        area.y,
        area.right(),
        &line(columns, &heading, canvas.is_ascii()),
    );
    cursor.scroll(room, lines);
    for (at, index) in (cursor.top..lines).take(room).enumerate() {
        let place = line_of(area, u16::try_from(at + 1).unwrap_or(u16::MAX));
        let cells = row(index);
        canvas.rows += 1;
        let text = line(columns, &cells, canvas.is_ascii());
        canvas.line(place.x + 1, place.y, place.right(), &text);
        if index == cursor.at {
            mark(canvas, place);
        }
    }
    room
}

fn line(columns: &[Column], cells: &[Cell], is_ascii: bool) -> Line {
    let mut line = Line::default();
    for (column, (role, text)) in columns.iter().zip(cells) {
        if column.is_right {
            line.right(*role, text, column.width, is_ascii);
        } else {
            line.left(*role, text, column.width, is_ascii);
        }
        line.add(Role::Plain, " ");
    }
    line
}
