//! What does the random cluster already have? Nodes of every stage with pods on them, daemons, foreign nodes.

use serde_json::json;

use super::storage::DRIVER;
use super::workload::Group;
use crate::catalogue::{InstanceType, KWOK_ZONES};
use crate::fleet::{Machine, Stage, requests};
use crate::object::{ARCH, CAPACITY_TYPE, HOSTNAME, OS, Object, ZONE, pod, running};
use crate::rng::Rng;
use crate::snapshot::Snapshot;

pub(super) fn add(snapshot: &mut Snapshot, groups: &[Group], rng: &mut Rng) {
    let daemons = daemons(rng);
    snapshot.objects.extend(daemons.iter().cloned());
    let pools: Vec<Object> = snapshot.of_kind("NodePool").cloned().collect();
    let types: Vec<InstanceType> = snapshot
        .instance_types
        .iter()
        .filter(|it| it.name.ends_with("linux"))
        .cloned()
        .collect();
    for index in 0..*rng.pick(&[0, 2, 6, 12]) {
        let pool = rng.pick(&pools);
        let (&zone, &capacity_type) = (rng.pick(&KWOK_ZONES), rng.pick(&["spot", "on-demand"]));
        let machine = Machine {
            name: format!("node-{index:02}"),
            pool: pool.name(),
            it: rng.pick(&types),
            zone,
            capacity_type,
            stage: *rng.pick(&[
                Stage::Initialized,
                Stage::Initialized,
                Stage::Initialized,
                Stage::Initialized,
                Stage::Registered,
                Stage::Launched,
            ]),
        };
        add_machine(snapshot, &machine, pool, rng);
        if machine.stage == Stage::Initialized {
            occupy(snapshot, &machine, groups, &daemons, rng);
        }
    }
    if rng.chance(15) {
        snapshot.objects.push(foreign_node(rng));
    }
    if rng.chance(8) {
        snapshot.objects.push(unlaunched_claim(&pools[0], rng.pick(&types)));
    }
}

/// The machine's claim, its node once there is one, and now and then its end.
fn add_machine(snapshot: &mut Snapshot, machine: &Machine, pool: &Object, rng: &mut Rng) {
    let labels = pool
        .get("spec.template.metadata.labels")
        .as_object()
        .cloned()
        .unwrap_or_default();
    let taints = pool
        .get("spec.template.spec.taints")
        .as_array()
        .cloned()
        .unwrap_or_default();
    let label = |object: Object| {
        labels.iter().fold(object, |object, (key, value)| {
            object.entry("metadata.labels", key, value.clone())
        })
    };
    let (mut claim, mut node) = (label(machine.claim()), label(machine.node()));
    for taint in taints {
        claim = claim.push("spec.taints", taint.clone());
        node = node.push("spec.taints", taint);
    }
    if machine.stage == Stage::Registered {
        for taint in pool
            .get("spec.template.spec.startupTaints")
            .as_array()
            .cloned()
            .unwrap_or_default()
        {
            claim = claim.push("spec.startupTaints", taint.clone());
            node = node.push("spec.taints", taint);
        }
    }
    if machine.stage == Stage::Initialized && rng.chance(15) {
        claim = claim.with("metadata.deletionTimestamp", "2026-11-15T11:59:30Z");
        node = node.push(
            "spec.taints",
            json!({ "key": "karpenter.sh/disrupted", "effect": "NoSchedule" }),
        );
    }
    if machine.stage == Stage::Initialized && rng.chance(40) {
        let limit = rng.between(1, 4);
        let csi = Object::new("storage.k8s.io/v1", "CSINode", "", &machine.name).with(
            "spec.drivers",
            json!([{ "name": DRIVER, "nodeID": machine.name, "allocatable": { "count": limit } }]),
        );
        snapshot.objects.push(csi);
    }
    snapshot.objects.push(claim);
    if machine.stage != Stage::Launched {
        snapshot.objects.push(node);
    }
}

