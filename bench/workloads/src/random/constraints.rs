//! What may a random pod ask of its node and its neighbours? One function per field of the pod spec.

use serde_json::{Value, json};

use super::{CUSTOM_LABELS, NAMESPACES, TAINTS};
use crate::catalogue::{KWOK_FAMILY, KWOK_SIZE, KWOK_ZONES};
use crate::object::{ARCH, CAPACITY_TYPE, HOSTNAME, Object, ZONE, requirement};
use crate::rng::Rng;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Adds each constraint with its own probability; `app` is the pod's label, `others` are its neighbours'.
pub(super) fn constrain(mut pod: Object, app: &str, others: &[String], rng: &mut Rng) -> Object {
    for (percent, add) in ON_NODES {
        if rng.chance(*percent) {
            pod = add(pod, rng);
        }
    }
    for (percent, path, weighted) in ON_NEIGHBOURS {
        if rng.chance(*percent) {
            let term = pod_term(app, others, rng);
            let entry = if *weighted {
                json!({ "weight": rng.between(1, 100), "podAffinityTerm": term })
            } else {
                term
            };
            pod = pod.push(&format!("spec.affinity.{path}"), entry);
        }
    }
    for percent in [30, 8] {
        if rng.chance(percent) {
            pod = pod.push("spec.topologySpreadConstraints", spread(app, rng));
        }
    }
    // The API server refuses two constraints on the same topology with the same action.
    without_duplicate_spreads(pod)
}

type Add = fn(Object, &mut Rng) -> Object;

const ON_NODES: &[(u64, Add)] = &[
    (18, node_selector),
    (18, |pod, rng| {
        let terms: Vec<Value> = (0..rng.between(1, 2)).map(|_| node_term(rng)).collect();
        pod.with(
            &format!("spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"),
            terms,
        )
    }),
    (15, |pod, rng| {
        let preference = json!({ "weight": rng.between(1, 100), "preference": node_term(rng) });
        pod.push(&format!("spec.affinity.nodeAffinity.{PREFERRED}"), preference)
    }),
    (30, toleration),
    (1, |pod, _| {
        let never = json!([{ "matchExpressions": [requirement("karpenter.sh/nodepool", "DoesNotExist", &[])] }]);
        pod.with(
            &format!("spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"),
            never,
        )
    }),
];

const ON_NEIGHBOURS: &[(u64, &str, bool)] = &[
    (10, "podAffinity.requiredDuringSchedulingIgnoredDuringExecution", false),
    (8, "podAffinity.preferredDuringSchedulingIgnoredDuringExecution", true),
    (
        14,
        "podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution",
        false,
    ),
    (
        10,
        "podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution",
        true,
    ),
];

fn node_selector(pod: Object, rng: &mut Rng) -> Object {
    let (team, teams) = CUSTOM_LABELS[0];
    let choices = [
        (ZONE, *rng.pick(&KWOK_ZONES)),
        (ARCH, *rng.pick(&["amd64", "arm64"])),
        (CAPACITY_TYPE, *rng.pick(&["spot", "on-demand"])),
        (KWOK_FAMILY, *rng.pick(&["c", "s", "m"])),
        (team, *rng.pick(&teams)),
    ];
    let &(key, value) = rng.pick(&choices);
    pod.entry("spec.nodeSelector", key, value)
}

fn node_term(rng: &mut Rng) -> Value {
    let expressions: Vec<Value> = (0..rng.between(1, 2)).map(|_| expression(rng)).collect();
    json!({ "matchExpressions": expressions })
}

fn expression(rng: &mut Rng) -> Value {
    let (env, envs) = CUSTOM_LABELS[1];
    match rng.below(9) {
        0 => requirement(ZONE, "In", &rng.some(&KWOK_ZONES, 1)),
        1 => requirement(ZONE, "NotIn", &[*rng.pick(&KWOK_ZONES)]),
        2 => requirement(KWOK_SIZE, "Gt", &[*rng.pick(&["1", "4", "8"])]),
        3 => requirement(KWOK_SIZE, "Lt", &[*rng.pick(&["9", "17", "64"])]),
        4 => requirement(env, "In", &rng.some(&envs, 1)),
        5 => {
            let &operator = rng.pick(&["Exists", "DoesNotExist"]);
            requirement(env, operator, &[])
        }
        6 => requirement(CAPACITY_TYPE, "In", &rng.some(&["spot", "on-demand", "reserved"], 1)),
        7 => requirement(KWOK_FAMILY, "NotIn", &[*rng.pick(&["c", "s", "m"])]),
        _ => requirement(ARCH, "Exists", &[]),
    }
}

