//! Which rarer ways are there to say where a pod belongs? Selectors of nothing and of everything, terms beside each other,
//! several namespaces, tolerations that miss.

use serde_json::{Value, json};

use super::super::{CUSTOM_LABELS, NAMESPACES, TAINTS};
use super::{Change, node_names, one_group};
use crate::catalogue::{KWOK_FAMILY, KWOK_SIZE, KWOK_ZONES};
use crate::object::{ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, OS, Object, ZONE, requirement};
use crate::rng::Rng;
use crate::snapshot::Snapshot;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) const CHANGES: &[Change] = &[
    neighbours,
    preferred_neighbours,
    spread,
    fields,
    alternatives,
    preferences,
    tolerations,
    numbers,
    own_pool,
];

fn selector(app: &str, rng: &mut Rng) -> Value {
    match rng.below(8) {
        0 => Value::Null,
        1 => json!({}),
        2 => json!({ "matchExpressions": [requirement("app", "NotIn", &[app])] }),
        3 => json!({ "matchExpressions": [requirement("tier", "DoesNotExist", &[])] }),
        4 => json!({ "matchLabels": { "app": app }, "matchExpressions": [requirement("tier", "In", &["front"])] }),
        5 => json!({ "matchLabels": { "app": "app-0" } }),
        _ => json!({ "matchLabels": { "app": app } }),
    }
}

fn app_of(snapshot: &Snapshot, rng: &mut Rng) -> String {
    let pods: Vec<&Object> = snapshot.of_kind("Pod").collect();
    if pods.is_empty() {
        return "app-0".to_owned();
    }
    let app = rng.pick(&pods).get("metadata.labels.app").as_str();
    app.unwrap_or("app-0").to_owned()
}

fn term(snapshot: &Snapshot, rng: &mut Rng) -> Value {
    let app = app_of(snapshot, rng);
    let key = *rng.pick(&[HOSTNAME, ZONE, OS, INSTANCE_TYPE, CUSTOM_LABELS[1].0]);
    let mut term = json!({ "topologyKey": key, "labelSelector": selector(&app, rng) });
    let names = NAMESPACES.map(|(name, _)| name);
    match rng.below(6) {
        0 => {
            term["namespaces"] = json!(rng.some(&names, 1));
            term["namespaceSelector"] = json!({ "matchLabels": { "grade": "a" } });
        }
        1 => term["namespaceSelector"] = json!({ "matchExpressions": [requirement("grade", "NotIn", &["a"])] }),
        2 => term["namespaceSelector"] = json!({ "matchLabels": { "grade": "none" } }),
        3 if term["labelSelector"].is_object() => {
            term["mismatchLabelKeys"] = json!(["revision"]);
            let merged = term["labelSelector"]["matchExpressions"].as_array().cloned();
            let mut merged = merged.unwrap_or_default();
            merged.push(requirement("revision", "NotIn", &["1"]));
            term["labelSelector"]["matchExpressions"] = json!(merged);
        }
        4 => term["namespaces"] = json!(["no-such-namespace"]),
        _ => {}
    }
    term
}

fn neighbours(snapshot: &mut Snapshot, rng: &mut Rng) {
    let kind = *rng.pick(&["podAffinity", "podAntiAffinity"]);
    let terms: Vec<Value> = (0..rng.between(1, 2)).map(|_| term(snapshot, rng)).collect();
    one_group(snapshot, rng, |pod| {
        let path = format!("spec.affinity.{kind}.{REQUIRED}");
        terms.iter().fold(pod, |pod, term| pod.push(&path, term.clone()))
    });
}

fn preferred_neighbours(snapshot: &mut Snapshot, rng: &mut Rng) {
    let kind = *rng.pick(&["podAffinity", "podAntiAffinity"]);
    let weight = rng.between(1, 3);
    let terms: Vec<Value> = (0..rng.between(1, 3)).map(|_| term(snapshot, rng)).collect();
    one_group(snapshot, rng, |pod| {
        let path = format!("spec.affinity.{kind}.{PREFERRED}");
        terms.iter().fold(pod, |pod, term| {
            pod.push(&path, json!({ "weight": weight, "podAffinityTerm": term }))
        })
    });
}

fn spread(snapshot: &mut Snapshot, rng: &mut Rng) {
    let app = app_of(snapshot, rng);
    let when = *rng.pick(&["DoNotSchedule", "ScheduleAnyway"]);
    let key = *rng.pick(&[
        ZONE,
        HOSTNAME,
        OS,
        CUSTOM_LABELS[1].0,
        KWOK_SIZE,
        "example.com/no-such-key",
    ]);
    let mut constraint = json!({ "maxSkew": rng.between(1, 5), "topologyKey": key, "whenUnsatisfiable": when,
                                 "labelSelector": selector(&app, rng) });
    if constraint["labelSelector"].is_object() && rng.chance(40) {
        let keys = *rng.pick(&[&["tier"][..], &["no-such-label"], &["tier", "app"]]);
        constraint["matchLabelKeys"] = json!(keys);
    }
    if when == "DoNotSchedule" && rng.chance(30) {
        constraint["minDomains"] = json!(rng.between(2, 6));
    }
    for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
        if rng.chance(50) {
            constraint[policy] = json!(*rng.pick(&["Honor", "Ignore"]));
        }
    }
    one_group(snapshot, rng, |pod| {
        let path = "spec.topologySpreadConstraints";
        let listed = pod.get(path).as_array().cloned().unwrap_or_default();
        let other = |it: &&Value| it["topologyKey"] != key || it["whenUnsatisfiable"] != when;
        let mut kept: Vec<Value> = listed.iter().filter(other).cloned().collect();
        kept.push(constraint.clone());
        pod.with(path, kept)
    });
}

