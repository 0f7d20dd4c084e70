//! Are nodes that exist used, and with how much room?

use super::fixture::{labels::*, *};

#[test]
fn pods_use_a_node_nobody_manages() {
    let room = [("cpu", "10"), ("memory", "100Gi"), ("pods", "110")];
    let mut world = World::new()
        .with(pool("default"))
        .with(node("own", &room).initialized());
    world.provision(replicas(100, &pod("a").cpu("10m").limited("cpu", "10m")));
    assert_eq!(world.nodes_of(""), ["own"].into());
    assert_eq!(world.pending(), Vec::<&str>::new());
}

#[test]
fn node_that_is_up_goes_before_those_that_are_not() {
    let mut world = World::new().with(pool("default"));
    for at in 0..20 {
        world.provision([pod(&format!("filler-{at:02}")).host_port(8080)]);
    }
    for at in 0..20 {
        world.remove("Pod", &format!("filler-{at:02}"));
    }
    world.initialize("launched-014");
    world.provision([pod("pod")]);
    assert_eq!(world.nodes_of("pod"), ["launched-014"].into());
}

#[test]
fn pod_incompatible_with_the_node_there_is_gets_one_of_a_pool() {
    let own = node("own", &[("cpu", "10"), ("memory", "10Gi"), ("pods", "110")]).initialized();
    let mut world = World::new().with(claim(&own, "other")).with(own);
    world.provision([pod("a").require(&[req(ZONE, "In", &["test-zone-1"])])]);
    assert_eq!(world.pending(), ["a"]);
    world.add(pool("default"));
    world.provision([]);
    assert_eq!(world.label("a", ZONE), Some("test-zone-1"));
}

#[test]
fn daemons_that_will_not_run_on_a_node_take_no_room_there() {
    let own = node("own", &[("cpu", "1"), ("memory", "1Gi"), ("pods", "110")]).initialized();
    let daemon = pod("")
        .cpu("100")
        .memory("100Gi")
        .require(&[req(ZONE, "In", &["test-zone-1"])]);
    let mut world = World::new().with(pool("default")).with(claim(&own, "other")).with(own);
    world.add(daemon_set("ds", &daemon));
    world.provision([pod("a").cpu("1").memory("1Gi")]);
    assert_eq!(world.nodes_of("a"), ["own"].into());
    world.provision([pod("b").cpu("1").memory("1Gi")]);
    assert_eq!(world.pending(), ["b"]);
}
