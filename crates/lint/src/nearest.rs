//! Which of several words was meant.

/// The word that differs least, if it differs little enough to have been meant: by a third of its letters at most.
pub fn nearest<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let ranked = words.into_iter().map(|other| (distance(word, other), other));
    let (distance, found) = ranked.min()?;
    (distance > 0 && distance * 3 <= word.chars().count().max(3)).then_some(found)
}

/// How many letters must be changed, put in or left out.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (at, sign) in from.chars().enumerate() {
        let mut diagonal = at;
        let mut left = at + 1;
        let mut next = vec![left];
        for (other, above) in to.iter().zip(row.iter().skip(1)) {
            let cost = usize::from(*other != sign);
            left = (diagonal + cost).min(above + 1).min(left + 1);
            diagonal = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_with_a_slip_finds_the_one_that_was_meant() {
        let known = ["lint", "plan", "status", "budgets"];
        for (word, meant) in [
            ("lnt", Some("lint")),
            ("staus", Some("status")),
            ("budget", Some("budgets")),
            ("lint", None),
            ("kubectl", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
    }
}
