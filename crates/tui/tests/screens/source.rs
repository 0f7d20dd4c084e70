//! How the screen says how fresh it is, and what it does while the source is away.

use tui::{Choices, Depth, Event, Look, Place};

use super::fixture::{NOW, Person, picture};

#[test]
fn age_is_said_and_becomes_a_warning_and_then_stale() {
    let mut person = Person::new().sized(120, 40);
    assert!(person.line("prod-us").contains("live, 0.4 s old   15:42:00 UTC"));
    person.now = NOW + 9_000;
    assert!(person.line("prod-us").contains("live, 9.4 s old   15:42:09 UTC"));
    person.now = NOW + 40_000;
    assert!(person.line("prod-us").contains("STALE 40s"));
    person.give(Event::Alive);
    assert!(
        person.line("prod-us").contains("live, 0.0 s old"),
        "nothing new is not stale"
    );
}

#[test]
fn a_lost_source_is_named_with_its_next_try_and_its_return() {
    let mut person = Person::new().sized(120, 40);
    let lost = |why: &str| Event::Lost {
        why: why.to_owned(),
        next_try_s: 4,
    };
    person.now = NOW + 60_000;
    person.give(lost("connection refused"));
    person.now += 1_000;
    let line = person.line("prod-us");
    assert!(
        line.contains("STALE 1m 1s: connection refused, next try in 3 s"),
        "{line}"
    );
    assert!(!person.rows().is_empty(), "the list stays");
    person.press("/2-84<enter>x");
    assert!(person.screen().contains("From the last snapshot, which is stale"));
    person.press("<esc><esc>");
    person.give(Event::Picture(picture(2, &Choices::default())));
    assert!(person.line("prod-us").contains("live again after 1s, 0 nodes changed"));
    person.now += 5_001;
    assert!(person.line("prod-us").contains("live, 5.0 s old"));
}

#[test]
fn a_dump_has_its_time_and_nothing_moves() {
    let look = Look::best(Depth::Mono, false);
    let opened_at = "2026-11-17T18:42:30Z".parse().unwrap();
    let place = Place::Dump { opened_at };
    let mut person = Person::before(Choices::default(), place, look).sized(120, 40);
    person.give(Event::Picture(picture(1, &Choices::default())));
    person.now += 3_600_000;
    let line = person.line("prod-us");
    assert!(line.contains("dump of 15:42 UTC, 1d 3h old   15:42:00 UTC"), "{line}");
    assert_eq!(person.app.wake_in(person.now), None, "no frame is due");
}

#[test]
fn a_frozen_screen_takes_in_nothing_until_it_is_let_go() {
    let mut person = Person::new().sized(120, 40);
    person.press("z");
    let before = person.rows();
    let fewer = Choices {
        selector: tui::Selector::read("karpenter.sh/nodepool=data").unwrap(),
        ..Choices::default()
    };
    person.give(Event::Picture(picture(2, &fewer)));
    person.now += 3_000;
    assert_eq!(person.rows(), before);
    assert!(person.line("prod-us").contains("frozen for 3s"));
    person.press("z");
    assert!(person.rows().len() < before.len());
}

#[test]
fn what_the_engine_has_not_found_yet_is_said_to_be_computed() {
    let look = Look::best(Depth::Mono, false);
    let mut person = Person::before(Choices::default(), Place::Live, look).sized(120, 40);
    person.give(Event::Picture(picture(1, &Choices::default())));
    assert!(person.line("/hour").contains("computing…"));
    assert!(!person.rows().is_empty(), "nodes show at once");
    person.press("p");
    assert!(person.screen().contains("computing…"));
}
