//! Are nodes on their way used before new ones are launched?

use serde_json::json;

use super::fixture::{labels::*, *};

fn world() -> World {
    World::new().with(pool("default"))
}

fn daemon_pod(name: &str, set: &str) -> Object {
    pod(name).owned_by(owner("apps/v1", "DaemonSet", set))
}

#[test]
fn pod_that_fits_a_node_on_its_way_launches_no_other() {
    let mut world = world();
    world.provision([pod("first").limited("cpu", "10m")]);
    world.provision([pod("second").limited("cpu", "10m")]);
    assert_eq!(world.nodes_of("").len(), 1);
}

#[test]
fn pod_whose_zones_include_that_of_a_node_on_its_way_uses_it() {
    let mut world = world();
    let among = |name: &str, zones: &[&str]| pod(name).limited("cpu", "10m").require(&[req(ZONE, "In", zones)]);
    world.provision([among("first", &["test-zone-2"])]);
    world.provision([among("second", &["test-zone-1", "test-zone-2"])]);
    assert_eq!(world.nodes_of("").len(), 1);
    world.provision([among("third", &["test-zone-1", "test-zone-3"])]);
    assert_eq!(world.nodes_of("").len(), 2);
}

#[test]
fn pod_that_does_not_fit_a_node_on_its_way_launches_another() {
    let mut world = world();
    world.provision([pod("first").limited("cpu", "1001m")]);
    world.provision([pod("second").limited("cpu", "1")]);
    assert_eq!(world.nodes_of("").len(), 2);
}

#[test]
fn pod_incompatible_with_a_node_on_its_way_launches_another() {
    let mut world = world();
    world.provision([pod("first").limited("cpu", "10m")]);
    world.provision([pod("second").select(ARCH, "arm64")]);
    assert_eq!(world.nodes_of("").len(), 2);
}

#[test]
fn node_that_is_gone_is_not_used() {
    let mut world = world();
    world.provision([pod("first").limited("cpu", "10m")]);
    let first = world.node_of("first").unwrap().name().to_string();
    world.remove("Node", &first);
    world.remove("NodeClaim", &first);
    world.provision([pod("second").limited("cpu", "10m")]);
    assert_ne!(world.node_of("second").unwrap().name(), first);
}

#[test]
fn pods_spread_over_zones_on_nodes_on_their_way() {
    let mut world = world();
    let spread = |name: &str| pod(name).label("test", "test").spread(spread(ZONE, 1));
    world.provision(replicas(4, &spread("first")));
    assert_eq!(world.skew(ZONE, &[("test", "test")]), [1, 1, 2]);
    let nodes = world.of_kind("Node").count();
    world.provision(replicas(5, &spread("second")));
    assert_eq!(world.skew(ZONE, &[("test", "test")]), [3, 3, 3]);
    assert_eq!(world.of_kind("Node").count(), nodes);
}

#[test]
fn pods_spread_over_hostnames_launch_new_nodes() {
    let mut world = world();
    let spread = |name: &str| pod(name).label("test", "test").spread(spread(HOSTNAME, 1));
    world.provision(replicas(4, &spread("first")));
    assert_eq!(world.skew(HOSTNAME, &[("test", "test")]), [1; 4]);
    world.provision(replicas(5, &spread("second")));
    assert_eq!(world.skew(HOSTNAME, &[("test", "test")]), [1; 9]);
}

#[test]
fn empty_node_without_taints_is_used() {
    let mut world = world();
    world.provision([pod("first").limited("cpu", "8")]);
    world.remove("Pod", "first");
    world.provision([pod("second")]);
    assert_eq!(world.nodes_of("second"), ["launched-001"].into());
}

#[test]
fn taint_of_a_node_not_ready_counts_only_after_it_was_up() {
    let mut world = world();
    world.provision([pod("first")]);
    world.remove("Pod", "first");
    let not_ready = taint("node.kubernetes.io/not-ready", "", "NoExecute");
    world.change("Node", "launched-001", |node| node.taint(not_ready));
    world.provision([pod("second")]);
    assert_eq!(world.nodes_of("second"), ["launched-001"].into());
    world.remove("Pod", "second");
    world.change("Node", "launched-001", |node| node.label(INITIALIZED, "true"));
    world.provision([pod("third")]);
    assert_eq!(world.nodes_of("third"), ["launched-002"].into());
}

