//! Consolidation of one node and of several, for nodes on demand and spot nodes alike.

use disruption::{Invalid, Method, validate};
use serde_json::{Value, json};

use crate::fixture::{
    CAPACITY, Cluster, LONG_AGO, TYPE, ZONE, cluster, instance_type, merge, now, said, texts, types_of,
};

const BOTH: [&str; 2] = ["on-demand", "spot"];

fn of(cluster: &Cluster, method: Method) -> Vec<String> {
    texts(&cluster.ask(method).commands)
}

fn single(cluster: &Cluster) -> Vec<String> {
    of(cluster, Method::SingleNodeConsolidation)
}

fn requires(requirements: Value) -> Value {
    json!({ "spec": { "template": { "spec": { "requirements": requirements } } } })
}

/// A pool of a capacity type, with twenty small types and a dear large one.
fn market(capacity: &str) -> Cluster {
    let only = requires(json!([{ "key": CAPACITY, "operator": "In", "values": [capacity] }]));
    let mut cluster = cluster().pool("default", only).gate("SpotToSpotConsolidation");
    cluster.types = (1..=20)
        .map(|at| instance_type(&format!("s{at:02}"), 2, 0.5 + f64::from(at) / 1000.0))
        .collect();
    cluster.types.push(instance_type("big", 8, 1.0));
    cluster
}

fn labelled(capacity: &str) -> Value {
    json!({ "metadata": { "labels": { CAPACITY: capacity } } })
}

impl Cluster {
    /// A machine of a capacity type, with changes to its node.
    fn bought(self, capacity: &str, name: &str, it: &str, over: Value) -> Self {
        let mut node = labelled(capacity);
        merge(&mut node, over);
        self.machine(name, it, node, labelled(capacity))
    }
}

/// Two large nodes, each with a pod that fills a small one; the pod of the first has these changes, and so has its node.
fn two_large(capacity: &str, pod: Value, node: Value) -> Cluster {
    market(capacity)
        .bought(capacity, "a", "big", node)
        .pod_with("p", "a", "2", pod)
        .bought(capacity, "b", "big", json!({}))
        .pod("q", "b", "2")
        // So that neither takes the other's pod.
        .pod_with("da", "a", "6", daemon())
        .pod_with("db", "b", "6", daemon())
}

fn daemon() -> Value {
    json!({ "metadata": { "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d" }] } })
}

fn budget(over: Value) -> Value {
    let mut budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "b", "namespace": "ns" },
        "spec": { "selector": { "matchLabels": { "app": "p" } }, "maxUnavailable": 0 },
        "status": { "disruptionsAllowed": 0 },
    });
    merge(&mut budget, over);
    budget
}

fn protected() -> Value {
    json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": "true" } } })
}

#[test]
fn a_node_is_replaced_by_a_cheaper_one_of_its_capacity_type() {
    for capacity in BOTH {
        let cluster = market(capacity)
            .bought(capacity, "a", "big", json!({}))
            .pod("p", "a", "2");
        let pass = cluster.ask(Method::SingleNodeConsolidation);
        assert_eq!(texts(&pass.commands), ["replace: [a] -> [1 replacement]"], "{capacity}");
        let types = types_of(&pass.commands[0]);
        let expected = if capacity == "spot" { 15 } else { 20 };
        assert!(types.len() == expected && types[0] == "s01", "{capacity}: {types:?}");
    }
}

#[test]
fn a_spot_node_of_one_of_the_fifteen_cheapest_types_stays() {
    let cluster = market("spot").bought("spot", "a", "s10", json!({})).pod("p", "a", "2");
    let pass = cluster.ask(Method::SingleNodeConsolidation);
    assert!(pass.commands.is_empty());
    let requires = "SpotToSpotConsolidation requires 15 cheaper instance type options than the current candidate";
    assert_eq!(
        said(&pass.refusals, "a"),
        [format!("Unconsolidatable: {requires} to consolidate, got 9")]
    );
}

#[test]
fn the_fifteen_types_a_spot_node_may_become_are_the_cheapest_whatever_their_order() {
    let mut cluster = market("spot").bought("spot", "a", "big", json!({})).pod("p", "a", "2");
    cluster.types.reverse();
    let types = types_of(&cluster.ask(Method::SingleNodeConsolidation).commands[0]);
    let expected: Vec<String> = (1..=15).map(|at| format!("s{at:02}")).collect();
    assert_eq!(types, expected);
}

