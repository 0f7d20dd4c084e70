//! What goes wrong when a test says so.

mod speaking;

use std::time::Duration;

use serde_json::{Value, json};
use simulator::{Fault, Verb};
use speaking::{Speaker, server};

const NODE: &str = "/api/v1/nodes/n";

fn label(value: &str) -> Value {
    json!({"metadata": {"labels": {"l": value}}})
}

#[tokio::test(start_paused = true)]
async fn a_failed_write_changes_nothing_and_a_lost_answer_everything() {
    let server = server();
    let speaker = Speaker::to(&server);
    server
        .create(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}))
        .unwrap();
    server.set_faults(|facts| match facts.write {
        Some(1) => Fault::Fail(503),
        Some(2) => Fault::LoseAnswer,
        _ => Fault::None,
    });
    let seen = || server.get("Node", "n").unwrap()["metadata"]["labels"]["l"].clone();
    assert_eq!(speaker.merge(NODE, label("1")).await.0, 503);
    assert_eq!(seen(), json!(null));
    assert!(speaker.try_merge(NODE, label("2")).await.is_err());
    assert_eq!(seen(), json!("2"));
    assert_eq!(speaker.merge(NODE, label("3")).await.0, 200);
    let log: Vec<(Verb, u16)> = server.log().iter().map(|logged| (logged.verb, logged.code)).collect();
    assert_eq!(log, [(Verb::Patch, 503), (Verb::Patch, 200), (Verb::Patch, 200)]);
}

#[tokio::test(start_paused = true)]
async fn a_crash_before_a_write_loses_it_and_one_after_it_does_not() {
    for (fault, expected) in [(Fault::CrashBefore, json!(null)), (Fault::CrashAfter, json!("1"))] {
        let server = server();
        let speaker = Speaker::to(&server);
        server
            .create(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}))
            .unwrap();
        server.set_faults(move |facts| if facts.write == Some(1) { fault } else { Fault::None });
        tokio::select! {
            biased;
            answer = speaker.try_merge(NODE, label("1")) => panic!("the dead got an answer: {answer:?}"),
            () = server.crashed() => {}
        }
        assert_eq!(server.get("Node", "n").unwrap()["metadata"]["labels"]["l"], expected);
        let later = tokio::time::timeout(Duration::from_mins(1), speaker.try_merge(NODE, label("2"))).await;
        assert!(later.is_err(), "the dead do not speak");
        assert_eq!(Speaker::to(&server).merge(NODE, label("3")).await.0, 200, "others do");
    }
}

#[tokio::test(start_paused = true)]
async fn a_delayed_write_arrives_also_when_its_sender_has_given_up() {
    let server = server();
    let speaker = Speaker::to(&server);
    server
        .create(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}))
        .unwrap();
    server.set_faults(|_| Fault::Delay(Duration::from_secs(5)));
    let given_up = tokio::time::timeout(Duration::from_secs(1), speaker.try_merge(NODE, label("late"))).await;
    assert!(given_up.is_err());
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(server.get("Node", "n").unwrap()["metadata"]["labels"]["l"], "late");
}

#[tokio::test(start_paused = true)]
async fn watches_end_when_they_are_dropped() {
    let server = server();
    let speaker = Speaker::to(&server);
    let mut watch = speaker.watch("/api/v1/nodes?watch=true&resourceVersion=1").await;
    server.set_faults(|facts| match facts.verb {
        Verb::Get => Fault::DropWatches,
        _ => Fault::None,
    });
    speaker.get(NODE).await;
    assert_eq!(watch.next().await, None);
}
