//! Long text in narrow places: sentences are broken between words, names are cut in the middle.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The text after a first line's start, broken at word ends; further lines are indented as far as that start is wide.
pub(crate) fn hanging(start: &str, text: &str, width: usize) -> String {
    let indent = start.width();
    let room = width.saturating_sub(indent).max(20);
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let used = lines.last().map_or(0, |line| line.width());
        match lines.last_mut() {
            Some(line) if used == 0 => line.push_str(word),
            Some(line) if used + 1 + word.width() <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    format!("{start}{}\n", lines.join(&format!("\n{}", " ".repeat(indent))))
}

/// A name of at most so many columns: both ends stay, because they tell names apart.
pub(crate) fn cut_in_the_middle(name: &str, width: usize, is_ascii: bool) -> String {
    if name.width() <= width {
        return name.to_owned();
    }
    let gap = if is_ascii { ".." } else { "…" };
    let room = width.saturating_sub(gap.width());
    let head = taken(name.chars(), room - room / 3);
    let tail: String = taken(name.chars().rev(), room / 3).chars().rev().collect();
    format!("{head}{gap}{tail}")
}

fn taken(signs: impl Iterator<Item = char>, width: usize) -> String {
    let mut left = width;
    signs
        .take_while(|sign| {
            let needed = sign.width().unwrap_or_default();
            let fits = needed <= left;
            left = left.saturating_sub(needed);
            fits
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_break_between_words_with_a_hanging_indent() {
        let text = hanging("  why  ", "no instance type has enough memory for it", 30);
        assert_eq!(text, "  why  no instance type has\n       enough memory for it\n");
    }

    #[test]
    fn names_are_cut_in_the_middle() {
        let cases = [
            ("storefront", 10, "storefront"),
            ("recommendations-5f6d8-jnmdx", 15, "recommenda…nmdx"),
        ];
        for (name, width, expected) in cases {
            assert_eq!(cut_in_the_middle(name, width, false), expected);
        }
    }
}
