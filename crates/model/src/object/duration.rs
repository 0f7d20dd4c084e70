//! Durations as Go writes them (`1h30m`), and Karpenter's `Never`.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A length of time in whole nanoseconds, read and written in Go's notation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoDuration {
    nanos: i64,
}

/// Why a text is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid duration {text:?}: write numbers with units such as 30s, 15m or 720h")]
pub struct DurationError {
    text: String,
}

/// Go's units in nanoseconds; the micro sign has two code points.
const UNITS: [(&str, i64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

impl GoDuration {
    /// A duration of whole nanoseconds.
    pub fn from_nanos(nanos: i64) -> Self {
        Self { nanos }
    }

    /// A duration of whole seconds, held at the longest Go can express.
    pub fn from_secs(secs: i64) -> Self {
        Self { nanos: secs.saturating_mul(1_000_000_000) }
    }

    /// The length in nanoseconds.
    pub fn as_nanos(self) -> i64 {
        self.nanos
    }

    /// The length for arithmetic on timestamps.
    pub fn to_signed(self) -> jiff::SignedDuration {
        jiff::SignedDuration::from_nanos(self.nanos)
    }
}

impl FromStr for GoDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        parse(text).map(|nanos| Self { nanos }).ok_or_else(|| DurationError { text: text.into() })
    }
}

fn parse(text: &str) -> Option<i64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut nanos: i128 = 0;
    while !rest.is_empty() {
        let (amount, after) = parse_component(rest)?;
        nanos = nanos.checked_add(amount)?;
        rest = after;
    }
    i64::try_from(sign * nanos).ok()
}

/// One number with its unit; fractions below a nanosecond are cut off, as Go does.
fn parse_component(text: &str) -> Option<(i128, &str)> {
    let (whole, rest) = split_digits(text);
    let (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), split_digits);
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let unit_len = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at_checked(unit_len)?;
    let scale = i128::from(UNITS.iter().find(|(name, _)| *name == unit)?.1);
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    Some((whole.checked_mul(scale)?.checked_add(scale_fraction(fraction, scale)?)?, rest))
}

fn scale_fraction(digits: &str, scale: i128) -> Option<i128> {
    // Go reads a fraction until it no longer fits 63 bits; no unit has more than 13 digits of nanoseconds.
    let digits = digits.get(..digits.len().min(18))?;
    if digits.is_empty() {
        return Some(0);
    }
    let places = u32::try_from(digits.len()).ok()?;
    Some(digits.parse::<i128>().ok()? * scale / 10_i128.pow(places))
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// Go's `Duration.String`: `1h30m0s`, `1.5s`, `250ms`, `0s`.
impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos < 0 {
            f.write_str("-")?;
        }
        let nanos = self.nanos.unsigned_abs();
        match nanos {
            0 => f.write_str("0s"),
            1..1_000 => write!(f, "{nanos}ns"),
            1_000..1_000_000 => write_fraction(f, nanos, 1_000, "µs"),
            1_000_000..1_000_000_000 => write_fraction(f, nanos, 1_000_000, "ms"),
            _ => write_clock(f, nanos),
        }
    }
}

fn write_clock(f: &mut fmt::Formatter<'_>, nanos: u64) -> fmt::Result {
    const MINUTE: u64 = 60_000_000_000;
    let minutes = nanos / MINUTE;
    if minutes >= 60 {
        write!(f, "{}h", minutes / 60)?;
    }
    if minutes > 0 {
        write!(f, "{}m", minutes % 60)?;
    }
    write_fraction(f, nanos % MINUTE, 1_000_000_000, "s")
}

fn write_fraction(f: &mut fmt::Formatter<'_>, value: u64, scale: u64, unit: &str) -> fmt::Result {
    write!(f, "{}", value / scale)?;
    let fraction = value % scale;
    if fraction != 0 {
        let digits = scale.ilog10() as usize;
        let text = format!("{fraction:0digits$}");
        write!(f, ".{}", text.trim_end_matches('0'))?;
    }
    f.write_str(unit)
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// A duration or `Never`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NillableDuration {
    /// It does not happen by time.
    Never,
    /// It happens after this long.
    After(GoDuration),
}

impl Serialize for NillableDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Never => serializer.serialize_str("Never"),
            Self::After(duration) => duration.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for NillableDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        if text == "Never" {
            return Ok(Self::Never);
        }
        text.parse().map(Self::After).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_and_print_as_in_go() {
        let cases = [
            ("720h", 2_592_000_000_000_000, "720h0m0s"),
            ("1h30m", 5_400_000_000_000, "1h30m0s"),
            ("1.5s", 1_500_000_000, "1.5s"),
            ("0", 0, "0s"),
            ("0s", 0, "0s"),
            ("-15m", -900_000_000_000, "-15m0s"),
            ("250ms", 250_000_000, "250ms"),
            ("1.25us", 1_250, "1.25µs"),
            (".5m", 30_000_000_000, "30s"),
            ("100ns", 100, "100ns"),
            ("2h0.001s", 7_200_001_000_000, "2h0m0.001s"),
        ];
        for (text, nanos, printed) in cases {
            let duration: GoDuration = text.parse().unwrap();
            assert_eq!((duration.as_nanos(), duration.to_string()), (nanos, printed.to_string()), "{text}");
        }
    }

    #[test]
    fn nonsense_is_no_duration() {
        for text in ["", "-", "1", "1d", "h", "1h30", "1..5s", ".s", "9999999999h", "Never"] {
            assert!(text.parse::<GoDuration>().is_err(), "{text}");
        }
    }
}
