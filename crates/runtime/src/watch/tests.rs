//! What a watch promises, against a server double on paused time.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::channel::Sender;
use model::object::{Node, Object};
use tokio::time::timeout;

use super::*;
use crate::double::{BoxError, Log, Step, scripted, stream};

const NODES: &str = "GET /api/v1/nodes?";
/// A list expires at once.
const GONE: &str = r#"{"kind":"Status","code":410,"reason":"Expired","message":"too old"}"#;

fn node(name: &str, version: u64) -> String {
    format!(r#"{{"metadata":{{"name":"{name}","resourceVersion":"{version}"}}}}"#)
}

fn page(items: &[String], version: u64, rest: &str) -> Step {
    let items = items.join(",");
    let metadata = format!(r#"{{"resourceVersion":"{version}","continue":"{rest}"}}"#);
    Step::Say(200, format!(r#"{{"metadata":{metadata},"items":[{items}]}}"#))
}

fn line(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

async fn send(sender: &mut Sender<Bytes, BoxError>, text: &str) {
    sender.send_data(Bytes::from(text.to_owned())).await.unwrap();
}

/// Follows nodes over a script for some virtual seconds; returns what was seen and asked, in words.
async fn followed(seconds: u64, steps: Vec<Step>) -> (Vec<String>, Vec<String>) {
    let (client, log) = scripted(steps);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let api = Api::new(client, "karpenter/1.15.0");
    let watched = Watched {
        resource: Resource::of::<Node>(),
        read: Box::new(|bytes| serde_json::from_slice::<Node>(bytes)),
        key: |node: &Node| node.metadata().key(),
    };
    let following = follow(&api, watched, move |observed| {
        noted.lock().unwrap().extend(in_words(&observed));
        belief(&observed)
    });
    let following = sendable(following);
    assert!(timeout(Duration::from_secs(seconds), following).await.is_err());
    (std::mem::take(&mut *seen.lock().unwrap()), asked(&log))
}

/// Watches run as tasks.
fn sendable<F: Future<Output = ()> + Send>(future: F) -> F {
    future
}

/// Lists of version 13 are not believed.
fn belief(observed: &Observed<Node>) -> Belief {
    match observed {
        Observed::Listed { version, .. } if *version == "13".into() => Belief::Doubted,
        _ => Belief::Taken,
    }
}

/// The requests show already where lists begin.
fn in_words(observed: &Observed<Node>) -> Option<String> {
    Some(match observed {
        Observed::Listing => return None,
        Observed::Applied(node) => format!("+{}", node.metadata().name),
        Observed::Deleted(node) => format!("-{}", node.metadata().name),
        Observed::Listed { named, .. } => format!("listed {}", named.len()),
        Observed::Failed(error) if error.is_missing_kind() => "no such kind".to_owned(),
        Observed::Failed(error) => format!("failed: {}", error.message),
    })
}

/// Requests without what is the same in all of them.
fn asked(log: &Log) -> Vec<String> {
    let short = |line: String| {
        let line = line.replace(NODES, "");
        match line.split_once("&timeoutSeconds=") {
            Some((_, rest)) => format!("watch {}", rest.split_once('&').unwrap().1),
            None => line,
        }
    };
    log.lines().into_iter().map(short).collect()
}

#[tokio::test(start_paused = true)]
async fn pages_are_listed_and_then_watched_from_the_version_of_the_last() {
    let (mut sender, opened) = stream();
    let steps = vec![
        page(&[node("a", 1), node("b", 2)], 7, "x/y="),
        page(&[node("c", 3)], 8, ""),
        opened,
    ];
    let text = line("ADDED", &node("d", 9)) + &line("DELETED", &node("a", 10));
    let (early, late) = text.split_at(30);
    let sending = async {
        send(&mut sender, early).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        send(&mut sender, late).await;
        tokio::time::sleep(Duration::from_secs(100)).await;
    };
    let ((seen, asked), ()) = tokio::join!(followed(60, steps), sending);
    assert_eq!(seen, ["+a", "+b", "+c", "listed 3", "+d", "-a"]);
    let expected = [
        "limit=500&continue=",
        "limit=500&continue=x%2Fy%3D",
        "watch resourceVersion=8",
    ];
    assert_eq!(asked, expected);
}

#[tokio::test(start_paused = true)]
async fn a_broken_watch_is_resumed_where_it_broke() {
    let (mut first, opened) = stream();
    let steps = vec![page(&[], 5, ""), opened, page(&[node("a", 6)], 41, "")];
    let sending = async {
        send(&mut first, &line("ADDED", &node("a", 6))).await;
        send(&mut first, &line("BOOKMARK", &node("", 40))).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        first.abort("connection reset".into());
    };
    let ((seen, asked), ()) = tokio::join!(followed(20, steps), sending);
    assert_eq!(seen, ["listed 0", "+a", "failed: ServiceError: connection reset"]);
    let expected = ["watch resourceVersion=5", "limit=1", "watch resourceVersion=40"];
    assert_eq!(asked[1..], expected);
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_version_is_answered_by_a_new_list() {
    let (mut sender, opened) = stream();
    let steps = vec![page(&[node("a", 1)], 5, ""), opened, page(&[node("b", 8)], 9, "")];
    let sending = async {
        send(&mut sender, &line("ERROR", GONE)).await;
        tokio::time::sleep(Duration::from_secs(100)).await;
    };
    let ((seen, asked), ()) = tokio::join!(followed(20, steps), sending);
    assert_eq!(seen, ["+a", "listed 1", "+b", "listed 1"]);
    assert_eq!(asked[2..], ["limit=500&continue=", "watch resourceVersion=9"]);
}

#[tokio::test(start_paused = true)]
async fn pages_that_expire_half_way_are_listed_again_from_the_first() {
    let gone = || Step::Say(410, GONE.to_owned());
    let steps = vec![page(&[node("a", 1)], 5, "x"), gone(), page(&[node("b", 2)], 6, "")];
    let (seen, asked) = followed(20, steps).await;
    assert_eq!(seen, ["+a", "+b", "listed 1"]);
    assert_eq!(asked[2..], ["limit=500&continue=", "watch resourceVersion=6"]);
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_expiries_is_answered_ever_more_slowly() {
    let steps = (0..100).map(|_| Step::Say(410, GONE.to_owned())).collect();
    let (seen, asked) = followed(600, steps).await;
    assert_eq!(seen, Vec::<String>::new());
    assert!((15..40).contains(&asked.len()), "{}", asked.len());
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_is_named_and_left_out() {
    let (mut sender, opened) = stream();
    let bad = |name: &str, version: u64| {
        format!(r#"{{"metadata":{{"name":"{name}","resourceVersion":"{version}","labels":"none"}}}}"#)
    };
    let steps = vec![page(&[bad("a", 1), node("b", 2)], 5, ""), opened];
    let sending = async {
        send(&mut sender, &line("MODIFIED", &bad("c", 6))).await;
        send(&mut sender, &line("MODIFIED", &node("d", 7))).await;
    };
    let ((seen, asked), ()) = tokio::join!(followed(20, steps), sending);
    let named: Vec<&str> = seen
        .iter()
        .map(|text| text.split(" cannot be read").next().unwrap())
        .collect();
    assert_eq!(
        named[..4],
        ["failed: the object a", "+b", "listed 2", "failed: the object c"]
    );
    assert_eq!(named[4..5], ["+d"]);
    assert_eq!(asked[1], "watch resourceVersion=5");
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_does_not_exist_is_asked_for_until_it_does_and_told_once() {
    let missing = || Step::Say(404, "404 page not found\n".to_owned());
    let steps = vec![missing(), missing(), missing(), page(&[node("a", 1)], 2, "")];
    let (seen, asked) = followed(95, steps).await;
    assert_eq!(seen, ["no such kind", "+a", "listed 1"]);
    assert_eq!(asked.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_given_up_sooner_where_bookmarks_are_expected() {
    let (mut sender, opened) = stream();
    let (_quiet, reopened) = stream();
    let steps = vec![page(&[], 5, ""), opened, page(&[], 6, ""), reopened];
    let sending = async {
        send(&mut sender, &line("BOOKMARK", &node("", 6))).await;
        std::future::pending::<()>().await;
    };
    let following = timeout(Duration::from_secs(500), followed(455, steps));
    let (seen, asked) = tokio::select! {
        result = following => result.unwrap(),
        () = sending => unreachable!(),
    };
    let silent = |seconds| format!("failed: the watch was silent for {seconds} s");
    assert_eq!(seen, ["listed 0".to_owned(), silent(150), silent(300)]);
    assert_eq!(asked.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_away_is_asked_ever_more_slowly_and_found_again() {
    let away = (0..400).map(|_| Step::Break);
    let (seen, asked) = followed(600, away.collect()).await;
    assert!(seen.iter().all(|text| text.contains("connection reset by peer")));
    assert!((15..40).contains(&seen.len()), "{}", seen.len());
    assert!(asked.len() <= seen.len() * 4 + 4, "{}", asked.len());
}

#[test]
fn a_selection_is_part_of_every_question() {
    let selection = Selection {
        namespace: "kube-node-lease".to_owned(),
        labels: "app in (web),x!=1".to_owned(),
        fields: "metadata.name=a".to_owned(),
    };
    assert_eq!(
        selection.path(&Resource::new("coordination.k8s.io/v1", "Lease")),
        "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases?labelSelector=app%20in%20%28web%29%2Cx%21%3D1&\
         fieldSelector=metadata.name%3Da&"
    );
}

#[tokio::test(start_paused = true)]
async fn a_version_the_server_has_not_come_to_is_listed_anew() {
    let (_sender, opened) = stream();
    let too_large =
        r#"{"kind":"Status","code":504,"reason":"Timeout","message":"Too large resource version: 9, current: 7"}"#;
    let steps = vec![
        page(&[node("a", 1)], 9, ""),
        Step::Say(504, too_large.to_owned()),
        page(&[node("a", 1)], 7, ""),
        opened,
    ];
    let (seen, asked) = followed(5, steps).await;
    assert_eq!(seen, ["+a", "listed 1", "+a", "listed 1"], "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_doubted_is_made_again_before_anything_is_watched() {
    let (_open, opened) = stream();
    let steps = vec![
        page(&[node("a", 1)], 13, ""),
        page(&[node("a", 1)], 13, ""),
        page(&[node("a", 1)], 14, ""),
        opened,
    ];
    let (seen, asked) = followed(60, steps).await;
    assert_eq!(seen, ["+a", "listed 1", "+a", "listed 1", "+a", "listed 1"]);
    let list = "limit=500&continue=";
    assert_eq!(asked, [list, list, list, "watch resourceVersion=14"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_set_back_is_listed_after_a_break_and_after_a_silence() {
    for is_broken in [false, true] {
        let (first, opened) = stream();
        let (_open, reopened) = stream();
        let steps = vec![page(&[], 900, ""), opened, page(&[], 7, ""), page(&[], 7, ""), reopened];
        let ending = async {
            tokio::time::sleep(Duration::from_secs(280)).await;
            if is_broken {
                first.abort("connection reset".into());
            } else {
                drop(first);
            }
        };
        let ((seen, asked), ()) = tokio::join!(followed(300, steps), ending);
        let why = "failed: the API server is at version 7, and 900 has been seen: its store was set back, as after a \
                   restore from a backup; everything is listed again";
        let broken = "failed: ServiceError: connection reset";
        let expected = [
            ["listed 0"].as_slice(),
            &[broken][..usize::from(is_broken)],
            &[why, "listed 0"],
        ]
        .concat();
        assert_eq!(seen, expected);
        let list = "limit=500&continue=";
        let expected = [
            list,
            "watch resourceVersion=900",
            "limit=1",
            list,
            "watch resourceVersion=7",
        ];
        assert_eq!(asked, expected);
    }
}
