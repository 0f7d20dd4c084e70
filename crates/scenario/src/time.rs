//! Times as stories write them: `90s`, `5m`, `1h30m`.

use std::{fmt::Write, time::Duration};

/// Reads a time.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a time; write it as 90s, 5m or 1h30m");
    let (mut total, mut number) = (Duration::ZERO, String::new());
    if text.is_empty() {
        return Err(wrong());
    }
    for sign in text.chars() {
        if sign.is_ascii_digit() {
            number.push(sign);
            continue;
        }
        let count: u64 = number.parse().map_err(|_| wrong())?;
        let unit = match sign {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            _ => return Err(wrong()),
        };
        total += Duration::from_secs(count.checked_mul(unit).ok_or_else(wrong)?);
        number.clear();
    }
    if number.is_empty() { Ok(total) } else { Err(wrong()) }
}

/// Writes a time, the largest units first.
pub(crate) fn text(time: Duration) -> String {
    let seconds = time.as_secs();
    let parts = [(seconds / 3600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    let mut text = String::new();
    for (count, unit) in parts.into_iter().filter(|(count, _)| *count > 0) {
        let _ = write!(text, "{count}{unit}");
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written_in_one_form() {
        for (written, seconds) in [("90s", 90), ("5m", 300), ("1h30m", 5400), ("2d", 172_800)] {
            assert_eq!(parse(written), Ok(Duration::from_secs(seconds)));
        }
        assert_eq!(text(Duration::from_secs(5430)), "1h30m30s");
        for wrong in ["", "5", "m", "5 m", "-1m", "5x"] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
