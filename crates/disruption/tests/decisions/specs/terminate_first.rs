//! Nodes that go first because no replacement can be had while they hold its place.

use disruption::{Method, RepairAction, TerminateFirst};
use serde_json::{Value, json};

use crate::{
    candidates::broken,
    fixture::{CAPACITY, Cluster, LONG_AGO, TYPE, ZONE, cluster, instance_type, merge, said, texts},
};

const DRIFT: (Method, &str) = (Method::StaticDrift, "TerminateFirstDrift");
const REPAIR: (Method, &str) = (Method::Repair, "TerminateFirstRepair");
const FULL: &str = "DisruptionBlocked: static NodePool's capacity reservations are full and cannot stage a replacement";
const AT_LIMIT: &str = "DisruptionBlocked: static NodePool is at its node limit and cannot stage a replacement";

fn is(key: &str, value: &str) -> Value {
    json!({ "key": key, "operator": "In", "values": [value] })
}

/// A type that can be had from a reservation, and in no other way.
fn reserved_type(name: &str, slots: u32, is_available: bool) -> Value {
    let mut it = instance_type(name, 2, 1.0);
    it["offerings"] = json!([{
        "price": "0.001", "available": is_available, "reservationCapacity": slots,
        "requirements": [is(ZONE, "a"), is(CAPACITY, "reserved"), is("cloud/reservation-id", "r1")],
    }]);
    for requirement in it["requirements"].as_array_mut().unwrap() {
        if requirement["key"] == CAPACITY {
            requirement["values"] = json!(["on-demand", "spot", "reserved"]);
        }
    }
    it
}

fn slot(capacity: &str, id: &str) -> Value {
    json!({ "metadata": { "labels": { CAPACITY: capacity, "cloud/reservation-id": id } } })
}

fn any() -> Value {
    json!({ "spec": { "template": { "spec": { "requirements": [] } } } })
}

fn only_reserved() -> Value {
    json!({ "spec": { "template": { "spec": { "requirements": [is(CAPACITY, "reserved")] } } } })
}

fn static_pool(limit: &str) -> Value {
    json!({ "spec": { "replicas": 1, "limits": { "nodes": limit } } })
}

fn not_ready() -> Value {
    json!({ "status": { "conditions": [{ "type": "Ready", "status": "False" }] } })
}

/// A cluster of one reserved type with so many free slots.
fn reserved(slots: u32, is_available: bool) -> Cluster {
    let mut cluster = cluster()
        .pool("default", any())
        .gate("ReservedCapacity")
        .gate("NodeRepair");
    cluster.types = vec![reserved_type("t2", slots, is_available)];
    cluster
}

impl Cluster {
    /// A node that is outdated and broken at once, with these changes.
    fn bad(mut self, name: &str, over: Value) -> Self {
        let drifted = json!({ "status": { "conditions": [
            { "type": "Initialized", "status": "True", "reason": "Initialized", "lastTransitionTime": LONG_AGO },
            { "type": "Drifted", "status": "True", "reason": "NodePoolDrifted", "lastTransitionTime": LONG_AGO },
        ] } });
        let mut claim = over.clone();
        merge(&mut claim, drifted);
        self = self.machine(name, "t2", over, claim);
        self.facts.repairs.insert(name.into(), broken(RepairAction::Replace));
        self
    }

    /// What a method does with its gate open, and what is said of the node `a`.
    fn first(&self, (method, gate): (Method, &str)) -> (Vec<String>, Vec<String>) {
        let pass = self.clone().gate(gate).ask(method);
        (texts(&pass.commands), said(&pass.refusals, "a"))
    }

    fn closed(&self, (method, _): (Method, &str)) -> (Vec<String>, Vec<String>) {
        let pass = self.ask(method);
        (texts(&pass.commands), said(&pass.refusals, "a"))
    }
}

fn goes_first() -> (Vec<String>, Vec<String>) {
    (vec!["terminate-first: [a]".to_owned()], Vec::new())
}

fn is_replaced() -> (Vec<String>, Vec<String>) {
    (vec!["replace: [a] -> [1 replacement]".to_owned()], Vec::new())
}

fn stays(why: &str) -> (Vec<String>, Vec<String>) {
    (Vec::new(), vec![why.to_owned()])
}

