//! Emptiness, and consolidation of one node and of several.

use disruption::{Consolidation, Method, Rule};
use serde_json::{Value, json};

use crate::fixture::{CAPACITY, Cluster, LONG_AGO, cluster, instance_type, said, texts, types_of};

fn of(cluster: &Cluster, method: Method) -> Vec<String> {
    texts(&cluster.ask(method).commands)
}

fn policy(policy: &str) -> Value {
    json!({ "spec": { "disruption": { "consolidationPolicy": policy } } })
}

#[test]
fn empty_nodes_go_together_dearest_first_as_many_as_the_budget_allows() {
    let base = cluster().node("a", "t1").node("b", "t8").node("c", "t4");
    assert_eq!(of(&base, Method::Emptiness), ["delete: [b, c, a]"]);
    let two = base.clone().pool(
        "default",
        json!({ "spec": { "disruption": { "budgets": [{ "nodes": "2" }] } } }),
    );
    assert_eq!(of(&two, Method::Emptiness), ["delete: [b, c]"]);
    assert_eq!(two.decide().commands[0].saving.to_string(), "$12.00");
    for name in ["WhenEmpty", "Balanced"] {
        assert_eq!(
            of(&base.clone().pool("default", policy(name)), Method::Emptiness).len(),
            1,
            "{name}"
        );
    }
}

#[test]
fn daemons_pods_that_ended_and_pods_that_cost_nothing_leave_a_node_empty() {
    let daemon = json!({ "metadata": { "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d" }] } });
    let ended = json!({ "status": { "phase": "Succeeded" } });
    let cheap = json!({ "metadata": { "annotations": { "karpenter.sh/disruption-cost": "-2147483648" } } });
    for pod in [daemon, ended, cheap] {
        let cluster = cluster()
            .node("a", "t4")
            .node("b", "t4")
            .pod("q", "b", "1")
            .pod_with("p", "a", "1", pod.clone());
        assert_eq!(of(&cluster, Method::Emptiness), ["delete: [a]"], "{pod}");
    }
    let set = json!({ "metadata": { "deletionTimestamp": LONG_AGO, "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": "s" }] } });
    let cluster = cluster().node("a", "t4").pod_with("p", "a", "1", set);
    assert!(
        of(&cluster, Method::Emptiness).is_empty(),
        "a StatefulSet's pod comes back"
    );
}

#[test]
fn a_pod_that_costs_nothing_still_needs_a_place_unless_we_are_faithful() {
    let cheap = json!({ "metadata": { "annotations": { "karpenter.sh/disruption-cost": "-2147483648" } } });
    let mut cluster = cluster().node("a", "t4").pod_with("p", "a", "4", cheap);
    assert!(of(&cluster, Method::Emptiness).is_empty());
    cluster.options.consolidation = Consolidation::Faithful;
    assert_eq!(of(&cluster, Method::Emptiness), ["delete: [a]"]);
}

#[test]
fn a_node_that_may_not_be_consolidated_is_told_why_in_upstreams_words() {
    let busy = || cluster().node("n", "t4").pod("p", "n", "4");
    let unlabelled = |label: &str| {
        cluster()
            .machine(
                "n",
                "t4",
                json!({ "metadata": { "labels": { label: null } } }),
                json!({}),
            )
            .pod("p", "n", "4")
    };
    let cases = [
        (
            cluster().node("n", "gone").pod("p", "n", "1"),
            "Instance Type \"gone\" not found",
        ),
        (
            unlabelled(CAPACITY),
            "Node does not have label \"karpenter.sh/capacity-type\"",
        ),
        (
            unlabelled(crate::fixture::ZONE),
            "Node does not have label \"topology.kubernetes.io/zone\"",
        ),
        (
            busy().pool(
                "default",
                json!({ "spec": { "disruption": { "consolidateAfter": "Never" } } }),
            ),
            "NodePool \"default\" has consolidation disabled",
        ),
        (
            busy().pool("default", policy("WhenEmpty")),
            "NodePool \"default\" has consolidation policy WhenEmpty, but node is not empty",
        ),
        (busy(), "Can't replace with a cheaper node"),
    ];
    for (cluster, message) in cases {
        let pass = cluster.ask(Method::SingleNodeConsolidation);
        assert!(pass.commands.is_empty(), "{message}");
        assert_eq!(said(&pass.refusals, "n"), [format!("Unconsolidatable: {message}")]);
    }
}

