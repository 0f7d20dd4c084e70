//! Which nodes and domains count for a spread: taints, node affinity, label keys, volumes.

use serde_json::{Value, json};

use super::fixture::{labels::*, *};

const TEST: [(&str, &str); 1] = [("test", "test")];
const KEY: &str = "fake-label";

fn labelled(name: &str) -> Object {
    pod(name).label("test", "test")
}

fn with(mut constraint: Value, field: &str, value: impl Into<Value>) -> Value {
    constraint[field] = value.into();
    constraint
}

#[test]
fn label_keys_make_spreads_of_revisions_independent() {
    let mut world = World::new().with(pool("default"));
    let revision = |name: &str| {
        let constraint = with(spread(HOSTNAME, 1), "matchLabelKeys", json!(["test-label"]));
        labelled(name).label("test-label", name).spread(constraint)
    };
    world.provision([replicas(2, &revision("value-a")), replicas(2, &revision("value-b"))].concat());
    assert_eq!(world.skew(HOSTNAME, &TEST), [2, 2]);
}

#[test]
fn label_keys_a_pod_does_not_have_are_ignored() {
    let mut world = World::new().with(pool("default"));
    let constraint = with(spread(HOSTNAME, 1), "matchLabelKeys", json!(["test-label"]));
    world.provision(replicas(4, &labelled("a").spread(constraint)));
    assert_eq!(world.skew(HOSTNAME, &TEST), [1; 4]);
}

#[test]
fn domains_of_tainted_nodes_count_unless_taints_are_honoured() {
    for (policy, expected) in [("Ignore", 1), ("Honor", 5)] {
        let mut world = World::new().with(pool("default").template_label(KEY, "baz"));
        for domain in ["foo", "bar"] {
            let tainted = node(domain, &[("cpu", "100m")]).label(KEY, domain);
            world.add(tainted.taint(taint("taintname", "taintvalue", "NoSchedule")));
        }
        let constraint = with(spread(KEY, 1), "nodeTaintsPolicy", policy);
        world.provision(replicas(5, &labelled("a").cpu("1").spread(constraint)));
        assert_eq!(world.skew(KEY, &TEST), [expected], "{policy}");
    }
}

#[test]
fn domains_of_tainted_pools_count_unless_taints_are_honoured() {
    for (policy, expected) in [("Ignore", 1), ("Honor", 2)] {
        let mut world = World::new().with(pool("default").requirement(req(KEY, "In", &["foo"])));
        let tainted = pool("tainted").requirement(req(KEY, "In", &["bar"]));
        world.add(tainted.template_taint(taint("taint-key", "taint-value", "NoSchedule")));
        let constraint = with(spread(KEY, 1), "nodeTaintsPolicy", policy);
        world.provision(replicas(2, &labelled("a").spread(constraint)));
        assert_eq!(world.skew(KEY, &TEST), [expected], "{policy}");
    }
}

#[test]
fn domain_shared_by_pools_with_different_taints_counts_for_both() {
    let mut world = World::new();
    let mut pods = Vec::new();
    for (at, domains) in [["foo", "bar"], ["foo", "baz"]].iter().enumerate() {
        let name = format!("nodepool-{at}");
        let tainted = pool(&name).requirement(req(KEY, "In", domains));
        world.add(tainted.template_taint(taint("taint-key", &name, "NoSchedule")));
        let constraint = with(spread(KEY, 1), "nodeTaintsPolicy", "Honor");
        let tolerant = labelled(&format!("of-{name}")).tolerate(toleration("taint-key", &name, "NoSchedule"));
        pods.extend(replicas((at + 1) * 2, &tolerant.spread(constraint)));
    }
    world.provision(pods);
    assert_eq!(world.skew(KEY, &TEST), [1, 2, 3]);
}

#[test]
fn domains_of_nodes_that_do_not_match_count_only_when_affinity_is_ignored() {
    for (policy, expected) in [("Ignore", 1), ("Honor", 5)] {
        let mut world = World::new();
        world.add(
            pool("default")
                .template_label(KEY, "baz")
                .template_label("selector", "value"),
        );
        for domain in ["foo", "bar"] {
            world.add(
                node(domain, &[("cpu", "100m")])
                    .label(KEY, domain)
                    .label("selector", "mismatch"),
            );
        }
        let constraint = with(spread(KEY, 1), "nodeAffinityPolicy", policy);
        let pod = labelled("a").cpu("1").select("selector", "value").spread(constraint);
        world.provision(replicas(5, &pod));
        assert_eq!(world.skew(KEY, &TEST), [expected], "{policy}");
    }
}

#[test]
fn spreads_over_zones_and_capacity_types_hold_together() {
    let mut world = World::new().with(pool("default"));
    let rounds = [(2, 1, 1), (3, 3, 2), (3, 5, 4), (11, 11, 7)];
    for (at, (count, most_per_type, most_per_zone)) in rounds.into_iter().enumerate() {
        let pod = labelled(&format!("round-{at}"))
            .spread(spread(CAPACITY_TYPE, 1))
            .spread(spread(ZONE, 1));
        world.provision(replicas(count, &pod));
        let (types, zones) = (world.skew(CAPACITY_TYPE, &TEST), world.skew(ZONE, &TEST));
        assert!(
            types.iter().all(|count| *count <= most_per_type),
            "round {at}: {types:?}"
        );
        assert!(
            zones.iter().all(|count| *count <= most_per_zone),
            "round {at}: {zones:?}"
        );
    }
}

