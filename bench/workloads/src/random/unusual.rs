//! What does half of the random clusters have besides? Crowds of pods, so that dozens of claims compete, and the rarer
//! ways to fill in a field: hosts by name, labels of one's own as topology, volumes that are not CSI's, ports of an
//! address, limits of nothing, several preferences at once.
//!
//! Added to a finished cluster, pod by pod of a group alike.

use serde_json::{Value, json};

use super::CUSTOM_LABELS;
use crate::catalogue::{KWOK_FAMILY, KWOK_ZONES};
use crate::object::{ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, Object, ZONE, requirement, unschedulable};
use crate::rng::{Rng, uid};
use crate::snapshot::Snapshot;

const NODE_AFFINITY: &str = "spec.affinity.nodeAffinity";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Makes about half of the clusters unusual ones.
pub(super) fn add(snapshot: &mut Snapshot, rng: &mut Rng) {
    if !rng.chance(50) {
        return;
    }
    let nodes: Vec<String> = snapshot.of_kind("Node").map(|node| node.name().to_string()).collect();
    let apps: Vec<String> = snapshot
        .of_kind("ReplicaSet")
        .map(|set| set.name().to_string())
        .collect();
    for app in &apps {
        for (percent, change) in CHANGES {
            if rng.chance(*percent) {
                let wish = change(app, &nodes, rng);
                each_pod(snapshot, app, &wish);
            }
        }
    }
    pools(snapshot, rng);
    storage(snapshot, rng);
    if rng.chance(40) {
        let (busiest, most) = (rng.pick(&apps).clone(), *rng.pick(&[12, 30, 70]));
        crowd(snapshot, &busiest, most);
    }
}

