//! Outdated nodes, of pools that grow and of static ones.

use std::collections::BTreeSet;

use disruption::{Method, StaticCount};
use serde_json::{Value, json};

use crate::fixture::{Cluster, LONG_AGO, cluster, merge, said, texts};

fn condition(status: &str, since: &str) -> Value {
    json!({ "status": { "conditions": [
        { "type": "Initialized", "status": "True", "reason": "Initialized", "lastTransitionTime": since },
        { "type": "Drifted", "status": status, "reason": "NodePoolDrifted", "lastTransitionTime": since },
    ] } })
}

fn in_pool(pool: &str) -> Value {
    json!({ "metadata": { "labels": { "karpenter.sh/nodepool": pool } } })
}

impl Cluster {
    /// An outdated node of a pool, with these changes to its node.
    fn outdated(self, pool: &str, name: &str, over: Value) -> Self {
        let (mut node, mut claim) = (in_pool(pool), in_pool(pool));
        merge(&mut node, over);
        merge(&mut claim, condition("True", LONG_AGO));
        self.machine(name, "t2", node, claim)
    }

    /// Takes commands one round after another, as if each were under way for good, until there are none.
    fn all_that_go(mut self, method: Method) -> BTreeSet<String> {
        let mut gone = BTreeSet::new();
        loop {
            let commands = self.ask(method).commands;
            if commands.is_empty() {
                return gone;
            }
            for candidate in commands.iter().flat_map(|command| &command.candidates) {
                self.facts.marked.insert(candidate.claim.clone());
                self.facts.queued.insert(candidate.provider_id.clone());
                assert!(gone.insert(candidate.node.to_string()), "{} went twice", candidate.node);
            }
        }
    }
}

fn budget(nodes: &str) -> Value {
    json!({ "spec": { "disruption": { "budgets": [{ "nodes": nodes, "reasons": ["Drifted"] }] } } })
}

/// Ten outdated nodes of a pool.
fn ten(pool: Value) -> Cluster {
    let mut cluster = cluster().pool("default", pool);
    for at in 0..10 {
        cluster = cluster.outdated("default", &format!("n{at}"), json!({}));
    }
    cluster
}

#[test]
fn as_many_outdated_nodes_go_as_the_budget_allows_and_those_under_way_count() {
    let cluster = ten(budget("3"));
    assert_eq!(cluster.ask(Method::Drift).eligible, 10);
    assert_eq!(cluster.all_that_go(Method::Drift).len(), 3);
    let mut under_way = ten(budget("5"));
    for at in 8..10 {
        under_way.facts.marked.insert(format!("claim-n{at}").as_str().into());
        under_way.facts.queued.insert(format!("id-n{at}").as_str().into());
    }
    assert_eq!(under_way.ask(Method::Drift).eligible, 8);
    assert_eq!(under_way.all_that_go(Method::Drift).len(), 3);
}

#[test]
fn every_pool_has_a_budget_of_its_own_for_outdated_nodes() {
    let mut cluster = cluster().pool("default", budget("0"));
    for pool in ["one", "two"] {
        cluster = cluster.pool(pool, budget("2"));
    }
    for pool in ["default", "one", "two"] {
        for at in 0..3 {
            cluster = cluster.outdated(pool, &format!("{pool}-{at}"), json!({}));
        }
    }
    let gone = cluster.all_that_go(Method::Drift);
    let of = |pool: &str| gone.iter().filter(|name| name.starts_with(pool)).count();
    assert_eq!((of("default"), of("one"), of("two")), (0, 2, 2), "{gone:?}");
}

#[test]
fn only_a_condition_that_is_true_makes_a_node_outdated() {
    for method in [Method::Drift, Method::StaticDrift] {
        let pool = match method {
            Method::Drift => json!({}),
            _ => json!({ "spec": { "replicas": 1 } }),
        };
        let of = |claim: Value, node: Value| {
            let cluster = cluster().pool("default", pool.clone()).machine("a", "t2", node, claim);
            cluster.ask(method).eligible
        };
        let protected =
            |value: &str| json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": value } } });
        assert_eq!(of(condition("True", LONG_AGO), json!({})), 1, "{method:?}");
        assert_eq!(of(condition("False", LONG_AGO), json!({})), 0, "{method:?}");
        assert_eq!(of(json!({}), json!({})), 0, "{method:?}");
        assert_eq!(of(condition("True", LONG_AGO), protected("true")), 0, "{method:?}");
        assert_eq!(of(condition("True", LONG_AGO), protected("false")), 1, "{method:?}");
    }
}

