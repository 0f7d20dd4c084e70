//! One line of the log: as JSON for machines, or coloured for people.

use std::fmt::Write;

use jiff::{Timestamp, tz::TimeZone};
use serde_json::Value;
use tracing::{Level, Metadata};

use super::fields::Fields;

/// What a line says.
pub(super) struct Line<'a> {
    pub(super) level: Level,
    pub(super) time: Timestamp,
    /// Where in the code it comes from.
    pub(super) place: Option<String>,
    pub(super) commit: &'a str,
    pub(super) fields: &'a Fields,
}

/// Where in the code: the file with its folder, and the line.
pub(super) fn place(metadata: &Metadata<'_>) -> Option<String> {
    let file = metadata.file()?;
    let short = match file.rmatch_indices('/').nth(1) {
        Some((at, _)) => file.get(at + 1..)?,
        None => file,
    };
    Some(format!("{short}:{}", metadata.line()?))
}

impl Line<'_> {
    /// zap's JSON, with the keys in zap's order.
    pub(super) fn json(&self) -> String {
        let mut out = String::from("{");
        member(&mut out, "level", &self.level.as_str().into());
        member(&mut out, "time", &time(self.time, "%Y-%m-%dT%H:%M:%S%.3fZ").into());
        member(&mut out, "logger", &"controller".into());
        if let Some(place) = &self.place {
            member(&mut out, "caller", &place.as_str().into());
        }
        member(&mut out, "message", &self.fields.message().into());
        if !self.commit.is_empty() {
            member(&mut out, "commit", &self.commit.into());
        }
        for (name, value) in self.fields.nested() {
            member(&mut out, name, &value);
        }
        out.push_str("}\n");
        out
    }

    /// For people: the time of day, the level, the message, and the fields.
    pub(super) fn text(&self, is_coloured: bool) -> String {
        let paint = |colour: &str, text: &str| {
            if is_coloured {
                format!("\x1b[{colour}m{text}\x1b[0m")
            } else {
                text.to_owned()
            }
        };
        let colour = match self.level {
            Level::ERROR => "31",
            Level::WARN => "33",
            Level::INFO => "32",
            _ => "34",
        };
        let time = paint("2", &time(self.time, "%H:%M:%S%.3f"));
        let level = paint(colour, &format!("{:<5}", self.level.as_str()));
        let mut out = format!("{time} {level} {}", self.fields.message());
        for (name, value) in self.fields.named() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let _ = write!(out, " {}{value}", paint("2", &format!("{name}=")));
        }
        if let Some(place) = &self.place {
            let _ = write!(out, " {}", paint("2", place));
        }
        out.push('\n');
        out
    }
}

fn time(time: Timestamp, format: &str) -> String {
    time.to_zoned(TimeZone::UTC).strftime(format).to_string()
}

fn member(out: &mut String, name: &str, value: &Value) {
    if out.len() > 1 {
        out.push(',');
    }
    let _ = write!(out, "{}:{value}", Value::from(name));
}