/// A pool that wants so many types to choose from.
fn with_min_values(capacity: &str, count: usize) -> Cluster {
    let names: Vec<String> = (1..=20)
        .map(|at| format!("s{at:02}"))
        .chain(["big".to_owned()])
        .collect();
    let wanted = requires(json!([
        { "key": CAPACITY, "operator": "In", "values": [capacity] },
        { "key": TYPE, "operator": "In", "values": names, "minValues": count },
    ]));
    market(capacity).pool("default", wanted)
}

#[test]
fn a_spot_node_keeps_as_many_types_as_its_pool_wants_if_these_are_more_than_fifteen() {
    for (wanted, kept) in [(17, 17), (10, 15)] {
        let cluster = with_min_values("spot", wanted)
            .bought("spot", "a", "big", json!({}))
            .pod("p", "a", "2");
        let types = types_of(&cluster.ask(Method::SingleNodeConsolidation).commands[0]);
        assert_eq!(types.len(), kept, "minValues {wanted}");
    }
}

#[test]
fn a_node_stays_when_fewer_types_are_cheaper_than_its_pool_wants() {
    for capacity in BOTH {
        let cluster = with_min_values(capacity, 21)
            .bought(capacity, "a", "big", json!({}))
            .pod("p", "a", "2");
        let pass = cluster.ask(Method::SingleNodeConsolidation);
        assert!(pass.commands.is_empty(), "{capacity}");
        let told = said(&pass.refusals, "a");
        assert!(
            told[0].starts_with("Unconsolidatable: Filtering by price: "),
            "{told:?}"
        );
    }
}

#[test]
fn nodes_do_not_merge_when_what_is_left_beside_their_own_type_is_less_than_their_pool_wants() {
    let names = ["t1", "t2", "t4", "t8"];
    let wanted = requires(json!([
        { "key": CAPACITY, "operator": "In", "values": ["on-demand"] },
        { "key": TYPE, "operator": "In", "values": names, "minValues": 2 },
    ]));
    let merging = |pool: Value| {
        let mut cluster = cluster().pool("default", pool);
        for name in ["a", "b", "c"] {
            cluster = cluster.node(name, "t2").pod(&format!("p-{name}"), name, "300m");
        }
        of(&cluster, Method::MultiNodeConsolidation)
    };
    // Only t1 is cheaper than one of them: enough for a pool that wants one, too few for one that wants two.
    assert_eq!(merging(json!({})), ["replace: [a, b, c] -> [1 replacement]"]);
    assert!(
        merging(wanted.clone()).iter().all(|text| !text.contains("replace")),
        "{:?}",
        merging(wanted)
    );
}

#[test]
fn a_pool_that_offers_nothing_keeps_nobody_else_from_being_replaced() {
    for capacity in BOTH {
        let mut cluster = market(capacity)
            .pool("none", json!({ "spec": { "weight": 100 } }))
            .bought(capacity, "a", "big", json!({}))
            .pod("p", "a", "2");
        cluster.offers.insert("none".to_owned(), Vec::new());
        assert_eq!(single(&cluster), ["replace: [a] -> [1 replacement]"], "{capacity}");
    }
}

#[test]
fn pods_that_may_not_be_evicted_keep_their_node_and_no_other() {
    let second_only = |cluster: Cluster, why: &str| {
        assert_eq!(single(&cluster), ["replace: [b] -> [1 replacement]"], "{why}");
    };
    let neither = |cluster: Cluster, why: &str| {
        assert_eq!(cluster.ask(Method::SingleNodeConsolidation).eligible, 2, "{why}");
    };
    for capacity in BOTH {
        let plain = || two_large(capacity, json!({}), json!({}));
        second_only(plain().with(budget(json!({}))), "a budget of none");
        neither(
            plain().with(budget(json!({ "metadata": { "namespace": "other" } }))),
            "a budget of another namespace",
        );
        let sick = json!({ "status": { "conditions": [{ "type": "Ready", "status": "False" }] } });
        let policy = json!({ "spec": { "unhealthyPodEvictionPolicy": "AlwaysAllow" } });
        neither(
            two_large(capacity, sick.clone(), json!({})).with(budget(policy)),
            "a sick pod may always go",
        );
        second_only(
            two_large(capacity, sick, json!({})).with(budget(json!({}))),
            "unless the budget says so",
        );
        second_only(two_large(capacity, protected(), json!({})), "a protected pod");
        second_only(two_large(capacity, json!({}), protected()), "a protected node");
    }
}

