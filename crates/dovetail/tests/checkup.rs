//! `dovetail drift` and `dovetail doctor` as a user runs them on a dump.
// Clippy sees tests only in test functions; here everything is one.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::{Value, json};

const AT: &str = "2026-11-16T15:42:00Z";

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dovetail"))
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn pool() -> Value {
    json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool",
        "metadata": {"name": "general", "uid": "11111111-1111-1111-1111-111111111111",
            "annotations": {"karpenter.sh/nodepool-hash": "1", "karpenter.sh/nodepool-hash-version": "v3"}},
        "spec": {
            "template": {"spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "expireAfter": "720h",
                "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}]}},
            "disruption": {"consolidationPolicy": "Balanced", "consolidateAfter": "5m", "budgets": [
                {"nodes": "1"}, {"nodes": "0", "schedule": "0 8 * * 1-5", "duration": "14h", "reasons": ["Drifted"]}]}},
        "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": ""}]}})
}

fn class() -> Value {
    json!({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"},
        "spec": {"role": "r", "amiSelectorTerms": [{"alias": "al2023@v20261103"}, {"alias": "al2023@v20261110"}],
            "subnetSelectorTerms": [{"tags": {"a": "b"}}], "securityGroupSelectorTerms": [{"tags": {"a": "b"}}]},
        "status": {"amis": [
            {"id": "ami-1103", "name": "amazon-eks-node-al2023-x86_64-standard-1.33-v20261103", "requirements": []},
            {"id": "ami-1110", "name": "amazon-eks-node-al2023-x86_64-standard-1.33-v20261110", "requirements": []}]}})
}

fn claim(number: usize, hash: &str, image: &str) -> Value {
    json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": format!("general-{number}"), "creationTimestamp": "2026-11-10T10:00:00Z",
            "labels": {"karpenter.sh/nodepool": "general", "karpenter.sh/capacity-type": "on-demand"},
            "annotations": {"karpenter.sh/nodepool-hash": hash, "karpenter.sh/nodepool-hash-version": "v3"}},
        "spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}, "requirements": []},
        "status": {"nodeName": format!("n{number}"), "providerID": format!("aws:///z/i-{number}"), "imageID": image,
            "conditions": [
                {"type": "Launched", "status": "True", "reason": "Launched", "message": ""},
                {"type": "Registered", "status": "True", "reason": "Registered", "message": ""}]}})
}

fn node(number: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": format!("n{number}"), "creationTimestamp": "2026-11-10T10:01:00Z",
            "labels": {"karpenter.sh/nodepool": "general"}},
        "spec": {"providerID": format!("aws:///z/i-{number}")}})
}

fn pod(name: &str, node: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u"}]},
        "spec": {"nodeName": node, "containers": [{"name": "a"}]}, "status": {"phase": "Running"}})
}

fn written(directory: &Path, name: &str, items: &[Value]) -> PathBuf {
    let path = directory.join(name);
    fs::write(
        &path,
        json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string(),
    )
    .unwrap();
    path
}

fn healthy() -> Vec<Value> {
    vec![
        pool(),
        class(),
        claim(1, "1", "ami-1103"),
        claim(2, "1", "ami-1110"),
        node(1),
        node(2),
        pod("web-1", "n1"),
        pod("web-2", "n2"),
    ]
}

