//! What those who watch are told.

mod speaking;

use std::time::Duration;

use serde_json::{Value, json};
use speaking::{Speaker, server};

const NODES: &str = "/api/v1/nodes";

fn node(name: &str, label: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"pool": label}}})
}

fn word(kind: &str, name: &str) -> (String, String) {
    (kind.to_owned(), name.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_watch_resumes_where_a_list_ended_and_shows_every_change_in_order() {
    let server = server();
    let speaker = Speaker::to(&server);
    server.create(node("a", "x")).unwrap();
    let (_, list) = speaker.get(NODES).await;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    server.create(node("b", "x")).unwrap();
    let mut watch = speaker
        .watch(&format!("{NODES}?watch=true&resourceVersion={version}"))
        .await;
    server
        .update("Node", "a", |node| node["spec"] = json!({"unschedulable": true}))
        .unwrap();
    server.delete("Node", "b").unwrap();
    assert_eq!(watch.next_word().await, Some(word("ADDED", "b")));
    assert_eq!(watch.next_word().await, Some(word("MODIFIED", "a")));
    let last = watch.next().await.unwrap();
    assert_eq!(
        (
            &last["type"],
            &last["object"]["metadata"]["name"],
            &last["object"]["metadata"]["resourceVersion"]
        ),
        (&json!("DELETED"), &json!("b"), &json!("5"))
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_that_leaves_a_selector_is_gone_for_its_watcher() {
    let server = server();
    let speaker = Speaker::to(&server);
    server.create(node("a", "x")).unwrap();
    let mut watch = speaker
        .watch(&format!("{NODES}?watch=true&labelSelector=pool%3Dx"))
        .await;
    assert_eq!(watch.next_word().await, Some(word("ADDED", "a")));
    server
        .update("Node", "a", |node| node["metadata"]["labels"]["pool"] = json!("y"))
        .unwrap();
    server.create(node("b", "y")).unwrap();
    server
        .update("Node", "b", |node| node["metadata"]["labels"]["pool"] = json!("x"))
        .unwrap();
    assert_eq!(watch.next_word().await, Some(word("DELETED", "a")));
    assert_eq!(watch.next_word().await, Some(word("ADDED", "b")));
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_version_is_refused_inside_the_watch() {
    let server = server();
    let speaker = Speaker::to(&server);
    for name in ["a", "b", "c"] {
        server.create(node(name, "x")).unwrap();
    }
    server.compact();
    let mut watch = speaker.watch(&format!("{NODES}?watch=true&resourceVersion=2")).await;
    let line = watch.next().await.unwrap();
    assert_eq!(
        line,
        json!({"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "too old resource version: 2 (4)", "reason": "Expired", "code": 410}})
    );
    assert_eq!(watch.next().await, None);
    let mut resumed = speaker.watch(&format!("{NODES}?watch=true&resourceVersion=4")).await;
    server.create(node("d", "x")).unwrap();
    assert_eq!(resumed.next_word().await, Some(word("ADDED", "d")));
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_gets_bookmarks_and_ends_in_time() {
    let server = server();
    let speaker = Speaker::to(&server);
    let path = format!("{NODES}?watch=true&resourceVersion=1&allowWatchBookmarks=true&timeoutSeconds=150");
    let mut watch = speaker.watch(&path).await;
    server
        .create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}))
        .unwrap();
    let began = tokio::time::Instant::now();
    assert_eq!(watch.next_word().await, Some(word("BOOKMARK", "2")));
    assert_eq!(watch.next_word().await, Some(word("BOOKMARK", "2")));
    assert_eq!(watch.next_word().await, None);
    assert_eq!(began.elapsed(), Duration::from_secs(150));
}

#[tokio::test(start_paused = true)]
async fn a_lagging_watch_shows_what_was() {
    let server = server();
    let speaker = Speaker::to(&server);
    server.set_watch_lag(Duration::from_secs(3));
    let mut watch = speaker.watch(&format!("{NODES}?watch=true&resourceVersion=1")).await;
    server.create(node("a", "x")).unwrap();
    let began = tokio::time::Instant::now();
    assert_eq!(watch.next_word().await, Some(word("ADDED", "a")));
    assert_eq!(began.elapsed(), Duration::from_secs(3));
}
