//! What a frame takes: the work of the rows that show, however many there are.

use std::sync::Arc;

use model::snapshot::Snapshot;
use tui::{Choices, Event};

use super::fixture::{Person, SNAPSHOT, pictured};

/// The fixture with so many nodes more.
fn crowded(nodes: usize) -> Arc<Snapshot> {
    let known: Vec<_> = SNAPSHOT.objects().nodes.iter().cloned().collect();
    let copies = (0..nodes).map(|number| {
        let mut node = known[number % known.len()].as_ref().clone();
        node.metadata.name = format!("crowd-{number:05}").as_str().into();
        node.spec.provider_id = Some(format!("aws:///us-east-1a/i-{number:05}").as_str().into());
        Arc::new(node)
    });
    Arc::new(SNAPSHOT.overlaid(|objects| objects.nodes = objects.nodes.with(copies)))
}

#[test]
fn a_frame_makes_only_the_rows_that_show_whatever_the_number_of_nodes() {
    let mut person = Person::new().sized(120, 40);
    let (_, few) = person.drawn();
    assert_eq!(few.rows, person.rows().len());
    person.give(Event::Picture(pictured(2, &crowded(2000), &Choices::default())));
    for keys in ["", "<end>", "<pgdn>", "b", "b"] {
        person.press(keys);
        let (screen, work) = person.drawn();
        // Four lines of head, a rule, headings, and the keys at the bottom.
        assert_eq!(work.rows, 40 - 7, "after {keys}:\n{screen}");
    }
}

#[test]
fn a_list_of_thousands_can_be_walked_to_its_end() {
    let mut person = Person::new().sized(80, 24);
    person.give(Event::Picture(pictured(2, &crowded(2000), &Choices::default())));
    person.press("N<end>");
    let last = person.rows().last().cloned();
    assert_eq!(Some(person.here()), last.or_else(|| Some(String::new())));
    person.press("/crowd-01999<enter>");
    assert_eq!(person.here(), "crowd-01999");
}
