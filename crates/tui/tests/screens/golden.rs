//! Screens as they are, in files beside this one. `DOVETAIL_WRITE_PAGES=1` writes them, to be looked at before they are
//! kept.

use std::{fs, path::PathBuf};

use tui::{Depth, Look, Place};

use super::fixture::Person;

/// Screens, and the keys that lead to them from the list of nodes.
const SCREENS: [(&str, &str); 16] = [
    ("nodes", ""),
    ("grouped", "b"),
    ("node", "/2-84<enter><enter>"),
    ("pending", "p"),
    ("timeline", "t"),
    ("whatif", "/2-84<enter>x"),
    ("help", "?"),
    ("pools", "2"),
    ("plan", "3"),
    ("yaml", "/2-84<enter>y"),
    ("describe", "/2-84<enter>yd"),
    ("events", "/2-84<enter><enter>e"),
    ("this-node", "tjjjjn"),
    ("this-reason", "tfff"),
    ("all-pools", "p/checkout<enter>a"),
    ("with-the-fix", "p/checkout<enter>f"),
];

#[allow(clippy::disallowed_methods, reason = "how the screens are asked for")]
fn is_asked() -> bool {
    std::env::var("DOVETAIL_WRITE_PAGES").is_ok()
}

fn compare(name: &str, screen: &str) -> Option<String> {
    let kept = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/screens/golden")).join(name);
    let expected = fs::read_to_string(&kept).unwrap_or_default();
    if expected == screen {
        return None;
    }
    if is_asked() {
        fs::write(&kept, screen).unwrap();
        return None;
    }
    Some(format!("{name} differs:\n{screen}"))
}

fn all(suffix: &str, person: impl Fn() -> Person) {
    let mut differing = Vec::new();
    for (name, keys) in SCREENS {
        let mut person = person();
        person.press(keys);
        differing.extend(compare(&format!("{name}-{suffix}.txt"), &person.screen()));
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

#[test]
fn screens_of_120_columns() {
    all("120x40", || Person::new().sized(120, 40));
}

#[test]
fn screens_of_80_columns() {
    all("80x24", || Person::new().sized(80, 24));
}

#[test]
fn screens_in_ascii_hold_nothing_else() {
    all("ascii", || Person::ascii().sized(120, 40));
    for (_, keys) in SCREENS {
        let screen = Person::ascii().sized(120, 40).press(keys).screen();
        let other = screen.chars().find(|sign| !sign.is_ascii());
        assert_eq!(other, None, "{screen}");
    }
}

#[test]
fn what_is_said_when_there_is_nothing_to_show() {
    let small = Person::new().sized(60, 20).screen();
    assert_eq!(small.lines().next(), Some("needs 80×24, has 60×20"));
    let look = Look::best(Depth::Mono, false);
    let mut empty = Person::before(tui::Choices::default(), Place::Live, look).sized(80, 24);
    assert!(empty.screen().contains("reading…"));
}