fn document(command: &[&str]) -> Value {
    let output = run(command);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn a_fleet_that_is_as_asked_for_has_not_drifted() {
    let directory = tempfile::tempdir().unwrap();
    let dump = written(directory.path(), "dump.json", &healthy());
    let output = run(&["drift", "--from", dump.to_str().unwrap(), "--at", AT, "--exit-code"]);
    assert_eq!(text(&output.stdout), "No node has drifted: 2 nodes looked at.\n");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn drift_is_told_with_its_reason_and_waits_for_its_window() {
    let directory = tempfile::tempdir().unwrap();
    let mut objects = healthy();
    objects[2] = claim(1, "0", "ami-1103");
    objects[3] = claim(2, "1", "ami-gone");
    let dump = written(directory.path(), "dump.json", &objects);
    let from = dump.to_str().unwrap();
    let drift = document(&["drift", "--from", from, "--at", AT, "-o", "json"]);
    let nodes = drift["pools"][0]["nodes"].as_array().unwrap();
    let whys: Vec<_> = nodes
        .iter()
        .map(|node| (node["node"].as_str().unwrap(), node["why"].as_str().unwrap()))
        .collect();
    assert_eq!(whys, [("n1", "NodePoolDrifted"), ("n2", "AMIDrift")]);
    assert_eq!(
        drift["pools"][0]["starts_at"], "2026-11-16T22:00:00Z",
        "closed for drift from 8 to 22 on weekdays"
    );
    assert_eq!(drift["pools"][0]["waves"], 2);
    let output = run(&["drift", "--from", from, "--at", AT, "--exit-code"]);
    let shown = text(&output.stdout);
    assert!(
        shown.starts_with(
            "2 of 2 nodes have drifted: 1 AMIDrift, 1 NodePoolDrifted; the controller has marked none of them yet, "
        ),
        "{shown}"
    );
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn a_preview_tells_who_would_roll_and_what_touches_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let dump = written(directory.path(), "dump.json", &healthy());
    let from = dump.to_str().unwrap();
    let preview = |name: &str, object: Value| {
        let change = written(directory.path(), name, &[object]);
        let output = run(&[
            "drift",
            "--preview",
            "-f",
            change.to_str().unwrap(),
            "--from",
            from,
            "--at",
            AT,
        ]);
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let manifest = |mut object: Value| {
        object["metadata"].as_object_mut().unwrap().remove("annotations");
        object.as_object_mut().unwrap().remove("status");
        object
    };
    let mut pinned = manifest(class());
    pinned["spec"]["amiSelectorTerms"] = json!([{"alias": "al2023@v20261110"}]);
    let (_, shown, _) = preview("class.json", pinned);
    assert!(shown.contains("would roll 1 of 2 nodes, 1 pod: 1 AMIDrift."), "{shown}");

    let mut labelled = manifest(pool());
    labelled["spec"]["template"]["metadata"] = json!({"labels": {"example.com/team": "shop"}});
    let (_, shown, _) = preview("labelled.json", labelled);
    assert!(
        shown.contains("would roll 2 of 2 nodes, 2 pods: 2 NodePoolDrifted."),
        "{shown}"
    );

    let mut spot = manifest(pool());
    spot["spec"]["template"]["spec"]["requirements"][0]["values"] = json!(["spot"]);
    let (_, shown, _) = preview("spot.json", spot);
    assert!(shown.contains("2 RequirementsDrifted"), "{shown}");

    let mut calm = manifest(pool());
    calm["spec"]["disruption"]["consolidateAfter"] = json!("10m");
    calm["spec"]["weight"] = json!(10);
    let (code, shown, _) = preview("calm.json", calm);
    assert!(shown.starts_with("No node would roll"), "{shown}");
    assert_eq!(code, Some(0));

    let mut broken = manifest(pool());
    broken["spec"]["disruption"]["consolidationPolicy"] = json!("Sometimes");
    let (code, _, told) = preview("broken.json", broken);
    assert_eq!(code, Some(1));
    assert!(told.contains("NodePool general would be rejected"), "{told}");
}

fn checkup(objects: &[Value]) -> (Option<i32>, Vec<(String, String)>, String) {
    let directory = tempfile::tempdir().unwrap();
    let dump = written(directory.path(), "dump.json", objects);
    let from = dump.to_str().unwrap();
    let document = document(&["doctor", "--from", from, "--at", AT, "-o", "json"]);
    let checks = document["checks"].as_array().unwrap().iter().map(|check| {
        (
            check["id"].as_str().unwrap().to_owned(),
            check["state"].as_str().unwrap().to_owned(),
        )
    });
    let output = run(&["doctor", "--from", from, "--at", AT]);
    (output.status.code(), checks.collect(), text(&output.stdout))
}

fn state(checks: &[(String, String)], id: &str) -> String {
    let of_id = checks.iter().find(|(one, _)| one == id);
    of_id.map(|(_, state)| state.clone()).unwrap_or_default()
}

#[test]
fn a_healthy_dump_has_no_findings_and_says_what_a_dump_cannot_tell() {
    let (code, checks, shown) = checkup(&healthy());
    assert_eq!(code, Some(0), "{shown}");
    assert!(
        checks.iter().all(|(_, state)| state == "ok" || state == "skipped"),
        "{checks:?}"
    );
    assert_eq!(state(&checks, "D02"), "skipped");
    assert!(shown.contains("not asked on a dump"), "{shown}");
}

#[test]
fn stuck_and_lost_machines_are_found_with_what_they_wait_for() {
    let mut objects = healthy();
    let mut launching = claim(3, "1", "");
    launching["status"] = json!({"conditions": [{"type": "Launched", "status": "Unknown", "reason": "LaunchFailed",
        "message": "VcpuLimitExceeded"}]});
    let mut joining = claim(4, "1", "ami-1110");
    joining["status"]["conditions"][1]["status"] = json!("Unknown");
    let lost = claim(5, "1", "ami-1110");
    let mut going = claim(6, "1", "ami-1110");
    going["metadata"]["deletionTimestamp"] = json!("2026-11-13T10:00:00Z");
    let mut held = pod("pg-0", "n6");
    held["metadata"]["annotations"] = json!({"karpenter.sh/do-not-disrupt": "true"});
    let mut left = node(8);
    left["metadata"]["deletionTimestamp"] = json!("2026-11-13T10:00:00Z");
    left["metadata"]["finalizers"] = json!(["karpenter.sh/termination"]);
    objects.extend([launching, joining, node(6), lost, going, held, node(7), left]);
    let (code, checks, shown) = checkup(&objects);
    assert_eq!(code, Some(3), "{shown}");
    for (id, expected) in [
        ("D07", "stop"),
        ("D08", "stop"),
        ("D10", "warn"),
        ("D11", "warn"),
        ("D12", "warn"),
        ("D13", "stop"),
    ] {
        assert_eq!(state(&checks, id), expected, "{id}: {shown}");
    }
    for told in [
        "NodeClaim general-3 has not been launched for 6d 5h",
        "VcpuLimitExceeded",
        "NodeClaim general-6 has been deleting for 3d 5h",
        "pod shop/pg-0 is still there: karpenter.sh/do-not-disrupt: \"true\"",
        "Node n7 says it is of NodePool general, and has no NodeClaim",
    ] {
        assert!(shown.contains(told), "{told} is not in {shown}");
    }
}

#[test]
fn a_pool_that_is_not_ready_and_a_budget_that_never_allows_are_found() {
    let mut objects = healthy();
    objects[0]["status"]["conditions"][0]["status"] = json!("False");
    objects[0]["status"]["conditions"][0]["message"] = json!("NodeClass is not ready");
    objects.push(json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "pg", "namespace": "data"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "pg"}}}}));
    let (code, checks, shown) = checkup(&objects);
    assert_eq!(code, Some(3));
    assert_eq!(
        (state(&checks, "D05"), state(&checks, "D15")),
        ("stop".to_owned(), "warn".to_owned()),
        "{shown}"
    );
    assert!(
        shown.contains("NodePool general is not ready: NodeClass is not ready"),
        "{shown}"
    );
    assert!(
        shown.contains("PDB data/pg can never allow an eviction: maxUnavailable 0"),
        "{shown}"
    );
}