#[test]
fn spreads_over_hosts_zones_and_capacity_types_hold_together() {
    let mut world = World::of(assorted()).with(pool("default"));
    let constraints = [(CAPACITY_TYPE, 1), (ZONE, 2), (HOSTNAME, 3)];
    for count in 1..15 {
        let pod = constraints
            .iter()
            .fold(labelled(&format!("round-{count:02}")), |pod, (key, skew)| {
                pod.spread(spread(key, *skew))
            });
        world.provision(replicas(count, &pod));
        assert_eq!(world.pending(), Vec::<&str>::new(), "round {count}");
        for (key, most) in constraints {
            let counts = world.skew(key, &TEST);
            let least = if counts.len() == domains(key) { counts[0] } else { 0 };
            assert!(
                key == HOSTNAME || counts.last().unwrap() - least <= most as usize,
                "round {count} {key}: {counts:?}"
            );
            assert!(
                key != HOSTNAME || counts.last().unwrap() - counts[0] <= most as usize,
                "round {count}: {counts:?}"
            );
        }
    }
}

fn domains(key: &str) -> usize {
    if key == ZONE { 3 } else { 2 }
}

#[test]
fn node_selectors_limit_the_domains_of_a_spread() {
    let mut world = World::new().with(pool("default"));
    let in_zone = |zone: &str| labelled(zone).spread(spread(ZONE, 1)).select(ZONE, zone);
    world.provision(
        [
            replicas(5, &in_zone("test-zone-1")),
            replicas(10, &in_zone("test-zone-2")),
        ]
        .concat(),
    );
    assert_eq!(world.skew(ZONE, &TEST), [5, 10]);
}

#[test]
fn required_node_affinity_limits_the_domains_of_a_spread() {
    let mut world = World::new().with(pool("default"));
    let among = |name: &str, zones: &[&str]| {
        labelled(name)
            .spread(spread(ZONE, 1))
            .require(&[req(ZONE, "In", zones)])
    };
    world.provision(replicas(6, &among("first", &["test-zone-1", "test-zone-2"])));
    assert_eq!(world.skew(ZONE, &TEST), [3, 3]);
    world.provision([among("second", &["test-zone-2", "test-zone-3"])]);
    assert_eq!(world.skew(ZONE, &TEST), [1, 3, 3]);
    world.provision(replicas(5, &labelled("third").spread(spread(ZONE, 1))));
    assert_eq!(world.skew(ZONE, &TEST), [4, 4, 4]);
}

#[test]
fn required_node_affinity_halves_the_pods_over_two_zones() {
    let mut world = World::new().with(pool("default"));
    let pod = labelled("a")
        .spread(spread(ZONE, 1))
        .require(&[req(ZONE, "In", &["test-zone-1", "test-zone-2"])]);
    world.provision(replicas(10, &pod));
    assert_eq!(world.skew(ZONE, &TEST), [5, 5]);
}

#[test]
fn preferred_node_affinity_does_not_limit_the_domains_of_a_spread() {
    let mut world = World::new().with(pool("default"));
    let pod = labelled("a")
        .spread(spread(ZONE, 1))
        .prefer(1, &[req(ZONE, "In", &["test-zone-1", "test-zone-2"])]);
    world.provision(replicas(6, &pod));
    assert_eq!(world.skew(ZONE, &TEST), [2, 2, 2]);
}

#[test]
fn node_selectors_limit_the_domains_of_a_soft_spread() {
    let mut world = World::new().with(pool("default"));
    let soft = with(spread(CAPACITY_TYPE, 1), "whenUnsatisfiable", "ScheduleAnyway");
    let on = |kind: &str| labelled(kind).spread(soft.clone()).select(CAPACITY_TYPE, kind);
    world.provision([replicas(5, &on("spot")), replicas(5, &on("on-demand"))].concat());
    assert_eq!(world.skew(CAPACITY_TYPE, &TEST), [5, 5]);
}

#[test]
fn required_capacity_types_limit_the_domains_of_a_spread() {
    let mut world = World::new().with(pool("default"));
    let on = |name: &str, kinds: &[&str]| {
        labelled(name)
            .spread(spread(CAPACITY_TYPE, 1))
            .require(&[req(CAPACITY_TYPE, "In", kinds)])
    };
    world.provision(replicas(3, &on("first", &["spot"])));
    assert_eq!(world.skew(CAPACITY_TYPE, &TEST), [3]);
    world.provision([on("second", &["on-demand", "spot"])]);
    assert_eq!(world.skew(CAPACITY_TYPE, &TEST), [1, 3]);
    world.provision(replicas(5, &labelled("third").spread(spread(CAPACITY_TYPE, 1))));
    assert_eq!(world.skew(CAPACITY_TYPE, &TEST), [4, 5]);
}

#[test]
fn zone_of_a_volume_does_not_hide_the_other_zones_from_a_spread() {
    let mut world = World::new().with(pool("default").requirement(req(CAPACITY_TYPE, "In", &["on-demand"])));
    world.add(volume("test-pv", &["test-zone-1"]));
    world.add(volume_claim("test-pvc", None, Some("test-pv")));
    let constraint = with(spread(ZONE, 1), "minDomains", 3);
    world.provision(replicas(3, &labelled("first").spread(constraint.clone())));
    assert_eq!(world.skew(ZONE, &TEST), [1, 1, 1]);
    world.provision([labelled("second").spread(constraint).claims("test-pvc")]);
    assert_eq!(world.label("second", ZONE), Some("test-zone-1"));
    assert_eq!(world.skew(ZONE, &TEST), [1, 1, 2]);
}