#[test]
fn a_node_whose_pods_were_not_quiet_for_long_waits_silently() {
    let stirred = json!({ "status": { "lastPodEventTime": "2026-11-16T11:59:50Z", "conditions": [
        { "type": "Initialized", "status": "True", "reason": "Initialized", "lastTransitionTime": LONG_AGO },
    ] } });
    let cluster = cluster()
        .pool(
            "default",
            json!({ "spec": { "disruption": { "consolidateAfter": "30s" } } }),
        )
        .machine("n", "t4", json!({}), stirred);
    let pass = cluster.ask(Method::Emptiness);
    assert!(said(&pass.refusals, "n").is_empty());
    let at = Some("2026-11-16T12:00:20Z".parse().unwrap());
    assert_eq!(pass.refusals[0].rule, Rule::NotYetConsolidatable { at });
}

#[test]
fn the_node_that_saves_most_goes_when_its_pods_fit_elsewhere() {
    let cluster = cluster()
        .node("a", "t4")
        .node("b", "t8")
        .pod("p", "a", "1")
        .pod("q", "b", "1");
    let round = cluster.ask(Method::SingleNodeConsolidation);
    assert_eq!(texts(&round.commands), ["delete: [b]"]);
    let command = &round.commands[0];
    assert_eq!(
        (command.saving.to_string(), command.plan.existing[0].name.as_str()),
        ("$8.00".to_owned(), "a")
    );
}

#[test]
fn a_node_too_large_for_its_pods_is_replaced_by_the_types_that_cost_less() {
    let cluster = cluster().node("a", "t8").pod("p", "a", "1500m");
    let pass = cluster.ask(Method::SingleNodeConsolidation);
    assert_eq!(texts(&pass.commands), ["replace: [a] -> [1 replacement]"]);
    assert_eq!(types_of(&pass.commands[0]), ["t2", "t4"]);
    assert_eq!(pass.commands[0].saving.to_string(), "$6.00");
    assert_eq!(
        pass.commands[0].candidate_message(&"a".into()),
        "Consolidation candidate: replace: [a] -> [1 replacement] (savings: $6.00)"
    );
}

#[test]
fn a_node_that_would_become_two_stays() {
    let apart = |name: &str| {
        json!({
            "metadata": { "labels": { "app": "x" }, "name": name },
            "spec": { "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [
                { "labelSelector": { "matchLabels": { "app": "x" } }, "topologyKey": "kubernetes.io/hostname" },
            ] } } },
        })
    };
    let cluster = cluster()
        .node("a", "t8")
        .pod_with("p", "a", "1", apart("p"))
        .pod_with("q", "a", "1", apart("q"));
    let pass = cluster.ask(Method::SingleNodeConsolidation);
    assert_eq!(
        said(&pass.refusals, "a"),
        ["Unconsolidatable: Can't remove without creating 2 candidates"]
    );
}

#[test]
fn a_pod_without_another_place_is_named_with_the_reason() {
    let here = json!({ "spec": { "nodeSelector": { "kubernetes.io/hostname": "a" } } });
    let cluster = cluster().node("a", "t8").pod_with("p", "a", "1", here);
    let pass = cluster.ask(Method::SingleNodeConsolidation);
    let texts = said(&pass.refusals, "a");
    assert!(
        texts[0].starts_with("Unconsolidatable: Not all pods would schedule, ns/p => "),
        "{texts:?}"
    );
}

#[test]
fn a_node_launched_for_a_pending_pod_counts_as_a_replacement() {
    let cluster = cluster()
        .node("a", "t4")
        .node("b", "t4")
        .pod("p", "a", "1")
        .pod("q", "b", "1")
        .pending("w", "8");
    let pass = cluster.ask(Method::SingleNodeConsolidation);
    assert!(pass.commands.is_empty());
    assert_eq!(
        said(&pass.refusals, "a"),
        ["Unconsolidatable: Can't replace with a cheaper node"]
    );
}

#[test]
fn an_on_demand_node_becomes_spot_and_nothing_else() {
    let any = json!({ "spec": { "template": { "spec": { "requirements": [{ "key": CAPACITY, "operator": "In", "values": ["on-demand", "spot"] }] } } } });
    let cluster = cluster().pool("default", any).node("a", "t2").pod("p", "a", "2");
    let pass = cluster.ask(Method::SingleNodeConsolidation);
    let claim = pass.commands[0].replacements[0].planned().unwrap();
    let capacity = claim.constraints.iter().find(|spec| spec.key == CAPACITY).unwrap();
    assert_eq!(
        (capacity.values.as_slice(), types_of(&pass.commands[0])),
        (["spot".to_owned()].as_slice(), vec!["t2".to_owned()])
    );
}

