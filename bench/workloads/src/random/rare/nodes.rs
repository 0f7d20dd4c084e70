//! Which rarer nodes are there? Cordoned, unready, without their claim or the claim without them, of types and pools that
//! are gone, kept by an annotation, with less room than was promised.

use serde_json::{Value, json};

use super::super::CUSTOM_LABELS;
use super::super::cloud::RESERVATION_ID;
use super::{Change, node_names};
use crate::object::{ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, NODE_POOL, Object, ZONE};
use crate::rng::Rng;
use crate::snapshot::Snapshot;

pub(super) const CHANGES: &[Change] = &[
    cordon,
    taint,
    starting,
    orphan,
    vanish,
    end,
    rename,
    unlabel,
    shrink,
    of_nothing,
    keep,
    conditions,
    reserved,
    age,
    unregistered,
];

/// Changes the node and the claim of one machine; `None` takes the object away.
fn one_machine(snapshot: &mut Snapshot, rng: &mut Rng, how: impl Fn(Object) -> Option<Object>) {
    let names = node_names(snapshot);
    if names.is_empty() {
        return;
    }
    let count = rng.between(1, 3);
    let chosen: Vec<String> = (0..count).map(|_| rng.pick(&names).clone()).collect();
    let is_meant = |object: &Object| {
        ["Node", "NodeClaim"].contains(&object.kind()) && chosen.iter().any(|name| name == object.name())
    };
    let objects = std::mem::take(&mut snapshot.objects);
    let changed = objects
        .into_iter()
        .filter_map(|object| if is_meant(&object) { how(object) } else { Some(object) });
    snapshot.objects = changed.collect();
}

/// Changes the nodes of some machines.
fn some_nodes(snapshot: &mut Snapshot, rng: &mut Rng, how: impl Fn(Object) -> Object) {
    one_machine(snapshot, rng, |object| {
        Some(if object.kind() == "Node" { how(object) } else { object })
    });
}

/// Changes the claims of some machines.
fn some_claims(snapshot: &mut Snapshot, rng: &mut Rng, how: impl Fn(Object) -> Object) {
    one_machine(snapshot, rng, |object| {
        Some(if object.kind() == "NodeClaim" {
            how(object)
        } else {
            object
        })
    });
}

fn cordon(snapshot: &mut Snapshot, rng: &mut Rng) {
    some_nodes(snapshot, rng, |node| {
        let taint = json!({ "key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule" });
        node.with("spec.unschedulable", true).push("spec.taints", taint)
    });
}

fn taint(snapshot: &mut Snapshot, rng: &mut Rng) {
    let taints = [
        json!({ "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" }),
        json!({ "key": "node.kubernetes.io/not-ready", "effect": "NoExecute" }),
        json!({ "key": "node.kubernetes.io/unreachable", "effect": "NoSchedule" }),
        json!({ "key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule" }),
        json!({ "key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule" }),
        json!({ "key": "example.com/odd", "value": "1", "effect": "PreferNoSchedule" }),
        json!({ "key": "example.com/odd", "value": "1", "effect": "NoSchedule" }),
        json!({ "key": "karpenter.sh/disrupted", "effect": "NoSchedule" }),
        json!({ "key": "karpenter.sh/disruption", "value": "disrupting", "effect": "NoSchedule" }),
    ];
    let chosen = rng.pick(&taints).clone();
    some_nodes(snapshot, rng, |node| node.push("spec.taints", chosen.clone()));
}

/// A startup taint that its node still has.
fn starting(snapshot: &mut Snapshot, rng: &mut Rng) {
    let effect = *rng.pick(&["NoSchedule", "PreferNoSchedule", "NoExecute"]);
    let taint = json!({ "key": "example.com/starting", "effect": effect });
    one_machine(snapshot, rng, |object| {
        let path = if object.kind() == "Node" {
            "spec.taints"
        } else {
            "spec.startupTaints"
        };
        Some(object.push(path, taint.clone()))
    });
}

/// A node without its claim.
fn orphan(snapshot: &mut Snapshot, rng: &mut Rng) {
    one_machine(snapshot, rng, |object| (object.kind() == "Node").then_some(object));
}

/// A claim without its node.
fn vanish(snapshot: &mut Snapshot, rng: &mut Rng) {
    one_machine(snapshot, rng, |object| (object.kind() == "NodeClaim").then_some(object));
}

/// Nodes and claims that are on their way out.
fn end(snapshot: &mut Snapshot, rng: &mut Rng) {
    let what = rng.below(4);
    one_machine(snapshot, rng, |object| {
        let is_node = object.kind() == "Node";
        let ending = |object: Object| {
            object
                .with("metadata.deletionTimestamp", "2026-11-15T11:59:30Z")
                .with("metadata.finalizers", json!(["karpenter.sh/termination"]))
        };
        Some(match what {
            0 if is_node => ending(object),
            1 if !is_node => ending(object),
            2 => ending(object),
            3 if !is_node => ending(object).entry(
                "metadata.annotations",
                "karpenter.sh/nodeclaim-termination-timestamp",
                "2026-11-15T12:05:00Z",
            ),
            _ => object,
        })
    });
}

/// A host whose label is not its name.
fn rename(snapshot: &mut Snapshot, rng: &mut Rng) {
    some_nodes(snapshot, rng, |node| {
        let name = format!("{}.internal", node.name());
        node.entry("metadata.labels", HOSTNAME, name)
    });
}

