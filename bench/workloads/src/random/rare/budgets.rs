//! Which rarer NodePools and budgets are there? Budgets of a time of day and of a reason, pools of one weight, requirements
//! said twice, taints of one key; budgets of pods that overlap.

use serde_json::{Value, json};

use super::super::CUSTOM_LABELS;
use super::{Change, change, is_bound, some_group};
use crate::catalogue::{KWOK_FAMILY, KWOK_SIZE, KWOK_ZONES};
use crate::object::{ARCH, CAPACITY_TYPE, INSTANCE_TYPE, NODE_POOL, Object, ZONE, requirement};
use crate::rng::{Rng, uid};
use crate::snapshot::Snapshot;

pub(super) const CHANGES: &[Change] = &[
    of_nodes,
    of_pods,
    policies,
    limits,
    requirements,
    least_values,
    taints,
    weights,
    labels,
    second_pool,
];

/// Changes each pool by itself, now and then.
fn pools(snapshot: &mut Snapshot, rng: &mut Rng, how: impl Fn(Object, &mut Rng) -> Object) {
    let is_meant = |object: &Object| object.kind() == "NodePool";
    change(
        snapshot,
        is_meant,
        |pool| if rng.chance(60) { how(pool, rng) } else { pool },
    );
}

/// Budgets by reason, in percent, and of hours: the snapshot's is a Sunday's noon.
fn of_nodes(snapshot: &mut Snapshot, rng: &mut Rng) {
    pools(snapshot, rng, |pool, rng| {
        let one = |rng: &mut Rng| {
            let nodes = *rng.pick(&["0", "1", "2", "5", "0%", "1%", "33%", "50%", "100%"]);
            let mut budget = json!({ "nodes": nodes });
            if rng.chance(50) {
                budget["reasons"] = json!(rng.some(&["Underutilized", "Empty", "Drifted"], 1));
            }
            if rng.chance(50) {
                let hours = [
                    "0 11 * * *",
                    "0 12 * * *",
                    "1 12 * * *",
                    "* * * * 6",
                    "@daily",
                    "@hourly",
                    "0 9 15 11 *",
                    "0 0 1 * 0",
                    "*/7 8-12 * * sun",
                    "0 12 * * 1-5",
                ];
                budget["schedule"] = json!(*rng.pick(&hours));
                budget["duration"] = json!(*rng.pick(&["1h", "1h0m", "60m", "1m", "13h30m", "24h"]));
            }
            budget
        };
        let budgets: Vec<Value> = (0..rng.between(0, 3)).map(|_| one(rng)).collect();
        pool.with("spec.disruption.budgets", budgets)
    });
}

/// Budgets of pods: several of one pod, of pods that are not ready, that were not seen since they changed.
fn of_pods(snapshot: &mut Snapshot, rng: &mut Rng) {
    for _ in 0..rng.between(1, 2) {
        let index = snapshot.of_kind("PodDisruptionBudget").count();
        let Some(labels) = some_group(snapshot, rng, is_bound) else {
            return;
        };
        let selector = match rng.below(5) {
            0 => json!({}),
            1 => json!({ "matchExpressions": [requirement("tier", "Exists", &[])] }),
            2 => Value::Null,
            _ => json!({ "matchLabels": { "app": labels["app"] } }),
        };
        let mut budget = Object::new("policy/v1", "PodDisruptionBudget", "default", &format!("rare-{index}"))
            .with("metadata.generation", 2)
            .with("spec.selector", selector)
            .with("spec.minAvailable", *rng.pick(&["100%", "50%"]))
            .with(
                "status",
                json!({ "disruptionsAllowed": rng.below(2), "currentHealthy": rng.below(4), "desiredHealthy": 2,
                        "expectedPods": 3, "observedGeneration": rng.between(1, 2) }),
            );
        if rng.chance(40) {
            let policy = *rng.pick(&["AlwaysAllow", "IfHealthyBudget"]);
            budget = budget.with("spec.unhealthyPodEvictionPolicy", policy);
        }
        snapshot.objects.push(budget);
    }
}

fn policies(snapshot: &mut Snapshot, rng: &mut Rng) {
    pools(snapshot, rng, |pool, rng| {
        pool.with(
            "spec.disruption.consolidationPolicy",
            *rng.pick(&["WhenEmptyOrUnderutilized", "WhenEmpty", "Balanced"]),
        )
        .with("spec.disruption.consolidateAfter", *rng.pick(&["0s", "1h", "Never"]))
        .with("spec.template.spec.expireAfter", *rng.pick(&["Never", "3h"]))
        .with("spec.template.spec.terminationGracePeriod", *rng.pick(&["30s", "24h"]))
    });
}

fn limits(snapshot: &mut Snapshot, rng: &mut Rng) {
    pools(snapshot, rng, |pool, rng| {
        if !pool.get("spec.replicas").is_null() {
            return pool.with("spec.limits", json!({ "nodes": rng.between(0, 3).to_string() }));
        }
        let limits = match rng.below(6) {
            0 => json!({ "pods": "300" }),
            1 => json!({ "ephemeral-storage": "100Gi", "memory": "1T" }),
            2 => json!({ "nodes": "2", "cpu": "32" }),
            3 => json!({ "cpu": "7500m" }),
            4 => json!({ "example.com/unknown": "1" }),
            _ => json!({}),
        };
        pool.with("spec.limits", limits)
    });
}