#[test]
fn drift_that_the_controller_has_not_marked_is_told_so_and_status_counts_what_it_marks() {
    let directory = tempfile::tempdir().unwrap();
    let mut objects = healthy();
    objects[2] = claim(1, "0", "ami-1103");
    let marked =
        json!({"type": "Drifted", "status": "True", "reason": "NodePoolDrifted", "message": "NodePoolDrifted"});
    objects[3]["status"]["conditions"].as_array_mut().unwrap().push(marked);
    let dump = written(directory.path(), "dump.json", &objects);
    let from = dump.to_str().unwrap();
    let told = text(&run(&["drift", "--from", from, "--at", AT]).stdout);
    assert!(
        told.starts_with("2 of 2 nodes have drifted: 2 NodePoolDrifted; the controller has not marked 1 of them yet, and status counts what it marks.\n"),
        "{told}"
    );
    let status = document(&["status", "--from", from, "--at", AT, "-o", "json"]);
    assert_eq!(status["pools"][0]["drifted"], 1, "{status:#}");
}

#[test]
fn drift_is_chosen_by_labels_and_keeps_to_the_screen() {
    let directory = tempfile::tempdir().unwrap();
    let mut objects = healthy();
    objects[2] = claim(1, "0", "ami-1103");
    objects[3] = claim(2, "1", "ami-gone");
    objects[3]["metadata"]["labels"]["team"] = json!("shop");
    objects[3]["status"]["nodeName"] = json!("ip-10-0-165-138.eu-central-1.compute.internal");
    let dump = written(directory.path(), "dump.json", &objects);
    let from = dump.to_str().unwrap();
    let told = text(&run(&["drift", "--from", from, "--at", AT, "-l", "team=shop", "--width", "80"]).stdout);
    assert!(told.starts_with("1 of 1 node has drifted: 1 AMIDrift"), "{told}");
    for line in told.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let none = run(&["drift", "--from", from, "--at", AT, "-l", "team=none"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(text(&none.stderr).starts_with("error   no NodeClaim has these labels\n"));
}

#[test]
fn what_a_source_does_not_hold_is_not_called_fine() {
    let directory = tempfile::tempdir().unwrap();
    let mut objects = healthy();
    objects[0]["spec"]["template"]["spec"]["requirements"][0]["values"] = json!(["spot"]);
    objects[0]["status"] = json!({});
    objects[0]["metadata"] = json!({"name": "general"});
    objects.push(
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web"}]}}}}),
    );
    let dump = written(directory.path(), "dump.json", &objects);
    let checkup = document(&["doctor", "--from", dump.to_str().unwrap(), "--at", AT, "-o", "json"]);
    let check = |id: &str| {
        let checks = checkup["checks"].as_array().unwrap();
        checks.iter().find(|check| check["id"] == id).unwrap().clone()
    };
    assert_eq!(check("D09")["state"], "skipped", "web is no controller: {checkup:#}");
    let told = "1 NodePool taken for ready: no controller has judged it";
    assert_eq!(check("D05")["text"], told, "{checkup:#}");
}
