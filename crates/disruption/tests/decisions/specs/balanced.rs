//! The policy Balanced: what is worth the disturbance, by whose totals, and in which order.

use disruption::{Command, Method, PoolScore, Rule, consider};
use model::object::NodeName;
use serde_json::{Value, json};

use crate::fixture::{Cluster, ZONE, cluster, instance_type, now, texts};

fn policy(policy: &str) -> Value {
    json!({ "spec": { "disruption": { "consolidationPolicy": policy } } })
}

fn balanced() -> Cluster {
    cluster().pool("default", policy("Balanced"))
}

fn messages(scores: &[PoolScore]) -> Vec<String> {
    scores.iter().map(PoolScore::message).collect()
}

fn considered(cluster: &Cluster, nodes: &[&str]) -> Result<Command, Rule> {
    let nodes: Vec<NodeName> = nodes.iter().map(|&node| node.into()).collect();
    consider(&nodes, &cluster.snapshot(), &cluster.facts, &cluster.options, now())
}

#[test]
fn an_oversized_node_is_replaced_and_a_well_packed_one_is_not() {
    let oversized = balanced().node("a", "t8").pod("p", "a", "500m");
    let pass = oversized.ask(Method::SingleNodeConsolidation);
    assert_eq!(texts(&pass.commands), ["replace: [a] -> [1 replacement]"]);
    assert_eq!(
        messages(&pass.commands[0].scores),
        ["score 0.88 >= threshold 0.50 (k: 2, savings 87.5%, disruption 100.0%)"]
    );
    let packed = balanced().node("a", "t1").pod("p", "a", "1");
    assert!(packed.decide().commands.is_empty());
}

#[test]
fn several_nodes_go_together_when_their_pool_approves() {
    let mut cluster = balanced();
    for name in ["a", "b", "c"] {
        cluster = cluster.node(name, "t8").pod(&format!("p-{name}"), name, "1");
    }
    let pass = cluster.ask(Method::MultiNodeConsolidation);
    assert_eq!(texts(&pass.commands), ["replace: [a, b, c] -> [1 replacement]"]);
    assert_eq!(pass.commands[0].scores.len(), 1);
    let closed = cluster.pool(
        "default",
        json!({ "spec": { "disruption": { "budgets": [{ "nodes": "0%" }] } } }),
    );
    assert!(
        closed.decide().commands.is_empty(),
        "what is worth it still needs a budget"
    );
}

#[test]
fn a_budget_of_one_goes_to_the_empty_node() {
    let cluster = balanced()
        .pool(
            "default",
            json!({ "spec": { "disruption": { "budgets": [{ "nodes": "1" }] } } }),
        )
        .node("a", "t8")
        .pod("p", "a", "500m")
        .node("b", "t1");
    assert_eq!(texts(&cluster.decide().commands), ["delete: [b]"]);
}

#[test]
fn a_node_is_deleted_when_others_take_its_pods_and_replaced_when_none_can() {
    let fits = balanced()
        .node("a", "t8")
        .pod("p", "a", "1")
        .node("b", "t8")
        .pod("q", "b", "1");
    let pass = fits.ask(Method::SingleNodeConsolidation);
    assert_eq!(texts(&pass.commands), ["delete: [a]"]);
    assert_eq!(pass.commands[0].saving.to_string(), "$8.00");
    let alone = balanced().node("a", "t8").pod("p", "a", "1");
    let pass = alone.ask(Method::SingleNodeConsolidation);
    assert_eq!(texts(&pass.commands), ["replace: [a] -> [1 replacement]"]);
    assert_eq!(pass.commands[0].saving.to_string(), "$7.00");
}

/// Three nodes whose price for each disturbance is 4, 4/3 and 1/2 dollars.
fn unequal(cluster: Cluster, pool_of_second: &str) -> Cluster {
    let labels = json!({ "metadata": { "labels": { "karpenter.sh/nodepool": pool_of_second } } });
    let mut cluster = cluster
        .node("a", "t2")
        .node("b", "t8")
        .machine("c", "t4", labels.clone(), labels);
    for (node, pods) in [("a", 3), ("b", 1), ("c", 2)] {
        for at in 0..pods {
            cluster = cluster.pod(&format!("p-{node}-{at}"), node, "100m");
        }
    }
    cluster
}

