//! How many nodes of which size do pods get?

use std::collections::BTreeSet;

use serde_json::json;

use super::fixture::{labels::*, *};

fn world() -> World {
    World::new().with(pool("default"))
}

fn type_of(pod: Object) -> Option<String> {
    let (mut world, name) = (world(), pod.name().to_string());
    world.provision([pod]);
    world.label(&name, INSTANCE_TYPE).map(str::to_string)
}

/// How many nodes the pods got, and of which types; all pods have one.
fn nodes(world: &World) -> (usize, BTreeSet<&str>) {
    assert_eq!(world.pending(), Vec::<&str>::new());
    let types = world
        .of_kind("Pod")
        .filter_map(|pod| world.label(pod.name(), INSTANCE_TYPE));
    (world.nodes_of("").len(), types.collect())
}

#[test]
fn small_pod_gets_the_smallest_type() {
    for memory in ["100M", "2000M"] {
        assert_eq!(
            type_of(pod("a").memory(memory)).as_deref(),
            Some("small-instance-type"),
            "{memory}"
        );
    }
}

#[test]
fn overhead_of_the_runtime_class_counts() {
    // The API server writes the overhead of the class into the pod.
    let pod = pod("a")
        .cpu("1")
        .with("spec.runtimeClassName", "mine")
        .with("spec.overhead", json!({ "cpu": "2" }));
    assert_eq!(type_of(pod).as_deref(), Some("default-instance-type"));
}

#[test]
fn small_pods_share_the_smallest_type() {
    let mut world = world();
    world.provision(replicas(5, &pod("a").memory("10M")));
    assert_eq!(nodes(&world), (1, BTreeSet::from(["small-instance-type"])));
}

#[test]
fn new_nodes_come_when_a_node_is_full() {
    let mut world = world();
    world.provision(replicas(40, &pod("a").select(ARCH, "amd64").memory("1.8G")));
    assert_eq!(nodes(&world), (20, BTreeSet::from(["default-instance-type"])));
}

#[test]
fn small_pods_fill_the_gaps_large_ones_leave() {
    let mut world = world();
    let large = replicas(40, &pod("large").select(ARCH, "amd64").memory("1.8G"));
    let small = replicas(20, &pod("small").select(ARCH, "amd64").memory("400M"));
    world.provision([large, small].concat());
    assert_eq!(nodes(&world), (20, BTreeSet::from(["default-instance-type"])));
}

#[test]
fn pod_without_room_on_the_first_node_gets_a_smaller_one() {
    let mut world = World::of(fake(5)).with(pool("default"));
    world.provision([pod("large").cpu("4.5"), pod("small").cpu("1")]);
    assert_eq!(world.label("large", INSTANCE_TYPE), Some("fake-it-4"));
    assert_eq!(world.label("small", INSTANCE_TYPE), Some("fake-it-1"));
}

#[test]
fn zero_of_an_unknown_resource_fits_everywhere() {
    let weird = "foo.com/weird-resources";
    assert!(type_of(pod("a").request(weird, "0").limited(weird, "0")).is_some());
}

#[test]
fn pod_larger_than_every_type_stays_pending() {
    assert_eq!(type_of(pod("a").memory("2Ti")), None);
}

#[test]
fn pod_count_of_a_node_is_a_limit() {
    let mut world = world();
    world.provision(replicas(25, &pod("a").select(ARCH, "amd64").memory("1m").cpu("1m")));
    assert_eq!(nodes(&world), (5, BTreeSet::from(["small-instance-type"])));
}

#[test]
fn init_containers_count() {
    let with_init = |memory: &str| {
        pod("a")
            .memory("1Gi")
            .cpu("1")
            .init(None, &[("memory", memory), ("cpu", "2")], &[])
    };
    assert_eq!(type_of(with_init("1Gi")).as_deref(), Some("default-instance-type"));
    assert_eq!(type_of(with_init("1Ti")), None);
}

#[test]
fn all_types_that_fit_are_options_and_the_cheapest_is_launched() {
    let sold = |name: &str, size: &str, price| {
        instance_type(name)
            .size(size, &format!("{size}Gi"))
            .offer("on-demand", "test-zone-1a", price)
            .build()
    };
    let types = [
        sold("medium", "2", 3.0),
        sold("small", "1", 2.0),
        sold("large", "4", 1.0),
    ];
    let mut world = World::of(types).with(pool("default"));
    let plan = world.provision([pod("a").limited("cpu", "1m").limited("memory", "1Mi")]);
    assert_eq!(world.label("a", INSTANCE_TYPE), Some("large"));
    assert_eq!(options(&plan.claims[0]), ["large", "small", "medium"]);
}
