//! Do our objects keep everything upstream's scheduler reads? A generated file and the same file after `model` read and
//! wrote it are put to upstream, which must answer both alike.
//!
//! Upstream breaks ties by map order, so one file may have several answers. Two files are told apart by a field of the
//! answer only when no run on the one gives what any run on the other gave; the first runs nearly always agree.
//!
//! Needs Go: the reference is built from upstream's module on first use.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use model::dump;
use serde_json::{Value, json};
use workloads::diverse::{Types, diverse, preferences};
use workloads::object::{HOSTNAME, Object, ZONE, kwok_node_class, node_pool, pod, unschedulable};
use workloads::performance::Scenario;
use workloads::{Shape, Snapshot, catalogue};

/// How often each file is asked before their answers count as different.
const RUNS: usize = 12;

/// Writes the generated file, and beside it what `model` makes of it.
fn both_files(snapshot: &Snapshot, dir: &Path) -> [PathBuf; 2] {
    let [original, slim] = ["original.json", "slim.json"].map(|name| dir.join(name));
    std::fs::write(&original, serde_json::to_vec(snapshot).unwrap()).unwrap();
    let options = dump::Options {
        mode: dump::Mode::Strict,
        taken_at: jiff::Timestamp::UNIX_EPOCH,
    };
    let (read, _) = dump::read([dump::Source::Path(original.clone())], options).unwrap();
    let mut out = BufWriter::new(File::create(&slim).unwrap());
    dump::write(&read, &mut out).unwrap();
    out.flush().unwrap();
    [original, slim]
}

