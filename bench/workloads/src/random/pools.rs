//! Which NodePools does the random cluster have? One to four, weighted, limited, tainted, static, broken.

use serde_json::{Value, json};

use super::cloud::RESERVATION_ID;
use super::{CUSTOM_LABELS, TAINTS};
use crate::catalogue::{KWOK_FAMILY, KWOK_SIZE, KWOK_ZONES};
use crate::object::{ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS, Object, ZONE, kwok_node_class, node_pool, requirement};
use crate::rng::Rng;
use crate::snapshot::Snapshot;

pub(super) fn add(snapshot: &mut Snapshot, rng: &mut Rng) {
    for index in 0..rng.between(1, 4) {
        let name = format!("pool-{index}");
        // The first pool stays usable, or most clusters would have nothing to decide.
        let pool = if index == 0 {
            plain(&name, rng)
        } else {
            odd(plain(&name, rng), rng)
        };
        snapshot.objects.push(pool);
        if rng.chance(15) {
            let names: Vec<String> = snapshot.instance_types.iter().map(|it| it.name.clone()).collect();
            snapshot
                .node_pool_instance_types
                .insert(name, Value::from(rng.some(&names, 1)));
        }
    }
}

fn plain(name: &str, rng: &mut Rng) -> Object {
    let mut pool = node_pool(name, &kwok_node_class()).with("spec.template.spec.requirements", requirements(rng));
    for (key, values) in CUSTOM_LABELS {
        if rng.chance(25) {
            pool = pool.entry("spec.template.metadata.labels", key, *rng.pick(&values));
        }
    }
    if rng.chance(40) {
        pool = pool.with("spec.weight", rng.between(1, 100));
    }
    if rng.chance(35) {
        pool = pool.with("spec.limits", limits(rng));
    }
    if rng.chance(25) {
        pool = pool.push("spec.template.spec.taints", taint(rng));
    }
    if rng.chance(20) {
        pool = pool.push(
            "spec.template.spec.startupTaints",
            json!({ "key": "example.com/starting", "effect": "NoSchedule" }),
        );
    }
    if rng.chance(20) {
        pool = pool.with("spec.template.spec.terminationGracePeriod", "1h0m0s");
    }
    disruption(pool, rng)
}

fn disruption(pool: Object, rng: &mut Rng) -> Object {
    let nodes = *rng.pick(&["100%", "100%", "10%", "1", "0"]);
    let mut budgets = vec![json!({ "nodes": nodes })];
    if rng.chance(20) {
        budgets.push(json!({ "nodes": "1", "reasons": ["Underutilized"] }));
    }
    pool.with(
        "spec.disruption.consolidationPolicy",
        *rng.pick(&["WhenEmptyOrUnderutilized", "WhenEmpty", "Balanced"]),
    )
    .with("spec.disruption.consolidateAfter", *rng.pick(&["0s", "30s", "Never"]))
    .with("spec.disruption.budgets", budgets)
}

/// Pools that provisioning must leave alone.
fn odd(pool: Object, rng: &mut Rng) -> Object {
    match rng.below(100) {
        0..15 => pool
            .with("spec.replicas", rng.between(0, 3))
            .with("spec.weight", Value::Null)
            .with("spec.limits", Value::Null),
        15..20 => pool.with(
            "status.conditions",
            json!([{ "type": "Ready", "status": "False", "reason": "NodeClassNotReady", "message": "",
                     "lastTransitionTime": "2026-11-15T11:00:00Z", "observedGeneration": 1 }]),
        ),
        20..24 => pool
            .with("metadata.deletionTimestamp", "2026-11-15T11:59:00Z")
            .with("metadata.finalizers", json!(["karpenter.sh/termination"])),
        _ => pool,
    }
}

fn limits(rng: &mut Rng) -> Value {
    match rng.below(4) {
        0 => json!({ "memory": format!("{}Gi", rng.between(8, 400)) }),
        1 => json!({ "cpu": rng.between(4, 100).to_string(), "memory": format!("{}Gi", rng.between(16, 400)) }),
        2 => json!({ "nodes": rng.between(1, 6).to_string() }),
        _ => json!({ "cpu": rng.between(2, 200).to_string() }),
    }
}

fn taint(rng: &mut Rng) -> Value {
    let &(key, value, effect) = rng.pick(&TAINTS);
    json!({ "key": key, "value": value, "effect": effect })
}

/// Up to a handful of requirements, of every operator over the random clusters.
fn requirements(rng: &mut Rng) -> Value {
    let mut listed = Vec::new();
    if rng.chance(90) {
        listed.push(requirement(OS, "In", &["linux"]));
    }
    for (percent, make) in CHOICES {
        if rng.chance(*percent) {
            listed.push(make(rng));
        }
    }
    Value::from(listed)
}

type Make = fn(&mut Rng) -> Value;

const CHOICES: &[(u64, Make)] = &[
    (20, |rng| requirement(ARCH, "In", &rng.some(&["amd64", "arm64"], 1))),
    (5, |_| requirement(ARCH, "NotIn", &["arm64"])),
    (40, |rng| {
        requirement(CAPACITY_TYPE, "In", &rng.some(&["spot", "on-demand", "reserved"], 1))
    }),
    (25, |rng| requirement(ZONE, "In", &rng.some(&KWOK_ZONES, 1))),
    (8, |rng| requirement(ZONE, "NotIn", &[*rng.pick(&KWOK_ZONES)])),
    (15, |rng| requirement(KWOK_FAMILY, "In", &rng.some(&["c", "s", "m"], 1))),
    (5, |_| requirement(KWOK_FAMILY, "Exists", &[])),
    (15, |rng| requirement(KWOK_SIZE, "Gt", &[*rng.pick(&["1", "2", "4"])])),
    (15, |rng| {
        requirement(KWOK_SIZE, "Lt", &[*rng.pick(&["16", "32", "65"])])
    }),
    (8, |rng| requirement(KWOK_SIZE, "Gte", &[*rng.pick(&["1", "2", "4"])])),
    (8, |rng| {
        requirement(KWOK_SIZE, "Lte", &[*rng.pick(&["16", "32", "64"])])
    }),
    (15, |rng| {
        requirement(CUSTOM_LABELS[0].0, "In", &rng.some(&CUSTOM_LABELS[0].1, 1))
    }),
    (8, |_| requirement(CUSTOM_LABELS[1].0, "Exists", &[])),
    (5, |_| requirement("example.com/legacy", "DoesNotExist", &[])),
    (3, |_| requirement(RESERVATION_ID, "Exists", &[])),
    (12, |rng| {
        with_min_values(requirement(INSTANCE_TYPE, "Exists", &[]), rng.between(2, 12))
    }),
    (8, |rng| {
        with_min_values(requirement(KWOK_FAMILY, "In", &["c", "s", "m"]), rng.between(1, 3))
    }),
    (6, |rng| {
        with_min_values(requirement(ZONE, "Exists", &[]), rng.between(2, 4))
    }),
];

fn with_min_values(mut requirement: Value, least: u64) -> Value {
    requirement["minValues"] = Value::from(least);
    requirement
}