/// One key said several times, and keys nobody has.
fn requirements(snapshot: &mut Snapshot, rng: &mut Rng) {
    pools(snapshot, rng, |pool, rng| {
        let choices = [
            requirement(ZONE, "In", &rng.some(&KWOK_ZONES, 2)),
            requirement(ZONE, "Exists", &[]),
            requirement(KWOK_SIZE, "NotIn", &["1", "2"]),
            requirement(KWOK_SIZE, "Gt", &["-5"]),
            requirement(KWOK_SIZE, "Lte", &["48"]),
            requirement(CUSTOM_LABELS[0].0, "NotIn", &["red"]),
            requirement(CUSTOM_LABELS[0].0, "Exists", &[]),
            requirement("example.com/number", "Gt", &["5"]),
            requirement("example.com/number", "In", &["3", "7", "11"]),
            requirement(CAPACITY_TYPE, "NotIn", &["spot"]),
            requirement(INSTANCE_TYPE, "NotIn", &["s-4x-amd64-linux"]),
            requirement(ARCH, "Exists", &[]),
        ];
        let path = "spec.template.spec.requirements";
        rng.some(&choices, 1)
            .into_iter()
            .take(4)
            .fold(pool, |pool, one| pool.push(path, one))
    });
}

fn least_values(snapshot: &mut Snapshot, rng: &mut Rng) {
    pools(snapshot, rng, |pool, rng| {
        let mut one = match rng.below(6) {
            0 => requirement(CAPACITY_TYPE, "In", &["spot", "on-demand", "reserved"]),
            1 => requirement(ARCH, "Exists", &[]),
            2 => requirement(CUSTOM_LABELS[0].0, "In", &CUSTOM_LABELS[0].1),
            3 => requirement(KWOK_SIZE, "Gt", &["1"]),
            4 => requirement(KWOK_FAMILY, "NotIn", &["c"]),
            _ => requirement(INSTANCE_TYPE, "NotIn", &["no-such-type"]),
        };
        one["minValues"] = json!(rng.between(1, 4));
        pool.push("spec.template.spec.requirements", one)
    });
}

fn taints(snapshot: &mut Snapshot, rng: &mut Rng) {
    pools(snapshot, rng, |pool, rng| {
        let key = *rng.pick(&[
            "example.com/dedicated",
            "example.com/odd",
            "node.kubernetes.io/not-ready",
        ]);
        let effects = rng.some(&["NoSchedule", "PreferNoSchedule", "NoExecute"], 1);
        let path = *rng.pick(&["spec.template.spec.taints", "spec.template.spec.startupTaints"]);
        effects.into_iter().fold(pool, |pool, effect| {
            pool.push(path, json!({ "key": key, "value": "odd", "effect": effect }))
        })
    });
}

/// All pools weigh the same, or nothing.
fn weights(snapshot: &mut Snapshot, rng: &mut Rng) {
    let weight = rng.pick(&[Value::Null, json!(50)]).clone();
    let has_weight = |object: &Object| object.kind() == "NodePool" && object.get("spec.replicas").is_null();
    change(snapshot, has_weight, |pool| pool.with("spec.weight", weight.clone()));
}

/// Labels of a template that a requirement or the cloud speaks of, too.
fn labels(snapshot: &mut Snapshot, rng: &mut Rng) {
    pools(snapshot, rng, |pool, rng| {
        let (key, value) = *rng.pick(&[
            (ZONE, KWOK_ZONES[0]),
            (CAPACITY_TYPE, "spot"),
            (KWOK_FAMILY, "m"),
            ("example.com/number", "7"),
            (CUSTOM_LABELS[0].0, "green"),
            (INSTANCE_TYPE, "s-4x-amd64-linux"),
        ]);
        pool.entry("spec.template.metadata.labels", key, value)
    });
}

/// A pool like the first, to which half of its nodes belong.
fn second_pool(snapshot: &mut Snapshot, rng: &mut Rng) {
    let Some(first) = snapshot.of_kind("NodePool").next().cloned() else {
        return;
    };
    let name = "second";
    if snapshot.of_kind("NodePool").any(|pool| pool.name() == name) {
        return;
    }
    let policy = *rng.pick(&["WhenEmptyOrUnderutilized", "Balanced", "WhenEmpty"]);
    let second = first
        .clone()
        .with("metadata.name", name)
        .with("metadata.uid", uid("NodePool//second"))
        .with("spec.disruption.consolidationPolicy", policy);
    snapshot.objects.push(second);
    let is_meant = |object: &Object| {
        ["Node", "NodeClaim"].contains(&object.kind())
            && object.0["metadata"]["labels"][NODE_POOL] == first.name()
            && object.name().bytes().last().is_some_and(|last| last % 2 == 1)
    };
    change(snapshot, is_meant, |object| {
        object.entry("metadata.labels", NODE_POOL, name)
    });
}