#[test]
fn nodes_that_save_most_for_what_they_disturb_come_first_whatever_the_policy() {
    let two = json!({ "spec": { "disruption": { "budgets": [{ "nodes": "2" }] } } });
    for name in ["Balanced", "WhenEmptyOrUnderutilized"] {
        let cluster = unequal(
            cluster().pool("default", policy(name)).pool("default", two.clone()),
            "default",
        );
        assert_eq!(
            texts(&cluster.ask(Method::MultiNodeConsolidation).commands),
            ["delete: [b, c]"],
            "{name}"
        );
        assert_eq!(
            texts(&cluster.ask(Method::SingleNodeConsolidation).commands),
            ["delete: [b]"],
            "{name}"
        );
    }
    let mixed = unequal(balanced().pool("plain", json!({})), "plain");
    let pass = mixed.ask(Method::MultiNodeConsolidation);
    let first: Vec<&str> = pass.commands[0].nodes().map(NodeName::as_str).take(2).collect();
    assert_eq!(first, ["b", "c"], "{:?}", texts(&pass.commands));
}

#[test]
fn a_pool_of_another_policy_is_not_scored_and_takes_what_balanced_does_not() {
    let plain = json!({ "metadata": { "labels": { "karpenter.sh/nodepool": "plain" } } });
    let mut cluster = balanced()
        .pool("plain", json!({}))
        .node("a", "t8")
        .pod("p", "a", "7500m")
        .machine("b", "t8", plain.clone(), plain)
        .pod("q", "b", "7500m");
    cluster.types.push(instance_type("u8", 8, 0.94));
    let pass = cluster.ask(Method::SingleNodeConsolidation);
    assert_eq!(texts(&pass.commands), ["replace: [b] -> [1 replacement]"]);
    assert!(pass.commands[0].scores.is_empty());
    let rejected = |refusal: &&disruption::Refusal| matches!(refusal.rule, Rule::Balanced(_));
    let rejected: Vec<&str> = pass
        .refusals
        .iter()
        .filter(rejected)
        .map(|refusal| refusal.node.as_str())
        .collect();
    assert_eq!(rejected, ["a"]);
}

#[test]
fn nodes_that_are_not_eligible_count_in_their_pools_totals() {
    let stirred =
        json!({ "status": { "conditions": [{ "type": "Initialized", "status": "True", "reason": "Initialized" }] } });
    let mut cluster = balanced().node("a", "t4").pod("p-a", "a", "1");
    for name in ["b", "c", "d", "e"] {
        cluster = cluster
            .machine(name, "t4", json!({}), stirred.clone())
            .pod(&format!("p-{name}"), name, "1");
    }
    let pass = cluster.ask(Method::SingleNodeConsolidation);
    assert_eq!(pass.eligible, 1);
    assert_eq!(
        messages(&pass.commands[0].scores),
        ["score 1.00 >= threshold 0.50 (k: 2, savings 20.0%, disruption 20.0%)"]
    );
}

#[test]
fn a_node_nobody_can_price_adds_disturbance_to_the_totals_and_no_cost() {
    let cluster = balanced()
        .node("a", "t4")
        .pod("p", "a", "1")
        .node("b", "gone")
        .pod("q", "b", "1")
        .node("c", "t4")
        .pod("r", "c", "1");
    let command = considered(&cluster, &["a"]).unwrap();
    assert_eq!(
        messages(&command.scores),
        ["score 1.50 >= threshold 0.50 (k: 2, savings 50.0%, disruption 33.3%)"]
    );
}

#[test]
fn deleting_one_of_ten_equal_nodes_scores_one_and_so_does_the_only_node_of_a_pool() {
    let mut ten = balanced();
    for at in 0..10 {
        let name = format!("n{at}");
        ten = ten.node(&name, "t4").pod(&format!("p{at}"), &name, "1");
    }
    let score = "score 1.00 >= threshold 0.50 (k: 2, savings 10.0%, disruption 10.0%)";
    assert_eq!(messages(&considered(&ten, &["n0"]).unwrap().scores), [score]);
    let plain = json!({ "metadata": { "labels": { "karpenter.sh/nodepool": "plain" } } });
    let only = balanced()
        .pool("plain", json!({}))
        .node("a", "t4")
        .pod("p", "a", "1")
        .machine("b", "t8", plain.clone(), plain)
        .pod("q", "b", "1");
    let score = "score 1.00 >= threshold 0.50 (k: 2, savings 100.0%, disruption 100.0%)";
    assert_eq!(messages(&considered(&only, &["a"]).unwrap().scores), [score]);
}