/// Terms by a field of the node, alone and beside labels.
fn fields(snapshot: &mut Snapshot, rng: &mut Rng) {
    let nodes = node_names(snapshot);
    let name = if nodes.is_empty() { "nowhere" } else { rng.pick(&nodes) };
    let operator = *rng.pick(&["In", "NotIn"]);
    let mut term = json!({ "matchFields": [requirement("metadata.name", operator, &[name])] });
    if rng.chance(50) {
        term["matchExpressions"] = json!([requirement(ZONE, "In", &rng.some(&KWOK_ZONES, 1))]);
    }
    one_group(snapshot, rng, |pod| {
        let path = format!("spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms");
        pod.push(&path, term.clone())
    });
}

/// Several terms of which the first cannot be met, and terms of nothing.
fn alternatives(snapshot: &mut Snapshot, rng: &mut Rng) {
    let impossible = json!({ "matchExpressions": [requirement(ZONE, "In", &["no-such-zone"])] });
    let narrow = json!({ "matchExpressions": [requirement(ZONE, "In", &[*rng.pick(&KWOK_ZONES)]),
                                              requirement(CAPACITY_TYPE, "In", &["spot"])] });
    let wide = json!({ "matchExpressions": [requirement(KWOK_FAMILY, "Exists", &[])] });
    let choices = [impossible.clone(), narrow, wide, json!({}), impossible];
    let terms: Vec<Value> = (0..rng.between(2, 4)).map(|_| rng.pick(&choices).clone()).collect();
    one_group(snapshot, rng, |pod| {
        let path = format!("spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms");
        pod.with(&path, terms.clone())
    });
}

/// Preferences of equal weight, and of nothing.
fn preferences(snapshot: &mut Snapshot, rng: &mut Rng) {
    let one = |rng: &mut Rng| match rng.below(5) {
        0 => json!({}),
        1 => json!({ "matchExpressions": [requirement(ZONE, "In", &["no-such-zone"])] }),
        2 => json!({ "matchExpressions": [requirement(KWOK_SIZE, "Gt", &["8"])] }),
        3 => json!({ "matchFields": [requirement("metadata.name", "In", &["node-00"])] }),
        _ => json!({ "matchExpressions": [requirement(ZONE, "In", &[*rng.pick(&KWOK_ZONES)])] }),
    };
    let terms: Vec<Value> = (0..rng.between(2, 4))
        .map(|_| json!({ "weight": rng.between(1, 2), "preference": one(rng) }))
        .collect();
    one_group(snapshot, rng, |pod| {
        let path = format!("spec.affinity.nodeAffinity.{PREFERRED}");
        terms.iter().fold(pod, |pod, term| pod.push(&path, term.clone()))
    });
}

/// Tolerations that miss by value, by effect, or that name no key.
fn tolerations(snapshot: &mut Snapshot, rng: &mut Rng) {
    let &(key, value, _) = rng.pick(&TAINTS);
    let choices = [
        json!({ "key": key, "operator": "Equal", "value": "other", "effect": "NoSchedule" }),
        json!({ "key": key, "value": value }),
        json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 }),
        json!({ "operator": "Exists", "effect": "NoSchedule" }),
        json!({ "operator": "Exists", "effect": "PreferNoSchedule" }),
        json!({ "key": "example.com/odd", "operator": "Exists" }),
        json!({ "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoSchedule" }),
        json!({ "key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule" }),
    ];
    let chosen = rng.some(&choices, 1);
    one_group(snapshot, rng, |pod| {
        chosen
            .iter()
            .fold(pod, |pod, one| pod.push("spec.tolerations", one.clone()))
    });
}

/// Numbers of labels that are none, below zero and far away.
fn numbers(snapshot: &mut Snapshot, rng: &mut Rng) {
    let key = *rng.pick(&[KWOK_SIZE, KWOK_FAMILY, CUSTOM_LABELS[0].0]);
    let bounds = [
        requirement(key, "Gt", &[*rng.pick(&["-1", "0", "15"])]),
        requirement(key, "Lt", &[*rng.pick(&["2", "17", "100000"])]),
        requirement(key, "NotIn", &["4", "16"]),
        requirement(key, "Exists", &[]),
    ];
    let term = json!({ "matchExpressions": rng.some(&bounds, 1) });
    one_group(snapshot, rng, |pod| {
        let path = format!("spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms");
        pod.with(&path, json!([term]))
    });
}

/// Pods that name their pool, a stage of a node, or what a node may not say of itself.
fn own_pool(snapshot: &mut Snapshot, rng: &mut Rng) {
    let choices = [
        ("karpenter.sh/nodepool", *rng.pick(&["pool-0", "pool-1", "default"])),
        ("karpenter.sh/registered", "true"),
        ("karpenter.sh/initialized", "true"),
        ("karpenter.kwok.sh/kwoknodeclass", "default"),
        ("node.kubernetes.io/windows-build", "10.0.17763"),
        ("topology.kubernetes.io/region", "region-1"),
        ("beta.kubernetes.io/arch", "amd64"),
        ("beta.kubernetes.io/instance-type", "s-4x-amd64-linux"),
        (ARCH, "no-such-arch"),
    ];
    let &(key, value) = rng.pick(&choices);
    one_group(snapshot, rng, |pod| pod.entry("spec.nodeSelector", key, value));
}
