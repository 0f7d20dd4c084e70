//! In which order nodes are listed, under which headings, and where the cursor is. Made when something changes, never for
//! a frame.

use std::{cmp::Ordering, collections::BTreeMap};

use insight::Dollars;

use crate::{
    ahead::Ahead,
    choice::{Sort, SortKey},
    figure,
    filter::Filter,
    picture::{Picture, Row},
};

/// What nodes are put together by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Group {
    #[default]
    Off,
    Pool,
    Zone,
    Type,
}

impl Group {
    pub(crate) fn following(self) -> Self {
        match self {
            Self::Off => Self::Pool,
            Self::Pool => Self::Zone,
            Self::Zone => Self::Type,
            Self::Type => Self::Off,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Pool => "pool",
            Self::Zone => "zone",
            Self::Type => "type",
        }
    }

    fn of(self, row: &Row) -> String {
        let text = match self {
            Self::Off => return String::new(),
            Self::Pool => &row.node.pool,
            Self::Zone => &row.node.zone,
            Self::Type => &row.node.instance_type,
        };
        text.clone().unwrap_or_else(|| "none".to_owned())
    }
}

/// A line of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A heading, and the rows under it.
    Group(String, Vec<usize>),
    /// A row of the picture.
    Row(usize),
}

/// Lines in their order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Listing {
    pub(crate) entries: Vec<Entry>,
    /// How many nodes are among them.
    pub(crate) shown: usize,
}

impl Listing {
    /// Puts the nodes of a picture in order.
    pub(crate) fn of(picture: &Picture, ahead: Option<&Ahead>, filter: &Filter, sort: &Sort, group: Group) -> Self {
        let now = picture.taken_at;
        let mut rows: Vec<usize> = (0..picture.rows.len())
            .filter(|at| filter.takes(&picture.rows[*at], ahead, now))
            .collect();
        rows.sort_by(|a, b| {
            let (a, b) = (&picture.rows[*a], &picture.rows[*b]);
            let order = compared(a, b, ahead, &sort.key);
            let order = if sort.is_reversed { order.reverse() } else { order };
            order.then_with(|| a.node.name.cmp(&b.node.name))
        });
        let shown = rows.len();
        if group == Group::Off {
            let entries = rows.into_iter().map(Entry::Row).collect();
            return Self { entries, shown };
        }
        let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for at in rows {
            groups.entry(group.of(&picture.rows[at])).or_default().push(at);
        }
        let entries = groups.into_iter().flat_map(|(name, rows)| {
            let lines: Vec<Entry> = rows.iter().copied().map(Entry::Row).collect();
            std::iter::once(Entry::Group(name, rows)).chain(lines)
        });
        Self {
            entries: entries.collect(),
            shown,
        }
    }

    /// What each line is called, so that the cursor finds it again.
    pub(crate) fn names<'p>(&'p self, picture: &'p Picture) -> impl Iterator<Item = &'p str> {
        self.entries.iter().map(|entry| match entry {
            Entry::Group(name, _) => name.as_str(),
            Entry::Row(at) => picture.rows.get(*at).map_or("", |row| row.node.name.as_str()),
        })
    }
}

fn compared(a: &Row, b: &Row, ahead: Option<&Ahead>, key: &SortKey) -> Ordering {
    let price = |row: &Row| row.node.usd_h.unwrap_or_default();
    let dearest = || price(b).cmp(&price(a));
    match key {
        SortKey::Next => rank(a, ahead).cmp(&rank(b, ahead)).then_with(dearest),
        SortKey::Price => dearest(),
        SortKey::Cpu => figure::per_mille(a.node.cpu_m).cmp(&figure::per_mille(b.node.cpu_m)),
        SortKey::Memory => figure::per_mille(a.node.memory_mib).cmp(&figure::per_mille(b.node.memory_mib)),
        SortKey::Creation => a.created.cmp(&b.created),
        SortKey::Name => a.node.name.cmp(&b.node.name),
        SortKey::Pods => b.node.pods.cmp(&a.node.pods),
        SortKey::Label(label) => a.labels.get(label).cmp(&b.labels.get(label)),
    }
}

/// What goes comes first, then what is worth money and held, then what waits, then the rest.
fn rank(row: &Row, ahead: Option<&Ahead>) -> (u8, Dollars) {
    let Some(next) = ahead.and_then(|ahead| ahead.next(&row.node.name)) else {
        return (9, Dollars::ZERO);
    };
    let worth =
        Dollars(0) - Dollars(i128::try_from(next.usd_mo.unwrap_or_default().0.unsigned_abs()).unwrap_or(i128::MAX));
    (next.kind as u8, worth)
}

/// Where one is in a list: on which line, and which is the first that shows. It follows its object, not its line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) at: usize,
    pub(crate) top: usize,
    pub(crate) name: String,
    /// Somebody put it there. Until then it is on the first line, whatever that is.
    pub(crate) is_held: bool,
}

impl Cursor {
    /// Finds its object again in a list that may have changed; stays on the line if it is gone.
    pub(crate) fn settle<'n>(&mut self, names: impl Iterator<Item = &'n str>) {
        let names: Vec<&str> = names.collect();
        if !self.is_held {
            self.at = 0;
            self.name.clear();
        }
        let is_there = names.get(self.at).is_some_and(|name| *name == self.name);
        if !is_there {
            let is_named = !self.name.is_empty();
            let found = names.iter().position(|name| is_named && *name == self.name);
            self.at = found.unwrap_or(self.at).min(names.len().saturating_sub(1));
        }
        self.name = names.get(self.at).map(ToString::to_string).unwrap_or_default();
    }

    /// Moves by so many lines.
    pub(crate) fn move_by<'n>(&mut self, by: isize, names: impl Iterator<Item = &'n str>) {
        self.at = self.at.saturating_add_signed(by);
        self.name.clear();
        self.is_held = true;
        self.settle(names);
    }

    /// The first line that shows, so that the cursor does.
    pub(crate) fn scroll(&mut self, height: usize, lines: usize) {
        let height = height.max(1);
        self.top = self.top.min(lines.saturating_sub(height));
        if self.at < self.top {
            self.top = self.at;
        } else if self.at >= self.top + height {
            self.top = self.at + 1 - height;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_follows_its_object_and_not_its_line() {
        let mut cursor = Cursor::default();
        cursor.settle(["a", "b", "c"].into_iter());
        cursor.settle(["b", "a", "c"].into_iter());
        assert_eq!(cursor.name, "b", "until somebody moves it, it is on the first line");
        cursor.settle(["a", "b", "c"].into_iter());
        cursor.move_by(1, ["a", "b", "c"].into_iter());
        assert_eq!((cursor.at, cursor.name.as_str()), (1, "b"));
        cursor.settle(["z", "a", "b"].into_iter());
        assert_eq!((cursor.at, cursor.name.as_str()), (2, "b"));
        cursor.settle(["z", "a"].into_iter());
        assert_eq!(
            (cursor.at, cursor.name.as_str()),
            (1, "a"),
            "it is gone: the line stays"
        );
        cursor.settle([].into_iter());
        assert_eq!((cursor.at, cursor.name.as_str()), (0, ""));
    }

    #[test]
    fn the_line_of_the_cursor_shows() {
        let mut cursor = Cursor {
            at: 30,
            ..Cursor::default()
        };
        cursor.scroll(10, 100);
        assert_eq!(cursor.top, 21);
        cursor.at = 5;
        cursor.scroll(10, 100);
        assert_eq!(cursor.top, 5);
        cursor.scroll(10, 6);
        assert_eq!(cursor.top, 0, "a list that became short shows from its beginning");
    }
}
