//! Which rarer pods are there? Owned by nobody, ending, half bound, with requests written in odd ways.

use serde_json::{Value, json};

use super::super::storage::DRIVER;
use super::{Change, change, is_bound, is_waiting, node_names, one_group, some_pods};
use crate::object::Object;
use crate::rng::{Rng, uid};
use crate::snapshot::Snapshot;

pub(super) const CHANGES: &[Change] = &[
    stages_of_waiting,
    stages_of_bound,
    owners,
    amounts,
    containers,
    own_amounts,
    ports,
    priorities,
    kept,
    several_volumes,
    old_volumes,
    shared_volume,
];

fn stages_of_waiting(snapshot: &mut Snapshot, rng: &mut Rng) {
    let nodes = node_names(snapshot);
    some_pods(snapshot, rng, is_waiting, |pod, rng| match rng.below(8) {
        0 => pod.with("metadata.deletionTimestamp", "2026-11-15T11:59:50Z"),
        1 => pod.with("status.phase", "Failed"),
        2 => pod.with("status.conditions", json!([])),
        3 => pod.with(
            "status.conditions",
            json!([{ "type": "PodScheduled", "status": "False", "reason": "SchedulerError" }]),
        ),
        4 if !nodes.is_empty() => pod.with("status.nominatedNodeName", rng.pick(&nodes).as_str()),
        5 => pod.with("spec.schedulerName", "another"),
        6 => pod.with("metadata.creationTimestamp", "2026-11-15T11:30:00Z"),
        _ => pod.with("spec.preemptionPolicy", "Never"),
    });
}

fn stages_of_bound(snapshot: &mut Snapshot, rng: &mut Rng) {
    some_pods(snapshot, rng, is_bound, |pod, rng| match rng.below(6) {
        0 => pod.with("metadata.deletionTimestamp", "2026-11-15T11:59:50Z"),
        1 => pod.with("metadata.deletionTimestamp", "2026-11-15T12:10:00Z"),
        2 => pod.with("status.phase", "Failed"),
        3 => pod.with("status.phase", "Pending"),
        4 => pod.with("spec.nodeName", "gone"),
        _ => pod.push("status.conditions", json!({ "type": "Ready", "status": "False" })),
    });
}

fn owners(snapshot: &mut Snapshot, rng: &mut Rng) {
    some_pods(
        snapshot,
        rng,
        |pod| pod.kind() == "Pod",
        |pod, rng| {
            let owner = |version: &str, kind: &str| {
                json!([{ "apiVersion": version, "kind": kind, "name": "owner", "controller": true,
                     "uid": uid(&format!("{kind}//owner")) }])
            };
            let path = "metadata.ownerReferences";
            match rng.below(5) {
                0 => pod.with(path, Value::Null),
                1 => pod.with(path, owner("apps/v1", "StatefulSet")),
                2 => pod.with(path, owner("batch/v1", "Job")),
                3 => pod.with(path, owner("apps/v1", "DaemonSet")),
                _ => pod.with(path, owner("v1", "Node")).entry(
                    "metadata.annotations",
                    "kubernetes.io/config.mirror",
                    "mirror",
                ),
            }
        },
    );
}

/// Requests as people write them.
fn amounts(snapshot: &mut Snapshot, rng: &mut Rng) {
    let resources = match rng.below(8) {
        0 => json!({ "limits": { "cpu": "500m", "memory": "1Gi" } }),
        1 => json!({ "requests": { "cpu": "0.3", "memory": "200M" }, "limits": { "cpu": "2", "memory": "3Gi" } }),
        2 => json!({ "requests": { "cpu": "1500u", "memory": "1.5Gi" } }),
        3 => json!({ "requests": { "memory": "123456789" }, "limits": { "cpu": "250m" } }),
        4 => json!({ "requests": { "cpu": "1e1", "memory": "1e9" } }),
        5 => json!({ "requests": { "cpu": "500m", "hugepages-2Mi": "4Mi" }, "limits": { "hugepages-2Mi": "4Mi" } }),
        6 => json!({ "requests": { "cpu": "0", "memory": "0", "ephemeral-storage": "1Gi" } }),
        _ => json!({ "requests": { "cpu": "100001m", "memory": "1Ki" } }),
    };
    one_group(snapshot, rng, |pod| {
        pod.push("spec.containers", json!({ "name": "amounts", "resources": resources }))
    });
}

/// Containers before the first, some of which stay, in each order.
fn containers(snapshot: &mut Snapshot, rng: &mut Rng) {
    let one = |rng: &mut Rng, index: u64| {
        let requests =
            json!({ "cpu": *rng.pick(&["100m", "1", "2500m"]), "memory": *rng.pick(&["64Mi", "2Gi", "5Gi"]) });
        let kind = *rng.pick(&["requests", "limits"]);
        let mut container = json!({ "name": format!("before-{index}"), "resources": { kind: requests } });
        if rng.chance(50) {
            container["restartPolicy"] = json!("Always");
        }
        if rng.chance(20) {
            container["ports"] = json!([{ "containerPort": 90, "hostPort": 8081, "protocol": "TCP" }]);
        }
        container
    };
    let before: Vec<Value> = (0..rng.between(2, 4)).map(|index| one(rng, index)).collect();
    one_group(snapshot, rng, |pod| pod.with("spec.initContainers", before.clone()));
}

