//! What commands say of objects between two states, and of what a dump holds by halves: claims without nodes, pods that are
//! going, gates, nodes that nobody read.
// Clippy sees tests only in test functions; here everything is one.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{fs, process::Command};

use serde_json::{Value, json};

const NOW: &str = "2026-11-16T15:42:00Z";

fn pool(limits: &Value) -> Value {
    json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "general"},
        "spec": {"limits": limits, "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"},
            "template": {"spec": {"requirements": [],
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}}}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]}})
}

fn node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "creationTimestamp": "2026-11-14T10:00:00Z", "labels": {
            "karpenter.sh/nodepool": "general", "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
            "karpenter.sh/capacity-type": "on-demand", "node.kubernetes.io/instance-type": "c-4x-amd64-linux",
            "topology.kubernetes.io/zone": "test-zone-a"}},
        "spec": {"providerID": format!("kwok://{name}")},
        "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}]}})
}

fn claim(name: &str, status: &Value) -> Value {
    json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": name, "creationTimestamp": "2026-11-16T15:20:00Z",
            "labels": {"karpenter.sh/nodepool": "general"}},
        "spec": {"requirements": [], "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}},
        "status": status})
}

fn claim_of(node: &str) -> Value {
    let done = |name: &str| json!({"type": name, "status": "True", "lastTransitionTime": "2026-11-14T10:00:30Z"});
    claim(
        &format!("claim-{node}"),
        &json!({"nodeName": node, "providerID": format!("kwok://{node}"),
            "conditions": [done("Launched"), done("Registered"), done("Initialized"), done("Consolidatable")]}),
    )
}

fn pod(name: &str, spec: &Value, more: &Value) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": "shop", "name": name, "creationTimestamp": "2026-11-16T12:00:00Z",
            "ownerReferences": [{"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": "etl", "uid": "u", "controller": true}]},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]},
        "status": {"phase": "Running"}});
    for (into, from) in [
        ("spec", spec),
        ("metadata", &more["metadata"]),
        ("status", &more["status"]),
    ] {
        for (key, value) in from.as_object().into_iter().flatten() {
            pod[into][key] = value.clone();
        }
    }
    pod
}

/// A pod that kube-scheduler finds no node for.
fn waiting(name: &str, spec: &Value) -> Value {
    let status = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]});
    pod(name, spec, &json!({ "status": status }))
}

fn asked(objects: &[Value], arguments: &[&str]) -> (Option<i32>, String) {
    let directory = tempfile::tempdir().unwrap();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    fs::write(directory.path().join("dump.json"), list.to_string()).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_dovetail"))
        .args(arguments)
        .args(["--from", directory.path().to_str().unwrap(), "--at", NOW])
        .output()
        .unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(!text.contains("panicked"), "{arguments:?}: {text}");
    (output.status.code(), text)
}

