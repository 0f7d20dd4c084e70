//! What the API client promises, against a server double on paused time.

use std::sync::Mutex;

use model::object::Node;
use tokio::time::Instant;

use super::*;
use crate::double::{Log, Step, scripted};

const NODE: &str = r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"a","uid":"u1","labels":{"n":"1"}}}"#;
const TAKEN: &str = r#"{"message":"nodes \"a\" already exists","reason":"AlreadyExists","code":409}"#;

fn say(code: u16, body: &str) -> Step {
    Step::Say(code, body.to_owned())
}

fn api(steps: impl IntoIterator<Item = Step>) -> (Api, Log) {
    let (client, log) = scripted(steps);
    (Api::new(client, "karpenter/1.15.0"), log)
}

fn key() -> ObjectKey {
    ObjectKey::cluster_scoped("a")
}

fn named(label: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "labels": {"n": label}}})
}

#[tokio::test(start_paused = true)]
async fn questions_patches_and_deletions_are_repeated_until_they_are_answered() {
    for code in [429, 500, 502, 503, 504] {
        let (api, log) = api([say(code, ""), Step::Break, say(200, NODE)]);
        api.get::<Node>(&key()).await.unwrap();
        assert_eq!(log.lines(), ["GET /api/v1/nodes/a"; 3], "{code}");
    }
    let (api, log) = api([Step::Break, say(200, NODE), say(503, ""), say(200, "{}")]);
    let patch = Patch::Merge(json!({"spec": {}}));
    api.patch::<Node>(&key(), Some("status"), &patch).await.unwrap();
    api.delete::<Node>(&key(), &Delete::default()).await.unwrap();
    let (patched, deleted) = ("PATCH /api/v1/nodes/a/status", "DELETE /api/v1/nodes/a");
    assert_eq!(log.lines(), [patched, patched, deleted, deleted]);
    let counts = Counts {
        writes: 4,
        retries: 2,
        ..Counts::default()
    };
    assert_eq!(api.counts(), counts);
}