#[test]
fn node_with_a_taint_nobody_announced_is_not_used() {
    let mut world = world();
    world.provision([pod("first").limited("cpu", "8")]);
    world.remove("Pod", "first");
    world.initialize("launched-001");
    world.change("Node", "launched-001", |node| {
        node.taint(taint("foo.com/taint", "tainted", "NoSchedule"))
    });
    world.provision([pod("second")]);
    assert_eq!(world.nodes_of("second"), ["launched-002"].into());
}

#[test]
fn startup_taint_does_not_keep_pods_from_a_node_on_its_way() {
    let taint = taint("foo.com/taint", "tainted", "NoSchedule");
    let mut world = World::new().with(pool("default").startup_taint(taint));
    world.provision([pod("first").limited("cpu", "8")]);
    world.remove("Pod", "first");
    world.provision([pod("second")]);
    assert_eq!(world.nodes_of("second"), ["launched-001"].into());
}

#[test]
fn startup_taint_that_comes_back_keeps_pods_away() {
    let taint = taint("ignore-me", "nothing-to-see-here", "NoSchedule");
    let mut world = World::new().with(pool("default").startup_taint(taint.clone()));
    world.provision([pod("first")]);
    world.remove("Pod", "first");
    world.initialize("launched-001");
    world.change("Node", "launched-001", |node| {
        node.taint(taint).with("status.capacity", json!({ "pods": "10" }))
    });
    world.provision([pod("second")]);
    assert_eq!(world.nodes_of("second"), ["launched-002"].into());
}

#[test]
fn node_without_contact_yet_counts_as_on_its_way() {
    // Upstream's spec also labels the node as initialized, but its cluster state never learns of it.
    let mut world = world();
    world.provision([pod("first").cpu("10m")]);
    world.change("Node", "launched-001", |node| {
        node.taint(taint("node.kubernetes.io/not-ready", "", "NoSchedule"))
            .taint(taint("node.kubernetes.io/unreachable", "", "NoSchedule"))
            .taint(taint(
                "node.cloudprovider.kubernetes.io/uninitialized",
                "true",
                "NoSchedule",
            ))
    });
    world.provision([pod("second").cpu("10m")]);
    assert_eq!(world.nodes_of("second"), ["launched-001"].into());
}

#[test]
fn room_kept_for_daemons_is_free_once_they_run() {
    let mut world = world().with(daemon_set("ds", &pod("").cpu("1").memory("1Gi")));
    world.provision([pod("first").limited("cpu", "8")]);
    world.remove("Pod", "first");
    world.add(daemon_pod("daemon", "ds").cpu("1").memory("2Gi").on("launched-001"));
    world.provision([pod("second").limited("cpu", "14.9")]);
    assert_eq!(world.nodes_of("second"), ["launched-001"].into());
}

#[test]
fn daemons_nobody_expected_take_room() {
    let picky = pod("").select("my-node-label", "value").cpu("1").memory("1Gi");
    let mut world = world()
        .with(daemon_set("picky", &picky))
        .with(daemon_set("tiny", &pod("").cpu("1m")));
    world.provision([pod("first").limited("cpu", "8")]);
    world.change("Node", "launched-001", |node| node.label("my-node-label", "value"));
    world.remove("Pod", "first");
    world.add(
        daemon_pod("daemon", "picky")
            .select("my-node-label", "value")
            .cpu("1")
            .memory("2Gi")
            .on("launched-001"),
    );
    world.provision([pod("second").limited("cpu", "15.5")]);
    assert_eq!(world.nodes_of("second"), ["launched-002"].into());
}