#[test]
fn a_node_of_a_static_pool_at_its_limit_goes_first_if_the_methods_own_gate_is_open() {
    let at = |limit: &str| {
        cluster()
            .gate("NodeRepair")
            .pool("default", static_pool(limit))
            .bad("a", json!({}))
    };
    for (mine, other) in [(DRIFT, REPAIR), (REPAIR, DRIFT)] {
        assert_eq!(at("1").first(mine), goes_first(), "{mine:?}");
        let why = at("1").gate(mine.1).ask(mine.0).commands[0].terminate_first;
        assert_eq!(why, Some(TerminateFirst::StaticAtLimit));
        assert_eq!(at("1").closed(mine), stays(AT_LIMIT), "{mine:?}");
        let others = at("1").gate(other.1).ask(mine.0);
        assert!(others.commands.is_empty(), "{mine:?}: the other's gate opens nothing");
        assert_eq!(at("2").first(mine), is_replaced(), "{mine:?}: there is room");
        assert_eq!(at("2").closed(mine), is_replaced(), "{mine:?}");
        assert_eq!(
            at("1").pool("default", not_ready()).first(mine),
            stays(AT_LIMIT),
            "{mine:?}: nobody would refill it"
        );
        let going = json!({ "metadata": { "deletionTimestamp": LONG_AGO } });
        assert_eq!(
            at("1").pool("default", going).first(mine),
            stays(AT_LIMIT),
            "{mine:?}: nor a pool that goes"
        );
        let unlimited = cluster()
            .gate("NodeRepair")
            .pool("default", json!({ "spec": { "replicas": 1 } }))
            .bad("a", json!({}));
        assert_eq!(unlimited.first(mine), is_replaced(), "{mine:?}");
        assert_eq!(unlimited.closed(mine), is_replaced(), "{mine:?}");
    }
}

#[test]
fn repair_takes_one_node_at_a_time_also_when_nodes_go_first() {
    let mut cluster = cluster().gate("NodeRepair").pool(
        "default",
        json!({ "spec": { "replicas": 3, "limits": { "nodes": "3" } } }),
    );
    for name in ["a", "b", "c"] {
        cluster = cluster.bad(name, json!({}));
    }
    assert_eq!(cluster.first(REPAIR).0, ["terminate-first: [a]"]);
    let mut more = cluster;
    let count = disruption::StaticCount {
        active: 4,
        ..disruption::StaticCount::default()
    };
    more.facts.static_counts.insert("default".into(), count);
    assert!(
        more.first(REPAIR).0.is_empty(),
        "a pool that has too many is scaled down first"
    );
}

fn static_reserved(slots: u32, is_available: bool) -> Cluster {
    reserved(slots, is_available).pool("default", static_pool("2"))
}

#[test]
fn a_node_in_a_full_reservation_of_a_static_pool_goes_first_although_its_limit_leaves_room() {
    for method in [DRIFT, REPAIR] {
        let full = static_reserved(0, true).bad("a", slot("reserved", "r1"));
        assert_eq!(full.first(method), goes_first(), "{method:?}");
        let why = full.clone().gate(method.1).ask(method.0).commands[0].terminate_first;
        assert_eq!(why, Some(TerminateFirst::NoReservedCapacity));
        assert_eq!(
            full.closed(method),
            is_replaced(),
            "{method:?}: without the gate nobody looks"
        );
        let free = static_reserved(1, true).bad("a", slot("reserved", "r1"));
        assert_eq!(free.first(method), is_replaced(), "{method:?}: a slot is free");
        let unready = full.pool("default", not_ready());
        assert_eq!(unready.first(method), stays(FULL), "{method:?}: nobody would refill it");
    }
}

#[test]
fn a_node_whose_slot_would_not_help_stays_while_reservations_are_full() {
    for method in [DRIFT, REPAIR] {
        let of = |over: Value| static_reserved(0, true).bad("a", over).first(method);
        assert_eq!(of(slot("reserved", "r9")), stays(FULL), "{method:?}: no longer offered");
        assert_eq!(of(slot("on-demand", "r1")), stays(FULL), "{method:?}: a stale label");
        let gone = static_reserved(0, false).bad("a", slot("reserved", "r1"));
        assert_eq!(
            gone.first(method),
            stays(FULL),
            "{method:?}: full, and nothing to be had from it"
        );
    }
}

#[test]
fn a_template_that_admits_other_capacity_is_not_full_available_or_not() {
    for method in [DRIFT, REPAIR] {
        for is_available in [true, false] {
            let mut cluster = static_reserved(0, true).bad("a", slot("reserved", "r1"));
            let mut other = instance_type("u2", 2, 1.0);
            for offering in other["offerings"].as_array_mut().unwrap() {
                offering["available"] = is_available.into();
            }
            cluster.types.push(other);
            assert_eq!(cluster.first(method), is_replaced(), "{method:?} {is_available}");
        }
    }
}

#[test]
fn a_free_slot_of_a_type_outside_the_template_is_no_room() {
    let mut cluster = static_reserved(0, true)
        .pool(
            "default",
            json!({ "spec": { "template": { "spec": { "requirements": [is(TYPE, "t2")] } } } }),
        )
        .bad("a", slot("reserved", "r1"));
    cluster.types.push(reserved_type("u2", 5, true));
    assert_eq!(cluster.first(DRIFT), goes_first());
}

#[test]
fn the_node_that_holds_a_slot_on_offer_goes_before_those_that_do_not() {
    let budget = json!({ "spec": { "replicas": 3, "limits": { "nodes": "5" }, "disruption": { "budgets": [{ "nodes": "1" }] } } });
    let cluster = reserved(0, true)
        .pool("default", budget)
        .bad("a", slot("on-demand", ""))
        .bad("b", slot("reserved", "r9"))
        .bad("c", slot("reserved", "r1"));
    assert_eq!(cluster.first(DRIFT).0, ["terminate-first: [c]"]);
    let all = cluster.pool(
        "default",
        json!({ "spec": { "disruption": { "budgets": [{ "nodes": "3" }] } } }),
    );
    let (commands, told) = all.first(DRIFT);
    assert_eq!(
        (commands, told),
        (vec!["terminate-first: [c]".to_owned()], vec![FULL.to_owned()])
    );
}

