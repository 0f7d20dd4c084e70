//! Drift, static drift and repair.

use disruption::{Command, Method, RepairAction, Replacement, StaticCount, TerminateFirst};
use jiff::SignedDuration;
use model::object::ConditionStatus;
use serde_json::{Value, json};

use crate::{
    candidates::broken,
    fixture::{Cluster, cluster, instance_type, said, texts},
};

fn drifted(since: &str) -> Value {
    json!({ "status": { "conditions": [
        { "type": "Initialized", "status": "True", "reason": "Initialized", "lastTransitionTime": since },
        { "type": "Drifted", "status": "True", "reason": "NodePoolDrifted", "lastTransitionTime": since },
    ] } })
}

impl Cluster {
    fn drifted(self, name: &str, it: &str, since: &str) -> Self {
        self.machine(name, it, json!({}), drifted(since))
    }
}

#[test]
fn drifted_nodes_go_one_by_one_empty_ones_first_then_the_longest_drifted() {
    let base = cluster()
        .drifted("a", "t2", "2026-11-16T09:00:00Z")
        .pod("p", "a", "2")
        .drifted("b", "t2", "2026-11-16T08:00:00Z")
        .pod("q", "b", "2");
    assert_eq!(
        texts(&base.ask(Method::Drift).commands),
        ["replace: [b] -> [1 replacement]"]
    );
    let with_empty = base.drifted("c", "t2", "2026-11-16T11:00:00Z");
    assert_eq!(texts(&with_empty.ask(Method::Drift).commands), ["delete: [c]"]);
}

#[test]
fn a_drifted_node_may_become_several_and_a_dearer_one() {
    let mut cluster = cluster()
        .drifted("a", "t8", "2026-11-16T09:00:00Z")
        .pod("p", "a", "3")
        .pod("q", "a", "3");
    cluster.types = vec![instance_type("t8", 8, 1.0), instance_type("t4", 4, 5.0)];
    cluster.types[0]["offerings"] = json!([]);
    let pass = cluster.ask(Method::Drift);
    assert_eq!(texts(&pass.commands), ["replace: [a] -> [2 replacements]"]);
    assert!(pass.commands[0].saving.0 < 0);
}

#[test]
fn a_drifted_node_whose_pods_have_no_place_is_passed_over_and_told() {
    let here = json!({ "spec": { "nodeSelector": { "kubernetes.io/hostname": "a" } } });
    let cluster = cluster()
        .drifted("a", "t2", "2026-11-16T08:00:00Z")
        .pod_with("p", "a", "1", here)
        .drifted("b", "t2", "2026-11-16T09:00:00Z")
        .pod("q", "b", "2");
    let pass = cluster.ask(Method::Drift);
    assert_eq!(texts(&pass.commands), ["replace: [b] -> [1 replacement]"]);
    assert!(said(&pass.refusals, "a")[0].starts_with("DisruptionBlocked: Not all pods would schedule, ns/p => "));
}

fn static_pool(limits: Value) -> Cluster {
    cluster()
        .pool("default", json!({ "spec": { "replicas": 2, "limits": limits } }))
        .drifted("a", "t2", "2026-11-16T08:00:00Z")
        .drifted("b", "t2", "2026-11-16T09:00:00Z")
}

#[test]
fn drifted_nodes_of_a_static_pool_are_replaced_from_its_template_as_far_as_its_limit_goes() {
    let replaced = |cluster: &Cluster| {
        let commands = cluster.ask(Method::StaticDrift).commands;
        assert!(
            commands
                .iter()
                .all(|command: &Command| matches!(command.replacements[..], [Replacement::Static(_)]))
        );
        texts(&commands)
    };
    let both = ["replace: [a] -> [1 replacement]", "replace: [b] -> [1 replacement]"];
    assert_eq!(replaced(&static_pool(json!({}))), both);
    assert_eq!(replaced(&static_pool(json!({ "nodes": "3" }))), both[..1]);
    assert!(
        static_pool(json!({})).ask(Method::Drift).commands.is_empty(),
        "not drift's business"
    );
    assert_eq!(static_pool(json!({})).ask(Method::SingleNodeConsolidation).eligible, 0);
}

#[test]
fn a_static_pool_at_its_limit_waits_or_goes_first() {
    let at_limit = static_pool(json!({ "nodes": "2" }));
    let pass = at_limit.ask(Method::StaticDrift);
    assert!(pass.commands.is_empty());
    let message = "DisruptionBlocked: static NodePool is at its node limit and cannot stage a replacement";
    assert_eq!(said(&pass.refusals, "a"), [message]);
    let first = at_limit
        .clone()
        .gate("TerminateFirstDrift")
        .ask(Method::StaticDrift)
        .commands;
    assert_eq!(texts(&first), ["terminate-first: [a]", "terminate-first: [b]"]);
    assert_eq!(first[0].terminate_first, Some(TerminateFirst::StaticAtLimit));
    let unready = json!({ "status": { "conditions": [{ "type": "Ready", "status": "False" }] } });
    let unready = at_limit
        .gate("TerminateFirstDrift")
        .pool("default", unready)
        .ask(Method::StaticDrift);
    assert_eq!(
        (unready.commands.len(), said(&unready.refusals, "a")),
        (0, vec![message.to_owned()])
    );
}

