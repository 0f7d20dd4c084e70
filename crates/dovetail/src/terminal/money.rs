//! Amounts as people read them: dollars an hour and a month, thousands, percent.

use insight::Dollars;
use model::{price::Price, words::grouped};

/// Hours of a month, as clouds' calculators count it.
pub(crate) const HOURS_OF_A_MONTH: u64 = 730;
const PICOS: u128 = 1_000_000_000_000;

/// `$0.1374/h`, from a dollar on `$24.71/h`.
pub(crate) fn hourly(price: Price) -> String {
    let picos = u128::from(price.picos());
    let places = if picos < PICOS { 4 } else { 2 };
    format!("${}/h", decimal(picos, places))
}

/// `$18,039/mo`, below ten dollars `$9.12/mo`.
pub(crate) fn monthly(price: Price) -> String {
    format!("${}/mo", month(price))
}

/// A change of a monthly spend with its sign; `-$234` means spend falls.
pub(crate) fn change(before: Price, after: Price) -> String {
    let difference = Price::from_picos(before.picos().abs_diff(after.picos()));
    let sign = if after < before { "-" } else { "+" };
    format!("{sign}${}/mo", month(difference))
}

/// Amounts that may be less than nothing, as people read them.
pub(crate) trait Amount {
    /// `$24.71/h`.
    fn an_hour(self) -> String;
    /// Of a monthly amount: `$18,039`.
    fn whole(self) -> String;
    /// Of a monthly amount, without the sign for dollars: `18,039`.
    fn plain(self) -> String;
    /// Of a monthly change: `-$234`, `+$12`; nothing is `$0`.
    fn signed(self) -> String;
}

impl Amount for Dollars {
    fn an_hour(self) -> String {
        format!("{}{}", if self.0 < 0 { "-" } else { "" }, hourly(self.size()))
    }

    fn whole(self) -> String {
        format!("{}${}", if self.0 < 0 { "-" } else { "" }, rounded(self))
    }

    fn plain(self) -> String {
        format!("{}{}", if self.0 < 0 { "-" } else { "" }, rounded(self))
    }

    fn signed(self) -> String {
        let sign = match self.0 {
            0 => "",
            ..0 => "-",
            _ => "+",
        };
        format!("{sign}${}", rounded(self))
    }
}

/// Whole dollars, below ten with cents.
fn rounded(amount: Dollars) -> String {
    let picos = amount.0.unsigned_abs();
    let places = if picos > 0 && picos < 10 * PICOS { 2 } else { 0 };
    decimal(picos, places)
}

/// `24.71`, below a dollar `0.1374`.
pub(crate) fn per_hour(amount: Dollars) -> String {
    let picos = amount.0.unsigned_abs();
    decimal(picos, if picos < PICOS { 4 } else { 2 })
}

fn month(price: Price) -> String {
    let picos = u128::from(price.picos()) * u128::from(HOURS_OF_A_MONTH);
    let places = if picos < 10 * PICOS { 2 } else { 0 };
    decimal(picos, places)
}

fn decimal(picos: u128, places: usize) -> String {
    let one = 10_u128.pow(u32::try_from(places).unwrap_or_default());
    let rounded = (picos * one + PICOS / 2) / PICOS;
    let whole = grouped(rounded / one);
    if places == 0 {
        whole
    } else {
        format!("{whole}.{:0places$}", rounded % one)
    }
}

/// How much of a whole, in percent with one place; `-` of nothing.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    let per_mille = (u128::from(part) * 1000 + u128::from(whole) / 2) / u128::from(whole);
    format!("{}.{}%", grouped(per_mille / 10), per_mille % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(text: &str) -> Price {
        text.parse().unwrap()
    }

    #[test]
    fn money_has_as_many_places_as_matter() {
        let cases = [
            ("0", "$0.0000/h", "$0.00/mo"),
            ("0.0104", "$0.0104/h", "$7.59/mo"),
            ("0.13744", "$0.1374/h", "$100/mo"),
            ("24.711", "$24.71/h", "$18,039/mo"),
            ("1234.5", "$1,234.50/h", "$901,185/mo"),
        ];
        for (dollars, hour, month) in cases {
            assert_eq!(
                (hourly(price(dollars)), monthly(price(dollars))),
                (hour.into(), month.into())
            );
        }
    }

    #[test]
    fn a_change_has_a_sign() {
        assert_eq!(change(price("1"), price("0.9")), "-$73/mo");
        assert_eq!(change(price("1"), price("1.1")), "+$73/mo");
    }

    #[test]
    fn shares_have_one_place() {
        assert_eq!(
            [percent(797, 1000), percent(1, 3), percent(1, 0)],
            ["79.7%", "33.3%", "-"]
        );
    }
}