#[test]
fn a_node_is_not_replaced_by_one_that_may_turn_out_dearer() {
    // Some offerings of the only other type cost less than the node, but not all.
    let any = requires(json!([{ "key": CAPACITY, "operator": "In", "values": BOTH }]));
    let priced = |on_demand: [&str; 2], spot: [&str; 2]| {
        let mut cluster = cluster().pool("default", any.clone());
        cluster.types = vec![instance_type("now", 2, 0.5), instance_type("other", 2, 0.5)];
        let prices = [on_demand[0], on_demand[1], spot[0], spot[1]];
        for (offering, price) in cluster.types[1]["offerings"]
            .as_array_mut()
            .unwrap()
            .iter_mut()
            .zip(prices)
        {
            offering["price"] = price.into();
        }
        for offering in cluster.types[0]["offerings"].as_array_mut().unwrap() {
            let is_spot = offering["requirements"][1]["values"][0] == "spot";
            offering["available"] = (!is_spot).into();
        }
        single(&cluster.node("a", "now").pod("p", "a", "2"))
    };
    assert_eq!(priced(["2", "2"], ["0.5", "0.6"]), ["replace: [a] -> [1 replacement]"]);
    assert!(
        priced(["2", "2"], ["0.5", "1.2"]).is_empty(),
        "spot in zone b is dearer"
    );
    let on_demand = |price: &str| {
        let mut cluster = cluster();
        cluster.types = vec![instance_type("now", 2, 0.5), instance_type("other", 2, 0.5)];
        for offering in cluster.types[1]["offerings"].as_array_mut().unwrap() {
            let is_spot = offering["requirements"][1]["values"][0] == "spot";
            offering["price"] = if is_spot { "0.1" } else { price }.into();
        }
        single(&cluster.node("a", "now").pod("p", "a", "2"))
    };
    assert_eq!(on_demand("0.9"), ["replace: [a] -> [1 replacement]"]);
    assert!(on_demand("1.1").is_empty(), "spot is cheap, but not for this pool");
}

/// A node whose pod fits on another, with these changes to the pod and the node.
fn two_small(pod: Value, node: Value, claim: Value) -> Cluster {
    cluster()
        .machine("a", "t4", node, claim)
        .pod_with("p", "a", "1", pod)
        .machine("b", "t2", protected(), json!({}))
        .pod("q", "b", "500m")
}

#[test]
fn a_node_is_deleted_unless_something_on_it_is_protected() {
    let plain = || two_small(json!({}), json!({}), json!({}));
    let owned = json!({ "metadata": { "ownerReferences": [] } });
    assert_eq!(single(&plain()), ["delete: [a]"]);
    assert_eq!(
        single(&two_small(owned, json!({}), json!({}))),
        ["delete: [a]"],
        "a pod of nobody's"
    );
    let stays = |cluster: Cluster, why: &str| assert!(single(&cluster).is_empty(), "{why}");
    stays(plain().with(budget(json!({}))), "a budget of none");
    stays(two_small(json!({}), protected(), json!({})), "the node");
    stays(two_small(protected(), json!({}), json!({})), "the pod");
    let bounded = json!({ "spec": { "terminationGracePeriod": "5m" } });
    stays(
        two_small(protected(), json!({}), bounded.clone()),
        "a bound of the drain does not help",
    );
    let held = two_small(json!({}), json!({}), bounded).with(budget(json!({})));
    stays(held, "nor against a budget");
    let for_a_while = |value: &str| {
        let pod = json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": value } }, "status": { "startTime": LONG_AGO } });
        single(&two_small(pod, json!({}), json!({})))
    };
    assert!(for_a_while("3h").is_empty(), "the pod is two hours old");
    assert_eq!(for_a_while("1h"), ["delete: [a]"]);
    assert_eq!(
        for_a_while("soon"),
        ["delete: [a]"],
        "a word that means nothing protects nothing"
    );
}

