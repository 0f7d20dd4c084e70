//! Which daemons count on nodes to come and on nodes there are.

#![expect(clippy::needless_pass_by_value, reason = "literals read better by value")]

use serde_json::{Value, json};

use crate::{
    Options,
    demand::fixture::{bound, instance_type, node_pool, object, snapshot_with},
    supply::Supply,
};

const ARCH: &str = "kubernetes.io/arch";
const TYPE: &str = "node.kubernetes.io/instance-type";

fn requests(cpu: &str) -> Value {
    json!([{ "name": "c", "resources": { "requests": { "cpu": cpu } } }])
}

fn daemon_set(name: &str, mut spec: Value) -> Value {
    if spec["containers"].is_null() {
        spec["containers"] = requests("100m");
    }
    let parts = json!({ "metadata": { "uid": name }, "spec": { "template": { "spec": spec } } });
    object("apps/v1", "DaemonSet", "ns", name, parts)
}

/// A pod of a DaemonSet, made at a time.
fn daemon_pod(set: &str, name: &str, created: &str, spec: Value) -> Value {
    let owner = json!([{ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": set, "uid": set, "controller": true }]);
    let metadata = json!({ "ownerReferences": owner, "creationTimestamp": created });
    bound(name, "n", json!({ "metadata": metadata, "spec": spec }))
}

fn terms(terms: &[(&str, &str)]) -> Value {
    let term = |(key, value): &(&str, &str)| json!({ "matchExpressions": [{ "key": key, "operator": "In", "values": [value] }] });
    let terms: Vec<_> = terms.iter().map(term).collect();
    json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms } } })
}

fn tainted(effect: &str) -> Value {
    node_pool(
        "p",
        json!({ "spec": { "template": { "spec": { "taints": [{ "key": "t", "effect": effect }] } } } }),
    )
}

fn supply(objects: Vec<Value>) -> Supply {
    let types = ["a", "b"].map(|name| instance_type(name, "4", &["z"]));
    let snapshot = snapshot_with(json!({ "instanceTypes": types }), objects);
    Supply::of(&snapshot, &Options::default())
}

/// The groups of the only template as `types: daemons overhead`.
fn groups(pool: Value, daemons: Vec<Value>) -> Vec<String> {
    let supply = supply([vec![pool], daemons].concat());
    let template = &supply.templates[0];
    let group = |group: &super::DaemonGroup| {
        let types: Vec<_> = group
            .types
            .iter()
            .map(|at| template.types[*at].name.to_string())
            .collect();
        let daemons: Vec<_> = group.daemons.iter().map(|key| key.name.to_string()).collect();
        format!("{}: {} {}", types.join(" "), daemons.join(" "), group.overhead)
    };
    template.daemons.iter().map(group).collect()
}

fn plain() -> Value {
    node_pool("p", json!({}))
}

#[test]
fn types_are_grouped_by_the_daemons_they_run() {
    let only_b = daemon_set(
        "only-b",
        json!({ "nodeSelector": { TYPE: "b" }, "containers": requests("1") }),
    );
    let arm = daemon_set("arm", json!({ "nodeSelector": { ARCH: "arm64" } }));
    let everywhere = daemon_set("everywhere", json!({}));
    let expected = [
        r#"a: everywhere {"cpu":"100m","pods":"1"}"#,
        r#"b: everywhere only-b {"cpu":"1100m","pods":"2"}"#,
    ];
    assert_eq!(groups(plain(), vec![only_b, arm, everywhere]), expected);
    assert_eq!(groups(plain(), vec![]), ["a b:  {}"]);
}

