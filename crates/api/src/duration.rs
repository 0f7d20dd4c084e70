//! Durations as Go reads and prints them, and the two ways our fields carry them.
//!
//! `Duration` is an ordinary one: `60m` comes back as `1h0m0s`. `NillableDuration` may be `Never` and gives back the
//! text it was written in, so GitOps tools see no difference.

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000 * MICROSECOND;
const SECOND: u64 = 1_000 * MILLISECOND;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// The word for a `NillableDuration` that is switched off.
pub const NEVER: &str = "Never";

/// A span of time in nanoseconds, Go's `time.Duration`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(i64);

/// Why a text is not a duration. The wording is Go's, because it reaches users through conditions and events.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Not of the form `1h30m`, or too long for 64 bits of nanoseconds.
    #[error("time: invalid duration {}", quoted(.0))]
    Invalid(String),
    /// A number without a unit.
    #[error("time: missing unit in duration {}", quoted(.0))]
    MissingUnit(String),
    /// A unit that does not exist.
    #[error("time: unknown unit {} in duration {}", quoted(unit), quoted(text))]
    UnknownUnit {
        /// The unit as written.
        unit: String,
        /// The whole text.
        text: String,
    },
}

/// Quotes as Go's time package does: bytes outside printable ASCII become escapes.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            ' '..='\u{7f}' => quoted.push(character),
            _ => {
                let mut bytes = [0; 4];
                let bytes = character.encode_utf8(&mut bytes).bytes();
                quoted.extend(bytes.map(|byte| format!("\\x{byte:02x}")));
            }
        }
    }
    quoted.push('"');
    quoted
}

impl Duration {
    /// From nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// From seconds.
    pub const fn from_secs(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// In nanoseconds, negative for a span into the past.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// As a span jiff can add to an instant.
    pub const fn to_signed(self) -> jiff::SignedDuration {
        jiff::SignedDuration::from_nanos(self.0)
    }
}

impl FromStr for Duration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        let invalid = || DurationError::Invalid(text.to_owned());
        let (negative, mut rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        if rest == "0" {
            return Ok(Self(0));
        }
        if rest.is_empty() {
            return Err(invalid());
        }
        let mut total: u64 = 0;
        while !rest.is_empty() {
            let (nanos, tail) = leading_component(text, rest)?;
            total = total
                .checked_add(nanos)
                .filter(|sum| *sum <= 1 << 63)
                .ok_or_else(invalid)?;
            rest = tail;
        }
        match (negative, i64::try_from(total)) {
            (false, Ok(nanos)) => Ok(Self(nanos)),
            (false, Err(_)) => Err(invalid()),
            (true, nanos) => Ok(Self(nanos.map_or(i64::MIN, |nanos| -nanos))),
        }
    }
}

/// Reads `<number><unit>` from the front of `rest` and returns its nanoseconds and what follows.
fn leading_component<'a>(text: &str, rest: &'a str) -> Result<(u64, &'a str), DurationError> {
    let invalid = || DurationError::Invalid(text.to_owned());
    let (whole, after_whole) = split_digits(rest);
    let (fraction, after_number) = match after_whole.strip_prefix('.') {
        Some(tail) => split_digits(tail),
        None => ("", after_whole),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(invalid());
    }
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().map_err(|_| invalid())?
    };
    let whole = within_63_bits(Some(whole)).ok_or_else(invalid)?;
    let unit_len = after_number
        .find(|c: char| c == '.' || c.is_ascii_digit())
        .unwrap_or(after_number.len());
    let (unit, tail) = after_number.split_at(unit_len);
    let scale = unit_scale(unit, text)?;
    let nanos = within_63_bits(whole.checked_mul(scale)).ok_or_else(invalid)?;
    let nanos = within_63_bits(nanos.checked_add(fraction_of(fraction, scale))).ok_or_else(invalid)?;
    Ok((nanos, tail))
}

/// Go lets a magnitude reach 2^63 at every step, because the sign comes last.
fn within_63_bits(magnitude: Option<u64>) -> Option<u64> {
    magnitude.filter(|magnitude| *magnitude <= 1 << 63)
}

