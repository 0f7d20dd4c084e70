//! When events are the same, and what is written then; the expectations are client-go's.

use super::*;
use crate::event::{EventKind, Reference};

fn event(name: &str, message: &str) -> Event {
    let object = Reference {
        api_version: "v1".into(),
        kind: "Pod".into(),
        namespace: "team".into(),
        name: name.into(),
        uid: "u1".into(),
        resource_version: "812".into(),
    };
    Event::about(object, EventKind::Warning, "FailedScheduling", message.to_owned())
}

fn now() -> Timestamp {
    "2026-11-16T03:00:00.5Z".parse().unwrap()
}

fn correlator() -> Correlator {
    Correlator::new(Random::seeded(1))
}

#[tokio::test(start_paused = true)]
async fn an_event_has_the_fields_that_client_go_writes() {
    let written = correlator().correlate(&event("web", "no"), now()).unwrap();
    let name = format!("web.{:x}", now().as_nanosecond());
    let expected = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": name, "namespace": "team"},
        "involvedObject": {
            "kind": "Pod", "namespace": "team", "name": "web", "uid": "u1", "apiVersion": "v1", "resourceVersion": "812",
        },
        "reason": "FailedScheduling", "message": "no", "type": "Warning", "count": 1,
        "firstTimestamp": "2026-11-16T03:00:00Z", "lastTimestamp": "2026-11-16T03:00:00Z", "eventTime": null,
        "source": {"component": "karpenter"}, "reportingComponent": "karpenter", "reportingInstance": "",
    });
    assert_eq!(written.object, expected);
    assert_eq!(written.patch, None);
}

#[tokio::test(start_paused = true)]
async fn the_decision_an_event_tells_of_is_an_annotation_and_changes_nothing_else() {
    let id = ledger::Id::of("refuse", ["LimitReached", "team", "web"]);
    let mut plain = correlator().correlate(&event("web", "no"), now()).unwrap();
    let mut correlator = correlator();
    let decided = correlator.correlate(&event("web", "no").decided(id), now()).unwrap();
    let annotations = json!({"dovetail.dev/decision": id.to_string()});
    plain.object["metadata"]["annotations"] = annotations.clone();
    assert_eq!(decided, plain);
    let again = correlator.correlate(&event("web", "no").decided(id), now()).unwrap();
    assert_eq!(again.patch.unwrap()["metadata"]["annotations"], annotations);
}

#[tokio::test(start_paused = true)]
async fn events_on_cluster_scoped_objects_live_in_the_default_namespace() {
    let mut event = event("a", "no");
    event.object.namespace = "".into();
    let written = correlator().correlate(&event, now()).unwrap();
    assert_eq!(written.namespace, "default");
    assert_eq!(written.object["involvedObject"].get("namespace"), None);
}

#[tokio::test(start_paused = true)]
async fn an_equal_event_is_counted_on_the_first_one() {
    let mut correlator = correlator();
    let first = correlator.correlate(&event("web", "no"), now()).unwrap();
    let later = now() + Duration::from_secs(90);
    let again = correlator.correlate(&event("web", "no"), later).unwrap();
    assert_eq!(again.name, first.name);
    let patch = json!({"count": 2, "lastTimestamp": "2026-11-16T03:01:30Z", "message": "no"});
    assert_eq!(again.patch, Some(patch));
    assert_eq!(again.object["firstTimestamp"], "2026-11-16T03:00:00Z");
    let other = correlator.correlate(&event("web", "yes"), later).unwrap();
    assert_eq!(other.patch, None);
}

#[tokio::test(start_paused = true)]
async fn the_tenth_different_message_is_joined_with_those_that_follow() {
    let mut correlator = correlator();
    let mut say = |number: usize| {
        correlator
            .correlate(&event("web", &format!("no {number}")), now())
            .unwrap()
    };
    let single: Vec<Option<Value>> = (1..10).map(|number| say(number).patch).collect();
    assert_eq!(single, vec![None; 9]);
    let joined = [10, 11].map(&mut say);
    assert_eq!(joined[0].name, joined[1].name);
    let messages = joined.map(|written| (written.object["count"].clone(), written.object["message"].clone()));
    let expected = [10, 11].map(|number| format!("(combined from similar events): no {number}"));
    let expected = [(json!(1), json!(expected[0])), (json!(2), json!(expected[1]))];
    assert_eq!(messages, expected);
    tokio::time::advance(Duration::from_mins(11)).await;
    assert_eq!(say(12).object["message"], "no 12");
}

#[tokio::test(start_paused = true)]
async fn after_twenty_five_events_an_object_is_mentioned_once_in_five_minutes() {
    let mut correlator = correlator();
    let mut said = |name: &str| correlator.correlate(&event(name, "no"), now()).is_some();
    assert_eq!((0..40).filter(|_| said("web")).count(), 25);
    assert!(said("other"));
    tokio::time::advance(Duration::from_mins(5)).await;
    assert_eq!((0..40).filter(|_| said("web")).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_held_back_is_counted_nevertheless() {
    let mut correlator = correlator();
    for _ in 0..30 {
        correlator.correlate(&event("web", "no"), now());
    }
    tokio::time::advance(Duration::from_mins(5)).await;
    let written = correlator.correlate(&event("web", "no"), now()).unwrap();
    assert_eq!(written.object["count"], 31);
}

#[tokio::test(start_paused = true)]
async fn a_long_message_is_cut_between_characters() {
    let message = "é".repeat(600);
    let written = correlator().correlate(&event("web", &message), now()).unwrap();
    let expected = format!("{}...", "é".repeat(510));
    assert_eq!(written.object["message"], expected);
    assert!(expected.len() <= LONGEST_MESSAGE);
}

#[tokio::test(start_paused = true)]
async fn names_differ_even_when_the_clock_stands_still_and_are_always_names() {
    let mut correlator = correlator();
    let mut name = |object: &str, message: &str| correlator.correlate(&event(object, message), now()).unwrap().name;
    assert_ne!(name("web", "one"), name("web", "two"));
    assert!(is_subdomain(&name("Not_A.Name", "one")));
}