fn spot(types: u32) -> Cluster {
    let any = json!({ "spec": { "template": { "spec": { "requirements": [{ "key": CAPACITY, "operator": "In", "values": ["spot"] }] } } } });
    let mut cluster = cluster().pool("default", any);
    cluster.types = (1..=types)
        .map(|at| instance_type(&format!("s{at:02}"), 2, 0.5 + f64::from(at) / 1000.0))
        .collect();
    cluster.types.push(instance_type("big", 8, 1.0));
    let label = json!({ "metadata": { "labels": { CAPACITY: "spot" } } });
    cluster.machine("a", "big", label.clone(), label).pod("p", "a", "2")
}

#[test]
fn a_spot_node_becomes_another_only_with_fifteen_cheaper_types_to_choose_from() {
    let told = |cluster: &Cluster| said(&cluster.ask(Method::SingleNodeConsolidation).refusals, "a");
    assert_eq!(
        told(&spot(20)),
        ["Unconsolidatable: SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node"]
    );
    let gate = "SpotToSpotConsolidation";
    assert_eq!(
        told(&spot(14).gate(gate)),
        [
            "Unconsolidatable: SpotToSpotConsolidation requires 15 cheaper instance type options than the current candidate to consolidate, got 14"
        ]
    );
    let pass = spot(20).gate(gate).ask(Method::SingleNodeConsolidation);
    let types = types_of(&pass.commands[0]);
    assert_eq!((types.len(), types[0].as_str(), types[14].as_str()), (15, "s01", "s15"));
}

#[test]
fn a_spot_node_whose_pods_fit_elsewhere_needs_no_gate_to_go() {
    let mut cluster = spot(3).node("b", "big");
    for name in ["q", "r", "s", "t"] {
        cluster = cluster.pod(name, "b", "1");
    }
    assert_eq!(of(&cluster, Method::SingleNodeConsolidation), ["delete: [a]"]);
}

#[test]
fn several_nodes_merge_into_one_that_is_cheaper() {
    let mut cluster = cluster();
    for name in ["a", "b", "c"] {
        cluster = cluster.node(name, "t2").pod(&format!("p-{name}"), name, "900m");
    }
    let pass = cluster.ask(Method::MultiNodeConsolidation);
    assert_eq!(texts(&pass.commands), ["replace: [a, b, c] -> [1 replacement]"]);
    assert_eq!(
        (types_of(&pass.commands[0]), pass.commands[0].saving.to_string()),
        (vec!["t4".to_owned()], "$2.00".to_owned())
    );
    assert_eq!(
        pass.commands[0].text_for(&"b".into()),
        "replace: [b] (part of 3-node consolidation)"
    );
}

#[test]
fn two_nodes_do_not_merge_into_one_of_a_type_they_have() {
    let full = |name: &str| json!({ "metadata": { "name": name } });
    let cluster = cluster()
        .node("a", "t4")
        .node("b", "t4")
        .pod_with("p", "a", "2100m", full("p"))
        .pod_with("q", "b", "1800m", full("q"));
    assert!(
        of(&cluster, Method::MultiNodeConsolidation).is_empty(),
        "one of them had better stay"
    );
}

#[test]
fn a_young_neighbour_takes_no_pods_of_a_node_that_is_consolidated() {
    let young = json!({ "status": { "lastPodEventTime": "2026-11-16T11:59:50Z", "conditions": [
        { "type": "Initialized", "status": "True", "reason": "Initialized", "lastTransitionTime": LONG_AGO },
    ] } });
    let pool = json!({ "spec": { "disruption": { "consolidateAfter": "30s" } } });
    let cluster = cluster()
        .pool("default", pool)
        .node("a", "t2")
        .pod("p", "a", "1")
        .machine("b", "t8", json!({}), young)
        .pod("q", "b", "1");
    assert_eq!(
        of(&cluster, Method::SingleNodeConsolidation),
        ["replace: [a] -> [1 replacement]"]
    );
}