/// Daemon pods, then pods of the groups while they fit; a few have already ended.
fn occupy(snapshot: &mut Snapshot, machine: &Machine, groups: &[Group], daemons: &[Object], rng: &mut Rng) {
    let (mut cpu, mut memory) = (machine.cpu_m(), machine.memory_mi());
    let mut take = |pod: &Object| {
        let (wanted_cpu, wanted_memory) = requests(pod);
        let fits = wanted_cpu <= cpu && wanted_memory <= memory;
        if fits {
            cpu -= wanted_cpu;
            memory -= wanted_memory;
        }
        fits
    };
    for daemon in daemons.iter().filter(|_| rng.chance(85)) {
        let pod = daemon_pod(daemon, &machine.name);
        if take(&pod) {
            snapshot.objects.push(running(pod, &machine.name));
        }
    }
    for index in 0..rng.below(7) {
        let group = rng.pick(groups);
        let (pod, volumes) = group.pod(&format!("{}-{}-{index}", group.app, machine.name), rng);
        // A pod whose claim is missing never got as far as running.
        let homeless = volumes.is_empty() && pod.get("spec.volumes").is_array();
        if homeless || !take(&pod) {
            continue;
        }
        let pod = running(pod, &machine.name);
        let pod = if rng.chance(8) {
            pod.with("status.phase", "Succeeded")
        } else {
            pod
        };
        snapshot.objects.extend(volumes);
        snapshot.objects.push(pod);
    }
}

fn daemons(rng: &mut Rng) -> Vec<Object> {
    (0..rng.below(4)).map(|index| daemon(index, rng)).collect()
}

fn daemon(index: u64, rng: &mut Rng) -> Object {
    let name = format!("daemon-{index}");
    let mut shape = pod("kube-system", &name, rng.between(1, 4) * 50, rng.between(1, 4) * 64).entry(
        "metadata.labels",
        "app",
        name.as_str(),
    );
    if rng.chance(60) {
        shape = shape.push("spec.tolerations", json!({ "operator": "Exists" }));
    }
    if rng.chance(25) {
        shape = shape.entry("spec.nodeSelector", ARCH, "amd64");
    }
    if rng.chance(20) {
        shape = shape.entry("spec.nodeSelector", CAPACITY_TYPE, *rng.pick(&["spot", "on-demand"]));
    }
    if rng.chance(15) {
        let ports = json!([{ "containerPort": 9100, "hostPort": 8080, "protocol": "TCP" }]);
        shape = shape.push("spec.containers", json!({ "name": "ports", "ports": ports }));
    }
    Object::new("apps/v1", "DaemonSet", "kube-system", &name)
        .with("spec.selector.matchLabels", json!({ "app": name }))
        .with("spec.template.metadata.labels", json!({ "app": name }))
        .with("spec.template.spec", shape.get("spec").clone())
}

/// The daemon's pod on a node, as its controller makes it.
fn daemon_pod(daemon: &Object, node: &str) -> Object {
    Object::new("v1", "Pod", "kube-system", &format!("{}-{node}", daemon.name()))
        .with("metadata.creationTimestamp", "2026-11-15T10:01:00Z")
        .with("metadata.labels", json!({ "app": daemon.name() }))
        .push(
            "metadata.ownerReferences",
            json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": daemon.name(), "controller": true,
                    "uid": daemon.get("metadata.uid") }),
        )
        .with("spec", daemon.get("spec.template.spec").clone())
}

/// A node nobody launched for us.
fn foreign_node(rng: &mut Rng) -> Object {
    Object::new("v1", "Node", "", "foreign")
        .entry("metadata.labels", HOSTNAME, "foreign")
        .entry("metadata.labels", ARCH, "amd64")
        .entry("metadata.labels", OS, "linux")
        .entry("metadata.labels", ZONE, *rng.pick(&KWOK_ZONES))
        .with("spec.providerID", "elsewhere://foreign")
        .with(
            "status.capacity",
            json!({ "cpu": "8", "memory": "16Gi", "pods": "110" }),
        )
        .with(
            "status.allocatable",
            json!({ "cpu": "7900m", "memory": "15Gi", "pods": "110" }),
        )
        .push(
            "status.conditions",
            json!({ "type": "Ready", "status": "True", "reason": "Kubelet" }),
        )
}

/// A claim whose instance is still being asked for.
fn unlaunched_claim(pool: &Object, it: &InstanceType) -> Object {
    let machine = Machine {
        name: "unlaunched".to_string(),
        pool: pool.name(),
        it,
        zone: KWOK_ZONES[0],
        capacity_type: "on-demand",
        stage: Stage::Launched,
    };
    machine.claim().with("status", json!({ "conditions": [] }))
}