fn protected_for(value: &str) -> Value {
    json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": value } }, "status": { "startTime": LONG_AGO } })
}

#[test]
fn a_pod_protected_for_a_while_holds_an_outdated_node_for_the_longest_while() {
    // Both pods are two hours old.
    let with = |values: [&str; 2]| {
        let mut cluster = cluster().outdated("default", "a", json!({}));
        for (at, value) in values.into_iter().enumerate() {
            cluster = cluster.pod_with(&format!("p{at}"), "a", "100m", protected_for(value));
        }
        texts(&cluster.ask(Method::Drift).commands)
    };
    assert!(with(["1h", "3h"]).is_empty());
    assert!(with(["1h", "true"]).is_empty());
    assert_eq!(with(["1h", "90m"]), ["replace: [a] -> [1 replacement]"]);
    assert_eq!(
        with(["soon", "-1h"]),
        ["replace: [a] -> [1 replacement]"],
        "words that mean nothing"
    );
}

#[test]
fn nobody_launches_for_pods_that_may_not_move_from_an_outdated_node() {
    let bounded = json!({ "spec": { "terminationGracePeriod": "5m" } });
    let of = |claim: Value, pod: Value, budget: Option<Value>| {
        let mut all = condition("True", LONG_AGO);
        merge(&mut all, claim);
        let mut cluster = cluster()
            .machine("a", "t2", json!({}), all)
            .pod_with("p", "a", "1", pod);
        cluster.objects.extend(budget);
        texts(&cluster.ask(Method::Drift).commands)
    };
    let blocking = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "b", "namespace": "ns" },
        "spec": { "selector": { "matchLabels": { "app": "p" } }, "maxUnavailable": 0 },
        "status": { "disruptionsAllowed": 0 },
    });
    assert!(of(json!({}), protected_for("true"), None).is_empty());
    assert!(of(json!({}), json!({}), Some(blocking.clone())).is_empty());
    assert_eq!(of(bounded.clone(), protected_for("true"), None), ["delete: [a]"]);
    assert_eq!(of(bounded, json!({}), Some(blocking)), ["delete: [a]"]);
    assert_eq!(of(json!({}), json!({}), None), ["replace: [a] -> [1 replacement]"]);
}

#[test]
fn an_outdated_node_without_pods_is_deleted_also_where_nothing_is_consolidated() {
    for after in ["Never", "0s"] {
        let pool = json!({ "spec": { "disruption": { "consolidateAfter": after } } });
        let cluster = cluster().pool("default", pool).outdated("default", "a", json!({}));
        assert_eq!(texts(&cluster.ask(Method::Drift).commands), ["delete: [a]"], "{after}");
    }
    let elsewhere = cluster()
        .outdated("default", "a", json!({}))
        .pod("p", "a", "1")
        .node("b", "t4");
    assert_eq!(
        texts(&elsewhere.ask(Method::Drift).commands),
        ["delete: [a]"],
        "others take its pods"
    );
}

#[test]
fn an_empty_node_that_is_outdated_too_goes_as_empty() {
    let mut claim = condition("True", LONG_AGO);
    let quiet = json!({ "type": "Consolidatable", "status": "True", "reason": "Consolidatable", "lastTransitionTime": LONG_AGO });
    claim["status"]["conditions"].as_array_mut().unwrap().push(quiet);
    let round = cluster().machine("a", "t2", json!({}), claim).decide();
    assert_eq!(
        (texts(&round.commands), round.commands[0].method),
        (vec!["delete: [a]".to_owned()], Method::Emptiness)
    );
}

fn static_pool(replicas: u32, over: Value) -> Value {
    let mut pool = json!({ "spec": { "replicas": replicas } });
    merge(&mut pool, over);
    pool
}