/// The first line of the answer.
fn answer(objects: &[Value], arguments: &[&str]) -> String {
    let (code, text) = asked(objects, arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {text}");
    text.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn a_claim_that_the_cloud_refuses_says_so_under_either_name() {
    let failed = json!({"conditions": [{"type": "Launched", "status": "Unknown", "reason": "LaunchFailed",
        "message": "insufficient capacity"}]});
    let objects = [pool(&json!({})), claim("general-x7", &failed)];
    for kind in ["nodeclaim", "node"] {
        assert_eq!(
            answer(&objects, &["why", kind, "general-x7"]),
            "nodeclaim/general-x7 has been launching for 22m: the cloud has not said yet that the instance runs \
             (LaunchFailed: insufficient capacity)."
        );
    }
}

#[test]
fn status_tells_of_a_claim_that_does_not_come_up_and_counts_no_price_for_it() {
    let failed = json!({"conditions": [{"type": "Launched", "status": "Unknown", "reason": "LaunchFailed",
        "message": "insufficient capacity"}]});
    let (_, text) = asked(
        &[pool(&json!({})), claim("general-x7", &failed)],
        &["status", "--width", "200"],
    );
    let expected = "stop   22m  NodeClaim general-x7 does not come up: the cloud has not said yet that the instance runs \
                    (LaunchFailed: insufficient capacity) [why nodeclaim general-x7]";
    assert!(text.contains(expected), "{text}");
    assert!(!text.contains("is not in the catalogue"), "{text}");
}

#[test]
fn a_pod_for_a_pool_that_is_not_ready_is_sent_to_that_pool() {
    let mut data = pool(&json!({}));
    data["metadata"]["name"] = json!("data");
    data["spec"]["template"]["metadata"] = json!({"labels": {"workload": "data"}});
    data["status"] = json!({"conditions": [{"type": "Ready", "status": "False", "reason": "UnhealthyDependents"}]});
    let wants = waiting("x", &json!({"nodeSelector": {"workload": "data"}}));
    let (_, text) = asked(&[pool(&json!({})), data, wants], &["why", "pod", "x"]);
    assert!(text.contains("NodePool data stops at pool state"), "{text}");
    assert!(text.contains("look at       dovetail why nodepool data"), "{text}");
    assert!(!text.contains("smallest fix"), "{text}");
}

#[test]
fn a_question_about_a_workload_is_sent_to_its_pods() {
    for words in [
        &["why", "deploy/web"][..],
        &["why", "deployment", "web"],
        &["why", "sts/web"],
    ] {
        let (code, text) = asked(&[pool(&json!({}))], words);
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains("next    dovetail why pod web\n"), "{text}");
    }
}

#[test]
fn an_overlay_that_a_controller_judged_counts_and_another_one_is_said_not_to() {
    let overlay = |status: &Value| {
        json!({"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": "cheap"},
            "spec": {"requirements": [], "price": "0.001"}, "status": status})
    };
    let objects = |status: &Value| [pool(&json!({})), overlay(status), waiting("x", &json!({}))];
    let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    let (_, text) = asked(&objects(&ready), &["plan", "--width", "200"]);
    assert!(
        text.contains("feature gate NodeOverlay is on: NodeOverlay cheap is Ready"),
        "{text}"
    );
    assert!(text.contains("$0.0010/h"), "{text}");
    let (_, text) = asked(&objects(&json!({})), &["plan", "--width", "200"]);
    assert!(
        text.contains("feature gate NodeOverlay is off, as it is unless asked for: 1 NodeOverlay not counted"),
        "{text}"
    );
    assert!(!text.contains("$0.0010/h"), "{text}");
}

#[test]
fn status_tells_of_a_machine_that_does_not_get_away() {
    let mut going = claim("general-x7", &json!({"providerID": "kwok://gone", "nodeName": "gone"}));
    going["metadata"]["deletionTimestamp"] = json!("2026-11-13T15:42:00Z");
    going["metadata"]["finalizers"] = json!(["karpenter.sh/termination"]);
    let (_, text) = asked(&[pool(&json!({})), going], &["status", "--width", "300"]);
    assert!(
        text.contains("nodeclaim general-x7 does not get away: its node is gone, and finalizer"),
        "{text}"
    );
}

#[test]
fn a_claim_that_goes_says_since_when_and_what_it_waits_for() {
    let mut going = claim("general-x7", &json!({"providerID": "kwok://gone", "nodeName": "gone"}));
    going["metadata"]["deletionTimestamp"] = json!("2026-11-13T15:42:00Z");
    going["metadata"]["finalizers"] = json!(["karpenter.sh/termination"]);
    let said = answer(&[pool(&json!({})), going], &["why", "nodeclaim", "general-x7"]);
    assert!(said.starts_with("nodeclaim/general-x7 has been going for 3d"), "{said}");
    assert!(said.contains("finalizer karpenter.sh/termination waits"), "{said}");
}