#[test]
fn daemons_that_wait_for_registered_or_initialized_nodes_count() {
    let waiting = |label: &str| pod("").require(&[req(label, "In", &["true"])]).cpu("1");
    let mut world = world()
        .with(daemon_set("initialized", &waiting(INITIALIZED)))
        .with(daemon_set("registered", &waiting(REGISTERED)));
    let plan = world.provision([pod("first").limited("cpu", "2")]);
    assert_eq!(world.label("first", INSTANCE_TYPE), Some("arm-instance-type"));
    let keys: Vec<&str> = plan.claims[0]
        .constraints
        .iter()
        .map(|spec| spec.key.as_str())
        .collect();
    assert!(!keys.contains(&INITIALIZED) && !keys.contains(&REGISTERED), "{keys:?}");
    let labels: Vec<&str> = plan.claims[0].labels.iter().map(|(key, _)| &**key).collect();
    assert!(
        !labels.contains(&INITIALIZED) && !labels.contains(&REGISTERED),
        "{labels:?}"
    );
}

#[test]
fn nodes_on_their_way_are_filled_before_new_ones_are_launched() {
    let medium = instance_type("medium")
        .resource("cpu", "4.25")
        .resource("pods", "4")
        .build();
    let mut world = World::of([medium]).with(pool("default"));
    let batches = [3, 9, 0, 7, 1, 5, 8, 2, 6, 4];
    for (at, count) in batches.into_iter().enumerate() {
        world.provision(replicas(count, &pod(&format!("batch-{at}")).limited("cpu", "1")));
    }
    let pods: usize = batches.into_iter().sum();
    assert_eq!((world.pending().len(), world.nodes_of("").len()), (0, pods.div_ceil(4)));
}

#[test]
fn pod_not_yet_bound_does_not_launch_a_second_node() {
    let mut world = world();
    world.provision_without_binding([pod("first").limited("cpu", "10m")]);
    assert_eq!(world.plan().claims.len(), 0);
}

#[test]
fn node_that_is_up_goes_before_claims_without_nodes() {
    let mut world = world();
    for at in 0..20 {
        world.provision([pod(&format!("filler-{at:02}")).host_port(8080)]);
    }
    for at in 0..20 {
        world.remove("Pod", &format!("filler-{at:02}"));
        if at != 13 {
            world.remove("Node", &format!("launched-{:03}", at + 1));
        }
    }
    world.initialize("launched-014");
    let plan = world.plan_for([pod("pod")]);
    let nodes: Vec<&str> = plan.existing.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(nodes, ["launched-014"]);
}

#[test]
fn pods_with_the_same_host_port_get_different_nodes() {
    let mut world = world();
    world.provision([pod("a").host_port(8080), pod("b").host_port(8080)]);
    assert_eq!(world.nodes_of("").len(), 2);
}

#[test]
fn planning_does_not_bind_pods() {
    let mut world = world();
    world.provision_without_binding([pod("first").limited("cpu", "10m")]);
    world.provision_without_binding([pod("second").limited("cpu", "10m")]);
    assert_eq!(world.pending(), ["first", "second"]);
    assert_eq!(world.of_kind("Node").count(), 1);
}

#[test]
fn extended_resources_a_young_node_reports_as_zero_are_taken_from_its_claim() {
    let vendor = "fake.com/vendor-a";
    let mut world = world();
    world.provision_without_binding([pod("first").limited("cpu", "10m").limited(vendor, "1")]);
    world.change("Node", "launched-001", |node| {
        node.with("status.capacity", json!({ vendor: "0" }))
            .with("status.allocatable", json!({ vendor: "0" }))
    });
    world.provision_without_binding([pod("second").limited("cpu", "10m").limited(vendor, "1")]);
    assert_eq!(world.of_kind("Node").count(), 1);
}

#[test]
fn affinity_to_itself_prefers_the_zone_of_a_node_on_its_way() {
    let friend = |name: &str| {
        pod(name)
            .label("security", "s2")
            .affinity(term(ZONE, &[("security", "s2")]))
    };
    let mut world = world();
    world.provision_without_binding([friend("first")]);
    world.provision_without_binding([friend("second")]);
    assert_eq!(world.of_kind("Node").count(), 1);
}