#[test]
fn nodes_of_others_take_pods_and_pools_that_are_broken_stop_nobody() {
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": "theirs", "labels": { "kubernetes.io/hostname": "theirs" } },
        "spec": { "providerID": "theirs" },
        "status": { "capacity": { "cpu": "8", "memory": "8Gi", "pods": "10" }, "allocatable": { "cpu": "8", "memory": "8Gi", "pods": "10" },
            "conditions": [{ "type": "Ready", "status": "True" }] },
    });
    let alone = cluster().node("a", "t2").pod("p", "a", "2");
    assert!(single(&alone).is_empty());
    assert_eq!(single(&alone.with(node)), ["delete: [a]"]);
    let unready = json!({ "status": { "conditions": [{ "type": "Ready", "status": "False" }] } });
    let unknown = requires(json!([{ "key": TYPE, "operator": "In", "values": ["none"] }]));
    for broken in [unready, unknown] {
        let cluster = two_small(json!({}), json!({}), json!({})).pool("broken", broken.clone());
        assert_eq!(single(&cluster), ["delete: [a]"], "{broken}");
    }
}

#[test]
fn a_node_that_is_up_takes_pods_before_one_that_is_not() {
    let starting = json!({ "metadata": { "labels": { "karpenter.sh/initialized": null } } });
    let cluster = cluster()
        .node("b", "t4")
        .pod("p", "b", "1")
        .machine("a", "t8", starting, json!({}))
        .node("z", "t2")
        .pod("q", "z", "500m");
    let pass = cluster.ask(Method::SingleNodeConsolidation);
    assert_eq!(texts(&pass.commands), ["delete: [b]"]);
    assert_eq!(pass.commands[0].plan.existing[0].name.as_str(), "z");
}

#[test]
fn a_pod_that_waits_for_ever_keeps_no_node_and_one_that_would_have_to_wait_does() {
    let never = json!({
        "spec": { "nodeName": null, "nodeSelector": { "no/such": "label" } },
        "status": { "phase": "Pending", "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }] },
    });
    let cluster = two_small(json!({}), json!({}), json!({})).pod_with("w", "", "1", never);
    assert_eq!(single(&cluster), ["delete: [a]"]);
    let here = json!({ "spec": { "nodeSelector": { "kubernetes.io/hostname": "a" } } });
    assert!(single(&two_small(here, json!({}), json!({}))).is_empty());
}

/// Two nodes of which the second was stirred ten seconds ago.
fn stirred(after: &str) -> Cluster {
    let young = json!({ "status": { "lastPodEventTime": "2026-11-16T11:59:50Z" } });
    cluster()
        .pool(
            "young",
            json!({ "spec": { "disruption": { "consolidateAfter": after } } }),
        )
        .node("a", "t2")
        .pod("p", "a", "2")
        .machine(
            "b",
            "t8",
            json!({ "metadata": { "labels": { "karpenter.sh/nodepool": "young" } } }),
            {
                let mut claim = json!({ "metadata": { "labels": { "karpenter.sh/nodepool": "young" } } });
                merge(&mut claim, young);
                claim
            },
        )
        .pod_with("q", "b", "1", protected())
}

#[test]
fn a_node_inside_its_own_quiet_time_takes_no_pods_and_one_that_never_consolidates_does() {
    assert!(single(&stirred("30s")).is_empty());
    assert_eq!(single(&stirred("5s")), ["delete: [a]"]);
    assert_eq!(single(&stirred("Never")), ["delete: [a]"]);
}

#[test]
fn three_nodes_merge_into_one_whatever_their_capacity_type() {
    for kinds in [["on-demand"; 3], ["spot"; 3], ["spot", "on-demand", "on-demand"]] {
        let any = requires(json!([{ "key": CAPACITY, "operator": "In", "values": BOTH }]));
        let mut cluster = cluster().pool("default", any).gate("SpotToSpotConsolidation");
        for (name, capacity) in ["a", "b", "c"].into_iter().zip(kinds) {
            cluster = cluster
                .bought(capacity, name, "t4", json!({}))
                .pod(&format!("p-{name}"), name, "600m");
        }
        let pass = cluster.ask(Method::MultiNodeConsolidation);
        let command = &pass.commands[0];
        assert_eq!(
            (command.candidates.len(), command.replacements.len()),
            (3, 1),
            "{}",
            command.text()
        );
    }
}

#[test]
fn two_nodes_do_not_become_one_of_their_own_type() {
    for capacity in BOTH {
        let only = requires(json!([{ "key": CAPACITY, "operator": "In", "values": [capacity] }]));
        let mut cluster = cluster().pool("default", only).gate("SpotToSpotConsolidation");
        cluster.types = vec![instance_type("t4", 4, 1.0)];
        for name in ["a", "b"] {
            cluster = cluster
                .bought(capacity, name, "t4", json!({}))
                .pod(&format!("p-{name}"), name, "1500m");
        }
        let texts = of(&cluster, Method::MultiNodeConsolidation);
        assert!(texts.is_empty(), "{capacity}: {texts:?}");
        assert_eq!(
            single(&cluster),
            ["delete: [a]"],
            "{capacity}: one of them goes instead"
        );
    }
}

#[test]
fn pods_spread_over_zones_are_spread_after_a_replacement() {
    let spread = json!({
        "metadata": { "labels": { "app": "x" } },
        "spec": { "topologySpreadConstraints": [{ "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": { "matchLabels": { "app": "x" } } }] },
    });
    let in_zone = |zone: &str| json!({ "metadata": { "labels": { ZONE: zone } } });
    let mut cluster = cluster();
    for (name, it, zone) in [("a", "t8", "a"), ("b", "t2", "b")] {
        cluster = cluster.machine(name, it, in_zone(zone), in_zone(zone)).pod_with(
            &format!("p-{name}"),
            name,
            "2",
            spread.clone(),
        );
    }
    let pass = cluster.ask(Method::SingleNodeConsolidation);
    assert_eq!(texts(&pass.commands), ["replace: [a] -> [1 replacement]"]);
    let claim = pass.commands[0].replacements[0].planned().unwrap();
    let zone = claim.constraints.iter().find(|spec| spec.key == ZONE).unwrap();
    assert_eq!(zone.values, ["a"]);
}

#[test]
fn pods_that_may_not_share_a_node_keep_theirs() {
    let apart = json!({
        "metadata": { "labels": { "app": "x" } },
        "spec": { "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [
            { "labelSelector": { "matchLabels": { "app": "x" } }, "topologyKey": "kubernetes.io/hostname" },
        ] } } },
    });
    let mut cluster = cluster();
    for name in ["a", "b", "c"] {
        cluster = cluster
            .node(name, "t1")
            .pod_with(&format!("p-{name}"), name, "500m", apart.clone());
    }
    assert!(cluster.decide().commands.is_empty());
}

