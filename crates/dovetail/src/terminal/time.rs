//! Spans of time as people read them.

/// Two units at most: `36s`, `4m 12s`, `1h 26m`, `6d 11h`, `26d`.
pub(crate) fn span(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |large: i64, unit: &str, small: i64, of: &str| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit} {small}{of}"),
    };
    match () {
        () if minutes == 0 => format!("{seconds}s"),
        () if hours == 0 => two(minutes, "m", seconds % 60, "s"),
        () if days == 0 => two(hours, "h", minutes % 60, "m"),
        () if days < 10 => two(days, "d", hours % 24, "h"),
        () => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_two_units_at_most() {
        let cases = [
            (36, "36s"),
            (252, "4m 12s"),
            (300, "5m"),
            (5160, "1h 26m"),
            (558_000, "6d 11h"),
            (26 * 86_400 + 5, "26d"),
            (-4, "0s"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(span(seconds), expected);
        }
    }
}
