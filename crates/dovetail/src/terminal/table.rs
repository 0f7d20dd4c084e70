//! Rows that line up, whatever signs their texts are made of.

use unicode_width::UnicodeWidthStr;

#[cfg(test)]
use super::Sorting;
use super::{Role, Screen, hanging};

/// Which edge of a column is straight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A text and what it means.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) role: Role,
}

impl Cell {
    pub(crate) fn new(role: Role, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            role,
        }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::new(Role::Plain, text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::new(Role::Plain, text)
    }
}

/// A heading and rows.
#[derive(Debug, Default)]
pub(crate) struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Row>,
    /// Whether texts of the last column go on in lines below where the screen ends.
    wraps: bool,
    /// How many rows are shown at most, as they are sorted.
    most: Option<usize>,
}

#[derive(Debug)]
enum Row {
    Cells(Vec<Cell>),
    /// What the others come to: the last, however they are sorted.
    Total(Vec<Cell>),
    /// A line of its own under the row before.
    Line(String),
}

const GAP: usize = 2;

impl Table {
    pub(crate) fn column(&mut self, title: &str, align: Align) {
        self.columns.push((title.to_owned(), align));
    }

    /// Lets texts of the last column, which are sentences, go on below where the screen ends.
    pub(crate) fn wrap_last(&mut self) {
        self.wraps = true;
    }

    /// Shows so many rows at most: the first as they are sorted.
    pub(crate) fn keep(&mut self, most: usize) {
        self.most = Some(most);
    }

    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(Row::Cells(cells));
    }

    pub(crate) fn total(&mut self, cells: Vec<Cell>) {
        self.rows.push(Row::Total(cells));
    }

    pub(crate) fn line(&mut self, line: String) {
        self.rows.push(Row::Line(line));
    }

    /// How many columns of a terminal the rows take.
    pub(crate) fn width(&self) -> usize {
        let widths = self.widths(&self.rows.iter().collect::<Vec<_>>());
        widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
    }

    /// What the columns of some rows take, and their headings.
    fn widths(&self, rows: &[&Row]) -> Vec<usize> {
        let mut widths: Vec<_> = self.columns.iter().map(|(title, _)| title.width()).collect();
        for row in rows {
            if let Row::Cells(cells) | Row::Total(cells) = row {
                for (width, cell) in widths.iter_mut().zip(cells) {
                    *width = (*width).max(cell.text.width());
                }
            }
        }
        widths
    }

    pub(crate) fn render(&self, screen: &Screen) -> String {
        let mut rows = self.sorted(screen);
        rows.truncate(self.most.unwrap_or(usize::MAX));
        let widths = self.widths(&rows);
        let heading = self
            .columns
            .iter()
            .map(|(title, _)| Cell::new(Role::Heading, title.clone()));
        let mut text = if screen.is_headless {
            String::new()
        } else {
            self.render_row(&heading.collect::<Vec<_>>(), &widths, screen)
        };
        for row in rows {
            match row {
                Row::Cells(cells) | Row::Total(cells) => text.push_str(&self.render_row(cells, &widths, screen)),
                Row::Line(line) => text.extend([line.as_str(), "\n"]),
            }
        }
        text
    }

    /// The rows as they come, or sorted by a column; a line stays under its row.
    fn sorted(&self, screen: &Screen) -> Vec<&Row> {
        let titles = self.columns.iter().map(|(title, _)| title.as_str());
        let by = screen
            .sorting
            .and_then(|sorting| Some((sorting, sorting.among(titles)?)));
        let Some((sorting, column)) = by else {
            return self.rows.iter().collect();
        };
        let mut groups: Vec<Vec<&Row>> = Vec::new();
        for row in &self.rows {
            match (row, groups.last_mut()) {
                (Row::Line(_), Some(group)) => group.push(row),
                _ => groups.push(vec![row]),
            }
        }
        let cell = |group: &[&Row]| match group.first() {
            Some(Row::Cells(cells)) => Some(cells.get(column).map_or("", |cell| cell.text.as_str()).to_owned()),
            _ => None,
        };
        groups.sort_by(|a, b| match (cell(a), cell(b)) {
            (Some(a), Some(b)) => sorting.order(&a, &b),
            (a, b) => b.is_some().cmp(&a.is_some()),
        });
        groups.into_iter().flatten().collect()
    }

    fn render_row(&self, cells: &[Cell], widths: &[usize], screen: &Screen) -> String {
        let mut line = String::new();
        let mut pending = 0;
        for (at, ((cell, width), (_, align))) in cells.iter().zip(widths).zip(&self.columns).enumerate() {
            if self.wraps && at + 1 == self.columns.len() && !cell.text.is_empty() {
                line.push_str(&" ".repeat(pending));
                line.push_str(&wrapped(cell, widths, screen));
                continue;
            }
            let room = width - cell.text.width();
            let (before, after) = if *align == Align::Right { (room, 0) } else { (0, room) };
            // Blanks are written only before something, so that no line ends in them.
            if cell.text.is_empty() {
                pending += width + GAP;
                continue;
            }
            line.push_str(&" ".repeat(pending + before));
            line.push_str(&screen.paint(cell.role, &cell.text));
            pending = after + GAP;
        }
        line.push('\n');
        line
    }
}

