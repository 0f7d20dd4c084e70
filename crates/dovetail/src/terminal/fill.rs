//! How full something is: a bar where there is room for one, and always the number.

use super::{Cell, Role, Screen, bar};

/// A bar of so many signs and a share in percent with one place; only the number where no bars are drawn.
pub(crate) fn filled(part: u64, whole: u64, signs: usize, screen: &Screen) -> Cell {
    let Some(per_mille) = per_mille(part, whole) else {
        return "-".into();
    };
    let role = Role::Fill(u32::try_from(per_mille / 10).unwrap_or(u32::MAX));
    let number = format!("{:>3}.{}%", per_mille / 10, per_mille % 10);
    if signs == 0 || !screen.has_bars() {
        return Cell::new(role, number.trim_start());
    }
    Cell::new(role, format!("{} {}", bar(part, whole, signs, screen.is_ascii), number))
}

/// Thousandths; none of nothing.
fn per_mille(part: u64, whole: u64) -> Option<u64> {
    (u128::from(part) * 1000 + u128::from(whole) / 2)
        .checked_div(u128::from(whole))
        .and_then(|share| u64::try_from(share).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_bar_and_a_number_or_in_a_pipe_the_number() {
        let screen = |width| Screen {
            width,
            is_ascii: true,
            ..Screen::default()
        };
        assert_eq!(filled(797, 1000, 10, &screen(Some(80))).text, "########..  79.7%");
        assert_eq!(filled(797, 1000, 10, &screen(None)).text, "79.7%");
        assert_eq!(filled(1, 0, 10, &screen(None)).text, "-");
    }
}
