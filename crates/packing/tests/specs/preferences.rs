//! Which wishes of a pod are given up, in which order, before it stays pending?

use super::fixture::{labels::*, *};

#[test]
fn last_required_alternative_is_not_given_up() {
    let pool = pool("default")
        .requirement(req(ZONE, "In", &["test-zone-1"]))
        .requirement(req(INSTANCE_TYPE, "In", &["default-instance-type"]));
    let mut world = World::new().with(pool);
    world.provision([pod("a").require(&[req(ZONE, "In", &["invalid"])])]);
    assert_eq!(world.pending(), ["a"]);
}

#[test]
fn required_alternatives_are_tried_in_order() {
    let zone = |zone: &str| [req(ZONE, "In", &[zone])];
    let mut world = World::new().with(pool("default"));
    let pod = pod("a").require(&zone("invalid")).require(&zone("invalid"));
    world.provision([pod.require(&zone("test-zone-1")).require(&zone("test-zone-2"))]);
    assert_eq!(world.label("a", ZONE), Some("test-zone-1"));
}

#[test]
fn all_node_preferences_can_be_given_up() {
    let mut world = World::new().with(pool("default"));
    let pod = pod("a").prefer(1, &[req(ZONE, "In", &["invalid"])]);
    world.provision([pod.prefer(1, &[req(INSTANCE_TYPE, "In", &["invalid"])])]);
    assert!(world.is_scheduled("a"));
}

#[test]
fn heaviest_node_preference_that_can_be_met_wins() {
    let pool = pool("default").requirement(req(ZONE, "In", &["test-zone-1", "test-zone-2"]));
    let mut world = World::new().with(pool);
    let pod = pod("a")
        .prefer(100, &[req(INSTANCE_TYPE, "In", &["test-zone-3"])])
        .prefer(50, &[req(ZONE, "In", &["test-zone-2"])])
        .prefer(1, &[req(ZONE, "In", &["test-zone-1"])]);
    world.provision([pod]);
    assert_eq!(world.label("a", ZONE), Some("test-zone-2"));
}

#[test]
fn preference_against_a_requirement_is_given_up() {
    let mut world = World::new().with(pool("default"));
    let pod = pod("a").prefer(1, &[req(ZONE, "NotIn", &["test-zone-3"])]);
    world.provision([pod.require(&[req(ZONE, "In", &["test-zone-3"])])]);
    assert_eq!(world.label("a", ZONE), Some("test-zone-3"));
}

#[test]
fn preference_that_contradicts_itself_is_given_up() {
    let mut world = World::new().with(pool("default"));
    world.provision([pod("a").prefer(1, &[req(ZONE, "In", &["invalid"]), req(ZONE, "NotIn", &["invalid"])])]);
    assert!(world.is_scheduled("a"));
}
