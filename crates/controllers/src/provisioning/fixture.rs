//! Clusters for tests, written as the JSON of their objects.

#![allow(clippy::unwrap_used, reason = "a fixture fails as its test does")]

use std::io::Cursor;

use jiff::Timestamp;
use model::{
    dump::{self, Mode, Source},
    snapshot::Snapshot,
};
use serde_json::{Value, json};

pub(crate) const NOW: &str = "2026-11-16T12:10:00Z";

/// A snapshot of these objects, with the types small (2 cores, 1 $/h) and large (8 cores, 3 $/h) for the pools named.
#[allow(
    clippy::needless_pass_by_value,
    reason = "a literal reads better without a reference"
)]
pub(crate) fn snapshot(pools: &[&str], objects: Vec<Value>) -> Snapshot {
    let offers: serde_json::Map<_, _> = pools
        .iter()
        .map(|pool| ((*pool).to_owned(), json!(["small", "large"])))
        .collect();
    let file = json!({
        "apiVersion": "dovetail.dev/v1alpha1", "kind": "Snapshot",
        "metadata": { "name": "test", "takenAt": NOW },
        "instanceTypes": [instance_type("small", 2, "1"), instance_type("large", 8, "3")],
        "nodePoolInstanceTypes": offers,
        "objects": objects,
    });
    let source = Source::Stream("test".to_owned(), Box::new(Cursor::new(file.to_string().into_bytes())));
    let options = dump::Options {
        mode: Mode::Strict,
        taken_at: Timestamp::UNIX_EPOCH,
    };
    dump::read([source], options).unwrap().0
}

/// A type in two zones, on demand.
pub(crate) fn instance_type(name: &str, cores: u32, price: &str) -> Value {
    let is = |key: &str, values: &[&str]| json!({ "key": key, "operator": "In", "values": values });
    let offering = |zone: &str| {
        json!({ "price": price, "available": true, "requirements": [
            is("topology.kubernetes.io/zone", &[zone]), is("karpenter.sh/capacity-type", &["on-demand"]),
        ] })
    };
    json!({
        "name": name,
        "requirements": [
            is("node.kubernetes.io/instance-type", &[name]), is("kubernetes.io/arch", &["amd64"]),
            is("kubernetes.io/os", &["linux"]), is("karpenter.sh/capacity-type", &["on-demand"]),
            is("topology.kubernetes.io/zone", &["z1", "z2"]),
        ],
        "capacity": { "cpu": cores.to_string(), "memory": "16Gi", "pods": "100" },
        "offerings": [offering("z1"), offering("z2")],
    })
}

/// A ready pool with this much more in its spec.
pub(crate) fn node_pool(name: &str, spec: &Value) -> Value {
    let mut pool = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
        "metadata": { "name": name, "uid": format!("{name}-uid") },
        "spec": { "template": {
            "metadata": { "labels": { "team": "a" }, "annotations": { "note": "kept" } },
            "spec": {
                "requirements": [{ "key": "tier", "operator": "In", "values": ["gold"] }],
                "nodeClassRef": { "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default" },
                "expireAfter": "720h", "terminationGracePeriod": "1h30m",
                "taints": [{ "key": "dedicated", "effect": "NoSchedule" }],
                "startupTaints": [{ "key": "cni", "effect": "NoExecute" }],
            },
        } },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        pool["spec"][key] = value.clone();
    }
    pool
}

/// A pod of a number of cores that kube-scheduler found no place for.
pub(crate) fn pending(name: &str, cores: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": "ns", "uid": format!("{name}-uid") },
        "spec": {
            "tolerations": [{ "operator": "Exists" }],
            "containers": [{ "name": "c", "resources": { "requests": { "cpu": cores } } }],
        },
        "status": { "phase": "Pending", "conditions": [
            { "type": "PodScheduled", "status": "False", "reason": "Unschedulable" },
        ] },
    })
}
