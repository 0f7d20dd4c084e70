//! When is it time? Schedules of CronJobs: minute, hour, day, month, weekday.

use jiff::{Timestamp, ToSpan, tz::TimeZone};

/// A schedule.
#[derive(Debug, PartialEq)]
pub(super) struct Cron {
    minutes: Vec<i8>,
    hours: Vec<i8>,
    days: Vec<i8>,
    months: Vec<i8>,
    weekdays: Vec<i8>,
    /// A day of the month or a weekday suffices where both are given.
    is_either: bool,
}

impl Cron {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = match text.trim() {
            "@hourly" => "0 * * * *",
            "@daily" | "@midnight" => "0 0 * * *",
            "@weekly" => "0 0 * * 0",
            "@monthly" => "0 0 1 * *",
            "@yearly" | "@annually" => "0 0 1 1 *",
            other => other,
        };
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields.as_slice() else {
            return None;
        };
        let mut weekdays = numbers(weekday, 0, 7, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"], 0)?;
        for day in &mut weekdays {
            *day %= 7;
        }
        let months = [
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ];
        Some(Self {
            minutes: numbers(minute, 0, 59, &[], 0)?,
            hours: numbers(hour, 0, 23, &[], 0)?,
            days: numbers(day, 1, 31, &[], 0)?,
            months: numbers(month, 1, 12, &months, 1)?,
            weekdays,
            is_either: !day.starts_with('*') && !weekday.starts_with('*'),
        })
    }

    /// The first time after another, within five years.
    pub(super) fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let minute = after.as_second().div_euclid(60) + 1;
        let mut at = Timestamp::from_second(minute * 60).ok()?.to_zoned(zone.clone());
        let end = at.checked_add(5.years()).ok()?;
        while at < end {
            let date = at.date();
            let by_day = self.days.contains(&date.day());
            let by_weekday = self.weekdays.contains(&date.weekday().to_sunday_zero_offset());
            let is_day = if self.is_either {
                by_day || by_weekday
            } else {
                by_day && by_weekday
            };
            if !self.months.contains(&date.month()) || !is_day {
                at = at.start_of_day().ok()?.checked_add(1.day()).ok()?.start_of_day().ok()?;
            } else if !self.hours.contains(&at.hour()) {
                at = at.checked_add((60 - i64::from(at.minute())).minutes()).ok()?;
            } else if self.minutes.contains(&at.minute()) {
                return Some(at.timestamp());
            } else {
                at = at.checked_add(1.minute()).ok()?;
            }
        }
        None
    }
}

fn numbers(field: &str, least: i8, most: i8, names: &[&str], first: i8) -> Option<Vec<i8>> {
    let number = |text: &str| {
        let named = names.iter().position(|name| text.to_lowercase() == *name);
        match named {
            Some(at) => i8::try_from(at).ok().map(|at| at + first),
            None => text.parse().ok(),
        }
    };
    let mut all = Vec::new();
    for part in field.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, step.parse::<usize>().ok().filter(|step| *step > 0)?),
            None => (part, 1),
        };
        let (from, to) = match range.split_once('-') {
            Some((from, to)) => (number(from)?, number(to)?),
            None if range == "*" || range == "?" => (least, most),
            None => {
                let from = number(range)?;
                (from, if part.contains('/') { most } else { from })
            }
        };
        if from < least || to > most || from > to {
            return None;
        }
        all.extend((from..=to).step_by(step));
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_tell_the_next_time() {
        let cases = [
            ("*/15 * * * *", "2026-01-01T00:15:00Z"),
            ("30 2 * * *", "2026-01-01T02:30:00Z"),
            ("0 0 * * mon", "2026-01-05T00:00:00Z"),
            ("0 12 13 * 5", "2026-01-02T12:00:00Z"),
            ("0 0 29 feb *", "2028-02-29T00:00:00Z"),
            ("@hourly", "2026-01-01T01:00:00Z"),
        ];
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        for (text, expected) in cases {
            let next = Cron::parse(text).unwrap().next(start, &TimeZone::UTC).unwrap();
            assert_eq!(next.to_string(), expected, "{text}");
        }
        assert_eq!(Cron::parse("61 * * * *"), None);
        assert_eq!(Cron::parse("* * *"), None);
    }
}
