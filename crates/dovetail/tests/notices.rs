//! What the cloud said about machines and what came of it, as `why` and `status` tell it: from a dump, a snapshot, a cluster.
// Clippy sees tests only in test functions; here everything is one.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::{Value, json};

const FIXTURE: &str = "crates/dovetail/tests/fixtures/prod-us";
const NOW: &str = "2026-11-16T15:42:00Z";
const NODE: &str = "ip-10-0-165-138.ec2.internal";
const CLAIM: &str = "batch-spot-b9b7b";

fn ask(arguments: &[&str], more: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dovetail"))
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .args(arguments)
        .args(["--from", FIXTURE])
        .arg(more)
        .args(["--at", NOW])
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn event(reason: &str, kind: &str, name: &str, at: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": format!("{name}.{reason}"), "namespace": "default"},
        "reason": reason, "message": "words", "type": "Warning", "involvedObject": {"kind": kind, "name": name},
        "firstTimestamp": format!("2026-11-16T{at}Z"), "lastTimestamp": format!("2026-11-16T{at}Z")})
}

/// A file with Events: a recommendation and an interruption of one machine, and a health warning about another.
fn events(folder: &Path) -> PathBuf {
    let items = [
        event("SpotRebalanceRecommendation", "Node", NODE, "15:20:00"),
        event("SpotInterrupted", "NodeClaim", CLAIM, "15:30:00"),
        event("SpotInterrupted", "Node", NODE, "15:30:00"),
        event("TerminatingOnInterruption", "NodeClaim", CLAIM, "15:30:02"),
        event("InstanceUnhealthy", "NodeClaim", "gone-1", "15:31:00"),
    ];
    let file = folder.join("events.json");
    fs::write(
        &file,
        json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string(),
    )
    .unwrap();
    file
}

#[test]
fn a_node_tells_what_the_cloud_said_of_it_and_what_was_done() {
    let folder = tempfile::tempdir().unwrap();
    let file = events(folder.path());
    for question in [["why", "node", NODE], ["why", "nodeclaim", CLAIM]] {
        let told = text(&ask(&question, &file).stdout);
        assert!(
            told.contains("notices    15:20:00 rebalance recommendation; nothing was done\n"),
            "{told}"
        );
        assert!(
            told.contains("           15:30:00 spot interruption; drained for it at 15:30:02\n"),
            "{told}"
        );
    }
    let others = text(&ask(&["why", "node", "ip-10-0-2-84"], &file).stdout);
    assert!(!others.contains("notices"), "{others}");
}

#[test]
fn status_counts_machines_and_not_events() {
    let folder = tempfile::tempdir().unwrap();
    let file = events(folder.path());
    let told = text(&ask(&["status"], &file).stdout);
    let line = told
        .lines()
        .find(|line| line.starts_with("notices"))
        .unwrap_or_default();
    assert_eq!(
        line,
        "notices   1 health warning, 1 rebalance recommendation, 1 spot interruption since 15:20 UTC; 1 node drained for them"
    );
    let document: Value = serde_json::from_slice(&ask(&["status", "-o", "json"], &file).stdout).unwrap();
    assert_eq!(document["notices"]["machines"]["spot interruption"], 1);
}

#[test]
fn a_source_without_events_and_decisions_says_nothing_of_notices() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("none.json");
    fs::write(
        &file,
        json!({"apiVersion": "v1", "kind": "List", "items": []}).to_string(),
    )
    .unwrap();
    let told = text(&ask(&["status"], &file).stdout);
    assert!(!told.contains("notices"), "{told}");
}

#[test]
fn a_machine_that_is_gone_is_told_of_by_the_decision_that_took_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("decisions.jsonl");
    let record = json!({"id": "6c59aa00bb11", "time": "2026-11-16T15:15:11Z", "last_seen": "2026-11-16T15:16:35Z",
        "action": "delete", "phase": "done", "reason": "Interrupted", "pool": "general", "detail": "spot interruption",
        "nodes": 1, "targets": [{"node": "ip-10-0-74-48", "claim": "general-x", "type": "m6i.2xlarge"}]});
    fs::write(&file, format!("{record}\n")).unwrap();
    // What only holds decisions is no dump of a cluster, so it stands beside one that has a ConfigMap.
    fs::write(
        folder.path().join("maps.json"),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": "default"}})
            .to_string(),
    )
    .unwrap();
    let output = ask(&["why", "nodeclaim", "general-x"], folder.path());
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(
        told.contains("it is gone; the last decision about it: deleted m6i.2xlarge ip-10-0-74-48, Interrupted at 2026-11-16T15:15:11Z"),
        "{told}"
    );
    assert!(told.contains("next    dovetail why 6c59aa00bb11"), "{told}");
}
