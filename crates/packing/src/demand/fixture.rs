//! Snapshots for tests, written as the JSON of their parts.

#![allow(clippy::unwrap_used, reason = "a fixture fails as its test does")]

use std::{io::Cursor, sync::Arc};

use jiff::Timestamp;
use model::{
    dump::{self, Mode, Source},
    object::Pod,
    snapshot::Snapshot,
};
use serde_json::{Value, json};

/// Ten minutes past the hour.
pub(crate) const NOW: &str = "2026-11-15T12:10:00Z";

/// A snapshot of these objects, without settings and catalogue.
pub(crate) fn snapshot(objects: Vec<Value>) -> Snapshot {
    snapshot_with(json!({}), objects)
}

/// A snapshot of these objects with some parts of its file as given: settings, instanceTypes and the like.
pub(crate) fn snapshot_with(mut file: Value, objects: Vec<Value>) -> Snapshot {
    file["apiVersion"] = "dovetail.dev/v1alpha1".into();
    file["kind"] = "Snapshot".into();
    file["metadata"] = json!({ "name": "test", "takenAt": NOW });
    file["objects"] = objects.into();
    let source = Source::Stream("test".to_owned(), Box::new(Cursor::new(file.to_string().into_bytes())));
    let options = dump::Options {
        mode: Mode::Strict,
        taken_at: Timestamp::UNIX_EPOCH,
    };
    dump::read([source], options).unwrap().0
}

/// An object of a kind, with what `parts` has beyond its name and namespace.
pub(crate) fn object(api_version: &str, kind: &str, namespace: &str, name: &str, parts: Value) -> Value {
    let mut object = json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name } });
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = namespace.into();
    }
    merge(&mut object, parts);
    object
}

/// A pod of namespace `ns` that kube-scheduler found no place for.
pub(crate) fn pending(name: &str, parts: Value) -> Value {
    let unschedulable = json!({ "status": { "phase": "Pending", "conditions": [
        { "type": "PodScheduled", "status": "False", "reason": "Unschedulable" },
    ] } });
    let mut pod = object("v1", "Pod", "ns", name, unschedulable);
    merge(&mut pod, parts);
    pod
}

/// A running pod of namespace `ns` on a node.
pub(crate) fn bound(name: &str, node: &str, parts: Value) -> Value {
    let running = json!({ "spec": { "nodeName": node }, "status": { "phase": "Running" } });
    let mut pod = object("v1", "Pod", "ns", name, running);
    merge(&mut pod, parts);
    pod
}

/// A ready pool.
pub(crate) fn node_pool(name: &str, parts: Value) -> Value {
    let ready = json!({
        "spec": { "template": { "spec": {
            "requirements": [],
            "nodeClassRef": { "group": "cloud", "kind": "CloudClass", "name": "default" },
        } } },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    });
    let mut pool = object("karpenter.sh/v1", "NodePool", "", name, ready);
    merge(&mut pool, parts);
    pool
}

/// A type of one amd64 offering on demand in each zone.
pub(crate) fn instance_type(name: &str, cpu: &str, zones: &[&str]) -> Value {
    let is = |key: &str, values: &[&str]| json!({ "key": key, "operator": "In", "values": values });
    let offering = |zone: &&str| {
        json!({ "price": "1", "available": true, "requirements": [
            is("topology.kubernetes.io/zone", &[zone]), is("karpenter.sh/capacity-type", &["on-demand"]),
        ] })
    };
    json!({
        "name": name,
        "requirements": [
            is("node.kubernetes.io/instance-type", &[name]), is("kubernetes.io/arch", &["amd64"]),
            is("topology.kubernetes.io/zone", zones), is("karpenter.sh/capacity-type", &["on-demand"]),
        ],
        "capacity": { "cpu": cpu, "memory": "8Gi", "pods": "100" },
        "offerings": zones.iter().map(offering).collect::<Vec<_>>(),
    })
}

/// The pod of a name in namespace `ns`.
pub(crate) fn pod<'a>(snapshot: &'a Snapshot, name: &str) -> &'a Arc<Pod> {
    snapshot.objects().pods.find("ns", name).unwrap()
}

/// Puts one JSON value over another, object by object.
fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}
