//! When a schedule hits: cron as upstream's parser reads it, five fields or one of the names, in a time zone.

use jiff::{
    SignedDuration, Timestamp,
    civil::{Date, DateTime},
    tz::TimeZone,
};

/// A schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    minute: Field,
    hour: Field,
    day: Field,
    month: Field,
    weekday: Field,
}

/// The values of a field, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Field {
    bits: u64,
    /// It was written as `*` or `?`, without a step.
    is_any: bool,
}

/// Why a schedule cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    /// Not five fields.
    #[error("expected exactly 5 fields, found {0}")]
    Fields(usize),
    /// `@something` that is no name.
    #[error("unrecognized descriptor: {0}")]
    Descriptor(String),
    /// A part of a field that is no number, name or range.
    #[error("failed to parse {0:?}")]
    Part(String),
    /// A range outside the field's values, or backwards.
    #[error("range {0:?} is outside of {1} to {2}")]
    Range(String, u32, u32),
}

/// What a field may hold.
struct Bounds {
    least: u32,
    most: u32,
    names: &'static [&'static str],
}

const MINUTES: Bounds = Bounds {
    least: 0,
    most: 59,
    names: &[],
};
const HOURS: Bounds = Bounds {
    least: 0,
    most: 23,
    names: &[],
};
const DAYS: Bounds = Bounds {
    least: 1,
    most: 31,
    names: &[],
};
const MONTHS: Bounds = Bounds {
    least: 1,
    most: 12,
    names: &[
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ],
};
const WEEKDAYS: Bounds = Bounds {
    least: 0,
    most: 6,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};

/// How far ahead a hit is looked for: a leap day is at most eight years away, upstream looks five.
const MOST_DAYS: i32 = 5 * 366 + 1;

impl Cron {
    /// Reads a schedule.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        let text = text.trim();
        let fields = match text.strip_prefix('@') {
            Some(_) => named(text).ok_or_else(|| CronError::Descriptor(text.to_owned()))?,
            None => text,
        };
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields.as_slice() else {
            return Err(CronError::Fields(fields.len()));
        };
        Ok(Self {
            minute: MINUTES.field(minute)?,
            hour: HOURS.field(hour)?,
            day: DAYS.field(day)?,
            month: MONTHS.field(month)?,
            weekday: WEEKDAYS.field(weekday)?,
        })
    }

    /// The first hit after a time, whole seconds later; none within five years.
    pub fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let start = Timestamp::from_second(after.as_second().checked_add(1)?).ok()?;
        let first = zone.to_datetime(start);
        let mut date = first.date();
        for _ in 0..MOST_DAYS {
            if self.is_on(date) {
                let hit = self.hit_of_day(date, start, zone);
                if hit.is_some() {
                    return hit;
                }
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    /// A day matches by both its fields, or by either when both are restricted.
    fn is_on(&self, date: Date) -> bool {
        if !self.month.has(u32::from(date.month().unsigned_abs())) {
            return false;
        }
        let day = self.day.has(u32::from(date.day().unsigned_abs()));
        let weekday = u32::from(date.weekday().to_sunday_zero_offset().unsigned_abs());
        let weekday = self.weekday.has(weekday);
        if self.day.is_any || self.weekday.is_any {
            day && weekday
        } else {
            day || weekday
        }
    }

    fn hit_of_day(&self, date: Date, start: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        for hour in (0..24_i8).filter(|hour| self.hour.has(u32::from(hour.unsigned_abs()))) {
            for minute in (0..60_i8).filter(|minute| self.minute.has(u32::from(minute.unsigned_abs()))) {
                let time: DateTime = date.at(hour, minute, 0, 0);
                let hit = zone.to_ambiguous_timestamp(time).compatible().ok()?;
                if hit >= start {
                    return Some(hit);
                }
            }
        }
        None
    }

    /// Whether a time is within `duration` of a hit. A schedule that never hits counts as always on, as upstream's does.
    pub fn is_active(&self, now: Timestamp, duration: SignedDuration, zone: &TimeZone) -> bool {
        let since = now.saturating_sub(duration).unwrap_or(now);
        self.next(since, zone).is_none_or(|hit| hit <= now)
    }
}

fn named(text: &str) -> Option<&'static str> {
    Some(match text {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => return None,
    })
}

impl Field {
    fn has(self, value: u32) -> bool {
        self.bits >> value & 1 == 1
    }
}

