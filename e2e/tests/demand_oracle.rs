//! Whether our planner tries the pods that Karpenter tries, and refuses the others in its words.
//!
//! Needs Go: the reference is built from upstream's module on first use.

#![allow(clippy::unwrap_used, reason = "the whole file is a test")]

use std::{
    collections::BTreeMap,
    io::{Cursor, Write},
    process::Command,
};

use model::{dump, plan::Unplaced, snapshot::Snapshot};
use packing::demand::Demand;
use serde_json::{Value, json};
use workloads::{
    catalogue,
    object::{Object, kwok_node_class, node_pool, pod, unschedulable},
};

/// How many random clusters are compared, from seed 0 on.
const SEEDS: u64 = 20;

type Refusals = BTreeMap<String, String>;

#[test]
fn random_clusters_have_the_demand_of_the_reference() {
    for seed in 0..SEEDS {
        let file = serde_json::to_vec(&workloads::random::random(seed)).unwrap();
        let theirs = reference(&file);
        let ours = Demand::of(&snapshot(&file));
        assert_eq!(refusals(&ours), refusals_of(&theirs), "ignored pods of seed {seed}");
        assert_eq!(ours.pods.len() as u64, theirs["pods"], "pods to place of seed {seed}");
    }
}

/// A pod for every fault that the reference words the same way each time.
fn faulty_pods() -> workloads::Snapshot {
    let mut snapshot = workloads::Snapshot::new("faulty", "by hand", catalogue::kwok(), &catalogue::KWOK_LABELS);
    let selecting = |key: &str, value: &str| json!({ "nodeSelector": { key: value } });
    let claiming =
        |claim: &str| json!({ "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": claim } }] });
    let requiring = |term: Value| {
        let required = json!({ "nodeSelectorTerms": [term] });
        json!({ "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": required } } })
    };
    let expression = |key: &str, operator: &str, values: &[&str]| {
        requiring(json!({ "matchExpressions": [{ "key": key, "operator": operator, "values": values }] }))
    };
    let specs = [
        selecting("kubernetes.io/hostname", "n"),
        selecting("karpenter.sh/registered", "true"),
        selecting("karpenter.sh/capacity-type", "free"),
        selecting("beta.kubernetes.io/arch", "not a value"),
        selecting("not a key", "x"),
        expression("team", "In", &[]),
        expression("team", "Gt", &["1", "2"]),
        expression("team", "Lte", &["-1"]),
        expression("karpenter.sh/nodepool", "DoesNotExist", &[]),
        expression("karpenter.sh/nodepool", "In", &[]),
        requiring(json!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n"] }] })),
        claiming("missing"),
        claiming("deleting"),
        claiming("lost"),
        claiming("bound-to-nothing"),
        claiming("bound-to-deleting"),
        claiming("half-bound"),
        claiming("classless"),
        claiming("without-class"),
        claiming("immediate"),
        claiming("fine"),
        json!({ "volumes": [{ "name": "v", "ephemeral": {} }], "nodeSelector": { "karpenter.sh/x": "y" } }),
    ];
    for (number, spec) in specs.into_iter().enumerate() {
        let pod = unschedulable(pod("default", &format!("pod-{number}"), 100, 100));
        let parts = spec.as_object().unwrap().clone();
        let with_part = |pod: Object, (key, value): (String, Value)| pod.with(&format!("spec.{key}"), value);
        snapshot.objects.push(parts.into_iter().fold(pod, with_part));
    }
    snapshot.objects.push(node_pool("default", &kwok_node_class()));
    snapshot.objects.extend(storage());
    snapshot
}

fn storage() -> Vec<Object> {
    let deleted = "2026-01-01T00:00:00Z";
    let claim =
        |name: &str, spec: Value| Object::new("v1", "PersistentVolumeClaim", "default", name).with("spec", spec);
    let class = |name: &str, mode: &str| {
        Object::new("storage.k8s.io/v1", "StorageClass", "", name)
            .with("provisioner", "ebs.csi.aws.com")
            .with("volumeBindingMode", mode)
    };
    let bound = |name: &str, volume: &str| claim(name, json!({ "volumeName": volume, "storageClassName": "late" }));
    vec![
        claim("deleting", json!({})).with("metadata.deletionTimestamp", deleted),
        bound("lost", "gone").with("status", json!({ "phase": "Lost" })),
        bound("bound-to-nothing", "gone"),
        bound("bound-to-deleting", "deleting"),
        bound("half-bound", "there"),
        claim("classless", json!({})),
        claim("without-class", json!({ "storageClassName": "gone" })),
        claim("immediate", json!({ "storageClassName": "now" })),
        claim("fine", json!({ "storageClassName": "late" })),
        Object::new("v1", "PersistentVolume", "", "deleting").with("metadata.deletionTimestamp", deleted),
        Object::new("v1", "PersistentVolume", "", "there").with("spec", json!({})),
        class("now", "Immediate"),
        class("late", "WaitForFirstConsumer"),
    ]
}

#[test]
fn faulty_pods_are_refused_in_the_words_of_the_reference() {
    let file = serde_json::to_vec(&faulty_pods()).unwrap();
    let (ours, theirs) = (Demand::of(&snapshot(&file)), reference(&file));
    assert_eq!(refusals(&ours), refusals_of(&theirs));
    let tried: Vec<_> = ours
        .pods
        .iter()
        .map(|entry| entry.pod.metadata.name.to_string())
        .collect();
    assert_eq!(tried, ["pod-20"], "only the pod with a good claim is tried");
}

fn snapshot(file: &[u8]) -> Snapshot {
    let options = dump::Options {
        mode: dump::Mode::Strict,
        taken_at: jiff::Timestamp::UNIX_EPOCH,
    };
    let source = dump::Source::Stream("random".to_owned(), Box::new(Cursor::new(file.to_vec())));
    dump::read([source], options).unwrap().0
}

fn reference(file: &[u8]) -> Value {
    let mut input = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    input.write_all(file).unwrap();
    let program = rig::reference::program().unwrap();
    let output = Command::new(program).arg("solve").arg(input.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn refusals(demand: &Demand) -> Refusals {
    let entry = |refusal: &Unplaced| (refusal.pod.metadata.key().to_string(), refusal.message.to_string());
    demand.ignored.iter().map(entry).collect()
}

fn refusals_of(plan: &Value) -> Refusals {
    serde_json::from_value(plan["ignored"].clone()).unwrap()
}
