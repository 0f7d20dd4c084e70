//! Which pods their ReplicaSets should give up first.

use std::collections::BTreeMap;

use disruption::deletion_costs;
use serde_json::{Value, json};

use crate::fixture::{Cluster, LONG_AGO, cluster, merge, now};

const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

fn controlled_by(version: &str, kind: &str) -> Value {
    json!({ "metadata": { "ownerReferences": [{ "apiVersion": version, "kind": kind, "name": "o", "uid": "o", "controller": true }] } })
}

impl Cluster {
    /// A pod of a ReplicaSet's, with changes.
    fn replica(self, name: &str, node: &str, over: Value) -> Self {
        let mut pod = controlled_by("apps/v1", "ReplicaSet");
        merge(&mut pod, over);
        self.pod_with(name, node, "100m", pod)
    }

    /// What is to be written on pods; none where a cost is to be taken away.
    fn costs(&self) -> BTreeMap<String, Option<i32>> {
        let costs = deletion_costs(&self.snapshot(), &self.facts, now());
        costs
            .pods
            .into_iter()
            .map(|pod| (pod.pod.name.to_string(), pod.cost))
            .collect()
    }

    fn written(&self) -> Vec<(String, Option<i32>)> {
        self.costs().into_iter().collect()
    }
}

fn said(costs: &[(&str, Option<i32>)]) -> Vec<(String, Option<i32>)> {
    costs.iter().map(|(pod, cost)| ((*pod).to_owned(), *cost)).collect()
}

fn drifted() -> Value {
    json!({ "status": { "conditions": [
        { "type": "Initialized", "status": "True", "reason": "Initialized", "lastTransitionTime": LONG_AGO },
        { "type": "Drifted", "status": "True", "reason": "NodePoolDrifted", "lastTransitionTime": LONG_AGO },
    ] } })
}

/// Nodes that go, that are outdated, and that are merely dear, each with a pod named after it.
fn of_all_kinds() -> Cluster {
    let mut cluster = cluster()
        .node("going", "t1")
        .machine("old", "t1", json!({}), drifted())
        .node("dear", "t8")
        .node("cheap", "t2");
    for node in ["going", "old", "dear", "cheap"] {
        cluster = cluster.replica(node, node, json!({}));
    }
    cluster.facts.marked.insert("claim-going".into());
    cluster
}

#[test]
fn pods_of_nodes_that_go_come_first_then_of_outdated_ones_then_of_those_that_save_most() {
    let expected = [
        ("cheap", Some(-1)),
        ("dear", Some(-2)),
        ("going", Some(i32::MIN)),
        ("old", Some(-3)),
    ];
    assert_eq!(of_all_kinds().written(), said(&expected));
    let tainted = json!({ "spec": { "taints": [{ "key": "karpenter.sh/disrupted", "effect": "NoSchedule" }] } });
    let marked = cluster()
        .machine("a", "t2", tainted, json!({}))
        .replica("p", "a", json!({}));
    assert_eq!(marked.written(), said(&[("p", Some(i32::MIN))]));
}

#[test]
fn pods_that_say_it_already_are_not_written_and_a_users_word_is_overwritten_or_taken_away() {
    let says = |cost: &str| json!({ "metadata": { "annotations": { COST: cost } } });
    let with = |cost: &str| cluster().node("a", "t2").replica("p", "a", says(cost));
    assert_eq!(with("-1").written(), said(&[]));
    assert_eq!(with("100").written(), said(&[("p", Some(-1))]));
    let never = json!({ "spec": { "disruption": { "consolidateAfter": "Never" } } });
    assert_eq!(with("100").pool("default", never).written(), said(&[("p", None)]));
}