#[test]
fn pods_of_a_node_that_goes_count_before_a_node_launched_for_them_is_given_up() {
    let mut cluster = cluster().node("old", "t4").node("new", "t4");
    for at in 0..3 {
        cluster = cluster.pod(&format!("o{at}"), "old", "1");
    }
    let mut going = cluster.pod("n0", "new", "1");
    going.facts.marked.insert("claim-old".into());
    assert!(
        going.decide().commands.is_empty(),
        "{:?}",
        texts(&going.decide().commands)
    );
    going.facts.marked.clear();
    assert!(!going.decide().commands.is_empty());
}

/// A type with an offering of each capacity type, the reserved one for next to nothing.
fn with_reservation(mut it: Value, price: &str) -> Value {
    let is = |key: &str, value: &str| json!({ "key": key, "operator": "In", "values": [value] });
    let id = format!("r-{}", it["name"].as_str().unwrap());
    let reserved = json!({
        "price": price, "available": true, "reservationCapacity": 10,
        "requirements": [is(ZONE, "a"), is(CAPACITY, "reserved"), is("cloud/reservation-id", &id)],
    });
    it["offerings"].as_array_mut().unwrap().push(reserved);
    for requirement in it["requirements"].as_array_mut().unwrap() {
        if requirement["key"] == CAPACITY {
            requirement["values"].as_array_mut().unwrap().push("reserved".into());
        }
    }
    it
}