/// What a group's pods get: a path in the pod, and what is put or pushed there.
enum Wish {
    Push(String, Value),
    Select(&'static str, String),
}

type Change = fn(&str, &[String], &mut Rng) -> Wish;

const CHANGES: &[(u64, Change)] = &[
    (8, |_, nodes, rng| named_host(nodes, rng)),
    (8, |app, _, rng| {
        let key = *rng.pick(&[CUSTOM_LABELS[0].0, KWOK_FAMILY, INSTANCE_TYPE, ARCH]);
        Wish::Push(
            "spec.topologySpreadConstraints".to_owned(),
            json!({ "maxSkew": rng.between(1, 2), "topologyKey": key,
                    "whenUnsatisfiable": *rng.pick(&["DoNotSchedule", "ScheduleAnyway"]),
                    "labelSelector": { "matchLabels": { "app": app } } }),
        )
    }),
    (6, |app, _, rng| {
        let key = *rng.pick(&[CUSTOM_LABELS[0].0, KWOK_FAMILY, ARCH]);
        let kind = *rng.pick(&["podAffinity", "podAntiAffinity"]);
        let term = json!({ "topologyKey": key, "labelSelector": { "matchLabels": { "app": app } } });
        Wish::Push(format!("spec.affinity.{kind}.{REQUIRED}"), term)
    }),
    (10, |_, _, rng| {
        let preference = json!({ "matchExpressions": [preferred(rng)] });
        Wish::Push(
            format!("{NODE_AFFINITY}.{PREFERRED}"),
            json!({ "weight": rng.between(1, 100), "preference": preference }),
        )
    }),
    (8, |_, _, rng| {
        let preference = json!({ "matchExpressions": [preferred(rng), preferred(rng)] });
        Wish::Push(
            format!("{NODE_AFFINITY}.{PREFERRED}"),
            json!({ "weight": 50, "preference": preference }),
        )
    }),
    (6, |_, _, rng| {
        let mut port = json!({ "containerPort": 53, "hostPort": 8080, "protocol": *rng.pick(&["TCP", "UDP"]) });
        port["hostIP"] = json!(*rng.pick(&["0.0.0.0", "10.0.0.1", "::"]));
        Wish::Push(
            "spec.containers".to_owned(),
            json!({ "name": "addressed", "ports": [port] }),
        )
    }),
    (5, |_, _, rng| {
        Wish::Select(
            INSTANCE_TYPE,
            (*rng.pick(&["s-4x-amd64-linux", "no-such-type"])).to_owned(),
        )
    }),
    (3, |_, _, _| Wish::Select("zone", KWOK_ZONES[0].to_owned())),
    (3, |_, _, _| {
        Wish::Select("failure-domain.beta.kubernetes.io/zone", KWOK_ZONES[1].to_owned())
    }),
    (5, |_, _, rng| {
        let amount = rng.between(1, 4).to_string();
        Wish::Push(
            "spec.containers".to_owned(),
            json!({ "name": "odd", "resources": { "requests": { "example.com/unknown": amount },
                                                  "limits": { "example.com/unknown": amount } } }),
        )
    }),
];

fn preferred(rng: &mut Rng) -> Value {
    match rng.below(4) {
        0 => requirement(ZONE, "In", &[*rng.pick(&KWOK_ZONES)]),
        1 => requirement(CAPACITY_TYPE, "In", &["spot"]),
        2 => requirement(CUSTOM_LABELS[0].0, "In", &[*rng.pick(&CUSTOM_LABELS[0].1)]),
        _ => requirement(KWOK_FAMILY, "NotIn", &[*rng.pick(&["c", "s", "m"])]),
    }
}

fn named_host(nodes: &[String], rng: &mut Rng) -> Wish {
    let name = if nodes.is_empty() {
        "nowhere"
    } else {
        rng.pick(nodes).as_str()
    };
    let operator = *rng.pick(&["In", "NotIn"]);
    let term = json!({ "matchExpressions": [requirement(HOSTNAME, operator, &[name])] });
    Wish::Push(format!("{NODE_AFFINITY}.{REQUIRED}.nodeSelectorTerms"), term)
}

fn each_pod(snapshot: &mut Snapshot, app: &str, wish: &Wish) {
    for object in &mut snapshot.objects {
        // Pods that run keep what they were placed by.
        if !is_waiting(object, app) {
            continue;
        }
        let pod = object.clone();
        *object = match wish {
            Wish::Push(path, value) if !is_doubled(&pod, path, value) => pod.push(path, value.clone()),
            Wish::Push(..) => pod,
            Wish::Select(key, value) => pod.entry("spec.nodeSelector", key, value.as_str()),
        };
    }
}

fn is_waiting(object: &Object, app: &str) -> bool {
    object.kind() == "Pod" && object.get("metadata.labels.app") == app && object.get("spec.nodeName").is_null()
}

/// The API server refuses two spreads over the same topology with the same action.
fn is_doubled(pod: &Object, path: &str, value: &Value) -> bool {
    let listed = pod.get(path).as_array().map(Vec::as_slice).unwrap_or_default();
    !value["whenUnsatisfiable"].is_null()
        && listed.iter().any(|other| {
            other["topologyKey"] == value["topologyKey"] && other["whenUnsatisfiable"] == value["whenUnsatisfiable"]
        })
}

/// Limits of nothing and of resources of one's own; requirements that no type fulfils.
fn pools(snapshot: &mut Snapshot, rng: &mut Rng) {
    for object in &mut snapshot.objects {
        // A pool with a number of nodes has no other limits.
        if object.kind() != "NodePool" || !object.get("spec.replicas").is_null() {
            continue;
        }
        let pool = object.clone();
        *object = match rng.below(20) {
            0 => pool.with("spec.limits", json!({ "nodes": "0" })),
            1 => pool.with("spec.limits", json!({ "cpu": "0" })),
            2 => pool.with("spec.limits", json!({ "example.com/device": "1", "cpu": "64" })),
            3 => pool.push(
                "spec.template.spec.requirements",
                requirement(KWOK_FAMILY, "In", &["no-such-family"]),
            ),
            4 => pool.push(
                "spec.template.spec.taints",
                json!({ "key": "example.com/costly", "value": "second", "effect": "PreferNoSchedule" }),
            ),
            _ => pool,
        };
    }
}

/// Volumes of a node, of a network, of no class that exists.
fn storage(snapshot: &mut Snapshot, rng: &mut Rng) {
    for object in &mut snapshot.objects {
        let storage = object.clone();
        *object = match object.kind() {
            "PersistentVolume" => match rng.below(8) {
                0 => source(storage, "local", json!({ "path": "/mnt/disk" })).push(
                    "spec.nodeAffinity.required.nodeSelectorTerms",
                    json!({ "matchExpressions": [requirement(HOSTNAME, "In", &["node-00"])] }),
                ),
                1 => source(storage, "hostPath", json!({ "path": "/mnt/disk" })),
                2 => source(storage, "nfs", json!({ "server": "files", "path": "/" }))
                    .with("spec.nodeAffinity", Value::Null),
                _ => storage,
            },
            "PersistentVolumeClaim" if storage.get("spec.volumeName").is_null() => match rng.below(12) {
                0 => storage.with("spec.storageClassName", "no-such-class"),
                1 => storage.with("spec.storageClassName", Value::Null),
                2 => storage.with("spec.volumeName", "no-such-volume"),
                _ => storage,
            },
            _ => storage,
        };
    }
}

fn source(volume: Object, kind: &str, source: Value) -> Object {
    volume
        .with("spec.csi", Value::Null)
        .with(&format!("spec.{kind}"), source)
}

/// More pods like the first that waits without a volume.
fn crowd(snapshot: &mut Snapshot, app: &str, most: u64) {
    let is_plain = |pod: &&Object| is_waiting(pod, app) && pod.get("spec.volumes").is_null();
    let Some(first) = snapshot.objects.iter().find(is_plain).cloned() else {
        return;
    };
    for index in 0..most {
        let name = format!("{app}-crowd-{index}");
        let pod = first
            .clone()
            .with("metadata.name", name.as_str())
            .with("metadata.uid", uid(&format!("Pod/{app}/{name}")))
            .with("status", json!({ "phase": "Pending" }));
        snapshot.objects.push(unschedulable(pod));
    }
}
