//! Which texts are quantities, and what amount each one means: the reading rules of `k8s.io/apimachinery`.
//!
//! They are laxer than the documented grammar (`k` and `+` read as zero, `1.` as one) and the API server stores what
//! they accept, so they are followed to the letter rather than tidied.

use std::str::FromStr;

use super::{Format, LIMIT, Quantity, UNIT};

/// Binary quantities stop at the largest signed 64-bit number.
const BINARY_LIMIT: i128 = i64::MAX as i128 * UNIT;
/// The decimal exponent of one nano-unit.
const NANO: i64 = -9;

/// A text that is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The text has characters no quantity has, or has them in the wrong place.
    #[error(
        "\"{0}\" is not a quantity: quantities must match the regular expression \
         '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$', for example 500m or 2Gi"
    )]
    Malformed(String),
    /// There is a suffix, but none that scales a number.
    #[error(
        "\"{text}\" is not a quantity: unable to parse quantity's suffix \"{suffix}\", \
         use one of n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent such as e3"
    )]
    Suffix {
        /// The whole text.
        text: String,
        /// The part that was taken for its suffix.
        suffix: String,
    },
    /// There is an exponent, but no digits before it.
    #[error("\"{0}\" is not a quantity: unable to parse numeric part of quantity, write digits before the suffix")]
    NoDigits(String),
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err(QuantityError::Malformed(String::new()));
        }
        let parts = Parts::of(text).ok_or_else(|| QuantityError::Malformed(text.to_owned()))?;
        let scale = Scale::of(parts.suffix).ok_or_else(|| QuantityError::Suffix {
            text: text.to_owned(),
            suffix: parts.suffix.to_owned(),
        })?;
        let (magnitude, format) = match scale {
            Scale::Ten { exponent, .. } if parts.has_no_digits() && exponent < NANO => {
                return Err(QuantityError::NoDigits(text.to_owned()));
            }
            Scale::Ten { exponent, format } => (parts.times_power_of_ten(exponent), format),
            Scale::Two { exponent } => parts.times_power_of_two(exponent),
        };
        Ok(Self::from_nanos(
            if parts.negative { -magnitude } else { magnitude },
            format,
        ))
    }
}

/// A text taken apart: sign, digits before and after the point, suffix.
struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let negative = text.starts_with('-');
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (whole, rest) = split_digits(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
        is_suffix_shaped(suffix).then_some(Self {
            negative,
            whole,
            fraction,
            suffix,
        })
    }

    fn has_no_digits(&self) -> bool {
        self.whole.is_empty() && self.fraction.is_empty()
    }

    fn digits(&self) -> impl Iterator<Item = i128> {
        self.whole.bytes().chain(self.fraction.bytes()).map(digit)
    }

    /// Nano-units of `digits * 10^exponent`; what is finer than a nano-unit rounds up, so that a request for very
    /// little never becomes a request for nothing.
    fn times_power_of_ten(&self, exponent: i64) -> i128 {
        let count = self.whole.len() + self.fraction.len();
        let shift = exponent.saturating_sub(length(self.fraction)).saturating_sub(NANO);
        let kept = usize::try_from(shift.saturating_add(i64::try_from(count).unwrap_or(i64::MAX))).unwrap_or(0);
        let nanos = self.digits().take(kept).fold(0, append_digit);
        let lost = self.digits().skip(kept).any(|digit| digit != 0);
        shifted_left(nanos + i128::from(lost), shift)
    }

    /// Nano-units of `digits * 2^exponent`, rounded up, and the notation: an amount below one prints as a decimal.
    fn times_power_of_two(&self, exponent: u32) -> (i128, Format) {
        let unit = UNIT << exponent;
        let whole = self.whole.bytes().map(digit).fold(0, append_digit).saturating_mul(unit);
        // From the last digit to the first: rounding up at every step rounds the whole up exactly once.
        let fraction = self
            .fraction
            .bytes()
            .rev()
            .map(digit)
            .fold(0, |nanos, digit| (digit * unit + nanos + 9) / 10);
        let nanos = whole.saturating_add(fraction).min(BINARY_LIMIT);
        let is_small = nanos > 0 && nanos < UNIT;
        (nanos, if is_small { Format::DecimalSi } else { Format::BinarySi })
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn is_suffix_shaped(suffix: &str) -> bool {
    let exponent = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn digit(byte: u8) -> i128 {
    i128::from(byte - b'0')
}

fn append_digit(number: i128, digit: i128) -> i128 {
    number.saturating_mul(10).saturating_add(digit).min(LIMIT)
}

fn length(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}

fn shifted_left(nanos: i128, places: i64) -> i128 {
    let Ok(places) = u32::try_from(places) else {
        return nanos;
    };
    10_i128
        .checked_pow(places)
        .map_or(if nanos == 0 { 0 } else { LIMIT }, |power| nanos.saturating_mul(power))
}

/// What a suffix multiplies by.
enum Scale {
    Ten { exponent: i64, format: Format },
    Two { exponent: u32 },
}

impl Scale {
    fn of(suffix: &str) -> Option<Self> {
        let si = |exponent| {
            Some(Self::Ten {
                exponent,
                format: Format::DecimalSi,
            })
        };
        let binary = |exponent| Some(Self::Two { exponent });
        match suffix {
            "n" => si(-9),
            "u" => si(-6),
            "m" => si(-3),
            "" => si(0),
            "k" => si(3),
            "M" => si(6),
            "G" => si(9),
            "T" => si(12),
            "P" => si(15),
            "E" => si(18),
            "Ki" => binary(10),
            "Mi" => binary(20),
            "Gi" => binary(30),
            "Ti" => binary(40),
            "Pi" => binary(50),
            "Ei" => binary(60),
            _ => Self::exponent(suffix),
        }
    }

    fn exponent(suffix: &str) -> Option<Self> {
        let exponent = suffix.strip_prefix(['e', 'E'])?.parse::<i64>().ok()?;
        Some(Self::Ten {
            exponent,
            format: Format::DecimalExponent,
        })
    }
}
