//! Do NodePools stay within their limits?

use serde_json::json;

use super::fixture::{labels::*, *};

fn limited(resource: &str, quantity: &str) -> World {
    World::new().with(pool("default").limits(&[(resource, quantity)]))
}

/// A pod that shares no node with its like.
fn apart(name: &str) -> Object {
    pod(name)
        .label("app", "foo")
        .anti_affinity(term(HOSTNAME, &[("app", "foo")]))
        .cpu("1.5")
}

#[test]
fn pool_over_its_limit_launches_nothing() {
    let own = node("own", &[("cpu", "100")]);
    let mut world = limited("cpu", "20").with(claim(&own, "default").with("status.allocatable", json!({})));
    world.provision([pod("a")]);
    assert_eq!(world.pending(), ["a"]);
}

#[test]
fn pool_is_filled_up_to_its_limit() {
    let mut world = limited("cpu", "2");
    world.provision([pod("a").cpu("1.75")]);
    assert!(world.is_scheduled("a"));
}

#[test]
fn pods_beyond_the_limit_stay_pending() {
    let mut world = limited("cpu", "3");
    world.provision([apart("a"), apart("b")]);
    assert_eq!(world.pending().len(), 1);
}

#[test]
fn pod_that_needs_a_node_beyond_the_limit_is_not_scheduled() {
    let mut world = limited("cpu", "2");
    world.provision([pod("a").cpu("2.1")]);
    assert_eq!(world.pending(), ["a"]);
}

#[test]
fn limits_hold_for_every_resource() {
    let mut world = limited("pods", "1");
    world.provision([pod("a").limited("fake.com/vendor-a", "1")]);
    assert_eq!(world.pending(), ["a"]);
}

#[test]
fn nodes_of_earlier_runs_count() {
    let mut world = limited("cpu", "2");
    world.provision([pod("a").cpu("1.75")]);
    world.provision([pod("b").cpu("1.75")]);
    assert_eq!(world.pending(), ["b"]);
}

#[test]
fn number_of_nodes_can_be_limited() {
    let mut world = limited("nodes", "2");
    for name in ["a", "b", "c"] {
        world.provision([apart(name)]);
    }
    assert_eq!(world.pending(), ["c"]);
}
