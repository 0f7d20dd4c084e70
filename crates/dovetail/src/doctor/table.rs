//! A checkup for people: how many checks came out how, what is fine in a line each, and every finding in full.

use std::fmt::Write;

use super::{Check, State};
use crate::terminal::{Role, Screen, counted, hanging};

pub(super) fn render(name: &str, checks: &[Check], screen: &Screen) -> String {
    let count = |state: State| checks.iter().filter(|check| check.state == state).count();
    let asked = checks.len() - count(State::Skipped);
    let skipped = match count(State::Skipped) {
        0 => String::new(),
        skipped => format!(", {skipped} not asked"),
    };
    let width = screen.text_width();
    let first = format!(
        "{name}: {}, {} fine, {} stop, {} warn{skipped}. Read-only.",
        counted(asked, "check"),
        count(State::Ok),
        count(State::Stop),
        count(State::Warn),
    );
    let mut text = hanging("", &first, width);
    for state in [State::Ok, State::Stop, State::Warn, State::Skipped] {
        for check in checks.iter().filter(|check| check.state == state) {
            let (word, role) = match state {
                State::Ok => ("ok  ", Role::Good),
                State::Stop => ("stop", Role::Stop),
                State::Warn => ("warn", Role::OnDemand),
                State::Skipped => ("-   ", Role::Secondary),
            };
            let line = hanging(&format!("  {word}  {}  ", check.id), &check.text, width);
            // Painted after it was broken, so that colours take no room.
            text.push_str(&line.replacen(word, &screen.paint(role, word), 1));
            for proof in &check.proof {
                text.push_str(&hanging("             proof  ", proof, width));
            }
            if let Some(fix) = &check.fix {
                for command in &fix.commands {
                    let _ = writeln!(text, "             fix    {command}");
                }
                text.push_str(&hanging("                    safe: ", &fix.safe_because, width));
            }
        }
    }
    text
}