/// Requests of the pod as a whole.
fn own_amounts(snapshot: &mut Snapshot, rng: &mut Rng) {
    let resources = match rng.below(5) {
        0 => json!({ "requests": { "cpu": "5" } }),
        1 => json!({ "limits": { "cpu": "5", "memory": "9Gi" } }),
        2 => json!({ "requests": { "memory": "7Gi" }, "limits": { "cpu": "6" } }),
        3 => json!({ "requests": { "cpu": "4", "hugepages-2Mi": "4Mi" } }),
        _ => json!({ "requests": {} }),
    };
    let overhead = rng.chance(40);
    one_group(snapshot, rng, |pod| {
        let pod = pod.with("spec.resources", resources.clone());
        if overhead {
            return pod.with("spec.overhead", json!({ "cpu": "33m", "example.com/device": "1" }));
        }
        pod
    });
}

fn ports(snapshot: &mut Snapshot, rng: &mut Rng) {
    let ports = match rng.below(4) {
        0 => json!([{ "containerPort": 80, "hostPort": 8080, "protocol": "SCTP" }]),
        1 => json!([{ "containerPort": 80, "hostPort": 8080, "hostIP": "127.0.0.1", "protocol": "TCP" },
                    { "containerPort": 81, "hostPort": 8080, "hostIP": "10.0.0.1", "protocol": "TCP" }]),
        2 => json!([{ "containerPort": 8080, "hostPort": 8080 }]),
        _ => json!([{ "containerPort": 80, "hostPort": 8080, "hostIP": "::", "protocol": "TCP" },
                    { "containerPort": 81, "protocol": "TCP" }]),
    };
    let network = rng.chance(40);
    one_group(snapshot, rng, |pod| {
        pod.push("spec.containers", json!({ "name": "ported", "ports": ports }))
            .with("spec.hostNetwork", network)
    });
}

fn priorities(snapshot: &mut Snapshot, rng: &mut Rng) {
    some_pods(
        snapshot,
        rng,
        |pod| pod.kind() == "Pod",
        |pod, rng| {
            pod.with(
                "spec.priority",
                *rng.pick(&[-2_147_483_648_i64, -1, 0, 1, 1000, 2_000_001_000]),
            )
        },
    );
}

/// What keeps bound pods where they are, or makes them dear to move.
fn kept(snapshot: &mut Snapshot, rng: &mut Rng) {
    some_pods(snapshot, rng, is_bound, |pod, rng| {
        let annotate = |pod: Object, key: &str, value: &str| pod.entry("metadata.annotations", key, value);
        let keep = "karpenter.sh/do-not-disrupt";
        let cost = "controller.kubernetes.io/pod-deletion-cost";
        let started = *rng.pick(&["2026-11-15T11:58:00Z", "2026-11-15T10:30:00Z"]);
        let pod = pod.with("status.startTime", started);
        match rng.below(9) {
            0 => annotate(pod, keep, "true"),
            1 => annotate(pod, keep, "false"),
            2 => annotate(pod, keep, "5m"),
            3 => annotate(pod, keep, "1h30m0s"),
            4 => annotate(pod, keep, "forever"),
            5 => annotate(pod, cost, "2147483647"),
            6 => annotate(pod, cost, "-2147483648"),
            7 => annotate(pod, cost, "much"),
            _ => annotate(pod, cost, "134217728"),
        }
    });
}

/// Several volumes of one pod, some of no interest.
fn several_volumes(snapshot: &mut Snapshot, rng: &mut Rng) {
    let choices = [
        json!({ "name": "empty", "emptyDir": { "sizeLimit": "1Gi" } }),
        json!({ "name": "config", "configMap": { "name": "config" } }),
        json!({ "name": "inline", "csi": { "driver": DRIVER } }),
        json!({ "name": "first", "ephemeral": { "volumeClaimTemplate": { "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "zonal" } } } }),
        json!({ "name": "second", "ephemeral": { "volumeClaimTemplate": { "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "anywhere" } } } }),
        json!({ "name": "classless", "ephemeral": { "volumeClaimTemplate": { "spec": {
            "accessModes": ["ReadWriteOnce"] } } } }),
    ];
    let chosen = rng.some(&choices, 1);
    one_group(snapshot, rng, |pod| {
        chosen
            .iter()
            .fold(pod, |pod, volume| pod.push("spec.volumes", volume.clone()))
    });
}

/// Volumes of a time before CSI.
fn old_volumes(snapshot: &mut Snapshot, rng: &mut Rng) {
    let aws = rng.chance(50);
    change(
        snapshot,
        |object| object.kind() == "PersistentVolume",
        |volume| {
            let volume = volume.with("spec.csi", Value::Null);
            if aws {
                return volume.with("spec.awsElasticBlockStore", json!({ "volumeID": "vol-1" }));
            }
            volume.with(
                "spec.azureDisk",
                json!({ "diskName": "disk", "diskURI": "/disks/disk" }),
            )
        },
    );
    let provisioner = if aws {
        "kubernetes.io/aws-ebs"
    } else {
        "kubernetes.io/azure-disk"
    };
    change(
        snapshot,
        |object| object.kind() == "StorageClass",
        |class| class.with("provisioner", provisioner),
    );
}

/// One claim that the pods of a group share.
fn shared_volume(snapshot: &mut Snapshot, rng: &mut Rng) {
    let claims: Vec<Object> = snapshot.of_kind("PersistentVolumeClaim").cloned().collect();
    if claims.is_empty() {
        return;
    }
    let claim = rng.pick(&claims);
    let namespace = claim.get("metadata.namespace").clone();
    let volume = json!({ "name": "shared", "persistentVolumeClaim": { "claimName": claim.name() } });
    one_group(snapshot, rng, |pod| {
        if *pod.get("metadata.namespace") == namespace {
            pod.push("spec.volumes", volume.clone())
        } else {
            pod
        }
    });
}