fn ask(command: &str, file: &Path) -> Value {
    let output = Command::new(rig::reference::program().unwrap())
        .arg(command)
        .arg(file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What of a plan must not depend on who wrote the file: each field by itself.
fn plan(file: &Path) -> Vec<(&'static str, Value)> {
    let plan = ask("solve", file);
    let claims = plan["claims"].as_array().unwrap();
    let pods = |part: &str| -> usize {
        let places = plan[part].as_array().unwrap().iter();
        places.map(|place| place["pods"].as_array().unwrap().len()).sum()
    };
    let failed: BTreeSet<&String> = plan["errors"].as_object().unwrap().keys().collect();
    vec![
        ("pods", plan["pods"].clone()),
        ("claims", json!(claims.len())),
        ("pods on claims and on nodes", json!([pods("claims"), pods("existing")])),
        ("pods with errors", json!(failed)),
        ("ignored", plan["ignored"].clone()),
        ("warnings", plan["warnings"].clone()),
        ("price", price(&plan)),
    ]
}

/// The price to about one per cent, which is how far upstream's own runs are apart.
fn price(plan: &Value) -> Value {
    let price = plan["price"].as_f64().unwrap();
    json!(format!("{:.0}", 100.0 * price.max(1e-6).ln()))
}

/// What each method of consolidation looked at and what it said.
fn consolidation(file: &Path) -> Vec<(&'static str, Value)> {
    let answer = ask("consolidate", file);
    let each = |field: &str| -> Value {
        let methods = answer["methods"].as_array().unwrap().iter();
        methods.map(|method| method[field].clone()).collect()
    };
    vec![
        ("candidates", sorted(each("candidates"))),
        ("budgets", each("budgets")),
        ("reasons", reasons(each("events"))),
        ("acts", answer["acts"].clone()),
    ]
}

/// Each method's candidates by node, with their disruption cost, and their price as far as `model` keeps it.
fn sorted(mut methods: Value) -> Value {
    for candidates in methods.as_array_mut().unwrap() {
        let candidates = candidates.as_array_mut().unwrap();
        candidates.sort_by_key(|candidate| candidate["node"].to_string());
        for candidate in candidates {
            candidate["price"] = json!(format!("{:.9}", candidate["price"].as_f64().unwrap()));
        }
    }
    methods
}

/// What each method published per node, up to the first comma: what follows are scheduling errors in no fixed order.
fn reasons(mut methods: Value) -> Value {
    for nodes in methods.as_array_mut().unwrap() {
        let messages = nodes.as_object_mut().unwrap().values_mut();
        for message in messages.flat_map(|messages| messages.as_array_mut().unwrap()) {
            let reason = message.as_str().unwrap().split(',').next().unwrap();
            *message = json!(reason);
        }
    }
    methods
}

type Question = fn(&Path) -> Vec<(&'static str, Value)>;

/// The fields on which the two files never agreed, with all that was answered.
fn differences(question: Question, files: &[PathBuf; 2]) -> Vec<(&'static str, Vec<String>, Vec<String>)> {
    let mut answers = [Vec::new(), Vec::new()];
    let mut open: Vec<&'static str> = Vec::new();
    for _ in 0..RUNS {
        for (file, answers) in files.iter().zip(&mut answers) {
            answers.push(question(file));
        }
        open = answers[0][0].iter().map(|(field, _)| *field).collect();
        open.retain(|field| values(&answers[0], field).is_disjoint(&values(&answers[1], field)));
        if open.is_empty() {
            break;
        }
    }
    let seen = |side: usize, field: &str| values(&answers[side], field).into_iter().collect();
    open.into_iter()
        .map(|field| (field, seen(0, field), seen(1, field)))
        .collect()
}

/// Everything a field was in any of the answers.
fn values(answers: &[Vec<(&'static str, Value)>], wanted: &str) -> BTreeSet<String> {
    let fields = answers.iter().flatten().filter(|(field, _)| *field == wanted);
    fields.map(|(_, value)| value.to_string()).collect()
}

fn assert_same(question: Question, snapshot: &Snapshot) {
    let dir = tempfile::tempdir().unwrap();
    let files = both_files(snapshot, dir.path());
    assert_eq!(
        differences(question, &files),
        [],
        "{}: original, then as model wrote it",
        snapshot.name()
    );
}

#[test]
fn benchmark_shapes_are_solved_alike_after_model_wrote_them() {
    for snapshot in [
        diverse(50, Types::Fake400),
        diverse(100, Types::Fake400),
        diverse(100, Types::Assorted),
        preferences(50, Types::Fake400, true),
        Shape::Mixed { pods: 200, seed: 1 }.generate(),
        Shape::Performance(Scenario::Basic).generate(),
    ] {
        assert_same(plan, &snapshot);
    }
}

#[test]
fn random_clusters_are_solved_alike_after_model_wrote_them() {
    for seed in 0..20 {
        assert_same(plan, &Shape::Random { seed }.generate());
    }
}

#[test]
fn random_clusters_are_consolidated_alike_after_model_wrote_them() {
    for seed in 0..20 {
        assert_same(consolidation, &Shape::Random { seed }.generate());
    }
}

/// Pods whose placement turns on what is there and empty, or not there at all: name, path in the pod, value.
fn corner_cases() -> Vec<(&'static str, &'static str, Value)> {
    const NEIGHBOURS: &str = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution";
    const NODES: &str = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution";
    let near = |term: Value| json!([term]);
    let spread = |selector: Value| json!([{ "maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector }]);
    let container = |resources: Value| json!([{ "name": "main", "resources": resources }]);
    let claimed = |name: &str| json!([{ "name": "data", "persistentVolumeClaim": { "claimName": name } }]);
    let port = |ip: &str| json!([{ "name": "main", "ports": [{ "containerPort": 80, "hostPort": 80, "hostIP": ip }] }]);
    vec![
        (
            "all-neighbours",
            NEIGHBOURS,
            near(json!({ "labelSelector": {}, "topologyKey": HOSTNAME })),
        ),
        ("no-neighbours", NEIGHBOURS, near(json!({ "topologyKey": HOSTNAME }))),
        (
            "all-namespaces",
            NEIGHBOURS,
            near(json!({ "labelSelector": {}, "namespaceSelector": {}, "topologyKey": HOSTNAME })),
        ),
        ("spread-all", "spec.topologySpreadConstraints", spread(json!({}))),
        ("spread-none", "spec.topologySpreadConstraints", spread(Value::Null)),
        ("no-terms", NODES, json!({ "nodeSelectorTerms": [] })),
        ("empty-term", NODES, json!({ "nodeSelectorTerms": [{}] })),
        (
            "by-field",
            NODES,
            json!({ "nodeSelectorTerms": [{ "matchFields": [
            { "key": "metadata.name", "operator": "In", "values": ["nowhere"] }] }] }),
        ),
        (
            "only-limits",
            "spec.containers",
            container(json!({ "limits": { "cpu": "3", "memory": "4Gi" } })),
        ),
        (
            "pod-level-limits",
            "spec.resources",
            json!({ "limits": { "cpu": "5" } }),
        ),
        (
            "odd-units",
            "spec.containers",
            container(json!({ "requests": { "cpu": "1e-1", "memory": "1.5e9", "hugepages-2Mi": "0" } })),
        ),
        ("all-addresses", "spec.containers", port("0.0.0.0")),
        ("one-address", "spec.containers", port("10.0.0.1")),
        ("other-scheduler", "spec.schedulerName", json!("other")),
        ("unbound", "spec.volumes", claimed("unbound")),
        ("classless", "spec.volumes", claimed("classless")),
        ("lost", "spec.volumes", claimed("lost")),
        ("in-tree", "spec.volumes", claimed("in-tree")),
        ("local", "spec.volumes", claimed("local")),
        (
            "no-claim-yet",
            "spec.resourceClaims",
            json!([{ "name": "gpu", "resourceClaimTemplateName": "gpu" }]),
        ),
        (
            "no-such-claim",
            "spec.resourceClaims",
            json!([{ "name": "gpu", "resourceClaimName": "missing" }]),
        ),
        (
            "resized",
            "status.containerStatuses",
            json!([{ "name": "main", "allocatedResources": { "cpu": "6" },
            "resources": { "requests": { "cpu": "6" } } }]),
        ),
        (
            "sidecar",
            "spec.initContainers",
            json!([{ "name": "side", "restartPolicy": "Always",
            "resources": { "requests": { "cpu": "2" } } }, { "name": "init", "resources": { "requests": { "cpu": "4" } } }]),
        ),
    ]
}

/// The claims the volumes of the corner cases are behind, and their volumes.
fn corner_storage() -> Vec<Object> {
    let claim = |name: &str, class: Value, volume: &str| {
        Object::new("v1", "PersistentVolumeClaim", "default", name)
            .with("spec", json!({ "storageClassName": class, "volumeName": volume }))
            .entry("metadata.annotations", "pv.kubernetes.io/bind-completed", "yes")
    };
    let affinity = |key: &str, value: &str| {
        json!({ "required": { "nodeSelectorTerms": [{ "matchExpressions": [
            { "key": key, "operator": "In", "values": [value] }] }] } })
    };
    let volume = |name: &str, source: &str, path: Value, at: Value| {
        Object::new("v1", "PersistentVolume", "", name).with("spec", json!({ source: path, "nodeAffinity": at }))
    };
    vec![
        Object::new("storage.k8s.io/v1", "StorageClass", "", "at-once")
            .with("provisioner", "kubernetes.io/aws-ebs")
            .with("volumeBindingMode", "Immediate"),
        claim("unbound", json!("at-once"), ""),
        claim("classless", json!(""), ""),
        claim("lost", json!("at-once"), "gone").with("status.phase", "Lost"),
        claim("in-tree", Value::Null, "ebs"),
        claim("local", Value::Null, "disk"),
        volume(
            "ebs",
            "awsElasticBlockStore",
            json!({ "volumeID": "vol-1" }),
            affinity(ZONE, "test-zone-c"),
        ),
        volume("disk", "local", json!({ "path": "/disk" }), affinity(HOSTNAME, "gone")),
    ]
}

#[test]
fn what_is_there_and_empty_is_not_taken_for_what_is_absent() {
    for ignored in [true, false] {
        let mut snapshot = Snapshot::new("corners", "by hand", catalogue::kwok(), &catalogue::KWOK_LABELS)
            .setting("ignoreDRARequests", ignored);
        snapshot.objects.push(node_pool("default", &kwok_node_class()));
        snapshot.objects.push(Object::new("v1", "Namespace", "", "default"));
        snapshot.objects.extend(corner_storage());
        for (name, path, value) in corner_cases() {
            for copy in ["a", "b"] {
                let pod = pod("default", &format!("{name}-{copy}"), 100, 128).entry("metadata.labels", "app", name);
                snapshot.objects.push(unschedulable(pod).with(path, value.clone()));
            }
        }
        assert_same(plan, &snapshot);
    }
}

#[test]
fn a_dropped_field_is_noticed() {
    // The comparison itself must be able to fail: the same cluster without one pod's demand.
    let mut snapshot = Shape::Mixed { pods: 50, seed: 1 }.generate();
    let dir = tempfile::tempdir().unwrap();
    let [original, _] = both_files(&snapshot, dir.path());
    let pod = snapshot
        .objects
        .iter()
        .rposition(|object| object.kind() == "Pod")
        .unwrap();
    snapshot.objects.remove(pod);
    let other = tempfile::tempdir().unwrap();
    let [_, slim] = both_files(&snapshot, other.path());
    let fields: Vec<&str> = differences(plan, &[original, slim])
        .into_iter()
        .map(|(field, ..)| field)
        .collect();
    assert!(fields.contains(&"pods"), "{fields:?}");
}