#[test]
fn nodes_move_into_reservations_that_cost_less() {
    let reserved = |names: &[&str]| {
        let mut cluster = cluster().pool("default", requires(json!([]))).gate("ReservedCapacity");
        let types = [("big", 8, "0.00002"), ("small", 2, "0.00001")];
        cluster.types = types
            .map(|(name, cores, price)| {
                let it = instance_type(name, cores, 1.0);
                if names.contains(&name) {
                    with_reservation(it, price)
                } else {
                    it
                }
            })
            .to_vec();
        cluster
    };
    let replaced = |cluster: &Cluster| {
        let pass = cluster.ask(Method::SingleNodeConsolidation);
        assert_eq!(
            texts(&pass.commands),
            ["replace: [a] -> [1 replacement]"],
            "{:?}",
            pass.refusals
        );
        let claim = pass.commands[0].replacements[0].planned().unwrap();
        let kind = claim.constraints.iter().find(|spec| spec.key == CAPACITY).unwrap();
        assert_eq!(kind.values, ["reserved"]);
        types_of(&pass.commands[0])
    };
    for capacity in BOTH {
        let cluster = reserved(&["big"])
            .bought(capacity, "a", "big", json!({}))
            .pod("p", "a", "6");
        assert_eq!(replaced(&cluster), ["big"], "from {capacity}");
    }
    let labels = json!({ "metadata": { "labels": { CAPACITY: "reserved", "cloud/reservation-id": "r-big" } } });
    let cluster = reserved(&["big", "small"])
        .machine("a", "big", labels.clone(), labels)
        .pod("p", "a", "1");
    assert_eq!(replaced(&cluster), ["small"]);
}

#[test]
fn preferences_keep_no_node_when_they_are_ignored() {
    let apart = json!({
        "metadata": { "labels": { "app": "x" } },
        "spec": { "affinity": { "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [
            { "weight": 1, "podAffinityTerm": { "labelSelector": { "matchLabels": { "app": "x" } }, "topologyKey": "kubernetes.io/hostname" } },
        ] } } },
    });
    let mut cluster = cluster();
    for (pod, node) in [("p", "a"), ("q", "a"), ("r", "b")] {
        cluster = cluster.pod_with(pod, node, "100m", apart.clone());
    }
    cluster = cluster.node("a", "t1").node("b", "t1");
    cluster.settings["preferencePolicy"] = "Ignore".into();
    assert_eq!(single(&cluster), ["delete: [b]"]);
    let here = json!({ "spec": { "affinity": { "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [
        { "weight": 1, "preference": { "matchExpressions": [{ "key": TYPE, "operator": "In", "values": ["t8"] }] } },
    ] } } } });
    let mut cluster = crate::fixture::cluster().node("a", "t8").pod_with("p", "a", "1", here);
    assert!(single(&cluster).is_empty(), "it prefers its type");
    cluster.settings["preferencePolicy"] = "Ignore".into();
    assert_eq!(single(&cluster), ["replace: [a] -> [1 replacement]"]);
}

#[test]
fn a_least_number_of_types_is_not_relaxed_for_consolidation() {
    let wanted = requires(json!([
        { "key": CAPACITY, "operator": "In", "values": ["on-demand"] },
        { "key": TYPE, "operator": "In", "values": ["t1", "t8", "u"], "minValues": 3 },
    ]));
    let mut cluster = cluster().pool("default", wanted).node("a", "t8").pod("p", "a", "1");
    cluster.types = vec![instance_type("t1", 1, 1.0), instance_type("t8", 8, 1.0)];
    cluster.settings["minValuesPolicy"] = "BestEffort".into();
    let pass = cluster.ask(Method::SingleNodeConsolidation);
    assert!(pass.commands.is_empty());
    let told = said(&pass.refusals, "a").concat();
    let unmet = "minValues requirement is not met for label(s) (label(s)=[node.kubernetes.io/instance-type])";
    assert!(told.contains(unmet), "{told}");
}

#[test]
fn a_node_with_pods_becomes_cheaper_although_a_buffer_has_room_on_it() {
    let mut cluster = cluster().node("a", "t8").pod("p", "a", "1");
    cluster.facts.buffer_pods.insert("id-a".into(), 2);
    assert_eq!(single(&cluster), ["replace: [a] -> [1 replacement]"]);
    let mut empty = crate::fixture::cluster().node("a", "t8");
    empty.facts.buffer_pods.insert("id-a".into(), 2);
    assert_eq!(
        empty.ask(Method::SingleNodeConsolidation).eligible,
        0,
        "an empty one is emptiness's"
    );
    assert!(empty.decide().commands.is_empty());
    empty.facts.buffer_pods.clear();
    assert_eq!(texts(&empty.decide().commands), ["delete: [a]"]);
}

