//! Times as people read them: so long, or so late.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};

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

/// `15:41` today, `Tue 03:00` within a week, `16 Nov 14:03` otherwise; in UTC.
pub(crate) fn moment(time: Timestamp, now: Timestamp) -> String {
    let (then, today) = (time.to_zoned(TimeZone::UTC), now.to_zoned(TimeZone::UTC));
    let away = time.duration_since(now).abs();
    let format = if then.date() == today.date() {
        "%H:%M"
    } else if away < SignedDuration::from_hours(7 * 24) {
        "%a %H:%M"
    } else {
        "%-d %b %H:%M"
    };
    then.strftime(format).to_string()
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

    #[test]
    fn a_moment_says_no_more_of_its_day_than_is_needed() {
        let now: Timestamp = "2026-11-16T15:42:00Z".parse().unwrap();
        let cases = [
            ("2026-11-16T15:47:00Z", "15:47"),
            ("2026-11-17T03:00:00Z", "Tue 03:00"),
            ("2026-12-01T14:03:00Z", "1 Dec 14:03"),
        ];
        for (time, expected) in cases {
            assert_eq!(moment(time.parse().unwrap(), now), expected);
        }
    }
}