#[test]
fn nodes_that_stay_have_their_pods_words_taken_away() {
    let says = json!({ "metadata": { "annotations": { COST: "-7" } } });
    let annotated = |key: &str| json!({ "metadata": { "annotations": { key: "true" } } });
    let never = json!({ "spec": { "disruption": { "consolidateAfter": "Never" } } });
    let base = |node: Value, claim: Value| {
        cluster()
            .machine("a", "t2", node, claim)
            .replica("p", "a", says.clone())
    };
    let stays = [
        (
            "a protected node",
            base(annotated("karpenter.sh/do-not-disrupt"), json!({})),
        ),
        (
            "a node that starts",
            base(
                json!({ "metadata": { "labels": { "karpenter.sh/initialized": null } } }),
                json!({}),
            ),
        ),
        (
            "a protected pod",
            base(json!({}), json!({})).replica("q", "a", annotated("karpenter.sh/do-not-disrupt")),
        ),
        (
            "a pod that is tied to it",
            base(json!({}), json!({})).pod_with("q", "a", "1", controlled_by("apps/v1", "StatefulSet")),
        ),
        ("a pod of nobody's", base(json!({}), json!({})).pod("q", "a", "1")),
        (
            "a type that is not offered",
            cluster().node("a", "gone").replica("p", "a", says.clone()),
        ),
        (
            "a pool that never consolidates",
            base(json!({}), json!({})).pool("default", never.clone()),
        ),
        (
            "no budget",
            base(json!({}), json!({})).pool(
                "default",
                json!({ "spec": { "disruption": { "budgets": [{ "nodes": "0" }] } } }),
            ),
        ),
    ];
    for (name, cluster) in stays {
        assert_eq!(cluster.costs().get("p"), Some(&None), "{name}");
    }
    let outdated = base(json!({}), drifted()).pool("default", never);
    assert_eq!(
        outdated.costs().get("p"),
        Some(&Some(-1)),
        "an outdated node goes all the same"
    );
    let system = json!({ "metadata": { "namespace": "kube-system" } });
    let hosts = base(json!({}), json!({})).pod_with("q", "a", "1", system);
    assert_eq!(
        hosts.costs().get("p"),
        Some(&Some(-1)),
        "pods of the system pin nothing"
    );
    let jobs = base(json!({}), json!({})).pod_with("q", "a", "1", controlled_by("batch/v1", "Job"));
    assert_eq!(
        jobs.written(),
        said(&[("p", Some(-1))]),
        "a Job's pod pins nothing, and nobody reads its cost"
    );
}

#[test]
fn budgets_cut_each_kind_on_its_own_and_an_outdated_node_of_a_static_pool_is_an_ordinary_one() {
    let one = json!({ "spec": { "disruption": { "budgets": [{ "nodes": "1", "reasons": ["Drifted"] }] } } });
    let mut cluster = cluster().pool("default", one);
    for name in ["a", "b", "c"] {
        cluster = cluster.machine(name, "t2", json!({}), drifted()).replica(
            name,
            name,
            json!({ "metadata": { "annotations": { COST: "5" } } }),
        );
    }
    let expected = [("a", Some(-1)), ("b", None), ("c", None)];
    assert_eq!(cluster.written(), said(&expected));
    let fixed = cluster.pool("default", json!({ "spec": { "replicas": 3 } }));
    assert_eq!(
        fixed.written(),
        said(&[("a", Some(-3)), ("b", Some(-2)), ("c", Some(-1))])
    );
}

#[test]
fn fifty_nodes_are_written_at_a_time_and_those_that_go_do_not_count() {
    let mut cluster = cluster();
    for at in 0..60 {
        let name = format!("n{at:02}");
        cluster = cluster.node(&name, "t2").replica(&name, &name, json!({}));
    }
    for at in 0..3 {
        let name = format!("going-{at}");
        cluster = cluster.node(&name, "t2").replica(&name, &name, json!({}));
        cluster.facts.marked.insert(format!("claim-{name}").as_str().into());
    }
    let costs = deletion_costs(&cluster.snapshot(), &cluster.facts, now());
    assert_eq!((costs.pods.len(), costs.nodes.values().sum::<u32>()), (53, 53));
    assert_eq!(costs.pods[3].cost, Some(-60), "ranks are those of all");
    let mut theirs = crate::fixture::cluster();
    let node =
        json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "theirs", "deletionTimestamp": LONG_AGO } });
    theirs = theirs.with(node).replica("p", "theirs", json!({}));
    assert_eq!(theirs.written(), said(&[]), "nodes of others are left alone");
}
