//! A share of a whole as a bar, to an eighth of a sign.

const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// A bar of so many signs, so many of `whole` parts full. More than the whole is full.
pub(crate) fn bar(part: u64, whole: u64, signs: usize, is_ascii: bool) -> String {
    let steps = if is_ascii { 1 } else { 8 };
    let all = signs as u64 * steps;
    let filled = match whole {
        0 => 0,
        _ => u64::try_from((u128::from(part) * u128::from(all) + u128::from(whole) / 2) / u128::from(whole))
            .map_or(all, |filled| filled.min(all)),
    };
    let (full, rest) = (filled / steps, filled % steps);
    let (full_sign, empty_sign) = if is_ascii { ('#', '.') } else { ('█', '░') };
    let partial = EIGHTHS
        .get(usize::try_from(rest).unwrap_or_default())
        .filter(|_| rest > 0);
    let mut bar: String = (0..full).map(|_| full_sign).chain(partial.copied()).collect();
    let drawn = bar.chars().count();
    bar.extend((drawn..signs).map(|_| empty_sign));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_the_share_to_an_eighth_of_a_sign() {
        let cases = [
            (0, 100, "░░░░░░░░░░"),
            (50, 100, "█████░░░░░"),
            (89, 100, "████████▉░"),
            (100, 100, "██████████"),
            (140, 100, "██████████"),
            (5, 0, "░░░░░░░░░░"),
        ];
        for (part, whole, expected) in cases {
            assert_eq!(bar(part, whole, 10, false), expected, "{part} of {whole}");
        }
        assert_eq!(bar(89, 100, 10, true), "#########.");
    }
}