fn unlabel(snapshot: &mut Snapshot, rng: &mut Rng) {
    let key = *rng.pick(&[ZONE, ARCH, HOSTNAME, INSTANCE_TYPE, CAPACITY_TYPE, NODE_POOL]);
    let both = rng.chance(30);
    one_machine(snapshot, rng, |mut object| {
        if (both || object.kind() == "Node")
            && let Some(labels) = object.0["metadata"]["labels"].as_object_mut()
        {
            labels.remove(key);
        }
        Some(object)
    });
}

/// Nodes with less than their claim promised, or with what nobody promised.
fn shrink(snapshot: &mut Snapshot, rng: &mut Rng) {
    let amounts = match rng.below(5) {
        0 => json!({ "cpu": "500m", "memory": "512Mi", "pods": "4" }),
        1 => json!({ "cpu": "0", "memory": "0", "pods": "0" }),
        2 => json!({}),
        3 => json!({ "cpu": "15", "memory": "30Gi", "pods": "20", "example.com/device": "2" }),
        _ => json!({ "cpu": "3900m", "memory": "8000000001", "pods": "10", "ephemeral-storage": "10Gi" }),
    };
    let claims = rng.chance(30);
    one_machine(snapshot, rng, |object| {
        let is_meant = claims == (object.kind() == "NodeClaim");
        Some(if is_meant {
            object.with("status.allocatable", amounts.clone())
        } else {
            object
        })
    });
}

/// Of a type, a pool, a zone or a kind of capacity that is no longer.
fn of_nothing(snapshot: &mut Snapshot, rng: &mut Rng) {
    let (key, value) = *rng.pick(&[
        (INSTANCE_TYPE, "no-such-type"),
        (NODE_POOL, "no-such-pool"),
        (ZONE, "no-such-zone"),
        (CAPACITY_TYPE, "reserved"),
        (CUSTOM_LABELS[0].0, "green"),
        (CUSTOM_LABELS[1].0, "prod"),
    ]);
    one_machine(snapshot, rng, |object| {
        Some(object.entry("metadata.labels", key, value))
    });
}

/// What keeps a node where it is.
fn keep(snapshot: &mut Snapshot, rng: &mut Rng) {
    let value = *rng.pick(&["true", "false", "10m"]);
    let on_claims = rng.chance(50);
    one_machine(snapshot, rng, |object| {
        let is_meant = on_claims == (object.kind() == "NodeClaim");
        let key = "karpenter.sh/do-not-disrupt";
        Some(if is_meant {
            object.entry("metadata.annotations", key, value)
        } else {
            object
        })
    });
}

/// Conditions of claims and nodes that are rarely so.
fn conditions(snapshot: &mut Snapshot, rng: &mut Rng) {
    let (kind, status) = *rng.pick(&[
        ("Consolidatable", "False"),
        ("Consolidatable", "Unknown"),
        ("Initialized", "False"),
        ("Drifted", "True"),
        ("InstanceTerminating", "True"),
        ("DisruptionReason", "True"),
        ("Ready", "False"),
    ]);
    let on_nodes = kind == "Ready";
    one_machine(snapshot, rng, |mut object| {
        if on_nodes != (object.kind() == "Node") {
            return Some(object);
        }
        let condition = json!({ "type": kind, "status": status, "reason": kind, "message": "",
                                "lastTransitionTime": "2026-11-15T10:00:00Z" });
        if let Some(listed) = object.0["status"]["conditions"].as_array_mut() {
            listed.retain(|condition| condition["type"] != kind);
        }
        Some(object.push("status.conditions", condition))
    });
}

/// Machines that run in a reservation.
fn reserved(snapshot: &mut Snapshot, rng: &mut Rng) {
    let id = format!("reservation-{}", rng.below(3));
    one_machine(snapshot, rng, |object| {
        Some(object.entry("metadata.labels", CAPACITY_TYPE, "reserved").entry(
            "metadata.labels",
            RESERVATION_ID,
            id.as_str(),
        ))
    });
}

/// How long claims may live, and since when they do.
fn age(snapshot: &mut Snapshot, rng: &mut Rng) {
    let life = *rng.pick(&["2h30m", "1h", "720h"]);
    let grace = rng.pick(&[Value::Null, json!("5m")]).clone();
    some_claims(snapshot, rng, |claim| {
        claim
            .with("spec.expireAfter", life)
            .with("spec.terminationGracePeriod", grace.clone())
    });
    let since = *rng.pick(&["2026-11-15T11:59:59Z", "2026-11-15T09:30:00Z"]);
    some_claims(snapshot, rng, |claim| claim.with("metadata.creationTimestamp", since));
}

/// A node that joined and was not seen yet.
fn unregistered(snapshot: &mut Snapshot, rng: &mut Rng) {
    some_nodes(snapshot, rng, |mut node| {
        if let Some(labels) = node.0["metadata"]["labels"].as_object_mut() {
            labels.remove("karpenter.sh/registered");
            labels.remove("karpenter.sh/initialized");
        }
        node.push(
            "spec.taints",
            json!({ "key": "karpenter.sh/unregistered", "effect": "NoExecute" }),
        )
    });
}