#[tokio::test(start_paused = true)]
async fn answers_are_not_asked_for_again() {
    for code in [400, 401, 403, 404, 409, 410, 422, 501] {
        let (api, log) = api([say(code, r#"{"message":"no"}"#)]);
        let error = api.get::<Node>(&key()).await.unwrap_err();
        assert_eq!(error.code, Some(code));
        assert_eq!(log.lines().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_gives_up_after_three_repetitions() {
    let (api, log) = api((0..9).map(|_| say(503, r#"{"message":"etcd is away"}"#)));
    let error = api.get::<Node>(&key()).await.unwrap_err();
    assert_eq!(error.to_string(), "GET /api/v1/nodes/a: etcd is away");
    assert_eq!(log.lines().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn all_calls_share_a_budget_of_repetitions() {
    let (api, log) = api((0..1000).map(|_| say(503, "")));
    for _ in 0..100 {
        let key = key();
        let _ = tokio::join!(api.get::<Node>(&key), api.get::<Node>(&key), api.get::<Node>(&key));
    }
    let counts = api.counts();
    assert_eq!(counts.reads, 300 + counts.retries);
    assert_eq!(log.lines().len() as u64, counts.reads);
    assert!(counts.retries < 900, "{counts:?}");
}

#[tokio::test(start_paused = true)]
async fn the_server_says_how_long_to_wait() {
    let (api, _) = api([Step::SayLater(429, 4), say(200, NODE)]);
    let began = Instant::now();
    api.get::<Node>(&key()).await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(4));
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_the_deadline_is_left_to_the_caller() {
    let (api, log) = api([Step::SayLater(429, 60)]);
    let began = Instant::now();
    let error = api.get::<Node>(&key()).await.unwrap_err();
    assert_eq!(error.retry_after_seconds, Some(60));
    assert_eq!((began.elapsed(), log.lines().len()), (Duration::ZERO, 1));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_costs_ten_seconds_for_a_question_and_thirty_for_a_change() {
    let (api, _) = api([]);
    let began = Instant::now();
    let error = api.get::<Node>(&key()).await.unwrap_err();
    assert_eq!(error.to_string(), "GET /api/v1/nodes/a: no answer within 10 s");
    assert_eq!(began.elapsed(), Duration::from_secs(10));
    let began = Instant::now();
    let error = api.create::<Node>("", &named("1")).await.unwrap_err();
    assert_eq!(error.to_string(), "POST /api/v1/nodes: no answer within 30 s");
    assert_eq!(began.elapsed(), Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn what_has_no_name_yet_is_created_once() {
    let (api, log) = api([say(504, "")]);
    let object = json!({"metadata": {"generateName": "a-"}});
    assert_eq!(api.create::<Node>("", &object).await.unwrap_err().code, Some(504));
    assert_eq!(log.lines().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_eviction_is_asked_for_once_whatever_the_answer() {
    for step in [say(429, ""), say(500, ""), Step::Break] {
        let (api, log) = api([step]);
        let pod = ObjectKey::new("team", "web");
        api.evict(&pod, &Uid::from("u")).await.unwrap_err();
        assert_eq!(log.lines(), ["POST /api/v1/namespaces/team/pods/web/eviction"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_creation_whose_answer_was_lost_is_recognised_by_what_was_sent() {
    let cases = [
        ("ours", vec![Step::Break, say(409, TAKEN), say(200, NODE)], "1", true),
        (
            "foreign",
            vec![Step::Break, say(409, TAKEN), say(200, NODE)],
            "2",
            false,
        ),
        (
            "unseen",
            vec![say(504, ""), say(409, TAKEN), say(403, "{}")],
            "1",
            false,
        ),
        ("there before", vec![say(409, TAKEN)], "1", false),
        ("not taken in", vec![say(429, ""), say(409, TAKEN)], "1", false),
    ];
    for (name, steps, label, ours) in cases {
        let asked = steps.len();
        let (api, log) = api(steps);
        let result = api.create::<Node>("", &named(label)).await;
        assert_eq!(log.lines().len(), asked, "{name}");
        match result {
            Ok(node) => assert!(ours && node.metadata().uid == Uid::from("u1"), "{name}"),
            Err(error) => assert!(!ours && error.is_already_exists(), "{name}: {error}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn calls_come_no_faster_than_the_rate_and_the_wait_is_bounded() {
    let (client, _) = scripted((0..1000).map(|_| say(200, NODE)));
    let rate = Rate {
        per_second: 2.0,
        burst: 3,
    };
    let options = Options {
        rate: Some(rate),
        ..Options::new("karpenter/1.15.0")
    };
    let api = Api::with(client, options);
    let began = Instant::now();
    for _ in 0..7 {
        api.get::<Node>(&key()).await.unwrap();
    }
    assert_eq!(began.elapsed(), Duration::from_secs(2));
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..130 {
        let api = api.clone();
        calls.spawn(async move { api.get::<Node>(&key()).await.is_ok() });
    }
    let answered = calls.join_all().await.into_iter().filter(|ok| *ok).count();
    assert_eq!((answered, api.counts().refused), (120, 10));
}

#[derive(Default)]
struct Noted(Mutex<Vec<String>>);

impl Observer for Noted {
    fn requested(&self, seen: &Observation<'_>) {
        let (method, verb, version) = (seen.method, seen.verb, seen.version);
        let (group, resource, part) = (seen.group, seen.resource, seen.subresource);
        let line = format!("{method} {verb} {group}/{version} {resource}/{part} {:?}", seen.code);
        self.0.lock().unwrap().push(line);
    }
}

#[tokio::test(start_paused = true)]
async fn every_request_is_observed_also_those_without_an_answer() {
    let (client, log) = scripted([Step::Break, say(200, NODE), say(429, "")]);
    let noted = Arc::new(Noted::default());
    let options = Options {
        observer: Some(Arc::clone(&noted) as Arc<dyn Observer>),
        ..Options::new("karpenter/1.15.0")
    };
    let api = Api::with(client, options);
    api.get::<Node>(&key()).await.unwrap();
    let _ = api.evict(&ObjectKey::new("team", "web"), &Uid::from("u")).await;
    let _ = api
        .call(Method::GET, "/apis/karpenter.sh/v1/nodepools", None, "application/json")
        .await;
    let expected = [
        "GET GET /v1 nodes/ None",
        "GET GET /v1 nodes/ Some(200)",
        "POST CREATE /v1 pods/eviction Some(429)",
        "GET LIST karpenter.sh/v1 nodepools/ None",
    ];
    assert_eq!(*noted.0.lock().unwrap(), expected);
    assert!(log.all().iter().all(|asked| asked.user_agent == "karpenter/1.15.0"));
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_no_longer_leads_looks_but_does_not_write() {
    let (client, log) = scripted([say(503, ""), say(200, NODE)]);
    let leads = Arc::new(Mutex::new(true));
    let asked = Arc::clone(&leads);
    let options = Options {
        // The answer holds for one question only, so the repetition meets a replica that has lost.
        may_write: Some(Arc::new(move || std::mem::take(&mut *asked.lock().unwrap()))),
        ..Options::new("karpenter/1.15.0")
    };
    let api = Api::with(client, options);
    let error = api.delete::<Node>(&key(), &Delete::default()).await.unwrap_err();
    assert!(error.is_not_leading());
    api.get::<Node>(&key()).await.unwrap();
    assert_eq!(log.lines(), ["DELETE /api/v1/nodes/a", "GET /api/v1/nodes/a"]);
}
