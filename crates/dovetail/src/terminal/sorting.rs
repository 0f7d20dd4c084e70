//! By which column are rows sorted, if somebody asks?

use std::{cmp::Ordering, sync::Mutex};

/// A column to sort by. It lives as long as the process, and remembers which columns it was shown.
#[derive(Debug)]
pub(crate) struct Sorting {
    column: String,
    is_descending: bool,
    titles: Mutex<Vec<String>>,
}

impl Sorting {
    /// A column as people write it: the title, in any case; with `-` the greatest come first.
    #[expect(clippy::unnecessary_wraps, reason = "the signature clap asks for")]
    pub(crate) fn parsed(text: &str) -> Result<&'static Self, String> {
        Ok(Box::leak(Box::new(Self::new(text))))
    }

    fn new(text: &str) -> Self {
        Self {
            column: folded(text.trim_start_matches('-')),
            is_descending: text.starts_with('-'),
            titles: Mutex::default(),
        }
    }

    /// The position of the column among titles.
    pub(super) fn among<'a>(&self, titles: impl Iterator<Item = &'a str>) -> Option<usize> {
        let titles: Vec<String> = titles.map(str::to_owned).collect();
        let found = titles.iter().position(|title| folded(title) == self.column);
        if let Ok(mut seen) = self.titles.lock() {
            seen.extend(titles);
        }
        found
    }

    /// The columns there were, if the one asked for was not among them.
    pub(crate) fn unknown(&self) -> Option<(String, Vec<String>)> {
        let mut seen = self.titles.lock().ok()?.clone();
        let is_known = seen.iter().any(|title| folded(title) == self.column);
        seen.dedup();
        (!is_known).then(|| (self.column.clone(), seen))
    }

    /// How two cells of the column stand.
    pub(super) fn order(&self, a: &str, b: &str) -> Ordering {
        let order = match (number(a), number(b)) {
            (Some(a), Some(b)) => a.total_cmp(&b),
            // What is no number, such as a dash for nothing, comes before numbers.
            (Some(_), None) => Ordering::Greater,
            (None, Some(_)) => Ordering::Less,
            (None, None) => a.cmp(b),
        };
        if self.is_descending { order.reverse() } else { order }
    }
}

/// A title without what people do not type.
fn folded(title: &str) -> String {
    let letters = title.chars().filter(|sign| sign.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// The number in a cell: `4,101`, `$5.62`, `(423)`, `██░ 88.9%`.
fn number(cell: &str) -> Option<f64> {
    let last = cell.split_whitespace().next_back()?;
    let plain: String = last.chars().filter(|sign| !"$,%()+".contains(*sign)).collect();
    plain.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_known_by_its_title_in_any_case() {
        let sorting = Sorting::new("-$/mo");
        assert_eq!(sorting.among(["POOL", "$/H", "$/MO"].into_iter()), Some(2));
        assert_eq!(sorting.unknown(), None);
        let other = Sorting::new("price");
        assert_eq!(other.among(["POOL"].into_iter()), None);
        assert_eq!(other.unknown(), Some(("price".to_owned(), vec!["POOL".to_owned()])));
    }

    #[test]
    fn numbers_are_compared_as_numbers_whatever_is_around_them() {
        let up = Sorting::new("x");
        for (less, more) in [
            ("9", "10"),
            ("4,101", "18,039"),
            ("$5.62", "$24.71"),
            ("██░ 88.9%", "██░ 100%"),
            ("-", "0"),
            ("a", "b"),
        ] {
            assert_eq!(up.order(less, more), Ordering::Less, "{less} {more}");
        }
        assert_eq!(Sorting::new("-x").order("9", "10"), Ordering::Greater);
    }
}