#[test]
fn a_static_pool_nobody_offers_anything_for_stops_no_other() {
    for method in [DRIFT, REPAIR] {
        let mut labels = slot("reserved", "r1");
        merge(
            &mut labels,
            json!({ "metadata": { "labels": { "karpenter.sh/nodepool": "none" } } }),
        );
        let mut cluster = static_reserved(0, true)
            .pool("none", static_pool("2"))
            .bad("z", labels)
            .bad("a", slot("reserved", "r1"));
        cluster.offers.insert("none".to_owned(), Vec::new());
        assert_eq!(cluster.first(method), goes_first(), "{method:?}");
    }
}

const DRIFTED: (Method, &str) = (Method::Drift, "TerminateFirstDrift");

/// A reserved node with a pod, of a pool that grows.
fn growing(slots: u32, is_available: bool) -> Cluster {
    reserved(slots, is_available)
        .pool("default", only_reserved())
        .bad("a", slot("reserved", "r1"))
        .pod("p", "a", "1")
}

fn is_stuck(found: &(Vec<String>, Vec<String>)) -> bool {
    found.0.is_empty() && found.1[0].starts_with("DisruptionBlocked: Not all pods would schedule, ")
}

#[test]
fn a_reserved_node_goes_first_only_when_its_own_slot_is_the_only_place_for_its_pods() {
    for method in [DRIFTED, REPAIR] {
        assert_eq!(growing(0, true).first(method), goes_first(), "{method:?}");
        let plan = growing(0, true).gate(method.1).ask(method.0).commands.remove(0).plan;
        let claim = &plan.claims[0];
        let kind = claim.constraints.iter().find(|spec| spec.key == CAPACITY).unwrap();
        assert_eq!(
            (claim.pods.len(), &kind.values[..]),
            (1, &["reserved".to_owned()][..]),
            "{method:?}"
        );
        let closed = growing(0, true).closed(method);
        assert!(is_stuck(&closed), "{method:?}: {closed:?}");
        let broken = growing(0, false).first(method);
        assert!(is_stuck(&broken), "{method:?}: more than full: {broken:?}");
        assert_eq!(
            growing(1, true).first(method),
            is_replaced(),
            "{method:?}: a slot is free"
        );
    }
}

#[test]
fn a_reserved_node_whose_pods_need_more_than_its_slot_stays() {
    let apart = json!({
        "metadata": { "labels": { "app": "x" } },
        "spec": { "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [
            { "labelSelector": { "matchLabels": { "app": "x" } }, "topologyKey": "kubernetes.io/hostname" },
        ] } } },
    });
    let cluster = growing(0, true)
        .pod_with("q", "a", "100m", apart.clone())
        .pod_with("r", "a", "100m", apart);
    let found = cluster.first(DRIFTED);
    assert!(is_stuck(&found), "{found:?}");
}

#[test]
fn a_reserved_node_is_replaced_first_when_other_capacity_takes_its_pods() {
    for (slots, is_available) in [(0, true), (0, false)] {
        let mut fallback = growing(slots, is_available).pool("default", any());
        fallback.types.push(instance_type("u2", 2, 1.0));
        assert_eq!(fallback.first(DRIFTED), is_replaced(), "{is_available}");
        // A pool of less weight will do.
        let on_demand = json!({ "spec": { "weight": 1 } });
        let mut lesser = growing(slots, is_available)
            .pool("default", json!({ "spec": { "weight": 50 } }))
            .pool("lesser", on_demand);
        lesser.types.push(instance_type("u2", 2, 1.0));
        for method in [DRIFTED, REPAIR] {
            assert_eq!(lesser.first(method), is_replaced(), "{method:?} {is_available}");
        }
        assert_eq!(
            lesser.gate("TerminateFirstDrift").ask(Method::Drift).commands[0].replacements[0]
                .node_pool()
                .as_str(),
            "lesser"
        );
    }
}

#[test]
fn a_pod_that_may_not_be_evicted_is_planned_for_when_a_broken_node_goes_first() {
    let guarded = json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": "true" } } });
    let mut cluster = reserved(0, true)
        .pool("default", only_reserved())
        .bad("a", slot("reserved", "r1"))
        .pod_with("p", "a", "1", guarded);
    cluster.facts.repairs.get_mut(&"a".into()).unwrap().drain_bound = Some(jiff::SignedDuration::from_mins(5));
    let pass = cluster.gate("TerminateFirstRepair").ask(Method::Repair);
    assert_eq!(texts(&pass.commands), ["terminate-first: [a]"]);
    assert_eq!(pass.commands[0].plan.claims[0].pods.len(), 1);
}
