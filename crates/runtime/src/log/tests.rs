//! Are lines written as upstream's logger writes them?

use std::fs;

use jiff::Timestamp;
use tracing::{Dispatch, debug, debug_span, dispatcher::with_default, error, info, info_span, warn};

use super::*;

/// What is written when something is said at a level.
fn written(level: &str, say: impl FnOnce()) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.json");
    let output = Output::open(path.to_str().unwrap(), true).unwrap();
    let time: Timestamp = "2026-11-16T10:00:00.1234Z".parse().unwrap();
    let clock = Clock::starting_at(time);
    let log = Log::new(level, "abc1234", clock, vec![output]);
    with_default(&Dispatch::new(log), say);
    fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

const HEAD: &str = r#"{"level":"INFO","time":"2026-11-16T10:00:00.123Z","logger":"controller","message":"#;

#[tokio::test(start_paused = true)]
async fn a_line_is_zaps_json_with_its_keys_in_order() {
    let lines = written("info", || {
        info!("NodeClaim.name" = %"x", "provider-id" = %"kwok://x", count = 3, ready = true, took = ?std::time::Duration::from_millis(1500), "launched \"nodeclaim\"");
    });
    let rest = r#""launched \"nodeclaim\"","commit":"abc1234","NodeClaim":{"name":"x"},"provider-id":"kwok://x","count":3,"ready":true,"took":"1.5s"}"#;
    assert_eq!(lines, [format!("{HEAD}{rest}")]);
}

#[tokio::test(start_paused = true)]
async fn fields_of_spans_come_first_and_dots_join_into_objects() {
    let lines = written("info", || {
        let outer = info_span!("reconcile", controller = "provisioner", reconcileID = "1");
        let _outer = outer.enter();
        let inner = info_span!("pod", "Pod.name" = "p", extra = tracing::field::Empty);
        inner.record("extra", 7);
        inner.in_scope(|| info!("Pod.namespace" = "ns", reconcileID = "2", "seen"));
        info!("over");
    });
    let seen = r#""seen","commit":"abc1234","controller":"provisioner","reconcileID":"2","Pod":{"name":"p","namespace":"ns"},"extra":7}"#;
    let over = r#""over","commit":"abc1234","controller":"provisioner","reconcileID":"1"}"#;
    assert_eq!(lines, [format!("{HEAD}{seen}"), format!("{HEAD}{over}")]);
}

#[tokio::test(start_paused = true)]
async fn a_span_that_moves_between_tasks_keeps_its_fields_and_closes_after_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let output = Output::open(folder.path().join("log").to_str().unwrap(), true).unwrap();
    let log = Log::new("info", "", Clock::starting_at(Timestamp::UNIX_EPOCH), vec![output]);
    let dispatch = Dispatch::new(log);
    with_default(&dispatch, || {
        let parent = info_span!("parent", a = 1);
        let child = parent.in_scope(|| info_span!("child", b = 2));
        drop(parent);
        child.in_scope(|| info!("still"));
    });
    let log: &Log = dispatch.downcast_ref().unwrap();
    assert!(
        format!("{:?}", log.spans).contains("open: Mutex { data: {}"),
        "{:?}",
        log.spans
    );
    let text = fs::read_to_string(folder.path().join("log")).unwrap();
    assert_eq!(
        text,
        "{\"level\":\"INFO\",\"time\":\"1970-01-01T00:00:00.000Z\",\"logger\":\"controller\",\"message\":\"still\",\"a\":1,\"b\":2}\n"
    );
}

fn messages(lines: &[String]) -> Vec<String> {
    let parse = |line: &String| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let text = |value: serde_json::Value| {
        format!(
            "{} {}",
            value["level"].as_str().unwrap(),
            value["message"].as_str().unwrap()
        )
    };
    lines.iter().map(parse).map(text).collect()
}

#[tokio::test(start_paused = true)]
async fn the_level_decides_what_is_written_and_libraries_are_quiet_below_info() {
    let say = || {
        let _span = debug_span!("hidden at info").entered();
        debug!("own debug");
        debug!(target: "hyper::proto", "library debug");
        info!(target: "kube_client::client", "library info");
        warn!("own warning");
        error!(error = %"why", "own error");
    };
    let cases = [
        (
            "debug",
            vec![
                "DEBUG own debug",
                "INFO library info",
                "WARN own warning",
                "ERROR own error",
            ],
        ),
        ("info", vec!["INFO library info", "WARN own warning", "ERROR own error"]),
        ("", vec!["INFO library info", "WARN own warning", "ERROR own error"]),
        ("error", vec!["ERROR own error"]),
    ];
    for (level, expected) in cases {
        assert_eq!(messages(&written(level, say)), expected, "{level}");
    }
}

#[tokio::test(start_paused = true)]
async fn where_a_line_comes_from_is_said_at_debug() {
    let place = |level: &str| {
        let lines = written(level, || info!("here"));
        let line: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
        line["caller"].as_str().map(|place| place.starts_with("log/tests.rs:"))
    };
    assert_eq!((place("debug"), place("info")), (Some(true), None));
}

#[test]
fn a_terminal_gets_a_line_for_people_coloured_only_if_wanted() {
    let mut fields = Fields::default();
    let said = info_fields();
    fields.extend(said);
    let line = Line {
        level: Level::ERROR,
        time: "2026-11-16T10:00:00.5Z".parse().unwrap(),
        place: None,
        commit: "abc1234",
        fields: &fields,
    };
    assert_eq!(line.text(false), "10:00:00.500 ERROR failed NodeClaim.name=x tries=2\n");
    assert_eq!(
        line.text(true),
        "\x1b[2m10:00:00.500\x1b[0m \x1b[31mERROR\x1b[0m failed \x1b[2mNodeClaim.name=\x1b[0mx \x1b[2mtries=\x1b[0m2\n"
    );
}

/// Fields as an event records them.
fn info_fields() -> Fields {
    struct Catch(Mutex<Fields>);
    impl Subscriber for Catch {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }
        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, event: &Event<'_>) {
            *self.0.lock().unwrap() = Fields::of_event(event);
        }
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }
    let dispatch = Dispatch::new(Catch(Mutex::default()));
    with_default(&dispatch, || error!("NodeClaim.name" = "x", tries = 2, "failed"));
    let catch: &Catch = dispatch.downcast_ref().unwrap();
    catch.0.lock().unwrap().clone()
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let fault = Output::open("/nowhere/at/all/log", true).unwrap_err().to_string();
    assert!(
        fault.starts_with("cannot write the log to \"/nowhere/at/all/log\": "),
        "{fault}"
    );
}