#[test]
fn only_hard_taints_keep_a_daemon_away() {
    let daemons = || vec![daemon_set("d", json!({}))];
    assert_eq!(
        groups(tainted("PreferNoSchedule"), daemons()),
        [r#"a b: d {"cpu":"100m","pods":"1"}"#]
    );
    assert_eq!(groups(tainted("NoSchedule"), daemons()), ["a b:  {}"]);
}

#[test]
fn daemon_that_waits_for_a_started_node_counts_and_one_that_asks_for_an_unknown_label_does_not() {
    let started = daemon_set(
        "started",
        json!({ "affinity": terms(&[("karpenter.sh/initialized", "true")]) }),
    );
    let unknown = daemon_set("unknown", json!({ "affinity": terms(&[("team", "x")]) }));
    assert_eq!(
        groups(plain(), vec![started, unknown]),
        [r#"a b: started {"cpu":"100m","pods":"1"}"#]
    );
}

#[test]
fn alternatives_that_were_given_up_stay_given_up() {
    // Type a fails the first term and takes the second, so type b never sees the first again.
    let spec = json!({ "affinity": terms(&[(TYPE, "b"), (TYPE, "a")]) });
    assert_eq!(
        groups(plain(), vec![daemon_set("d", spec)]),
        [r#"a: d {"cpu":"100m","pods":"1"}"#, "b:  {}"]
    );
    let spec = json!({ "affinity": terms(&[(ARCH, "arm64"), (ARCH, "amd64")]) });
    assert_eq!(
        groups(plain(), vec![daemon_set("d", spec)]),
        [r#"a b: d {"cpu":"100m","pods":"1"}"#]
    );
}

#[test]
fn newest_pod_stands_for_its_set_but_for_the_template_s_node_affinity() {
    let pinned = terms(&[("kubernetes.io/hostname", "n")]);
    let pod = |name: &str, created: &str, cpu: &str| {
        daemon_pod(
            "d",
            name,
            created,
            json!({ "containers": requests(cpu), "affinity": pinned }),
        )
    };
    let with_affinity = daemon_set("d", json!({ "affinity": terms(&[(ARCH, "amd64")]) }));
    let pods = vec![
        pod("d-1", "2026-11-15T12:00:00Z", "2"),
        pod("d-0", "2026-11-15T11:00:00Z", "1"),
    ];
    let expected = [r#"a b: d-1 {"cpu":"2","pods":"1"}"#];
    assert_eq!(groups(plain(), [vec![with_affinity], pods.clone()].concat()), expected);
    let without_affinity = daemon_set("d", json!({}));
    assert_eq!(groups(plain(), [vec![without_affinity], pods].concat()), ["a b:  {}"]);
}

#[test]
fn limits_stand_for_missing_requests_of_a_template() {
    let containers = json!([{ "name": "c", "resources": { "requests": { "cpu": "1" }, "limits": { "cpu": "2", "memory": "1Gi" } } }]);
    let expected = [r#"a b: d {"cpu":"1","memory":"1Gi","pods":"1"}"#];
    assert_eq!(
        groups(plain(), vec![daemon_set("d", json!({ "containers": containers }))]),
        expected
    );
}

#[test]
fn daemon_that_claims_devices_is_left_out_while_device_claims_are_ignored() {
    let spec = json!({ "resourceClaims": [{ "name": "gpu", "resourceClaimName": "g" }] });
    assert_eq!(groups(plain(), vec![daemon_set("d", spec)]), ["a b:  {}"]);
}

#[test]
fn ports_of_daemons_are_taken_in_their_group() {
    let containers = json!([{ "name": "c", "ports": [{ "containerPort": 1, "hostPort": 80, "protocol": "TCP" }] }]);
    let supply = supply(vec![plain(), daemon_set("d", json!({ "containers": containers }))]);
    let [(key, ports)] = &supply.templates[0].daemons[0].ports[..] else {
        panic!("one daemon with ports")
    };
    assert_eq!((key.to_string(), ports[0].port), ("ns/d".to_owned(), 80));
}

/// The room of a node with these labels and taints, of four cores and ten pods.
fn room(labels: Value, taints: Value, others: Vec<Value>) -> String {
    let parts = json!({ "metadata": { "labels": labels }, "spec": { "taints": taints },
        "status": { "allocatable": { "cpu": "4", "pods": "10" } } });
    let node = object("v1", "Node", "", "n", parts);
    supply([vec![plain(), node], others].concat()).nodes[0]
        .remaining
        .to_string()
}

#[test]
fn node_keeps_room_for_daemons_that_its_labels_and_taints_admit_and_that_are_not_there_yet() {
    let amd = || {
        daemon_set(
            "amd",
            json!({ "nodeSelector": { ARCH: "amd64" }, "containers": requests("1") }),
        )
    };
    let labelled = || json!({ ARCH: "amd64" });
    let tainted = json!([{ "key": "t", "effect": "NoSchedule" }]);
    let running = daemon_pod(
        "amd",
        "amd-0",
        "2026-11-15T12:00:00Z",
        json!({ "nodeSelector": labelled(), "containers": requests("1") }),
    );
    assert_eq!(room(labelled(), json!([]), vec![amd()]), r#"{"cpu":"3","pods":"9"}"#);
    assert_eq!(
        room(json!({}), json!([]), vec![amd()]),
        r#"{"cpu":"4","pods":"10"}"#,
        "undefined is not open"
    );
    assert_eq!(room(labelled(), tainted, vec![amd()]), r#"{"cpu":"4","pods":"10"}"#);
    assert_eq!(
        room(labelled(), json!([]), vec![amd(), running]),
        r#"{"cpu":"3","pods":"9"}"#,
        "counted once"
    );
}

#[test]
fn unexpected_daemon_on_a_node_makes_no_room_for_others() {
    let expected = daemon_set("expected", json!({ "containers": requests("1") }));
    let stray = daemon_pod(
        "stray",
        "stray-0",
        "2026-11-15T12:00:00Z",
        json!({ "containers": requests("2") }),
    );
    assert_eq!(
        room(json!({}), json!([]), vec![expected, stray]),
        r#"{"cpu":"2","pods":"9"}"#
    );
}