fn unit_scale(unit: &str, text: &str) -> Result<u64, DurationError> {
    match unit {
        "" => Err(DurationError::MissingUnit(text.to_owned())),
        "ns" => Ok(1),
        "us" | "\u{b5}s" | "\u{3bc}s" => Ok(MICROSECOND),
        "ms" => Ok(MILLISECOND),
        "s" => Ok(SECOND),
        "m" => Ok(MINUTE),
        "h" => Ok(HOUR),
        _ => Err(DurationError::UnknownUnit {
            unit: unit.to_owned(),
            text: text.to_owned(),
        }),
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// `0.<digits>` of one unit, in floating point because Go does so and its rounding is part of the contract.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]
fn fraction_of(digits: &str, scale: u64) -> u64 {
    let (mut value, mut divisor) = (0_u64, 1.0_f64);
    for digit in digits.bytes() {
        match value
            .checked_mul(10)
            .and_then(|v| v.checked_add(u64::from(digit - b'0')))
            .filter(|v| *v <= 1 << 63)
        {
            Some(next) => (value, divisor) = (next, divisor * 10.0),
            None => break,
        }
    }
    (value as f64 * (scale as f64 / divisor)) as u64
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.unsigned_abs();
        if self.0 < 0 {
            f.write_str("-")?;
        }
        match nanos {
            0 => f.write_str("0s"),
            1..MICROSECOND => write!(f, "{nanos}ns"),
            MICROSECOND..MILLISECOND => write_decimal(f, nanos, MICROSECOND, "\u{b5}s"),
            MILLISECOND..SECOND => write_decimal(f, nanos, MILLISECOND, "ms"),
            _ => {
                if nanos >= HOUR {
                    write!(f, "{}h", nanos / HOUR)?;
                }
                if nanos >= MINUTE {
                    write!(f, "{}m", nanos % HOUR / MINUTE)?;
                }
                write_decimal(f, nanos % MINUTE, SECOND, "s")
            }
        }
    }
}

/// Writes `nanos` in `unit` with as many decimals as it has and no trailing zero.
fn write_decimal(f: &mut fmt::Formatter<'_>, nanos: u64, scale: u64, unit: &str) -> fmt::Result {
    write!(f, "{}", nanos / scale)?;
    let fraction = nanos % scale;
    if fraction > 0 {
        let width = scale.ilog10() as usize;
        let digits = format!("{fraction:0width$}");
        write!(f, ".{}", digits.trim_end_matches('0'))?;
    }
    f.write_str(unit)
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

/// A span of time, or `Never`. Written back in the words it was read in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NillableDuration(Option<Spelled>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Spelled {
    span: Duration,
    text: String,
}

impl NillableDuration {
    /// The switched-off duration.
    pub const fn never() -> Self {
        Self(None)
    }

    /// A span in words of our own, which must mean the same.
    pub(crate) fn spelled(span: Duration, text: &str) -> Self {
        Self(Some(Spelled {
            span,
            text: text.to_owned(),
        }))
    }

    /// The span, or `None` for `Never`.
    pub fn span(&self) -> Option<Duration> {
        self.0.as_ref().map(|spelled| spelled.span)
    }
}

impl From<Duration> for NillableDuration {
    fn from(span: Duration) -> Self {
        Self(Some(Spelled {
            span,
            text: span.to_string(),
        }))
    }
}

impl FromStr for NillableDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        if text == NEVER {
            return Ok(Self::never());
        }
        Ok(Self(Some(Spelled {
            span: text.parse()?,
            text: text.to_owned(),
        })))
    }
}

impl fmt::Display for NillableDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_ref().map_or(NEVER, |spelled| &spelled.text))
    }
}

impl Serialize for NillableDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for NillableDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

macro_rules! text_schema {
    ($($name:ident),+) => {$(
        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string" })
            }
        }
    )+};
}

text_schema!(Duration, NillableDuration);

#[cfg(test)]
mod tests;
