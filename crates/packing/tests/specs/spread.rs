//! Are pods spread over zones, hosts and other labels as they ask?

use serde_json::{Value, json};

use super::fixture::{labels::*, *};

const TEST: [(&str, &str); 1] = [("test", "test")];

fn world() -> World {
    World::new().with(pool("default"))
}

fn zonal(zones: &[&str]) -> Object {
    pool("default").requirement(req(ZONE, "In", zones))
}

fn capacity(kinds: &[&str]) -> Object {
    pool("default").requirement(req(CAPACITY_TYPE, "In", kinds))
}

fn labelled(name: &str) -> Object {
    pod(name).label("test", "test")
}

fn soft(key: &str, max_skew: u32) -> Value {
    let mut constraint = spread(key, max_skew);
    constraint["whenUnsatisfiable"] = "ScheduleAnyway".into();
    constraint
}

/// How many of so many pods each zone gets.
fn zones_of(pool: Object, count: usize, constraint: &Value) -> Vec<usize> {
    let mut world = World::new().with(pool);
    world.provision(replicas(count, &labelled("a").spread(constraint.clone())));
    world.skew(ZONE, &TEST)
}

#[test]
fn unknown_topology_stops_only_the_pods_that_name_it() {
    let mut world = world();
    world.provision([labelled("a").spread(spread("unknown", 1)), pod("b")]);
    assert_eq!(world.pending(), ["a"]);
}

#[test]
fn spread_without_a_selector_does_not_spread() {
    let mut constraint = spread(ZONE, 1);
    constraint.as_object_mut().unwrap().remove("labelSelector");
    assert_eq!(zones_of(pool("default"), 2, &constraint), [2]);
}

#[test]
fn pods_are_balanced_over_zones() {
    let expression = json!({ "matchExpressions": [{ "key": "test", "operator": "In", "values": ["test"] }] });
    let mut by_expression = spread(ZONE, 1);
    by_expression["labelSelector"] = expression;
    assert_eq!(zones_of(pool("default"), 4, &spread(ZONE, 1)), [1, 1, 2]);
    assert_eq!(zones_of(pool("default"), 4, &by_expression), [1, 1, 2]);
}

#[test]
fn pods_are_balanced_over_the_zones_of_the_pool() {
    let all = ["test-zone-1", "test-zone-2", "test-zone-3"];
    let labelled = |pool: Object| pool.template_label(ZONE, "test-zone-1");
    for (pool, expected) in [
        (zonal(&all), &[1, 1, 2][..]),
        (zonal(&all[..2]), &[2, 2]),
        (labelled(pool("default")), &[4]),
        (labelled(zonal(&all[..2])), &[4]),
    ] {
        assert_eq!(zones_of(pool.clone(), 4, &spread(ZONE, 1)), expected, "{pool:?}");
    }
}

#[test]
fn pods_are_balanced_over_the_zones_of_several_pools() {
    let mut world = World::new().with(zonal(&["test-zone-1", "test-zone-2"]).template_label(ZONE, "test-zone-1"));
    world.add(pool("second").template_label(ZONE, "test-zone-2"));
    world.provision(replicas(4, &labelled("a").spread(spread(ZONE, 1))));
    assert_eq!(world.skew(ZONE, &TEST), [2, 2]);
}

#[test]
fn pods_already_in_a_zone_the_pool_does_not_have_count() {
    let mut world = world();
    world.provision([labelled("first").cpu("1.1").select(ZONE, "test-zone-3")]);
    world.add(zonal(&["test-zone-1", "test-zone-2"]));
    world.provision(replicas(6, &labelled("a").cpu("1.1").spread(spread(ZONE, 1))));
    assert_eq!(world.skew(ZONE, &TEST), [1, 2, 2]);
}

#[test]
fn zone_that_is_not_the_emptiest_is_used_when_it_is_the_only_one() {
    let mut world = World::new();
    let large = |name: &str| labelled(name).cpu("1.1").spread(spread(ZONE, 5));
    for (at, zone) in ["test-zone-1", "test-zone-2"].into_iter().enumerate() {
        world.add(zonal(&[zone]));
        world.provision([large(&format!("first-{at}"))]);
    }
    assert_eq!(world.skew(ZONE, &TEST), [1, 1]);
    world.add(zonal(&["test-zone-3"]));
    world.provision(replicas(10, &large("a")));
    assert_eq!(world.skew(ZONE, &TEST), [1, 1, 6]);
}

#[test]
fn only_the_emptiest_zones_are_used_when_the_skew_is_too_large_already() {
    let mut world = world();
    let large = |name: &str| labelled(name).cpu("1.1").spread(spread(ZONE, 1));
    let pods = replicas(9, &large("a"));
    world.provision(pods.clone());
    assert_eq!(world.skew(ZONE, &TEST), [3, 3, 3]);
    for pod in &pods {
        if world.label(pod.name(), ZONE) != Some("test-zone-1") {
            world.remove("Pod", pod.name());
        }
    }
    world.provision(replicas(3, &large("b")));
    assert_eq!(world.skew(ZONE, &TEST), [1, 2, 3]);
}

