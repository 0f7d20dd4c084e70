//! Which nodes count for a budget, which use it up, and what a budget that closes leaves to do.

use disruption::{Command, Method, PoolBudget};
use serde_json::{Value, json};

use crate::fixture::{Cluster, LONG_AGO, cluster, texts};

fn allow(nodes: &str) -> Value {
    json!({ "spec": { "disruption": { "budgets": [{ "nodes": nodes }] } } })
}

fn holds(kinds: &[&str]) -> Value {
    let conditions: Vec<Value> = kinds
        .iter()
        .map(|kind| json!({ "type": kind, "status": "True", "reason": kind, "lastTransitionTime": LONG_AGO }))
        .collect();
    json!({ "status": { "conditions": conditions } })
}

/// A pool of four nodes, the last with changes.
fn four(node: Value, claim: Value) -> Cluster {
    cluster()
        .pool("default", allow("100%"))
        .node("a", "t2")
        .node("b", "t2")
        .node("c", "t2")
        .machine("d", "t2", node, claim)
}

fn found(cluster: &Cluster, method: Method) -> PoolBudget {
    cluster.ask(method).budgets.unwrap().pools[&"default".into()]
}

fn counted(cluster: &Cluster) -> (u32, u32) {
    let budget = found(cluster, Method::Emptiness);
    (budget.nodes, budget.disrupting)
}

#[test]
fn only_nodes_that_are_ours_and_up_and_not_shut_down_count() {
    assert_eq!(counted(&four(json!({}), json!({}))), (4, 0));
    let starting = json!({ "metadata": { "labels": { "karpenter.sh/initialized": null } } });
    assert_eq!(counted(&four(starting, json!({}))), (3, 0));
    let mut unmanaged = four(json!({}), json!({}));
    unmanaged
        .objects
        .retain(|object| object["metadata"]["name"] != "claim-d");
    assert_eq!(counted(&unmanaged), (3, 0));
    let kinds = ["Initialized", "InstanceTerminating"];
    assert_eq!(counted(&four(json!({}), holds(&kinds))), (3, 0));
}

#[test]
fn nodes_that_go_or_reboot_or_are_not_ready_use_a_budget_up() {
    let deleting = json!({ "metadata": { "deletionTimestamp": LONG_AGO } });
    assert_eq!(counted(&four(json!({}), deleting)), (4, 1));
    let mut marked = four(json!({}), json!({}));
    marked.facts.marked.insert("claim-d".into());
    assert_eq!(counted(&marked), (4, 1));
    for status in [json!([{ "type": "Ready", "status": "False" }]), json!([])] {
        let unready = json!({ "status": { "conditions": status } });
        assert_eq!(counted(&four(unready, json!({}))), (4, 1), "{status}");
    }
    let draining = holds(&["Initialized", "Rebooting"]);
    assert_eq!(counted(&four(json!({}), draining.clone())), (4, 1));
    let issued = json!({ "metadata": { "labels": { "karpenter.sh/initialized": null } } });
    assert_eq!(counted(&four(issued, draining)), (4, 1), "it is not up, but it will be");
}

#[test]
fn what_is_left_of_a_budget_is_never_less_than_nothing() {
    let mut cluster = four(json!({}), json!({})).pool("default", allow("1"));
    for name in ["claim-b", "claim-c", "claim-d"] {
        cluster.facts.marked.insert(name.into());
    }
    let budget = found(&cluster, Method::Emptiness);
    assert_eq!((budget.allowed, budget.disrupting, budget.remaining()), (1, 3, 0));
}

/// Nodes of two pools that fit on one another.
fn small(allowed: &str, count: usize) -> Cluster {
    let mut cluster = cluster();
    for pool in ["default", "other"] {
        cluster = cluster.pool(pool, allow(allowed));
        let labels = json!({ "metadata": { "labels": { "karpenter.sh/nodepool": pool } } });
        for at in 0..count {
            let name = format!("{pool}-{at}");
            cluster =
                cluster
                    .machine(&name, "t8", labels.clone(), labels.clone())
                    .pod(&format!("p-{name}"), &name, "100m");
        }
    }
    cluster
}

fn of_pool(commands: &[Command], pool: &str) -> usize {
    let nodes = commands.iter().flat_map(Command::nodes);
    nodes.filter(|node| node.as_str().starts_with(pool)).count()
}

#[test]
fn several_nodes_go_together_as_far_as_the_budget_of_each_pool_goes() {
    for (allowed, expected) in [("2", 2), ("0", 0)] {
        let commands = small(allowed, 5).ask(Method::MultiNodeConsolidation).commands;
        let found = [of_pool(&commands, "default"), of_pool(&commands, "other")];
        assert_eq!(found, [expected, expected], "{allowed}");
    }
    let all = small("100%", 5).ask(Method::MultiNodeConsolidation).commands;
    assert_eq!(all[0].candidates.len(), 10, "{:?}", texts(&all));
    let three = small("3", 5);
    let alone: Vec<Value> = three
        .objects
        .iter()
        .filter(|object| !object.to_string().contains("other"))
        .cloned()
        .collect();
    let three = Cluster {
        objects: alone,
        ..three
    };
    assert_eq!(
        three.ask(Method::MultiNodeConsolidation).commands[0].candidates.len(),
        3
    );
}

#[test]
fn single_nodes_go_one_after_the_other_as_far_as_the_budget_goes() {
    let mut cluster = small("3", 5);
    let mut gone = 0;
    while let Some(command) = cluster.ask(Method::SingleNodeConsolidation).commands.pop() {
        assert_eq!(command.candidates.len(), 1);
        cluster.facts.marked.insert(command.candidates[0].claim.clone());
        cluster.facts.queued.insert(command.candidates[0].provider_id.clone());
        gone += 1;
    }
    assert_eq!(gone, 6, "three of each pool");
}

#[test]
fn a_method_that_only_a_budget_stops_is_asked_again() {
    let methods = [Method::MultiNodeConsolidation, Method::SingleNodeConsolidation];
    for method in methods {
        let mut cluster = small("0", 3);
        cluster.facts.changed_at = Some(LONG_AGO.parse().unwrap());
        let pass = cluster.ask(method);
        assert!(
            pass.commands.is_empty() && pass.settled.is_none(),
            "{method:?} over pools"
        );
        let alone = cluster
            .objects
            .iter()
            .filter(|object| !object.to_string().contains("other"));
        let alone = Cluster {
            objects: alone.cloned().collect(),
            ..cluster
        };
        let pass = alone.ask(method);
        assert!(pass.commands.is_empty() && pass.settled.is_none(), "{method:?}");
    }
    for pools in [1, 2] {
        let mut empty = small("0", 3);
        empty.objects.retain(|object| object["kind"] != "Pod");
        if pools == 1 {
            empty.objects.retain(|object| !object.to_string().contains("other"));
        }
        empty.facts.changed_at = Some(LONG_AGO.parse().unwrap());
        let pass = empty.ask(Method::Emptiness);
        assert!(
            pass.commands.is_empty() && pass.settled.is_none(),
            "empty nodes of {pools} pools"
        );
    }
    let mut full = cluster()
        .node("a", "t2")
        .pod("p", "a", "2")
        .node("b", "t2")
        .pod("q", "b", "2");
    full.facts.changed_at = Some(LONG_AGO.parse().unwrap());
    for method in methods {
        assert_eq!(
            full.ask(method).settled,
            full.facts.changed_at,
            "{method:?}: nothing but the nodes stops it"
        );
    }
}