#[test]
fn a_pod_that_is_going_or_on_a_node_nobody_read_is_not_said_to_stay() {
    let gone = json!({"metadata": {"deletionTimestamp": "2026-11-16T15:12:00Z", "deletionGracePeriodSeconds": 30}});
    let objects = [
        pool(&json!({})),
        node("a"),
        claim_of("a"),
        pod("going", &json!({"nodeName": "a"}), &gone),
        pod("lost", &json!({"nodeName": "elsewhere"}), &json!({})),
        pod("plain", &json!({"nodeName": "a"}), &json!({})),
    ];
    let said = |name: &str| answer(&objects, &["why", "pod", name]);
    assert_eq!(
        said("going"),
        "shop/going is being deleted and still on a: its grace period ended 30m ago."
    );
    assert_eq!(
        said("lost"),
        "shop/lost has been on elsewhere for 3h 42m; that node is not among those read."
    );
    assert_eq!(
        said("plain"),
        "shop/plain has been on a for 3h 42m; nothing of its own keeps it there, and its node stays: \
         NodePool general has consolidateAfter: Never."
    );
}

#[test]
fn a_pod_nobody_tries_to_place_names_its_gate_and_one_with_its_own_scheduler_names_that() {
    let gated = pod(
        "gated",
        &json!({"schedulingGates": [{"name": "example.com/quota"}]}),
        &json!({"status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}}),
    );
    let objects = [
        pool(&json!({})),
        node("a"),
        claim_of("a"),
        gated,
        waiting("batch", &json!({"schedulerName": "volcano"})),
    ];
    assert_eq!(
        answer(&objects, &["why", "pod", "gated"]),
        "shop/gated has no node for 3h 42m, and none is launched for it: its scheduling gate example.com/quota is not lifted."
    );
    let said = answer(&objects, &["why", "pod", "batch"]);
    assert!(said.ends_with("a has room for it: volcano places it there."), "{said}");
}

#[test]
fn pods_of_one_owner_that_ask_for_different_things_are_told_of_apart() {
    let asking =
        |cpu: &str| json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}]});
    let objects = [
        pool(&json!({"cpu": "0"})),
        waiting("small-1", &asking("1")),
        waiting("small-2", &asking("1")),
        waiting("large", &asking("200")),
    ];
    let (_, text) = asked(&objects, &["plan"]);
    assert!(
        text.contains("Workflow/shop/etl: 2 pods that each want 1 cpu, 1Gi memory"),
        "{text}"
    );
    assert!(text.contains("shop/large wants 200 cpu, 1Gi memory"), "{text}");
}

#[test]
fn a_pool_above_its_limit_is_said_to_be_at_it() {
    let objects = [pool(&json!({"cpu": "3"})), node("a"), claim_of("a")];
    assert_eq!(
        answer(&objects, &["why", "nodepool", "general"]),
        "nodepool/general is ready but at limits.cpu: 4 of 3 used, so it launches nothing."
    );
    let (_, status) = asked(&objects, &["status"]);
    assert!(status.contains("NodePool general is at limits.cpu: 4 of 3"), "{status}");
}

#[test]
fn a_checkup_of_nothing_is_not_fine() {
    let (code, text) = asked(&[], &["doctor"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.starts_with("error   nothing to check in"), "{text}");
    let mut old = pool(&json!({}));
    old["apiVersion"] = json!("karpenter.sh/v1beta1");
    let (code, text) = asked(&[old], &["doctor"]);
    assert_eq!(code, Some(3), "{text}");
    assert!(
        text.contains("stop  D05  there is no NodePool of karpenter.sh/v1"),
        "{text}"
    );
    assert!(text.contains("have version karpenter.sh/v1beta1"), "{text}");
}

#[test]
fn every_command_dates_a_dump_alike() {
    let mut objects = vec![pool(&json!({})), node("a"), claim_of("a")];
    objects[1]["status"]["conditions"][0]["lastHeartbeatTime"] = json!("2026-11-16T16:00:00Z");
    let directory = tempfile::tempdir().unwrap();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    fs::write(directory.path().join("dump.json"), list.to_string()).unwrap();
    let as_of = |command: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_dovetail"))
            .args([command, "-o", "json", "--from", directory.path().to_str().unwrap()])
            .output()
            .unwrap();
        let document: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{command}: {output:?}"));
        document["as_of"].as_str().unwrap().to_owned()
    };
    for command in ["plan", "cost", "drift", "doctor"] {
        assert_eq!(as_of(command), as_of("status"), "{command}");
    }
}

