//! What an hour costs, exact: whole pico-dollars, so that plans are compared without floats.

use std::{fmt, iter::Sum, ops::Add, str::FromStr};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Visitor},
};

/// Pico-dollars in a dollar.
const DOLLAR: u64 = 1_000_000_000_000;
/// Decimals of a dollar that are kept.
const DECIMALS: usize = 12;

/// US dollars per hour, in whole pico-dollars; sums stop at the largest price (18 million dollars an hour).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Price(u64);

/// A text that is no price.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a price: write dollars per hour as a decimal from 0 to 18000000, for example 0.0761")]
pub struct PriceError(String);

/// A text that does not change a price.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a price adjustment: write a difference such as +0.01 or -0.01, or a percentage such as -10%")]
pub struct AdjustmentError(String);

impl Price {
    /// Costs nothing.
    pub const ZERO: Self = Self(0);
    /// The largest price there is.
    pub const MAX: Self = Self(u64::MAX);

    /// A price in pico-dollars per hour.
    pub const fn from_picos(picos: u64) -> Self {
        Self(picos)
    }

    /// The price in pico-dollars per hour.
    pub const fn picos(self) -> u64 {
        self.0
    }

    /// The nearest price to a float; none for what is no amount of money.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "the cast saturates, and the range was checked"
    )]
    pub fn from_f64(dollars: f64) -> Option<Self> {
        (dollars >= 0.0 && dollars.is_finite()).then_some(Self((dollars * DOLLAR as f64).round() as u64))
    }

    /// The price after a NodeOverlay's adjustment, a difference (`+0.01`) or a percentage (`-10%`); never below zero.
    pub fn adjusted(self, change: &str) -> Result<Self, AdjustmentError> {
        let refuse = || AdjustmentError(change.to_owned());
        let (digits, sign) = match change.split_at_checked(1) {
            Some(("+", digits)) => (digits, 1),
            Some(("-", digits)) => (digits, -1),
            _ => return Err(refuse()),
        };
        let amount = |digits| decimal(digits).map(|picos| i128::from(picos) * sign).ok_or_else(refuse);
        let price = i128::from(self.0);
        let difference = match digits.strip_suffix('%') {
            Some(percent) => divide_to_nearest(price * amount(percent)?, 100 * i128::from(DOLLAR)),
            None => amount(digits)?,
        };
        Ok(Self(u64::try_from((price + difference).max(0)).unwrap_or(u64::MAX)))
    }

    /// The exact decimal, in dollars, without a currency sign.
    pub fn to_decimal(self) -> String {
        let (whole, rest) = (self.0 / DOLLAR, self.0 % DOLLAR);
        let decimals = format!("{rest:0DECIMALS$}");
        let decimals = decimals.trim_end_matches('0');
        if decimals.is_empty() {
            whole.to_string()
        } else {
            format!("{whole}.{decimals}")
        }
    }
}

impl FromStr for Price {
    type Err = PriceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        decimal(text).map(Self).ok_or_else(|| PriceError(text.to_owned()))
    }
}

impl Add for Price {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sum for Price {
    fn sum<I: Iterator<Item = Self>>(prices: I) -> Self {
        prices.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("${}", self.to_decimal()))
    }
}

impl Serialize for Price {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_decimal())
    }
}

impl<'de> Deserialize<'de> for Price {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PriceVisitor)
    }
}

struct PriceVisitor;

impl Visitor<'_> for PriceVisitor {
    type Value = Price;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("dollars per hour such as \"0.0761\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Price, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, dollars: u64) -> Result<Price, E> {
        self.visit_str(&dollars.to_string())
    }

    fn visit_f64<E: Error>(self, dollars: f64) -> Result<Price, E> {
        self.visit_str(&dollars.to_string())
    }
}

