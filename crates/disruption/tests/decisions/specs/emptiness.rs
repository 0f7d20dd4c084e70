//! Nodes on which nothing needs a place.

use disruption::{Invalid, Method, validate};
use serde_json::{Value, json};

use crate::fixture::{Cluster, LONG_AGO, cluster, now, said, texts};

fn going(cluster: &Cluster) -> Vec<String> {
    let pass = cluster.ask(Method::Emptiness);
    let mut nodes: Vec<String> = pass
        .commands
        .iter()
        .flat_map(disruption::Command::nodes)
        .map(ToString::to_string)
        .collect();
    nodes.sort();
    nodes
}

fn budget(nodes: &str) -> Value {
    json!({ "spec": { "disruption": { "budgets": [{ "nodes": nodes }] } } })
}

#[test]
fn every_pool_has_a_budget_of_its_own_for_empty_nodes() {
    for (allowed, expected) in [("2", 2), ("100%", 3), ("0", 0)] {
        let mut cluster = cluster();
        for pool in ["default", "one", "two"] {
            cluster = cluster.pool(pool, budget(allowed));
            let labels = json!({ "metadata": { "labels": { "karpenter.sh/nodepool": pool } } });
            for at in 0..3 {
                cluster = cluster.machine(&format!("{pool}-{at}"), "t2", labels.clone(), labels.clone());
            }
        }
        assert_eq!(cluster.ask(Method::Emptiness).eligible, 9);
        let going = going(&cluster);
        for pool in ["default", "one", "two"] {
            let count = going.iter().filter(|node| node.starts_with(pool)).count();
            assert_eq!(count, expected, "{allowed} of {pool}");
        }
    }
}

#[test]
fn empty_nodes_go_as_many_as_the_budget_allows() {
    for (allowed, expected) in [("3", 3), ("100%", 10), ("0%", 0)] {
        let mut cluster = cluster().pool("default", budget(allowed));
        for at in 0..10 {
            cluster = cluster.node(&format!("n{at}"), "t2");
        }
        let pass = cluster.ask(Method::Emptiness);
        assert_eq!((pass.eligible, going(&cluster).len()), (10, expected), "{allowed}");
        assert!(pass.commands.len() <= 1, "in one command");
    }
}

#[test]
fn a_node_whose_claim_does_not_say_it_is_quiet_is_not_taken() {
    let condition =
        |status: &str| json!({ "status": { "conditions": [{ "type": "Consolidatable", "status": status }] } });
    let of = |claim: Value| going(&cluster().machine("a", "t2", json!({}), claim)).len();
    assert_eq!(of(condition("True")), 1);
    assert_eq!(of(condition("False")), 0);
    assert_eq!(of(json!({ "status": { "conditions": [] } })), 0);
}

#[test]
fn a_node_with_pods_or_a_protection_is_not_taken() {
    let annotated = |value: &str| json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": value } } });
    assert!(going(&cluster().machine("a", "t2", annotated("true"), json!({}))).is_empty());
    assert_eq!(
        going(&cluster().machine("a", "t2", annotated("false"), json!({}))),
        ["a"]
    );
    assert!(going(&cluster().node("a", "t2").pod("p", "a", "1")).is_empty());
}

#[test]
fn pods_on_their_way_out_leave_a_node_empty_unless_they_come_back() {
    let owner =
        |kind: &str| json!([{ "apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "o", "controller": true }]);
    let leaving = |kind: &str| json!({ "metadata": { "deletionTimestamp": LONG_AGO, "ownerReferences": owner(kind) } });
    let of = |pod: Value| going(&cluster().node("a", "t2").pod_with("p", "a", "1", pod)).len();
    assert_eq!(of(leaving("ReplicaSet")), 1);
    assert_eq!(of(leaving("StatefulSet")), 0);
    assert_eq!(of(json!({ "metadata": { "ownerReferences": owner("DaemonSet") } })), 1);
    assert_eq!(of(json!({ "metadata": { "ownerReferences": owner("ReplicaSet") } })), 0);
}

#[test]
fn a_large_pod_that_waits_keeps_the_large_node_it_will_need() {
    // The node could be replaced by a smaller one, were it not for the pod that waits.
    let cluster = cluster().node("a", "t8").pod("p", "a", "1");
    assert_eq!(cluster.decide().commands.len(), 1);
    assert!(cluster.pending("w", "6").decide().commands.is_empty());
}

#[test]
fn room_for_a_buffer_keeps_a_node_and_no_other() {
    let mut cluster = cluster()
        .node("a", "t2")
        .node("b", "t2")
        .node("c", "t2")
        .pod("p", "c", "1");
    for node in ["a", "c"] {
        cluster
            .facts
            .buffer_pods
            .insert(format!("id-{node}").as_str().into(), 1);
    }
    assert_eq!(going(&cluster), ["b"]);
    let told = said(&cluster.ask(Method::Emptiness).refusals, "a");
    assert_eq!(told, ["Unconsolidatable: Node \"a\" has buffer pods"]);
    cluster.facts.buffer_pods.insert("id-b".into(), 3);
    assert!(going(&cluster).is_empty(), "each is protected by its own");
    cluster.facts.buffer_pods.insert("id-a".into(), 0);
    assert_eq!(going(&cluster), ["a"], "no stand-ins, no protection");
    cluster.facts.buffer_pods.clear();
    assert_eq!(going(&cluster), ["a", "b"], "what has pods is not empty, buffer or not");
}

#[test]
fn empty_nodes_go_before_outdated_ones() {
    let drifted = json!({ "status": { "conditions": [
        { "type": "Initialized", "status": "True", "reason": "Initialized", "lastTransitionTime": LONG_AGO },
        { "type": "Drifted", "status": "True", "reason": "NodePoolDrifted", "lastTransitionTime": LONG_AGO },
    ] } });
    let mut cluster = cluster().node("empty", "t2").machine("old", "t2", json!({}), drifted);
    let first = cluster.decide();
    assert_eq!(texts(&first.commands), ["delete: [empty]"]);
    cluster.facts.queued.insert("id-empty".into());
    cluster.facts.marked.insert("claim-empty".into());
    let second = cluster.decide();
    assert_eq!(
        (texts(&second.commands), second.commands[0].method),
        (vec!["delete: [old]".to_owned()], Method::Drift)
    );
}

#[test]
fn an_empty_node_that_a_plan_relies_on_by_then_stays() {
    let mut cluster = cluster().node("a", "t2").node("b", "t2");
    let command = cluster.ask(Method::Emptiness).commands.remove(0);
    let again = |cluster: &Cluster| validate(&command, &cluster.snapshot(), &cluster.facts, &cluster.options, now());
    cluster.facts.nominated.insert("id-a".into());
    assert_eq!(texts(&[again(&cluster).unwrap()]), ["delete: [b]"]);
    cluster.facts.nominated.insert("id-b".into());
    assert_eq!(again(&cluster), Err(Invalid::Churn(2)));
}