/// The text of a last column, in as many lines as it takes.
fn wrapped(cell: &Cell, widths: &[usize], screen: &Screen) -> String {
    let before = widths.get(..widths.len().saturating_sub(1)).unwrap_or_default();
    let start = before.iter().sum::<usize>() + GAP * before.len();
    let Some(width) = screen.width else {
        return screen.paint(cell.role, &cell.text);
    };
    let indent = " ".repeat(start);
    let text = hanging(&indent, &cell.text, width);
    let lines = text.lines().map(|line| screen.paint(cell.role, line.trim_start()));
    lines.collect::<Vec<_>>().join(&format!("\n{indent}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> Screen {
        Screen {
            width: Some(80),
            ..Screen::default()
        }
    }

    fn table() -> Table {
        let mut table = Table::default();
        table.column("NAME", Align::Left);
        table.column("PODS", Align::Right);
        table.column("CPU", Align::Left);
        table.row(vec!["späti-日本".into(), "7".into(), Cell::new(Role::Fill(90), "█▉░")]);
        table.line("  below".into());
        table.row(vec!["b".into(), String::new().into(), String::new().into()]);
        table
    }

    #[test]
    fn columns_line_up_by_what_signs_take_on_a_screen() {
        let expected = "NAME        PODS  CPU\nspäti-日本     7  █▉░\n  below\nb\n";
        assert_eq!(table().render(&plain()), expected);
        assert_eq!(table().width(), 21);
    }

    #[test]
    fn rows_are_sorted_by_a_column_with_their_lines_and_the_total_stays_last() {
        let mut table = Table::default();
        table.column("NAME", Align::Left);
        table.column("$/MO", Align::Right);
        for (name, money) in [("a", "1,000"), ("b", "-"), ("c", "90")] {
            table.row(vec![name.into(), money.into()]);
            table.line(format!("  of {name}"));
        }
        table.total(vec!["all".into(), "1,090".into()]);
        let names = |by: &str| {
            let screen = Screen {
                sorting: Sorting::parsed(by).ok(),
                is_headless: true,
                ..plain()
            };
            let text = table.render(&screen);
            let firsts = text
                .lines()
                .map(|line| line.trim_start().split(' ').next().unwrap_or_default().to_owned());
            firsts.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names("$/mo"), "b of c of a of all");
        assert_eq!(names("-$/mo"), "a of c of b of all");
        assert_eq!(names("colour"), "a of b of c of all");
    }

    #[test]
    fn colour_does_not_move_a_column() {
        let coloured = table().render(&Screen {
            has_colour: true,
            ..plain()
        });
        assert!(coloured.contains("7  \u{1b}[34m█▉░\u{1b}[0m\n"), "{coloured}");
    }
}
