//! Which nodes are candidates, and what is said of those that are not.

use disruption::{Method, Repair, RepairAction};
use jiff::SignedDuration;
use model::object::{ConditionStatus, NodeClaimName, ProviderId};
use serde_json::{Value, json};

use crate::fixture::{Cluster, LONG_AGO, cluster, said};

fn one(node: Value, claim: Value) -> Cluster {
    cluster().machine("n", "t4", node, claim)
}

fn blocked(cluster: &Cluster) -> Vec<String> {
    let pass = cluster.ask(Method::Emptiness);
    assert!(pass.eligible == 0 && pass.commands.is_empty(), "{:?}", pass.commands);
    said(&pass.refusals, "n")
}

#[test]
fn a_node_that_is_no_candidate_is_told_why_in_upstreams_words() {
    let condition = |kind: &str| json!({ "status": { "conditions": [{ "type": kind, "status": "True", "reason": kind, "lastTransitionTime": LONG_AGO }] } });
    let labels = |labels: Value| json!({ "metadata": { "labels": labels } });
    let cases = [
        (json!({}), condition("Rebooting"), "Node is rebooting"),
        (
            json!({}),
            json!({ "metadata": { "deletionTimestamp": LONG_AGO } }),
            "Node is deleting or marked for deletion",
        ),
        (
            json!({}),
            condition("InstanceTerminating"),
            "Node is deleting or marked for deletion",
        ),
        (
            labels(json!({ "karpenter.sh/initialized": null })),
            json!({}),
            "Node isn't initialized",
        ),
        (
            json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": "true" } } }),
            json!({}),
            "Disruption is blocked through the \"karpenter.sh/do-not-disrupt\" annotation",
        ),
        (
            labels(json!({ "karpenter.sh/nodepool": null })),
            json!({}),
            "Node doesn't have required label (label=karpenter.sh/nodepool)",
        ),
        (
            labels(json!({ "karpenter.sh/nodepool": "gone" })),
            json!({}),
            "NodePool not found (NodePool=gone)",
        ),
    ];
    for (node, claim, message) in cases {
        assert_eq!(blocked(&one(node, claim)), [format!("DisruptionBlocked: {message}")]);
    }
    let unregistered = labels(json!({ "karpenter.sh/initialized": null, "karpenter.sh/registered": null }));
    let cluster = one(unregistered, json!({}));
    let pass = cluster.ask(Method::Emptiness);
    assert_eq!(
        said(&pass.refusals, "claim-n"),
        ["DisruptionBlocked: Node isn't initialized nor registered"]
    );
}

#[test]
fn do_not_disrupt_on_a_node_counts_only_as_the_word_true() {
    for value in ["false", "30m", "TRUE"] {
        let annotated = json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": value } } });
        assert_eq!(
            one(annotated, json!({})).ask(Method::Emptiness).commands.len(),
            1,
            "{value}"
        );
    }
}

#[test]
fn a_node_under_way_marked_or_nominated_is_no_candidate() {
    let id = || ProviderId::from("id-n");
    let mut queued = cluster().node("n", "t4");
    queued.facts.queued.insert(id());
    assert!(blocked(&queued).is_empty(), "nobody is told of commands under way");
    let mut marked = cluster().node("n", "t4");
    marked.facts.marked.insert(NodeClaimName::from("claim-n"));
    assert_eq!(
        blocked(&marked),
        ["DisruptionBlocked: Node is deleting or marked for deletion"]
    );
    let mut nominated = cluster().node("n", "t4");
    nominated.facts.nominated.insert(id());
    assert_eq!(
        blocked(&nominated),
        ["DisruptionBlocked: Node is nominated for a pending pod"]
    );
}

fn budget(name: &str, spec: Value, allowed: i32) -> Value {
    let mut budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": { "name": name, "namespace": "ns" },
        "spec": { "selector": { "matchLabels": { "app": "p" } } },
        "status": { "disruptionsAllowed": allowed },
    });
    crate::fixture::merge(&mut budget["spec"], spec);
    budget
}