#[test]
fn skew_is_kept_against_zones_the_pool_no_longer_has() {
    for has_spread in [true, false] {
        let mut world = World::new().with(zonal(&["test-zone-1"]));
        let first = labelled("first").cpu("1.1");
        world.provision([if has_spread {
            first.spread(spread(ZONE, 1))
        } else {
            first
        }]);
        world.add(zonal(&["test-zone-2", "test-zone-3"]));
        world.provision(replicas(10, &labelled("a").cpu("1.1").spread(spread(ZONE, 1))));
        assert_eq!(world.skew(ZONE, &TEST), [1, 2, 2], "{has_spread}");
    }
}

/// Pods that do not count, two in the first domain and one in the second that do, and two to spread.
fn counted(key: &str, domains: [&str; 2]) -> Vec<usize> {
    let mut world = world();
    world.add(node("first", &[]).label(key, domains[0]));
    world.add(node("second", &[]).label(key, domains[1]));
    world.add(node("third", &[]));
    let phase = |name: &str, phase: &str| labelled(name).on("first").with("status.phase", phase);
    for pod in [
        pod("unlabelled").on("first"),
        labelled("pending").with("status.conditions", json!([])),
        labelled("no-domain").on("third"),
        object("v1", "Pod", "wrong", "elsewhere")
            .with("spec", pod("x").get("spec").clone())
            .label("test", "test")
            .on("first"),
        labelled("leaving").with("status.conditions", json!([])).deleting(),
        phase("failed", "Failed"),
        phase("succeeded", "Succeeded"),
        labelled("counts-0").on("first"),
        labelled("counts-1").on("first"),
        labelled("counts-2").on("second"),
    ] {
        world.add(pod);
    }
    world.provision(replicas(2, &labelled("a").spread(spread(key, 1))));
    world.skew(key, &TEST)
}

#[test]
fn only_bound_pods_with_the_labels_in_a_known_domain_count() {
    assert_eq!(counted(ZONE, ["test-zone-1", "test-zone-2"]), [1, 2, 2]);
    assert_eq!(counted(CAPACITY_TYPE, ["spot", "on-demand"]), [2, 3]);
}

#[test]
fn pod_without_a_spread_has_one_domain() {
    let mut world = world();
    world.provision([pod("a")]);
    assert_eq!(
        (world.skew(ZONE, &[]), world.skew(CAPACITY_TYPE, &[])),
        (vec![1], vec![1])
    );
}

#[test]
fn pods_that_do_not_count_for_their_own_spread_share_a_node() {
    let mut world = world();
    world.provision(replicas(5, &pod("a").spread(spread(HOSTNAME, 1))));
    assert_eq!((world.nodes_of("").len(), world.pending().len()), (1, 0));
}

#[test]
fn minimum_of_domains_is_respected() {
    let at_least = |domains: u32| {
        let mut constraint = spread(ZONE, 1);
        constraint["minDomains"] = domains.into();
        constraint
    };
    let all = ["test-zone-1", "test-zone-2", "test-zone-3"];
    assert_eq!(zones_of(zonal(&all[..2]), 3, &at_least(3)), [1, 1]);
    assert_eq!(zones_of(zonal(&all), 11, &at_least(3)), [3, 4, 4]);
    assert_eq!(zones_of(zonal(&all), 11, &at_least(2)), [3, 4, 4]);
}

#[test]
fn pods_are_balanced_over_hosts() {
    for (max_skew, expected) in [(1, &[1, 1, 1, 1][..]), (4, &[4])] {
        let mut world = world();
        world.provision(replicas(4, &labelled("a").spread(spread(HOSTNAME, max_skew))));
        assert_eq!(world.skew(HOSTNAME, &TEST), expected, "{max_skew}");
    }
}

fn app(name: &str) -> Object {
    let mut constraint = spread(HOSTNAME, 1);
    constraint["labelSelector"] = json!({ "matchLabels": { "app": name } });
    pod(name).label("app", name).spread(constraint)
}

#[test]
fn several_workloads_share_the_hosts_they_are_spread_over() {
    let mut world = world();
    world.provision([replicas(2, &app("app1")), replicas(2, &app("app2"))].concat());
    assert_eq!((world.of_kind("Node").count(), world.pending().len()), (2, 0));
}

#[test]
fn workloads_of_different_architectures_get_hosts_of_their_own() {
    let mut world = world();
    let of_arch = |name: &str, arch: &str| app(name).require(&[req(ARCH, "In", &[arch])]);
    world.provision(
        [
            replicas(2, &of_arch("app1", "amd64")),
            replicas(2, &of_arch("app2", "arm64")),
        ]
        .concat(),
    );
    assert_eq!((world.of_kind("Node").count(), world.pending().len()), (4, 0));
}

