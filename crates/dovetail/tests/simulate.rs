//! `dovetail simulate` and `dovetail demo` as people and programs use them.
// Clippy sees tests only in test functions; here everything is one.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{
    fs,
    process::{Command, Output},
};

fn dovetail(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dovetail"));
    command.args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

const SMALL: &str = "{name: small, lasts: 40m, pools: [{name: general}], workloads: [{name: web, replicas: 2}], expect: [all pods run by 5m, at most 1 nodes]}";

#[test]
fn a_story_that_ends_well_exits_with_0_and_one_that_does_not_with_1() {
    let directory = tempfile::tempdir().unwrap();
    let (good, bad) = (directory.path().join("good.yaml"), directory.path().join("bad.yaml"));
    fs::write(&good, SMALL).unwrap();
    fs::write(&bad, SMALL.replace("at most 1 nodes", "no nodes")).unwrap();
    let played = dovetail(&["simulate", good.to_str().unwrap(), "-o", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&played.stdout).unwrap();
    assert_eq!((&report["runs"], &report["failed"]), (&1.into(), &0.into()), "{report}");
    assert!(report["runs_per_minute"].is_u64() && report["failures"].is_array());
    assert!(played.status.success());
    let played = dovetail(&["simulate", directory.path().to_str().unwrap(), "--seeds", "2"]);
    assert_eq!(played.status.code(), Some(1));
    let told = text(&played.stdout);
    assert!(
        told.contains("no nodes: 1 nodes are there, at most 0 should be"),
        "{told}"
    );
    assert!(told.contains("4 runs, 2 failed"), "{told}");
}

#[test]
fn a_failure_is_saved_as_a_scenario_that_fails_again() {
    let directory = tempfile::tempdir().unwrap();
    let (bad, saved) = (directory.path().join("bad.yaml"), directory.path().join("saved"));
    fs::write(&bad, SMALL.replace("at most 1 nodes", "no nodes")).unwrap();
    let arguments = ["--faults", "rough", "--seed", "5", "--save", saved.to_str().unwrap()];
    let played = dovetail(&[&["simulate", bad.to_str().unwrap()][..], &arguments[..]].concat());
    assert_eq!(played.status.code(), Some(1));
    let file = saved.join("small-5.yaml");
    let told = text(&played.stdout);
    assert!(told.contains(&format!("saved as {}", file.display())), "{told}");
    let again = dovetail(&["simulate", file.to_str().unwrap()]);
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stdout).contains("no nodes: "), "{}", text(&again.stdout));
}

#[test]
fn a_sweep_dies_at_every_step_of_a_story() {
    let directory = tempfile::tempdir().unwrap();
    let story = directory.path().join("story.yaml");
    fs::write(
        &story,
        "{name: tiny, lasts: 4m, pools: [{name: general}], workloads: [{name: web}], expect: [all pods run]}",
    )
    .unwrap();
    let played = dovetail(&["simulate", story.to_str().unwrap(), "--sweep", "-o", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&played.stdout).unwrap();
    assert!(played.status.success(), "{report}");
    let (runs, deaths) = (
        report["runs"].as_u64().unwrap(),
        report["scenarios"][0]["deaths"].as_u64().unwrap(),
    );
    assert!(runs >= 16, "{report}");
    assert_eq!(runs, deaths, "each run has its death");
}

#[test]
fn a_story_with_a_pool_that_no_api_server_takes_is_not_played() {
    let directory = tempfile::tempdir().unwrap();
    let (story, pools) = (directory.path().join("story.yaml"), directory.path().join("pools.yaml"));
    let pool = "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: x}, spec: {weight: 1000, template: {spec: \
                {requirements: [], nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}}}}";
    fs::write(
        &story,
        SMALL.replace("expect:", &format!("manifests: [{pool}], expect:")),
    )
    .unwrap();
    fs::write(&pools, pool).unwrap();
    let played = dovetail(&["simulate", story.to_str().unwrap()]);
    let told = text(&played.stderr);
    assert_eq!(played.status.code(), Some(1), "{told}");
    assert!(
        told.contains("story.yaml: manifests[0].spec.weight: Invalid value: 1000"),
        "{told}"
    );
    let played = dovetail(&["simulate", "scale-in", "--from", pools.to_str().unwrap()]);
    let told = text(&played.stderr);
    assert_eq!(played.status.code(), Some(1), "{told}");
    assert!(told.contains("NodePool x would be rejected"), "{told}");
}

#[test]
fn no_runs_are_no_proof() {
    let played = dovetail(&["simulate", "scale-in", "--seeds", "0"]);
    assert_eq!(played.status.code(), Some(2), "{}", text(&played.stderr));
}

#[test]
fn your_own_pools_are_used_instead_of_the_stories() {
    let directory = tempfile::tempdir().unwrap();
    let (story, dump) = (directory.path().join("story.yaml"), directory.path().join("dump.yaml"));
    fs::write(&story, SMALL).unwrap();
    // A pool that may have nothing: the story cannot end well with it.
    let pool = "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: mine}, spec: {limits: {cpu: '0'}, template: {spec: {nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: x}, requirements: []}}}}";
    fs::write(&dump, format!("{{apiVersion: v1, kind: List, items: [{pool}]}}")).unwrap();
    let played = dovetail(&["simulate", story.to_str().unwrap(), "--from", dump.to_str().unwrap()]);
    assert_eq!(played.status.code(), Some(1));
    assert!(
        text(&played.stdout).contains("2 of 2 pods do not run"),
        "{}",
        text(&played.stdout)
    );
}

#[test]
fn a_file_that_cannot_be_played_is_told_with_field_value_and_fix() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("bad.yaml");
    fs::write(&file, "{name: a, lasts: 40m, cloud: moon}").unwrap();
    let played = dovetail(&["simulate", file.to_str().unwrap()]);
    assert!(!played.status.success());
    let told = text(&played.stderr);
    assert!(
        told.contains("bad.yaml: cloud: \"moon\" is no cloud; write aws, azure or kwok"),
        "{told}"
    );
}

#[test]
fn a_demo_says_where_it_is_and_what_it_came_to() {
    let directory = tempfile::tempdir().unwrap();
    let kubeconfig = directory.path().join("config");
    let played = dovetail(&[
        "demo",
        "--cloud",
        "kwok",
        "--speed",
        "60x",
        "--seconds",
        "3",
        "--kubeconfig",
        kubeconfig.to_str().unwrap(),
    ]);
    let told = text(&played.stdout);
    assert!(played.status.success(), "{told}{}", text(&played.stderr));
    for part in [
        "export KUBECONFIG=",
        "kubectl scale deployment/web",
        "joins: ",
        "money ",
        "disruptions ",
    ] {
        assert!(told.contains(part), "{part} is missing in\n{told}");
    }
    assert!(
        fs::read_to_string(&kubeconfig)
            .unwrap()
            .contains("server: http://127.0.0.1:")
    );
}