#[test]
fn a_static_pool_with_too_many_nodes_is_scaled_down_first() {
    let mut cluster = static_pool(json!({}));
    cluster.facts.static_counts.insert(
        "default".into(),
        StaticCount {
            active: 2,
            pending_disruption: 1,
            ..StaticCount::default()
        },
    );
    assert!(cluster.ask(Method::StaticDrift).commands.is_empty());
}

fn reserved(slots: u32) -> Cluster {
    let is = |key: &str, value: &str| json!({ "key": key, "operator": "In", "values": [value] });
    let offering = json!({
        "price": "0.001", "available": true, "reservationCapacity": slots,
        "requirements": [is(crate::fixture::ZONE, "a"), is(crate::fixture::CAPACITY, "reserved"), is("cloud/reservation-id", "r1")],
    });
    let mut cluster = cluster();
    cluster.types = vec![instance_type("t2", 2, 1.0)];
    cluster.types[0]["offerings"] = json!([offering]);
    cluster.types[0]["requirements"] = json!([
        is(crate::fixture::TYPE, "t2"),
        is("kubernetes.io/arch", "amd64"),
        is("kubernetes.io/os", "linux"),
        is(crate::fixture::ZONE, "a"),
        is(crate::fixture::CAPACITY, "reserved"),
    ]);
    let labels =
        json!({ "metadata": { "labels": { crate::fixture::CAPACITY: "reserved", "cloud/reservation-id": "r1" } } });
    let mut claim = drifted("2026-11-16T09:00:00Z");
    crate::fixture::merge(&mut claim, labels.clone());
    let any = json!({ "spec": { "template": { "spec": { "requirements": [] } } } });
    cluster
        .pool("default", any)
        .machine("a", "t2", labels, claim)
        .pod("p", "a", "1")
}

#[test]
fn a_node_in_a_full_reservation_goes_first_when_its_slot_is_the_only_place() {
    let mut full = reserved(0);
    full.settings["featureGates"]["ReservedCapacity"] = true.into();
    let pass = full.ask(Method::Drift);
    assert!(pass.commands.is_empty(), "{:?}", texts(&pass.commands));
    let pass = full.clone().gate("TerminateFirstDrift").ask(Method::Drift);
    assert_eq!(texts(&pass.commands), ["terminate-first: [a]"], "{:?}", pass.refusals);
    assert_eq!(
        pass.commands[0].terminate_first,
        Some(TerminateFirst::NoReservedCapacity)
    );
    let free = reserved(1).gate("TerminateFirstDrift").ask(Method::Drift);
    assert_eq!(texts(&free.commands), ["replace: [a] -> [1 replacement]"]);
}

fn sick(count: usize, of: usize) -> Cluster {
    let mut cluster = cluster().gate("NodeRepair");
    cluster
        .facts
        .repair_conditions
        .insert(("Ready".into(), ConditionStatus::False));
    for at in 0..of {
        let status = if at < count { "False" } else { "True" };
        let node = json!({ "status": { "conditions": [{ "type": "Ready", "status": status }] } });
        cluster = cluster.machine(&format!("n{at}"), "t2", node, json!({}));
    }
    cluster.facts.repairs.insert("n0".into(), broken(RepairAction::Replace));
    cluster
}

#[test]
fn repair_stops_when_more_than_a_fifth_of_a_pool_is_broken() {
    for (count, of, repairs) in [
        (1, 1, true),
        (1, 5, true),
        (2, 5, false),
        (2, 6, true),
        (2, 10, true),
        (3, 10, false),
    ] {
        let pass = sick(count, of).ask(Method::Repair);
        assert_eq!(pass.commands.len(), usize::from(repairs), "{count} of {of}");
        if !repairs {
            let message = "NodeRepairBlocked: more than 20% of nodes in nodepool \"default\" are unhealthy";
            assert_eq!(said(&pass.refusals, "n0"), [message]);
        }
    }
}

#[test]
fn the_most_urgent_broken_node_comes_first_and_may_be_rebooted() {
    let mut cluster = sick(2, 10);
    let mut urgent = broken(RepairAction::Reboot);
    urgent.urgency = SignedDuration::from_mins(31);
    cluster.facts.repairs.insert("n1".into(), urgent);
    let pass = cluster.ask(Method::Repair);
    assert_eq!(texts(&pass.commands), ["reboot: [n1]"]);
    assert_eq!((pass.commands[0].is_reboot, pass.commands[0].saving.0), (true, 0));
}

#[test]
fn repair_is_asked_only_when_its_gate_is_on_and_nobody_else_repairs() {
    let mut cluster = sick(1, 10);
    assert_eq!(cluster.decide().commands[0].method, Method::Repair);
    cluster.options.is_repair_legacy = true;
    assert_ne!(cluster.decide().commands[0].method, Method::Repair);
}