#[test]
fn nodes_of_a_static_pool_are_neither_empty_nor_too_dear() {
    let cluster = cluster()
        .pool("default", json!({ "spec": { "replicas": 3 } }))
        .node("a", "t8")
        .node("b", "t8")
        .pod("p", "b", "1");
    assert!(cluster.decide().commands.is_empty());
    for method in [
        Method::Emptiness,
        Method::SingleNodeConsolidation,
        Method::MultiNodeConsolidation,
    ] {
        assert_eq!(cluster.ask(method).eligible, 0, "{method:?}");
    }
}

#[test]
fn a_pool_that_consolidates_says_nothing_of_being_disabled() {
    let cluster = cluster().node("a", "t4").pod("p", "a", "4");
    let told = said(&cluster.ask(Method::SingleNodeConsolidation).refusals, "a").concat();
    assert!(!told.contains("disabled") && !told.contains("WhenEmpty,"), "{told}");
}

#[test]
fn what_happens_to_a_node_while_its_command_waits_ends_the_command() {
    let again = |before: &Cluster, after: &Cluster, method: Method| {
        let command = before.ask(method).commands.remove(0);
        validate(&command, &after.snapshot(), &after.facts, &after.options, now())
    };
    let methods = [Method::SingleNodeConsolidation, Method::MultiNodeConsolidation];
    let base = || {
        cluster()
            .node("a", "t8")
            .pod("p", "a", "1500m")
            .node("b", "t8")
            .pod("q", "b", "1500m")
            .pod_with("da", "a", "5", daemon())
            .pod_with("db", "b", "5", daemon())
    };
    for method in methods {
        let guarded = base().pod_with("late", "a", "100m", protected());
        assert!(
            matches!(again(&base(), &guarded, method), Err(Invalid::Churn(1))),
            "{method:?}"
        );
        let held = base().with(budget(json!({})));
        assert!(
            matches!(again(&base(), &held, method), Err(Invalid::Churn(1))),
            "{method:?}"
        );
        let mut nominated = base();
        nominated.facts.nominated.insert("id-a".into());
        assert!(again(&base(), &nominated, method).is_err(), "{method:?}");
        let closed = base().pool(
            "default",
            json!({ "spec": { "disruption": { "budgets": [{ "nodes": "0%" }] } } }),
        );
        assert_eq!(again(&base(), &closed, method), Err(Invalid::Budget), "{method:?}");
    }
}

#[test]
fn pods_of_a_node_that_goes_may_wait_for_one_that_is_not_up_yet() {
    let starting = json!({ "metadata": { "labels": { "karpenter.sh/initialized": null } } });
    let mut cluster = cluster()
        .node("a", "t4")
        .pod("p", "a", "500m")
        .node("b", "t1")
        .pod("q", "b", "100m")
        .node("old", "t4")
        .pod("o", "old", "4")
        .machine("starting", "t4", starting, json!({}));
    cluster.facts.marked.insert("claim-old".into());
    assert_eq!(single(&cluster), ["delete: [a]"]);
}

#[test]
fn a_volume_on_the_node_itself_does_not_tie_its_pod_to_the_node() {
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": "v" },
        "spec": { "local": { "path": "/v" }, "nodeAffinity": { "required": { "nodeSelectorTerms": [
            { "matchExpressions": [{ "key": "kubernetes.io/hostname", "operator": "In", "values": ["a"] }] },
        ] } } },
    });
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "c", "namespace": "ns" },
        "spec": { "volumeName": "v", "storageClassName": "" },
    });
    let pod = json!({ "spec": { "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": "c" } }] } });
    let cluster = cluster()
        .with(volume)
        .with(claim)
        .node("a", "t8")
        .pod_with("p", "a", "1", pod);
    assert_eq!(single(&cluster), ["replace: [a] -> [1 replacement]"]);
}

#[test]
fn a_round_that_looked_at_everything_leaves_nobody_waiting() {
    let mut cluster = cluster();
    for at in 0..4 {
        let node = format!("n{at}");
        cluster = cluster.node(&node, "t2").pod(&format!("p{at}"), &node, "2");
    }
    cluster.facts.rotation.waiting = vec![("n2".into(), now())];
    let round = cluster.decide();
    assert!(
        round.commands.is_empty() && round.rotation.waiting.is_empty(),
        "{:?}",
        round.rotation
    );
}