/// A pool `default` under Balanced with five equal nodes, and five equal ones of the pool `other`.
fn two_pools(other: &str) -> Cluster {
    let labels = json!({ "metadata": { "labels": { "karpenter.sh/nodepool": "other" } } });
    let mut cluster = balanced().pool("other", policy(other));
    for at in 0..5 {
        let [mine, theirs] = [format!("a{at}"), format!("b{at}")];
        cluster = cluster
            .node(&mine, "t4")
            .pod(&format!("p-{mine}"), &mine, "1")
            .machine(&theirs, "t4", labels.clone(), labels.clone())
            .pod(&format!("p-{theirs}"), &theirs, "1");
    }
    cluster
}

#[test]
fn what_a_move_over_several_pools_saves_is_shared_by_what_each_gives_up() {
    let command = considered(&two_pools("WhenEmptyOrUnderutilized"), &["a0", "b0"]).unwrap();
    assert_eq!(
        messages(&command.scores),
        ["score 1.00 >= threshold 0.50 (k: 2, savings 20.0%, disruption 20.0%)"],
        "only the pool under the policy is scored"
    );
    assert_eq!(
        considered(&two_pools("Balanced"), &["a0", "b0"]).unwrap().scores.len(),
        2
    );
}

#[test]
fn every_balanced_pool_must_approve_and_every_one_is_scored() {
    let heavy = json!({ "metadata": { "labels": { "karpenter.sh/nodepool": "other" } } });
    let mut cluster = two_pools("Balanced").machine("heavy", "t1", heavy.clone(), heavy);
    for at in 0..20 {
        cluster = cluster.pod(&format!("h{at}"), "heavy", "10m");
    }
    let Err(Rule::Balanced(scores)) = considered(&cluster, &["a0", "heavy"]) else {
        panic!("it is not worth it for one of them");
    };
    let found: Vec<_> = scores
        .iter()
        .map(|score| (score.pool.as_str(), score.is_approved))
        .collect();
    assert_eq!(found, [("default", true), ("other", false)]);
}

#[test]
fn prices_of_spot_do_not_count_for_a_pool_on_demand() {
    // By the price of spot it would score 1; on demand it is a quarter.
    let held = json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": "true" } } });
    let mut cluster = balanced();
    cluster.types = vec![instance_type("source", 4, 0.125), instance_type("dest", 4, 0.1)];
    for offering in cluster.types[1]["offerings"].as_array_mut().unwrap() {
        if offering["price"] == "0.2400" {
            offering["price"] = "0.1".into();
        }
    }
    cluster.facts.pool_costs.insert("default".into(), "1".parse().unwrap());
    cluster = cluster.node("a", "source").machine("b", "source", held, json!({}));
    for (node, pods) in [("a", 3), ("b", 5)] {
        for at in 0..pods {
            cluster = cluster.pod(&format!("p-{node}-{at}"), node, "700m");
        }
    }
    let Err(Rule::Balanced(scores)) = considered(&cluster, &["a"]) else {
        panic!("it is not worth it");
    };
    assert!(
        messages(&scores)[0].starts_with("score 0.25 "),
        "{:?}",
        messages(&scores)
    );
}

#[test]
fn what_a_node_costs_is_the_price_of_its_own_offering_available_or_not() {
    let saving = |cluster: &Cluster| cluster.ask(Method::Emptiness).commands[0].saving.to_string();
    assert_eq!(saving(&balanced().node("a", "t4")), "$4.00");
    assert_eq!(saving(&balanced().node("a", "gone")), "$0.00");
    let mut cluster = balanced().node("a", "t4");
    for offering in cluster.types[2]["offerings"].as_array_mut().unwrap() {
        let is_here = offering["requirements"][0]["key"] == ZONE && offering["requirements"][0]["values"][0] == "a";
        offering["available"] = (!is_here).into();
        offering["price"] = if is_here { "1" } else { "5" }.into();
    }
    assert_eq!(saving(&cluster), "$1.00");
}

#[test]
fn only_the_policy_balanced_is_scored_and_when_empty_takes_no_node_with_pods() {
    let of = |name: &str| {
        let cluster = cluster()
            .pool("default", policy(name))
            .node("a", "t8")
            .pod("p", "a", "1");
        let pass = cluster.ask(Method::SingleNodeConsolidation);
        (pass.eligible, pass.commands.first().map(|command| command.scores.len()))
    };
    assert_eq!(of("Balanced"), (1, Some(1)));
    assert_eq!(of("WhenEmptyOrUnderutilized"), (1, Some(0)));
    assert_eq!(of("WhenEmpty"), (0, None));
}
