//! Which nodes a method may take at all: those a drain can empty, of pools we know.

use disruption::Method;
use serde_json::{Value, json};

use crate::fixture::{CAPACITY, Cluster, LONG_AGO, TYPE, ZONE, cluster, merge};

const GRACEFUL: Method = Method::SingleNodeConsolidation;
const EVENTUAL: Method = Method::Drift;

/// Whether the node `n` is a candidate of a method's class, whoever's it is then.
fn is_candidate(cluster: &Cluster, method: Method) -> bool {
    let pass = cluster.ask(method);
    let is_it = |refusal: &disruption::Refusal| {
        refusal.node.as_str() == "n" || refusal.claim.as_ref().is_some_and(|claim| claim.as_str() == "claim-n")
    };
    !pass
        .refusals
        .iter()
        .any(|refusal| is_it(refusal) && refusal.method.is_none())
}

fn one(node: Value, claim: Value) -> Cluster {
    cluster().machine("n", "t4", node, claim)
}

fn bounded() -> Value {
    json!({ "spec": { "terminationGracePeriod": "5m" } })
}

fn budget(name: &str, allowed: i32) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": name, "namespace": "ns" },
        "spec": { "selector": { "matchLabels": { "app": "p" } }, "maxUnavailable": allowed },
        "status": { "disruptionsAllowed": allowed },
    })
}

fn protected() -> Value {
    json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": "true" } } })
}

fn owned_by(version: &str, kind: &str) -> Value {
    json!({ "metadata": { "ownerReferences": [{ "apiVersion": version, "kind": kind, "name": "o", "uid": "o" }] } })
}

fn both(mut one: Value, other: Value) -> Value {
    merge(&mut one, other);
    one
}

#[test]
fn a_protected_pod_keeps_its_node_whoever_owns_the_pod_while_it_runs() {
    let with = |pod: Value| one(json!({}), json!({})).pod_with("p", "n", "1", pod);
    let ended = json!({ "status": { "phase": "Succeeded" } });
    let leaving = json!({ "metadata": { "deletionTimestamp": LONG_AGO } });
    let cases = [
        ("a pod", protected(), false),
        ("a static pod", both(protected(), owned_by("v1", "Node")), false),
        ("a daemon", both(protected(), owned_by("apps/v1", "DaemonSet")), false),
        ("a pod that ended", both(protected(), ended), true),
        ("a pod that goes", both(protected(), leaving), true),
    ];
    for (name, pod, expected) in cases {
        assert_eq!(is_candidate(&with(pod.clone()), GRACEFUL), expected, "{name}");
        assert_eq!(is_candidate(&with(pod), EVENTUAL), expected, "{name}");
    }
}

#[test]
fn a_budget_of_none_keeps_the_node_of_a_pod_that_could_be_evicted() {
    let with = |pod: Value| {
        one(json!({}), json!({}))
            .pod_with("p", "n", "1", pod)
            .with(budget("b", 0))
    };
    let ended = json!({ "status": { "phase": "Failed" } });
    let leaving = json!({ "metadata": { "deletionTimestamp": LONG_AGO } });
    let cases = [
        ("a pod", json!({}), false),
        ("a daemon", owned_by("apps/v1", "DaemonSet"), false),
        ("a static pod", owned_by("v1", "Node"), true),
        ("a pod that ended", ended, true),
        ("a pod that goes", leaving, true),
    ];
    for (name, pod, expected) in cases {
        assert_eq!(is_candidate(&with(pod), GRACEFUL), expected, "{name}");
    }
    let twice = one(json!({}), json!({}))
        .pod("p", "n", "1")
        .with(budget("b", 5))
        .with(budget("c", 5));
    assert!(!is_candidate(&twice, GRACEFUL), "two budgets for a pod");
}

#[test]
fn a_bound_of_the_drain_opens_a_node_for_drift_only() {
    let guarded = |claim: Value| one(json!({}), claim).pod_with("p", "n", "1", protected());
    let budgeted = |claim: Value| one(json!({}), claim).pod("p", "n", "1").with(budget("b", 0));
    for (name, of) in [
        ("protected", &guarded as &dyn Fn(Value) -> Cluster),
        ("budgeted", &budgeted),
    ] {
        let found = |claim: Value| [GRACEFUL, EVENTUAL].map(|method| is_candidate(&of(claim.clone()), method));
        assert_eq!(found(bounded()), [false, true], "{name}");
        assert_eq!(found(json!({})), [false, false], "{name}");
    }
}

#[test]
fn a_node_is_a_candidate_only_as_a_whole() {
    let mut node_only = one(json!({}), json!({}));
    node_only.objects.retain(|object| object["kind"] != "NodeClaim");
    assert!(!is_candidate(&node_only, GRACEFUL));
    let mut claim_only = one(json!({}), json!({}));
    claim_only.objects.retain(|object| object["kind"] != "Node");
    assert!(!is_candidate(&claim_only, GRACEFUL));
    assert!(is_candidate(&one(json!({}), json!({})), GRACEFUL));
}

#[test]
fn labels_that_tell_a_price_are_not_needed_to_be_a_candidate() {
    for label in [CAPACITY, ZONE, TYPE] {
        let without = json!({ "metadata": { "labels": { label: null } } });
        assert!(is_candidate(&one(without.clone(), without), GRACEFUL), "{label}");
    }
    assert!(
        is_candidate(&cluster().node("n", "gone"), GRACEFUL),
        "nor is a type that is offered"
    );
}
