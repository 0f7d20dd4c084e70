//! In which zone are times printed? In what somebody asks for, on a terminal in its own, in a pipe in UTC.

use std::{fs, path::Path};

use jiff::{SignedDuration, Timestamp, Zoned, tz::TimeZone};

/// A zone for printed times. It lives as long as the process, so that whatever is drawn on can be copied.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Zone(Option<&'static TimeZone>);

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Zone {}

/// Where the system says which zone it is in.
const LOCAL: &str = "/etc/localtime";

impl Zone {
    /// A zone as people write it: `America/New_York`, `UTC`, `local`.
    pub(crate) fn parsed(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("local") {
            return Ok(Self::local(None));
        }
        Self::named(text)
            .ok_or_else(|| format!("{text:?} is no time zone: write UTC, local, or one such as Europe/Berlin"))
    }

    fn named(name: &str) -> Option<Self> {
        if ["UTC", "Z", ""].contains(&name) {
            return Some(Self(None));
        }
        let zone = disruption::zone_named(name)?;
        Some(Self(Some(Box::leak(Box::new(zone)))))
    }

    /// The zone of the terminal: what `TZ` says, or else the system; UTC where neither is known.
    pub(crate) fn local(variable: Option<&str>) -> Self {
        if let Some(name) = variable {
            return Self::named(name.trim_start_matches(':')).unwrap_or_default();
        }
        let target = fs::read_link(Path::new(LOCAL)).unwrap_or_default();
        let target = target.to_string_lossy();
        let name = target.split_once("zoneinfo/").map(|(_, name)| name);
        name.and_then(Self::named).unwrap_or_default()
    }

    fn name(self) -> &'static str {
        self.0.and_then(TimeZone::iana_name).unwrap_or("UTC")
    }

    /// A time as clocks there show it.
    pub(crate) fn at(self, time: Timestamp) -> Zoned {
        time.to_zoned(self.0.cloned().unwrap_or(TimeZone::UTC))
    }

    /// `15:41` today, `Tue 03:00` within a week, `16 Nov 14:03` otherwise.
    pub(crate) fn moment(self, time: Timestamp, now: Timestamp) -> String {
        self.written(time, now, "%H:%M")
    }

    /// The same, with seconds today.
    pub(crate) fn to_the_second(self, time: Timestamp, now: Timestamp) -> String {
        self.written(time, now, "%H:%M:%S")
    }

    fn written(self, time: Timestamp, now: Timestamp, today: &str) -> String {
        let (then, here) = (self.at(time), self.at(now));
        let away = time.duration_since(now).abs();
        let format = if then.date() == here.date() {
            today
        } else if away < SignedDuration::from_hours(7 * 24) {
            "%a %H:%M"
        } else {
            "%-d %b %H:%M"
        };
        then.strftime(format).to_string()
    }

    /// The moment with the zone it is in: `Tue 03:00 UTC`.
    pub(crate) fn said(self, time: Timestamp, now: Timestamp) -> String {
        format!("{} {}", self.moment(time, now), self.short(time))
    }

    /// What the zone is called then: `UTC`, `EST`.
    pub(crate) fn short(self, time: Timestamp) -> String {
        match self.0 {
            None => "UTC".to_owned(),
            Some(_) => self.at(time).strftime("%Z").to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-11-16T15:42:00Z";

    #[test]
    fn a_moment_says_no_more_of_its_day_than_is_needed() {
        let now: Timestamp = NOW.parse().unwrap();
        let cases = [
            ("2026-11-16T15:47:00Z", "15:47"),
            ("2026-11-17T03:00:00Z", "Tue 03:00"),
            ("2026-12-01T14:03:00Z", "1 Dec 14:03"),
        ];
        for (time, expected) in cases {
            assert_eq!(Zone::default().moment(time.parse().unwrap(), now), expected);
        }
        assert_eq!(Zone::default().to_the_second(now, now), "15:42:00");
    }

    #[test]
    fn times_are_those_of_the_zone_and_name_it() {
        let (now, opens): (Timestamp, Timestamp) = (NOW.parse().unwrap(), "2026-11-17T03:00:00Z".parse().unwrap());
        let new_york = Zone::parsed("America/New_York").unwrap();
        assert_eq!(new_york.said(opens, now), "22:00 EST", "it is still Monday there");
        assert_eq!(Zone::parsed("UTC").unwrap().said(opens, now), "Tue 03:00 UTC");
        assert!(Zone::parsed("Mars/Olympus").unwrap_err().contains("Europe/Berlin"));
        assert_eq!(Zone::local(Some("Asia/Tokyo")).short(now), "JST");
        assert_eq!(Zone::local(Some("nowhere")), Zone::default());
    }
}