fn toleration(mut pod: Object, rng: &mut Rng) -> Object {
    if rng.chance(20) {
        return pod.push("spec.tolerations", json!({ "operator": "Exists" }));
    }
    for (key, value, effect) in TAINTS {
        match rng.below(4) {
            0 => {
                pod = pod.push(
                    "spec.tolerations",
                    json!({ "key": key, "operator": "Equal", "value": value, "effect": effect }),
                );
            }
            1 => pod = pod.push("spec.tolerations", json!({ "key": key, "operator": "Exists" })),
            _ => {}
        }
    }
    pod
}

fn pod_term(app: &str, others: &[String], rng: &mut Rng) -> Value {
    let target = if rng.chance(60) || others.is_empty() {
        app
    } else {
        rng.pick(others).as_str()
    };
    let mut term =
        json!({ "topologyKey": *rng.pick(&[HOSTNAME, ZONE, CAPACITY_TYPE]), "labelSelector": selector(target, rng) });
    match rng.below(6) {
        0 => term["namespaces"] = json!(rng.some(&NAMESPACES.map(|(name, _)| name), 1)),
        1 => term["namespaceSelector"] = json!({ "matchLabels": { "grade": *rng.pick(&["a", "b"]) } }),
        2 => term["namespaceSelector"] = json!({}),
        3 => by_revision(&mut term),
        _ => {}
    }
    term
}

/// `matchLabelKeys` as it is found in a cluster: the API server has merged the key into the selector.
fn by_revision(term: &mut Value) {
    term["matchLabelKeys"] = json!(["revision"]);
    term["labelSelector"]["matchExpressions"] = json!([requirement("revision", "In", &["1"])]);
}

fn selector(app: &str, rng: &mut Rng) -> Value {
    match rng.below(5) {
        0 => json!({ "matchExpressions": [requirement("app", "In", &[app])] }),
        1 => json!({ "matchExpressions": [requirement("tier", "Exists", &[])] }),
        _ => json!({ "matchLabels": { "app": app } }),
    }
}

fn spread(app: &str, rng: &mut Rng) -> Value {
    let when = *rng.pick(&["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]);
    let mut constraint = json!({
        "maxSkew": rng.between(1, 3),
        "topologyKey": *rng.pick(&[ZONE, ZONE, HOSTNAME, CAPACITY_TYPE]),
        "whenUnsatisfiable": when,
        "labelSelector": selector(app, rng),
    });
    if when == "DoNotSchedule" && rng.chance(20) {
        constraint["minDomains"] = Value::from(rng.between(1, 5));
    }
    if rng.chance(25) {
        constraint["nodeAffinityPolicy"] = json!(*rng.pick(&["Honor", "Ignore"]));
    }
    if rng.chance(25) {
        constraint["nodeTaintsPolicy"] = json!(*rng.pick(&["Honor", "Ignore"]));
    }
    if rng.chance(20) {
        constraint["matchLabelKeys"] = json!(["revision"]);
    }
    constraint
}

fn without_duplicate_spreads(pod: Object) -> Object {
    let path = "spec.topologySpreadConstraints";
    let Some(listed) = pod.get(path).as_array() else {
        return pod;
    };
    let mut kept: Vec<Value> = Vec::new();
    for constraint in listed {
        let same = |other: &Value| {
            other["topologyKey"] == constraint["topologyKey"]
                && other["whenUnsatisfiable"] == constraint["whenUnsatisfiable"]
        };
        if !kept.iter().any(same) {
            kept.push(constraint.clone());
        }
    }
    pod.with(path, kept)
}