#[test]
fn pods_that_may_not_be_evicted_keep_their_node_and_the_fix_names_them() {
    let annotated = |value: &str, start: Value| json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": value } }, "status": { "startTime": start } });
    let protected = "DisruptionBlocked: Pod has \"karpenter.sh/do-not-disrupt\" annotation (Pod=ns/p)";
    let cases = [
        (annotated("true", json!(LONG_AGO)), Some(protected)),
        (annotated("3h", json!(LONG_AGO)), Some(protected)),
        (annotated("3h", Value::Null), Some(protected)),
        (annotated("1h", json!(LONG_AGO)), None),
        (annotated("soon", json!(LONG_AGO)), None),
    ];
    for (pod, expected) in cases {
        let cluster = one(json!({}), json!({})).pod_with("p", "n", "1", pod.clone());
        let pass = cluster.ask(Method::SingleNodeConsolidation);
        let blocked: Vec<_> = said(&pass.refusals, "n")
            .into_iter()
            .filter(|text| text.starts_with("DisruptionBlocked"))
            .collect();
        assert_eq!(blocked, expected.into_iter().collect::<Vec<_>>(), "{pod}");
    }
    let cluster = one(json!({}), json!({})).pod("p", "n", "1");
    let zero = cluster.clone().with(budget("b", json!({ "maxUnavailable": 1 }), 0));
    assert_eq!(
        blocked(&zero),
        ["DisruptionBlocked: Pdb prevents pod evictions (PodDisruptionBudget=[ns/b])"]
    );
    let refusals = zero.ask(Method::Emptiness).refusals;
    let fix = refusals[0].fix.as_ref().unwrap().to_string();
    assert!(
        fix.starts_with("PodDisruptionBudget ns/b: allow one more disruption"),
        "{fix}"
    );
    let two = cluster.with(budget("a", json!({}), 5)).with(budget("b", json!({}), 5));
    assert_eq!(
        blocked(&two),
        ["DisruptionBlocked: Eviction does not support multiple PDBs (PodDisruptionBudget(s)=[ns/a ns/b])"]
    );
}

#[test]
fn a_bounded_drain_lets_drift_pass_pods_that_keep_other_methods_off() {
    let drifted = json!([
        { "type": "Initialized", "status": "True", "reason": "Initialized", "lastTransitionTime": LONG_AGO },
        { "type": "Consolidatable", "status": "True", "reason": "Consolidatable", "lastTransitionTime": LONG_AGO },
        { "type": "Drifted", "status": "True", "reason": "NodePoolDrifted", "lastTransitionTime": LONG_AGO },
    ]);
    let protected = json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": "true" } } });
    let claim = |spec: Value| json!({ "spec": spec, "status": { "conditions": drifted } });
    let bounded =
        one(json!({}), claim(json!({ "terminationGracePeriod": "1h" }))).pod_with("p", "n", "1", protected.clone());
    let pass = bounded.ask(Method::Drift);
    assert_eq!(
        crate::fixture::texts(&pass.commands),
        ["delete: [n]"],
        "nobody launches for a pod that stays"
    );
    assert_eq!(bounded.ask(Method::SingleNodeConsolidation).eligible, 0);
    let unbounded = one(json!({}), claim(json!({}))).pod_with("p", "n", "1", protected);
    assert_eq!(unbounded.ask(Method::Drift).eligible, 0);
}

pub(crate) fn broken(action: RepairAction) -> Repair {
    Repair {
        action,
        is_escalated: false,
        condition: "Ready".into(),
        status: ConditionStatus::False,
        reason: "KubeletDown".into(),
        drain_bound: None,
        urgency: SignedDuration::from_mins(30),
    }
}

#[test]
fn a_broken_node_is_repaired_although_it_is_protected_or_never_came_up() {
    let protected = json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": "true" } } });
    let starting = json!({ "metadata": { "labels": { "karpenter.sh/initialized": null } } });
    for node in [protected, starting] {
        let mut cluster = one(node, json!({})).gate("NodeRepair");
        cluster.facts.repairs.insert("n".into(), broken(RepairAction::Replace));
        assert_eq!(crate::fixture::texts(&cluster.decide().commands), ["delete: [n]"]);
    }
    let veto = json!({ "metadata": { "annotations": { "karpenter.sh/do-not-repair": "true" } } });
    let mut cluster = one(veto, json!({})).gate("NodeRepair");
    cluster.facts.repairs.insert("n".into(), broken(RepairAction::Replace));
    let pass = cluster.ask(Method::Repair);
    assert_eq!(
        said(&pass.refusals, "n"),
        ["DisruptionBlocked: repair is blocked through the \"karpenter.sh/do-not-repair\" annotation"]
    );
}

#[test]
fn a_broken_node_whose_pods_may_not_be_evicted_needs_a_bound_of_its_drain() {
    let protected = json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": "true" } } });
    let mut cluster = one(json!({}), json!({}))
        .gate("NodeRepair")
        .pod_with("p", "n", "1", protected);
    cluster.facts.repairs.insert("n".into(), broken(RepairAction::Replace));
    assert_eq!(
        said(&cluster.ask(Method::Repair).refusals, "n"),
        ["DisruptionBlocked: repair requires a termination grace period to bypass blocking pods"]
    );
    cluster.facts.repairs.get_mut(&"n".into()).unwrap().drain_bound = Some(SignedDuration::from_mins(5));
    let pass = cluster.ask(Method::Repair);
    assert_eq!(
        crate::fixture::texts(&pass.commands),
        ["replace: [n] -> [1 replacement]"],
        "with room for the pod"
    );
    assert_eq!(pass.commands[0].drain_bound(), Some(SignedDuration::from_mins(5)));
}