impl Bounds {
    fn field(&self, text: &str) -> Result<Field, CronError> {
        let mut field = Field { bits: 0, is_any: false };
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let range = self.range(part)?;
            field.bits |= range.bits;
            field.is_any |= range.is_any;
        }
        Ok(field)
    }

    fn range(&self, part: &str) -> Result<Field, CronError> {
        let unreadable = || CronError::Part(part.to_owned());
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step.parse::<u32>().map_err(|_| unreadable())?)),
            None => (part, None),
        };
        let (low, high) = range
            .split_once('-')
            .map_or((range, None), |(low, high)| (low, Some(high)));
        let is_any = low == "*" || low == "?";
        let (start, end) = if is_any {
            (self.least, self.most)
        } else {
            let start = self.value(low).ok_or_else(unreadable)?;
            let end = match (high, step) {
                (Some(high), _) => self.value(high).ok_or_else(unreadable)?,
                (None, Some(_)) => self.most,
                (None, None) => start,
            };
            (start, end)
        };
        let step = step.unwrap_or(1);
        if start < self.least || end > self.most || start > end || step == 0 {
            return Err(CronError::Range(part.to_owned(), self.least, self.most));
        }
        let steps = (start..=end).step_by(usize::try_from(step).unwrap_or(usize::MAX));
        Ok(Field {
            bits: steps.fold(0, |bits, value| bits | 1 << value),
            is_any: is_any && step == 1,
        })
    }

    fn value(&self, text: &str) -> Option<u32> {
        let name = text.to_lowercase();
        let named = self.names.iter().position(|known| *known == name);
        match named {
            Some(at) => u32::try_from(at).ok().map(|at| at + self.least),
            None => text.parse().ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn next(cron: &str, after: &str) -> String {
        let hit = Cron::parse(cron).unwrap().next(at(after), &TimeZone::UTC);
        hit.map_or_else(|| "never".to_owned(), |hit| hit.to_string())
    }

    #[test]
    fn hits_are_found_as_upstreams_parser_finds_them() {
        let cases = [
            ("@hourly", "2026-11-16T10:00:00Z", "2026-11-16T11:00:00Z"),
            ("@daily", "2026-11-16T10:00:00Z", "2026-11-17T00:00:00Z"),
            ("@midnight", "2026-11-15T23:59:59Z", "2026-11-16T00:00:00Z"),
            ("@weekly", "2026-11-16T10:00:00Z", "2026-11-22T00:00:00Z"),
            ("@monthly", "2026-11-16T10:00:00Z", "2026-12-01T00:00:00Z"),
            ("@yearly", "2026-11-16T10:00:00Z", "2027-01-01T00:00:00Z"),
            ("@annually", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
            ("*/15 * * * *", "2026-11-16T10:07:30Z", "2026-11-16T10:15:00Z"),
            ("5/20 * * * *", "2026-11-16T10:26:00Z", "2026-11-16T10:45:00Z"),
            ("0 9-17/4 * * mon-fri", "2026-11-13T17:00:00Z", "2026-11-16T09:00:00Z"),
            ("0 0 1,15 JAN,feb ?", "2026-11-16T10:00:00Z", "2027-01-01T00:00:00Z"),
            // Both restricted: either matches. One a star: both must.
            ("0 0 13 * 5", "2026-11-14T00:00:00Z", "2026-11-20T00:00:00Z"),
            ("0 0 */2 * 5", "2026-11-16T00:00:00Z", "2026-11-17T00:00:00Z"),
            ("0 0 * * 5", "2026-11-16T00:00:00Z", "2026-11-20T00:00:00Z"),
            ("0 0 29 2 *", "2026-11-16T00:00:00Z", "2028-02-29T00:00:00Z"),
            ("0 0 30 2 *", "2026-11-16T00:00:00Z", "never"),
            // A hit at the very second is past, one a fraction of a second away is not.
            ("0 10 * * *", "2026-11-16T10:00:00Z", "2026-11-17T10:00:00Z"),
            ("0 10 * * *", "2026-11-16T09:59:59.5Z", "2026-11-16T10:00:00Z"),
        ];
        for (cron, after, expected) in cases {
            assert_eq!(next(cron, after), expected, "{cron} after {after}");
        }
    }

    #[test]
    fn what_upstreams_parser_refuses_is_refused() {
        for cron in [
            "",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * 32 * *",
            "* * * 13 *",
            "* * * * 7",
            "5-3 * * * *",
            "*/0 * * * *",
            "x * * * *",
            "1-2-3 * * * *",
            "@every 1h",
            "@noon",
            "-1 * * * *",
        ] {
            assert!(Cron::parse(cron).is_err(), "{cron:?}");
        }
    }

    #[test]
    fn a_schedule_is_active_from_its_hit_for_its_duration() {
        let cron = Cron::parse("0 9 * * mon-fri").unwrap();
        let eight_hours = SignedDuration::from_hours(8);
        let cases = [
            ("2026-11-16T08:59:59Z", false),
            ("2026-11-16T09:00:00Z", true),
            ("2026-11-16T16:59:59Z", true),
            ("2026-11-16T17:00:00Z", false),
            ("2026-11-15T10:00:00Z", false),
        ];
        for (now, expected) in cases {
            assert_eq!(cron.is_active(at(now), eight_hours, &TimeZone::UTC), expected, "{now}");
        }
        let hourly = Cron::parse("@hourly").unwrap();
        assert!(hourly.is_active(
            at("2026-11-16T10:30:00Z"),
            SignedDuration::from_hours(2),
            &TimeZone::UTC
        ));
        let never = Cron::parse("0 0 30 2 *").unwrap();
        assert!(never.is_active(at("2026-11-16T10:30:00Z"), eight_hours, &TimeZone::UTC));
    }

    #[test]
    fn a_time_zone_moves_hits_with_its_summer() {
        let zone = crate::budget::zone_named("Europe/Vienna").unwrap();
        let cron = Cron::parse("0 9 * * *").unwrap();
        let hit = |after: &str| cron.next(at(after), &zone).unwrap().to_string();
        assert_eq!(hit("2026-11-16T00:00:00Z"), "2026-11-16T08:00:00Z");
        assert_eq!(hit("2026-07-16T00:00:00Z"), "2026-07-16T07:00:00Z");
    }
}