#[test]
fn quiet_leaves_a_document_whole_in_yaml_too() {
    let (_, text) = asked(
        &[pool(&json!({})), node("a"), claim_of("a")],
        &["status", "-q", "-o", "yaml"],
    );
    assert!(text.contains("\nkind: Status\n"), "{text}");
}

#[test]
fn an_archive_is_read_by_every_command_and_no_line_is_wider_than_the_screen() {
    let directory = tempfile::tempdir().unwrap();
    let mut office = pool(&json!({}));
    office["spec"]["disruption"]["budgets"] = json!([{"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h", "reasons": ["Underutilized"]}, {"nodes": "1"}]);
    let mut drifted = claim_of("ip-10-0-116-209.eu-central-1.compute.internal");
    drifted["metadata"]["annotations"] =
        json!({"karpenter.sh/nodepool-hash": "1", "karpenter.sh/nodepool-hash-version": "v3"});
    office["metadata"]["annotations"] =
        json!({"karpenter.sh/nodepool-hash": "2", "karpenter.sh/nodepool-hash-version": "v3"});
    let objects = [office, node("ip-10-0-116-209.eu-central-1.compute.internal"), drifted];
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    fs::write(directory.path().join("dump.json"), list.to_string()).unwrap();
    let archive = directory.path().join("dump.tar.gz");
    let packed = Command::new("tar")
        .arg("czf")
        .arg(&archive)
        .arg("-C")
        .arg(directory.path())
        .arg("dump.json")
        .status()
        .unwrap();
    assert!(packed.success());
    let mut wide = Vec::new();
    for command in [
        &["lint"][..],
        &["drift"],
        &["doctor"],
        &["budgets"],
        &["status"],
        &["whatif", "--spot-price", "+9%"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_dovetail"))
            .args(command)
            .args(["--from", archive.to_str().unwrap(), "--at", NOW, "--width", "80"])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            text.lines().count() > 2,
            "{command:?}: {text} {}",
            String::from_utf8_lossy(&output.stderr)
        );
        // A command to type is never broken.
        let lines = text.lines().filter(|line| !line.contains(" fix    "));
        wide.extend(
            lines
                .filter(|line| line.chars().count() > 80)
                .map(|line| format!("{command:?}: {line}")),
        );
    }
    assert!(wide.is_empty(), "{}", wide.join("\n"));
}

#[test]
fn an_object_can_be_meant_by_its_labels_and_a_pod_that_waits_comes_first() {
    let labelled = |mut pod: Value| {
        pod["metadata"]["labels"] = json!({"app": "web"});
        pod
    };
    let objects = [
        pool(&json!({})),
        node("a"),
        claim_of("a"),
        labelled(pod("runs", &json!({"nodeName": "a"}), &json!({}))),
        labelled(waiting("waits", &json!({}))),
    ];
    let (code, text) = asked(&objects, &["why", "pod", "-l", "app=web"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.starts_with("shop/waits has been pending"), "{text}");
    assert!(
        text.contains("2 pods have these labels: this is about shop/waits"),
        "{text}"
    );
    let said = answer(
        &objects,
        &["why", "node", "-l", "topology.kubernetes.io/zone in (test-zone-a)"],
    );
    assert!(said.starts_with("node/a stays"), "{said}");
    let (code, text) = asked(&objects, &["why", "pod", "-l", "app=none"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.starts_with("error   no pod has these labels"), "{text}");
}

#[test]
fn a_share_of_nothing_is_not_printed() {
    let empty = [pool(&json!({}))];
    let idle = [pool(&json!({})), node("a"), claim_of("a")];
    for objects in [&empty[..], &idle[..]] {
        for command in ["status", "cost"] {
            let (code, text) = asked(objects, &[command]);
            assert_eq!(code, Some(0), "{text}");
            assert!(!text.contains("at most -") && !text.contains("(-)"), "{text}");
        }
    }
}