/// Picos of an unsigned decimal, the thirteenth decimal rounded; none when it is no such number or too large.
fn decimal(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let kept: String = fraction
        .chars()
        .chain("0".repeat(DECIMALS).chars())
        .take(DECIMALS)
        .collect();
    let rounds_up = fraction.as_bytes().get(DECIMALS).is_some_and(|digit| *digit >= b'5');
    let whole = if whole.is_empty() {
        0
    } else {
        whole.parse::<u64>().ok()?
    };
    whole
        .checked_mul(DOLLAR)?
        .checked_add(kept.parse().ok()?)?
        .checked_add(u64::from(rounds_up))
}

fn divide_to_nearest(number: i128, divisor: i128) -> i128 {
    (number + number.signum() * divisor / 2) / divisor
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Price;

    fn price(text: &str) -> Price {
        text.parse().unwrap()
    }

    #[test]
    fn decimal_text_is_read_exactly_and_printed_in_dollars() {
        let cases = [
            ("0", 0, "$0"),
            ("0.0761", 76_100_000_000, "$0.0761"),
            (".5", 500_000_000_000, "$0.5"),
            ("12.", 12_000_000_000_000, "$12"),
            ("0.000000000001", 1, "$0.000000000001"),
            ("0.0000000000004", 0, "$0"),
            ("0.0000000000005", 1, "$0.000000000001"),
            ("98.32000", 98_320_000_000_000, "$98.32"),
        ];
        for (text, picos, printed) in cases {
            assert_eq!(
                (price(text).picos(), price(text).to_string()),
                (picos, printed.to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn text_that_is_no_price_is_refused_by_name() {
        for text in ["", ".", "-1", "+1", "1e3", "$1", "1,5", " 1", "18446745"] {
            let refusal = text.parse::<Price>().unwrap_err().to_string();
            assert!(refusal.starts_with(&format!("\"{text}\" is not a price")), "{refusal}");
        }
    }

    #[test]
    fn floats_round_to_the_nearest_price() {
        let cases = [
            (0.0761, Some(price("0.0761"))),
            (0.1 + 0.2, Some(price("0.3"))),
            (0.0, Some(Price::ZERO)),
            (f64::MAX, Some(Price::MAX)),
            (-0.01, None),
            (f64::NAN, None),
            (f64::INFINITY, None),
        ];
        for (float, expected) in cases {
            assert_eq!(Price::from_f64(float), expected, "{float}");
        }
    }

    #[test]
    fn overlay_adjusts_by_a_difference_or_a_percentage_and_never_below_zero() {
        let cases = [
            ("1.5", "+0.25", "1.75"),
            ("1.5", "-0.25", "1.25"),
            ("1.5", "-2", "0"),
            ("1.5", "+10%", "1.65"),
            ("1.5", "-100%", "0"),
            ("1.5", "-250%", "0"),
            ("0.000000000003", "+50%", "0.000000000005"),
        ];
        for (before, change, after) in cases {
            assert_eq!(price(before).adjusted(change), Ok(price(after)), "{before} {change}");
        }
        for change in ["", "0.5", "10%", "+", "-%", "+x", "é"] {
            assert!(price("1").adjusted(change).is_err(), "{change:?}");
        }
    }

    #[test]
    fn json_gives_a_price_as_text_or_number() {
        let cases = [
            (r#""0.0761""#, r#""0.0761""#),
            ("0.0761", r#""0.0761""#),
            ("3", r#""3""#),
        ];
        for (json, expected) in cases {
            let read: Price = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), expected);
        }
        assert!(serde_json::from_str::<Price>("-1").is_err());
    }

    proptest! {
        #[test]
        fn printed_price_reads_back_as_itself(picos in any::<u64>()) {
            prop_assert_eq!(price(&Price::from_picos(picos).to_decimal()), Price::from_picos(picos));
        }

        #[test]
        fn sums_do_not_depend_on_order(a in any::<u64>(), b in any::<u64>(), c in any::<u64>()) {
            let [a, b, c] = [a, b, c].map(Price::from_picos);
            prop_assert_eq!((a + b) + c, a + (b + c));
            prop_assert_eq!([a, b, c].into_iter().sum::<Price>(), c + b + a);
        }
    }
}
