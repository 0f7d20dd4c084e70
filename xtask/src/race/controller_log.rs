//! How much of the wait is the controller's own? Read from its log, which has the same lines in both controllers.
//!
//! A round begins when its batch window has closed: "found provisionable pod(s)" tells how long the plan took, and each
//! "created nodeclaim" when a claim was there. So a round's own time is its plan, and from then to its last claim.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde::Deserialize;

/// What a controller did in its rounds.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(super) struct Rounds {
    /// How many made claims.
    pub(super) count: usize,
    /// Seconds of all rounds together, without batch windows.
    pub(super) own_s: f64,
}

#[derive(Deserialize)]
struct Line {
    time: Timestamp,
    message: String,
    #[serde(default)]
    duration: String,
}

impl Rounds {
    pub(super) fn read(log: &Path) -> Result<Self> {
        let text = fs::read_to_string(log).with_context(|| format!("reading {}", log.display()))?;
        // Whatever is no line of the controller's own, a warning of a library say, is passed over.
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        Ok(Self::of(lines))
    }

    fn of(lines: impl Iterator<Item = Line>) -> Self {
        let mut rounds = Self::default();
        let mut since: Option<Timestamp> = None;
        for line in lines {
            match (line.message.as_str(), since) {
                ("found provisionable pod(s)", _) => {
                    rounds.count += 1;
                    rounds.own_s += seconds(&line.duration).unwrap_or_default();
                    since = Some(line.time);
                }
                ("created nodeclaim", Some(before)) => {
                    rounds.own_s += line.time.duration_since(before).as_secs_f64().max(0.0);
                    since = Some(line.time);
                }
                _ => {}
            }
        }
        rounds
    }
}

/// A duration as Go and Rust write it: a number and its unit, or several.
fn seconds(text: &str) -> Option<f64> {
    let mut rest = text;
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, unit) = rest.split_at(digits);
        let end = unit.find(|c: char| c.is_ascii_digit()).unwrap_or(unit.len());
        let (unit, next) = unit.split_at(end);
        let scale = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "µs" | "us" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * scale;
        rest = next;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_both_languages_are_read() {
        for (text, expected) in [("1m2.5s", 62.5), ("12.5ms", 0.0125), ("250µs", 0.00025), ("3s", 3.0)] {
            let read = seconds(text).unwrap();
            assert!((read - expected).abs() < 1e-9, "{text}: {read}");
        }
        assert_eq!(seconds("soon"), None);
    }

    #[test]
    fn a_round_is_its_plan_and_its_claims_and_not_the_window_before() {
        let line = |second: &str, message: &str, duration: &str| Line {
            time: format!("2026-11-16T10:00:{second}Z").parse().unwrap(),
            message: message.to_owned(),
            duration: duration.to_owned(),
        };
        let lines = [
            line("01.0", "found provisionable pod(s)", "100ms"),
            line("01.2", "created nodeclaim", ""),
            line("01.5", "created nodeclaim", ""),
            line("02.0", "launched nodeclaim", ""),
            line("09.0", "found provisionable pod(s)", "50ms"),
            line("09.1", "created nodeclaim", ""),
        ];
        let rounds = Rounds::of(lines.into_iter());
        assert_eq!(rounds.count, 2);
        assert!((rounds.own_s - 0.75).abs() < 1e-9, "{rounds:?}");
    }
}
