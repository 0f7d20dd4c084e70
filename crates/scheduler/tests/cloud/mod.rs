//! A small cloud for tests: two types in two zones, one NodePool, and plans written by hand.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test file uses its part; a helper of a test fails as the test does"
)]

use std::sync::Arc;

use model::{
    dump,
    object::{InstanceTypeName, Map, ObjectKey, Pod},
    plan::{Launch, Plan, PlannedClaim, PlannedNode, TypeOptions},
    price::Price,
    requirement::{Operator, RequirementSpec},
    resources::ResourceList,
    snapshot::Snapshot,
};
use serde_json::{Value, json};

pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";
pub(crate) const HOSTNAME: &str = "kubernetes.io/hostname";
pub(crate) const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";

/// `small` has 2 cores and 4 GiB, `large` 8 and 16; both in zones a and b, spot and on demand.
fn instance_type(name: &str, cpu: u32, memory: u32) -> Value {
    let requirement = |key: &str, values: &[&str]| json!({ "key": key, "operator": "In", "values": values });
    let offering = |zone: &str, capacity_type: &str| {
        json!({ "requirements": [requirement(ZONE, &[zone]), requirement(CAPACITY_TYPE, &[capacity_type])],
                "price": format!("0.{cpu:02}"), "available": true })
    };
    json!({
        "name": name,
        "requirements": [
            requirement("node.kubernetes.io/instance-type", &[name]), requirement("kubernetes.io/arch", &["amd64"]),
            requirement(ZONE, &["a", "b"]), requirement(CAPACITY_TYPE, &["spot", "on-demand"]),
        ],
        "capacity": { "cpu": cpu.to_string(), "memory": format!("{memory}Gi"), "pods": "10" },
        "offerings": [offering("a", "spot"), offering("a", "on-demand"), offering("b", "spot"), offering("b", "on-demand")],
        "volumeAttachmentLimits": { "disk.example.com": 1 },
    })
}

/// A snapshot of these objects and a NodePool `default` to which `pool` is merged.
pub(crate) fn snapshot_with(pool: &Value, objects: &[Value]) -> Snapshot {
    let mut all = vec![json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "default" },
        "spec": { "limits": pool["limits"], "template": { "metadata": { "labels": { "team": "red" } },
            "spec": { "requirements": pool["requirements"], "taints": pool["taints"] } } },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    })];
    all.extend_from_slice(objects);
    let file = json!({
        "apiVersion": "dovetail.dev/v1alpha1", "kind": "Snapshot",
        "metadata": { "name": "test", "takenAt": "2026-11-16T00:00:00Z" },
        "objects": all,
        "instanceTypes": [instance_type("small", 2, 4), instance_type("large", 8, 16)],
    });
    let options = dump::Options {
        mode: dump::Mode::Strict,
        taken_at: jiff::Timestamp::UNIX_EPOCH,
    };
    let source = dump::Source::Stream("test".to_owned(), Box::new(std::io::Cursor::new(file.to_string())));
    dump::read([source], options).unwrap().0
}

pub(crate) fn snapshot(objects: &[Value]) -> Snapshot {
    snapshot_with(&json!({}), objects)
}

/// A pending pod of one core and one GiB; `extra` is merged into its spec, `requests` and `labels` aside.
pub(crate) fn pod(name: &str, extra: &Value) -> Value {
    let requests = if extra["requests"].is_null() {
        json!({ "cpu": "1", "memory": "1Gi" })
    } else {
        extra["requests"].clone()
    };
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": "default", "uid": name, "labels": extra["labels"] },
        "spec": { "containers": [{ "name": "main", "resources": { "requests": requests }, "ports": extra["ports"] }] },
        "status": { "phase": "Pending",
            "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }] },
    });
    for (key, value) in extra.as_object().into_iter().flatten() {
        if !matches!(key.as_str(), "requests" | "labels" | "ports") {
            pod["spec"][key] = value.clone();
        }
    }
    pod
}

/// A pod that runs on a node.
pub(crate) fn running(name: &str, node: &str, extra: &Value) -> Value {
    let mut pod = pod(name, extra);
    pod["spec"]["nodeName"] = json!(node);
    pod["status"] = json!({ "phase": "Running" });
    pod
}

/// A node of 4 cores and 8 GiB in zone a that nobody claims.
pub(crate) fn node(name: &str, extra: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": name, "labels": { HOSTNAME: name, ZONE: "a" } },
        "spec": extra,
        "status": { "allocatable": { "cpu": "4", "memory": "8Gi", "pods": "10" } },
    })
}

pub(crate) fn find(snapshot: &Snapshot, name: &str) -> Arc<Pod> {
    let key = ObjectKey::new("default", name);
    snapshot.objects().pods.get(&key).unwrap().clone()
}

/// A claim of these types with these constraints for these pods, expected to launch the first type.
pub(crate) fn claim(
    snapshot: &Snapshot,
    types: &[&str],
    constraints: &[(&str, &[&str])],
    pods: &[&str],
) -> PlannedClaim {
    let specs = constraints
        .iter()
        .map(|(key, values)| RequirementSpec::new(key, Operator::In, values));
    let only = |key: &str, other: &str| {
        let found = constraints
            .iter()
            .find(|(it, _)| *it == key)
            .map(|(_, values)| values[0]);
        Some(found.unwrap_or(other).into())
    };
    PlannedClaim {
        min_types: None,
        node_pool: "default".into(),
        pods: pods.iter().map(|name| find(snapshot, name)).collect(),
        constraints: specs.collect(),
        options: TypeOptions::all(types.iter().map(|name| InstanceTypeName::from(*name))),
        cheapest: types.first().map(|name| Launch {
            instance_type: InstanceTypeName::from(*name),
            zone: only(ZONE, "a"),
            capacity_type: only(CAPACITY_TYPE, "spot"),
            price: "0.1".parse::<Price>().unwrap(),
        }),
        requests: ResourceList::EMPTY,
        labels: Map::default(),
        annotations: Map::default(),
        wave: 0,
        nominated: Vec::new(),
    }
}

pub(crate) fn plan(claims: Vec<PlannedClaim>, existing: Vec<PlannedNode>) -> Plan {
    Plan {
        claims,
        existing,
        unplaced: Vec::new(),
        order: Vec::new(),
    }
}

pub(crate) fn on_node(snapshot: &Snapshot, node: &str, pods: &[&str]) -> PlannedNode {
    PlannedNode {
        name: node.into(),
        pods: pods.iter().map(|name| find(snapshot, name)).collect(),
    }
}
