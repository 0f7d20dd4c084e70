//! Does the oracle answer? Upstream's scheduler on generated snapshots, and on one whose plan is known beforehand.
//!
//! Needs Go: the reference is built from upstream's module on first use.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use workloads::diverse::{Types, diverse, preferences};
use workloads::object::{HOSTNAME, Object, kwok_node_class, node_pool, pod, unschedulable};
use workloads::{Shape, Snapshot, catalogue, gorand};

/// Runs the reference on a snapshot; its own words when it fails.
fn ask(command: &str, snapshot: &Snapshot) -> Result<Value, String> {
    let mut file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    file.write_all(&serde_json::to_vec(snapshot).unwrap()).unwrap();
    let program = rig::reference::program().unwrap();
    let output = Command::new(program).arg(command).arg(file.path()).output().unwrap();
    if !output.status.success() {
        return Err(format!(
            "{}: {}",
            snapshot.name(),
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

/// Every pod the plan speaks of, sorted.
fn pods_of(plan: &Value) -> Vec<String> {
    let placed = ["claims", "existing"]
        .into_iter()
        .flat_map(|part| plan[part].as_array().unwrap());
    let mut pods: Vec<String> = placed
        .flat_map(|place| place["pods"].as_array().unwrap())
        .map(|pod| pod.as_str().unwrap().to_string())
        .chain(plan["errors"].as_object().unwrap().keys().cloned())
        .collect();
    pods.sort();
    pods
}

#[test]
fn upstreams_benchmark_shapes_schedule_without_a_pod_left_over() {
    for snapshot in [
        diverse(50, Types::Fake400),
        diverse(50, Types::Assorted),
        preferences(50, Types::Fake400, true),
    ] {
        let plan = ask("solve", &snapshot).unwrap();
        assert_eq!(plan["errors"], json!({}), "{}", snapshot.name());
        let mut expected: Vec<String> = snapshot
            .of_kind("Pod")
            .map(|pod| format!("default/{}", pod.name()))
            .collect();
        expected.sort();
        assert_eq!(pods_of(&plan), expected, "{}", snapshot.name());
    }
}

#[test]
fn ten_pods_that_repel_each_other_take_ten_nodes() {
    // A fifth of the diverse pods carry hostname anti-affinity, and all others fit beside them.
    let plan = ask("solve", &diverse(50, Types::Fake400)).unwrap();
    assert_eq!(plan["claims"].as_array().unwrap().len(), 10);
}

/// Three pods over kwok's types: two that must not share a node, and one that wants arm64 on demand in zone b.
fn three_pods() -> Snapshot {
    let mut snapshot = Snapshot::new("three-pods", "by hand", catalogue::kwok(), &catalogue::KWOK_LABELS);
    let linux = json!([{ "key": "kubernetes.io/os", "operator": "In", "values": ["linux"] }]);
    snapshot
        .objects
        .push(node_pool("default", &kwok_node_class()).with("spec.template.spec.requirements", linux));
    let lonely = |name: &str| -> Object {
        unschedulable(pod("default", name, 500, 512))
            .entry("metadata.labels", "app", "lonely")
            .with(
                "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution",
                json!([{ "labelSelector": { "matchLabels": { "app": "lonely" } }, "topologyKey": HOSTNAME }]),
            )
    };
    let choosy = unschedulable(pod("default", "choosy", 3000, 6000))
        .entry("spec.nodeSelector", "kubernetes.io/arch", "arm64")
        .entry("spec.nodeSelector", "karpenter.sh/capacity-type", "on-demand")
        .entry("spec.nodeSelector", "topology.kubernetes.io/zone", "test-zone-b");
    snapshot.objects.extend([lonely("first"), lonely("second"), choosy]);
    snapshot
}

#[test]
fn three_pods_get_the_plan_their_constraints_force() {
    let plan = ask("solve", &three_pods()).unwrap();
    let mut claims: Vec<(Vec<&str>, f64)> = plan["claims"]
        .as_array()
        .unwrap()
        .iter()
        .map(|claim| {
            let pods = claim["pods"]
                .as_array()
                .unwrap()
                .iter()
                .map(|pod| pod.as_str().unwrap())
                .collect();
            (pods, claim["cheapestPrice"].as_f64().unwrap())
        })
        .collect();
    claims.sort_by(|a, b| a.0.cmp(&b.0));
    // The largest pod opens the first node and one of the lonely ones, equal in size, joins it: 3.5 of c-4x's 3.9 cores
    // and 6512 of its 8182 MiB, on demand in zone b for 4·0.025 + 8.589934592·0.001 dollars. The other one is alone on
    // the smallest type, spot: 0.7·(0.025 + 2.147483648·0.001).
    assert_eq!(plan["errors"], json!({}));
    assert_eq!(claims.len(), 2);
    let prices: Vec<f64> = claims.iter().map(|claim| claim.1).collect();
    let close = |price: f64, expected: f64| (price - expected).abs() < 1e-9;
    assert!(
        close(prices[0], 0.108_589_934_592) && close(prices[1], 0.019_003_238_553_6),
        "{claims:?}"
    );
    assert_eq!(
        (claims[0].0[0], claims[0].0.len(), claims[1].0.len()),
        ("default/choosy", 2, 1)
    );
}

#[test]
fn an_unknown_field_of_the_file_is_refused() {
    let refusal = ask("solve", &three_pods().setting("preferencesPolicy", "Ignore")).unwrap_err();
    assert!(refusal.contains("unknown field \"preferencesPolicy\""), "{refusal}");
}

/// The one machine with what a pod below asks for.
const SPECIAL: &str = "s-8x-amd64-linux";

/// One pod, and a catalogue in which every machine takes one volume but the special one two.
fn one_pod(pod: Object, needs: Vec<Object>) -> Snapshot {
    let mut snapshot = Snapshot::new("one-pod", "by hand", catalogue::kwok(), &catalogue::KWOK_LABELS)
        .setting("ignoreDRARequests", false);
    for it in &mut snapshot.instance_types {
        let limit = if it.name == SPECIAL { 2 } else { 1 };
        it.volume_attachment_limits
            .insert("csi.example.com".to_string(), json!(limit));
    }
    snapshot.objects.push(node_pool("default", &kwok_node_class()));
    snapshot.objects.push(unschedulable(pod));
    snapshot.objects.extend(needs);
    snapshot
}

/// The special machine of the catalogue.
fn special(snapshot: &mut Snapshot) -> &mut catalogue::InstanceType {
    let types = &mut snapshot.instance_types;
    types.iter_mut().find(|it| it.name == SPECIAL).unwrap()
}

/// A pod with two volumes of a class that any zone has.
fn with_two_volumes() -> Snapshot {
    let class = Object::new("storage.k8s.io/v1", "StorageClass", "", "disk").with("provisioner", "csi.example.com");
    let mut needs = vec![class.with("volumeBindingMode", "WaitForFirstConsumer")];
    let mut pod = pod("default", "stateful", 100, 128);
    for name in ["a", "b"] {
        let claim = Object::new("v1", "PersistentVolumeClaim", "default", name);
        needs.push(claim.with("spec.storageClassName", "disk"));
        pod = pod.push(
            "spec.volumes",
            json!({ "name": name, "persistentVolumeClaim": { "claimName": name } }),
        );
    }
    one_pod(pod, needs)
}

/// A pod that asks for what only one offering of the special machine has.
fn with_a_fuse() -> Snapshot {
    let fuse = json!({ "example.com/fuse": "1" });
    let container = json!({ "name": "fuse", "resources": { "requests": fuse, "limits": fuse } });
    let pod = pod("default", "fused", 100, 128).push("spec.containers", container);
    let mut snapshot = one_pod(pod, Vec::new());
    let offering = &mut special(&mut snapshot).offerings[0];
    offering
        .capacity_override
        .insert("example.com/fuse".to_string(), json!("1"));
    snapshot
}

/// A pod that claims two devices of one rack, which only the special machine is known to have.
fn with_devices() -> Snapshot {
    let class = Object::new("resource.k8s.io/v1", "DeviceClass", "", "gpu").with(
        "spec.selectors",
        json!([{ "cel": { "expression": "device.driver == \"gpu.example.com\"" } }]),
    );
    let exactly = json!({ "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2 });
    let claim = Object::new("resource.k8s.io/v1", "ResourceClaim", "default", "pair")
        .with("spec.devices.requests", json!([{ "name": "gpu", "exactly": exactly }]))
        .with(
            "spec.devices.constraints",
            json!([{ "matchAttribute": "example.com/rack" }]),
        );
    let pod = pod("default", "learner", 100, 128).push(
        "spec.resourceClaims",
        json!({ "name": "gpu", "resourceClaimName": "pair" }),
    );
    let mut snapshot = one_pod(pod, vec![class, claim]);
    let device = |name: &str| json!({ "driver": "gpu.example.com", "pool": "node", "device": name });
    for it in &mut snapshot.instance_types {
        it.dynamic_resources = json!({ "resourceSliceTemplates": [
            { "driver": "gpu.example.com", "pool": { "name": "node" }, "devices": [{ "name": "a" }, { "name": "b" }] },
        ] });
    }
    special(&mut snapshot).dynamic_resources["attributeBindings"] =
        json!([{ "attribute": "example.com/rack", "devices": [device("a"), device("b")] }]);
    snapshot
}

#[test]
fn what_only_one_type_has_decides_the_type() {
    for snapshot in [with_two_volumes(), with_a_fuse(), with_devices()] {
        let plan = ask("solve", &snapshot).unwrap();
        assert_eq!(plan["errors"], json!({}));
        assert_eq!(plan["claims"][0]["instanceTypes"], json!([SPECIAL]));
    }
}

#[test]
fn random_clusters_are_solved_and_consolidated_without_a_crash() {
    for seed in 0..40 {
        let snapshot = Shape::Random { seed }.generate();
        let plan = ask("solve", &snapshot).unwrap();
        assert_eq!(plan["warnings"], json!([]), "seed {seed}");
        ask("consolidate", &snapshot).unwrap();
    }
}

#[test]
fn a_fleet_after_scale_in_can_be_consolidated() {
    let result = ask("consolidate", &Shape::FleetMixed { pods: 100, seed: 1 }.generate()).unwrap();
    let methods: Vec<&str> = result["methods"]
        .as_array()
        .unwrap()
        .iter()
        .map(|method| method["name"].as_str().unwrap())
        .collect();
    assert_eq!(methods, ["empty", "multi", "single"]);
    assert_ne!(result["acts"], json!(""));
}

#[test]
fn the_recorded_draws_are_what_go_draws() {
    let program = rig::reference::program().unwrap();
    let output = Command::new(program)
        .args(["draws", "--seed", "42", "-n", "607"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), gorand::SEED_42);
}

#[test]
fn requirement_questions_are_answered_line_by_line() {
    let question = r#"{"a":[{"key":"k","operator":"In","values":["1","2"]}],"b":[{"key":"k","operator":"Gt","values":["1"]}],"values":["1","2"]}"#;
    let mut child = Command::new(rig::reference::program().unwrap())
        .arg("algebra")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(question.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&answer["sum"][0]["text"], &answer["sum"][0]["has"]),
        (&json!("k In [2]"), &json!([false, true]))
    );
}

#[test]
fn kwoks_catalogue_is_the_one_upstream_ships() {
    let module = rig::gomod::dir("sigs.k8s.io/karpenter", "v1.15.0").unwrap();
    let shipped: Vec<Value> = read(&module.join("kwok/cloudprovider/instance_types.json"));
    let ours = catalogue::kwok();
    assert_eq!(ours.len(), shipped.len());
    for (ours, shipped) in ours.iter().zip(&shipped) {
        assert_eq!(json!(ours.name), shipped["name"]);
        assert_eq!(json!(ours.capacity), shipped["resources"], "{}", ours.name);
        let offered: Vec<(Value, f64)> = ours
            .offerings
            .iter()
            .map(|offering| (json!(offering.requirements), offering.price.parse().unwrap()))
            .collect();
        let upstream = shipped["offerings"].as_array().unwrap();
        assert_eq!(offered.len(), upstream.len(), "{}", ours.name);
        for ((requirements, price), upstream) in offered.iter().zip(upstream) {
            assert_eq!(requirements, &upstream["Requirements"], "{}", ours.name);
            assert!(
                (price - upstream["Price"].as_f64().unwrap()).abs() < 1e-12,
                "{}",
                ours.name
            );
        }
    }
}

fn read(path: &Path) -> Vec<Value> {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}