#[test]
fn outdated_nodes_of_a_static_pool_go_at_once_as_far_as_its_budget_goes() {
    for (nodes, expected) in [("3", 3), ("20%", 2), ("0", 0), ("100%", 10)] {
        let cluster = ten(static_pool(10, budget(nodes)));
        let commands = cluster.ask(Method::StaticDrift).commands;
        assert_eq!(commands.len(), expected, "{nodes}");
        assert!(
            commands.iter().all(|command| command.replacements.len() == 1),
            "{nodes}"
        );
    }
}

#[test]
fn static_pools_are_renewed_independently() {
    let limited = |nodes: &str| json!({ "spec": { "limits": { "nodes": nodes } } });
    let mut cluster = cluster()
        .pool("default", static_pool(3, budget("1")))
        .pool("two", static_pool(3, budget("2")))
        .pool("full", static_pool(3, limited("3")));
    for pool in ["default", "two", "full"] {
        for at in 0..3 {
            cluster = cluster.outdated(pool, &format!("{pool}-{at}"), json!({}));
        }
    }
    let pass = cluster.ask(Method::StaticDrift);
    let of = |pool: &str| {
        let nodes = pass.commands.iter().flat_map(disruption::Command::nodes);
        nodes.filter(|node| node.as_str().starts_with(pool)).count()
    };
    assert_eq!((of("default"), of("two"), of("full")), (1, 2, 0));
}

#[test]
fn a_static_pool_is_renewed_as_far_as_its_limit_leaves_room() {
    let with_room = |room: u64| {
        let limit = json!({ "spec": { "limits": { "nodes": (5 + room).to_string() } } });
        let mut cluster = cluster().pool("default", static_pool(5, limit));
        for at in 0..5 {
            cluster = cluster.outdated("default", &format!("n{at}"), json!({}));
        }
        cluster
    };
    for (room, expected) in [(0, 0), (2, 2), (5, 5), (9, 5)] {
        let commands = with_room(room).ask(Method::StaticDrift).commands;
        assert_eq!(commands.len(), expected, "{room}");
    }
    // One replacement of two is up and its node gone: the next round has one slot again.
    let mut later = with_room(2);
    later.facts.static_counts.insert(
        "default".into(),
        StaticCount {
            active: 5,
            pending_disruption: 0,
            deleting: 1,
            reserved: 0,
        },
    );
    assert_eq!(later.ask(Method::StaticDrift).commands.len(), 1);
    later.facts.static_counts.get_mut(&"default".into()).unwrap().reserved = 1;
    assert_eq!(
        later.ask(Method::StaticDrift).commands.len(),
        0,
        "a slot that is taken is no room"
    );
}

#[test]
fn a_static_pool_of_nothing_has_nothing_to_renew_and_one_without_a_limit_no_bound() {
    let none = cluster().pool("default", static_pool(0, json!({})));
    assert!(none.ask(Method::StaticDrift).commands.is_empty());
    let mut five = cluster().pool("default", static_pool(5, json!({})));
    for at in 0..5 {
        five = five.outdated("default", &format!("n{at}"), json!({}));
    }
    assert_eq!(five.ask(Method::StaticDrift).commands.len(), 5);
    assert_eq!(five.ask(Method::Drift).eligible, 0, "static pools are not drift's");
}

#[test]
fn the_node_that_is_outdated_longest_goes_first_of_those_with_pods() {
    let mut cluster = cluster();
    for (name, since) in [
        ("a", "2026-11-16T09:00:00Z"),
        ("b", "2026-11-16T07:00:00Z"),
        ("c", "2026-11-16T08:00:00Z"),
    ] {
        cluster = cluster
            .machine(name, "t2", json!({}), condition("True", since))
            .pod(&format!("p-{name}"), name, "2");
    }
    let mut order = Vec::new();
    while let Some(command) = cluster.ask(Method::Drift).commands.pop() {
        assert_eq!(command.candidates.len(), 1, "one at a time");
        let candidate = &command.candidates[0];
        cluster.facts.marked.insert(candidate.claim.clone());
        cluster.facts.queued.insert(candidate.provider_id.clone());
        order.push(candidate.node.to_string());
    }
    assert_eq!(order, ["b", "c", "a"]);
    assert!(said(&cluster.ask(Method::Drift).refusals, "a").is_empty());
}