#[test]
fn no_node_is_given_up_for_one_that_is_not_up_yet() {
    let starting = json!({ "metadata": { "labels": { "karpenter.sh/initialized": null } } });
    let cluster = cluster()
        .node("a", "t1")
        .pod("p", "a", "1")
        .machine("b", "t8", starting, json!({}));
    let pass = cluster.ask(Method::SingleNodeConsolidation);
    let told = said(&pass.refusals, "a").join("");
    assert!(
        told.contains("ns/p => would schedule against uninitialized nodeclaim/claim-b, node/b"),
        "{told}"
    );
}

#[test]
fn balanced_takes_what_saves_its_share_and_leaves_what_does_not() {
    // Four equal nodes: a replacement must save half a node's price.
    let mut base = cluster().pool("default", policy("Balanced"));
    for name in ["a", "b", "c", "d"] {
        base = base.node(name, "t4").pod(&format!("p-{name}"), name, "3");
    }
    let pass = base.ask(Method::SingleNodeConsolidation);
    assert!(pass.commands.is_empty(), "{:?}", texts(&pass.commands));
    base.types.push(instance_type("t3", 3, 0.9));
    let pass = base.ask(Method::SingleNodeConsolidation);
    assert!(pass.commands.is_empty());
    assert!(
        pass.refusals
            .iter()
            .any(|refusal| matches!(refusal.rule, Rule::Balanced(_))),
        "{:?}",
        pass.refusals
    );
    base.types.push(instance_type("t3-cheap", 3, 0.6));
    let pass = base.ask(Method::SingleNodeConsolidation);
    assert_eq!(texts(&pass.commands), ["replace: [a] -> [1 replacement]"]);
    assert_eq!(
        pass.commands[0].scores[0].message(),
        "score 0.55 >= threshold 0.50 (k: 2, savings 13.8%, disruption 25.0%)"
    );
}

#[test]
fn methods_are_asked_in_order_and_the_first_that_acts_ends_the_round() {
    let cluster = cluster().node("a", "t4").node("b", "t8").pod("p", "b", "1");
    let round = cluster.decide();
    assert_eq!(texts(&round.commands), ["delete: [a]"]);
    let asked: Vec<Method> = round.passes.iter().map(|pass| pass.method).collect();
    assert_eq!(asked, [Method::Emptiness]);
}

#[test]
fn a_method_that_found_nothing_is_not_asked_again_until_something_changed() {
    let mut cluster = cluster().node("a", "t4").pod("p", "a", "4");
    cluster.facts.changed_at = Some(LONG_AGO.parse().unwrap());
    let pass = cluster.ask(Method::SingleNodeConsolidation);
    assert_eq!((pass.evaluated, pass.settled), (1, cluster.facts.changed_at));
    cluster.facts.settled_at.insert(pass.method, pass.settled.unwrap());
    assert_eq!(cluster.ask(Method::SingleNodeConsolidation).evaluated, 0);
    cluster.facts.changed_at = Some(crate::fixture::now());
    assert_eq!(cluster.ask(Method::SingleNodeConsolidation).evaluated, 1);
}

#[test]
fn several_nodes_within_a_budget_are_asked_about_again_when_it_or_the_cluster_changed() {
    let budget = |nodes: &str| json!({ "spec": { "disruption": { "budgets": [{ "nodes": nodes }] } } });
    let full = ["a", "b", "c", "d"].iter().fold(cluster(), |full, name| {
        full.node(name, "t4").pod(&format!("p-{name}"), name, "4")
    });
    let mut two = full.clone().pool("default", budget("2"));
    two.facts.changed_at = Some(LONG_AGO.parse().unwrap());
    let looked = |cluster: &Cluster| cluster.ask(Method::MultiNodeConsolidation).work > 0;
    let pass = two.ask(Method::MultiNodeConsolidation);
    assert_eq!(
        (pass.settled, pass.work > 0),
        (None, true),
        "a budget that opens may bring more"
    );
    two.facts.constrained.insert(pass.method, pass.constrained.unwrap());
    assert!(!looked(&two), "nothing changed");
    let mut three = full.pool("default", budget("3"));
    three.facts = two.facts.clone();
    assert!(looked(&three), "the budget leaves more");
    let mut later = two.clone();
    later.facts.changed_at = Some(crate::fixture::now());
    assert!(looked(&later), "the cluster changed");
    two.options.consolidation = Consolidation::Faithful;
    assert!(looked(&two), "upstream asks again and again");
}
