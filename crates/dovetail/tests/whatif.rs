//! `dovetail whatif` on the example dump: what people read, what programs read, and what is refused.
#![allow(clippy::unwrap_used, clippy::panic, reason = "the whole target is a test")]

use std::process::{Command, Output};

use serde_json::Value;

fn dovetail(arguments: &[&str]) -> Output {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/plan");
    Command::new(env!("CARGO_BIN_EXE_dovetail"))
        .arg("whatif")
        .args(["--from", example])
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn document(arguments: &[&str]) -> Value {
    let output = dovetail(&[arguments, &["-o", "json"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_first_line_says_what_the_change_comes_to() {
    let output = dovetail(&["--spot-price", "+40%", "--at-once"]);
    let out = text(&output.stdout);
    let first = out.lines().next().unwrap();
    assert!(first.starts_with("Spot +40%: ") && first.contains("/mo"), "{out}");
    assert!(out.contains("BEFORE") && out.contains("spend per month"), "{out}");
    assert!(text(&output.stderr).contains("source"), "{}", text(&output.stderr));
}

#[test]
fn the_document_has_both_sides_and_their_difference() {
    let answer = document(&["--zone-down", "a", "--at-once"]);
    assert_eq!(answer["kind"], "WhatIf");
    let number = |path: &str| {
        answer
            .pointer(path)
            .and_then(Value::as_f64)
            .unwrap_or_else(|| panic!("{path} in {answer}"))
    };
    let apart = number("/after/spend_usd_h") - number("/before/spend_usd_h");
    assert!((apart - number("/delta/usd_h")).abs() < 1e-6);
    let zones = answer["new_nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node["zone"].as_str().unwrap());
    assert!(zones.into_iter().all(|zone| !zone.ends_with('a')), "{answer}");
    assert!(!answer["removed_nodes"].as_array().unwrap().is_empty());
}

#[test]
fn a_condition_makes_the_answer_a_failure_for_ci() {
    let grows = dovetail(&["--spot-price", "+40%", "--at-once", "--fail-if", "delta_usd_mo > 0"]);
    assert_eq!(grows.status.code(), Some(3), "{}", text(&grows.stderr));
    let falls = dovetail(&["--spot-price", "-10%", "--at-once", "--fail-if", "delta_usd_mo > 0"]);
    assert_eq!(falls.status.code(), Some(0), "{}", text(&falls.stderr));
}

#[test]
fn what_cannot_be_asked_is_refused_in_three_lines_with_what_can() {
    let cases: [(&[&str], &str); 7] = [
        (&[], "nothing is changed"),
        (&["--zone-down", "zz"], "no one zone zz"),
        (&["--remove-node", "nobody"], "no node nobody"),
        (&["--scale", "deploy/nothing=4"], "no Deployment nothing"),
        (&["--spot-price", "+40%", "--fail-if", "wait > 3"], "no figure wait"),
        (&["-f", "/nowhere.yaml"], "cannot read"),
        (
            &["--set", "nodepool/general.spec.limts.cpu=3"],
            "a NodePool has no spec.limts: there is disruption, limits",
        ),
    ];
    for (arguments, expected) in cases {
        let output = dovetail(arguments);
        let error = text(&output.stderr);
        assert!(
            !output.status.success() && error.contains(expected),
            "{arguments:?}: {error}"
        );
        assert!(
            error.contains("\nwhy ") && error.contains("\nnext "),
            "{arguments:?}: {error}"
        );
    }
}

#[test]
fn a_manifest_that_the_api_server_rejects_is_refused_with_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pool.yaml");
    let pool = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: general}\nspec:\n  disruption:\n    budgets:\n    \
                - nodes: \"1\"\n      schedule: \"0 9 * * *\"\n      duration: \"14\"\n  template:\n    spec:\n      requirements: []\n      \
                nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n";
    std::fs::write(&file, pool).unwrap();
    let output = dovetail(&["-f", file.to_str().unwrap()]);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains("pool.yaml:9: NodePool general would be rejected"),
        "{error}"
    );
    assert!(error.contains("spec.disruption.budgets[0].duration"), "{error}");
}

#[test]
fn a_job_in_a_manifest_brings_its_pods() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("job.yaml");
    let job = |parallelism: u32| {
        let job = format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: night}}\nspec:\n  parallelism: {parallelism}\n  template:\n    \
             spec:\n      restartPolicy: Never\n      containers: [{{name: night, image: x, resources: {{requests: {{cpu: 3}}}}}}]\n"
        );
        std::fs::write(&file, job).unwrap();
    };
    let arguments = ["-f", file.to_str().unwrap(), "--at-once"];
    job(4);
    let answer = document(&arguments);
    assert!(
        answer["change"]
            .to_string()
            .contains("4 pods of Job default/night applied"),
        "{answer:#}"
    );
    assert!(!answer["new_nodes"].as_array().unwrap().is_empty(), "{answer:#}");
    job(2_000_000_000);
    let refused = dovetail(&arguments);
    let told = text(&refused.stderr);
    assert!(
        !refused.status.success() && told.contains("lower spec.parallelism"),
        "{told}"
    );
}

#[test]
fn more_replicas_than_any_cluster_runs_are_a_slip() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("web.yaml");
    let web = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 2000000000\n  \
        selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    \
        spec: {containers: [{name: web, image: x}]}\n";
    std::fs::write(&file, web).unwrap();
    let refused = dovetail(&["-f", file.to_str().unwrap()]);
    let told = text(&refused.stderr);
    assert!(
        !refused.status.success() && told.contains("no cluster runs more than"),
        "{told}"
    );
}