#[test]
fn pods_are_balanced_over_capacity_types() {
    for pool in [pool("default"), capacity(&["spot", "on-demand"])] {
        let mut world = World::new().with(pool);
        world.provision(replicas(4, &labelled("a").spread(spread(CAPACITY_TYPE, 1))));
        assert_eq!(world.skew(CAPACITY_TYPE, &TEST), [2, 2]);
    }
}

#[test]
fn skew_of_capacity_types_is_kept_unless_it_is_only_a_wish() {
    for (constraint, expected) in [(spread(CAPACITY_TYPE, 1), [1, 2]), (soft(CAPACITY_TYPE, 1), [1, 5])] {
        let large = |name: &str| labelled(name).cpu("1.1").spread(constraint.clone());
        let mut world = World::new().with(capacity(&["spot"]));
        world.provision([large("first")]);
        world.add(capacity(&["on-demand"]));
        world.provision(replicas(5, &large("a")));
        assert_eq!(world.skew(CAPACITY_TYPE, &TEST), expected);
    }
}

#[test]
fn nodes_a_pod_cannot_go_to_do_not_count_for_its_spread() {
    let mut world = world();
    let on = |name: &str, zone: &str, kind: &str| {
        labelled(name).require(&[req(ZONE, "In", &[zone]), req(CAPACITY_TYPE, "In", &[kind])])
    };
    world.provision([on("first", "test-zone-1", "on-demand")]);
    world.provision(replicas(
        5,
        &on("a", "test-zone-2", "spot").spread(spread(CAPACITY_TYPE, 1)),
    ));
    assert_eq!(world.skew(CAPACITY_TYPE, &TEST), [1, 5]);
}

#[test]
fn nodes_the_pool_no_longer_launches_count_for_the_spread() {
    for (key, before, after) in [(CAPACITY_TYPE, "on-demand", "spot"), (ARCH, "amd64", "arm64")] {
        let mut world = world();
        let first = labelled("first").select(INSTANCE_TYPE, "single-pod-instance-type");
        world.provision([first.require(&[req(key, "In", &[before])])]);
        world.add(pool("default").requirement(req(key, "In", &[after])));
        world.provision(replicas(5, &labelled("a").cpu("2").spread(spread(key, 1))));
        assert_eq!(world.skew(key, &TEST), [1, 2], "{key}");
    }
}

/// Adds pods in rounds; after each, so many are in each domain and no host has more than three.
fn in_rounds(key: &str, rounds: &[(usize, &[usize])]) {
    let mut world = world();
    for (at, (count, expected)) in rounds.iter().enumerate() {
        let pod = labelled(&format!("round-{at}"))
            .spread(spread(key, 1))
            .spread(spread(HOSTNAME, 3));
        world.provision(replicas(*count, &pod));
        assert_eq!(world.skew(key, &TEST), *expected, "round {at}");
        assert!(
            world.skew(HOSTNAME, &TEST).iter().all(|count| *count <= 3),
            "round {at}"
        );
    }
}

#[test]
fn spreads_over_hosts_and_zones_hold_together() {
    in_rounds(
        ZONE,
        &[(2, &[1, 1]), (3, &[1, 2, 2]), (5, &[3, 3, 4]), (11, &[7, 7, 7])],
    );
}

#[test]
fn spreads_over_hosts_and_capacity_types_hold_together() {
    in_rounds(
        CAPACITY_TYPE,
        &[(2, &[1, 1]), (3, &[2, 3]), (5, &[5, 5]), (11, &[10, 11])],
    );
}

#[test]
fn pods_are_balanced_over_values_that_pools_define() {
    let key = "capacity.spread.4-1";
    let of = |name: &str, kind: &str, values: &[&str]| {
        pool(name)
            .requirement(req(CAPACITY_TYPE, "In", &[kind]))
            .requirement(req(key, "In", values))
    };
    let mut world =
        World::new()
            .with(of("spot", "spot", &["2", "3", "4", "5"]))
            .with(of("on-demand", "on-demand", &["1"]));
    world.provision(replicas(20, &labelled("a").spread(spread(key, 1))));
    assert_eq!(world.pending(), Vec::<&str>::new());
    assert_eq!(world.skew(key, &TEST), [4; 5]);
    assert_eq!(world.skew(CAPACITY_TYPE, &TEST), [4, 16]);
}

#[test]
fn zone_of_a_pool_without_room_left_holds_the_others_back() {
    let mut world = World::new().with(zonal(&["test-zone-1", "test-zone-2"]));
    world.add(
        pool("full")
            .requirement(req(ZONE, "In", &["test-zone-3"]))
            .limits(&[("cpu", "0")]),
    );
    world.provision(replicas(
        10,
        &labelled("a").spread(spread(ZONE, 1)).spread(soft(HOSTNAME, 1)),
    ));
    assert_eq!(world.skew(ZONE, &TEST), [1, 1]);
    assert_eq!(world.skew(HOSTNAME, &TEST), [1, 1]);
}
