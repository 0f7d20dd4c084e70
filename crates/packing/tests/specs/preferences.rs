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

#[test]
fn reluctant_pool_is_tolerated_after_node_preferences_are_given_up() {
    let mut world = World::new().with(pool("default").template_taint(taint("foo", "bar", "PreferNoSchedule")));
    let pod = pod("a").prefer(1, &[req(ZONE, "In", &["invalid"])]);
    world.provision([pod.prefer(1, &[req(INSTANCE_TYPE, "In", &["invalid"])])]);
    assert!(world.is_scheduled("a"));
}

#[test]
fn preference_that_cannot_be_met_does_not_cost_a_node() {
    for key in [ZONE, HOSTNAME] {
        let mut world = World::new().with(pool("default"));
        let picky = pod("picky")
            .label("app", "baz")
            .cpu("1")
            .prefer(1, &[req(key, "In", &["value-1"])]);
        world.provision([pod("plain").label("app", "foo").cpu("2"), picky]);
        assert_eq!(world.nodes_of("").len(), 1, "{key}");
        assert_eq!(world.pending(), Vec::<&str>::new());
    }
}

fn ignoring() -> World {
    World::new().with(pool("default")).setting("preferencePolicy", "Ignore")
}

/// One pod in zone 1, two in zone 2, and this one.
fn among_zones(wishful: Object) -> World {
    let mut world = ignoring();
    let mut pods = replicas(2, &pod("two").label("app", "bar").select(ZONE, "test-zone-2").cpu("3"));
    pods.push(pod("one").label("app", "foo").select(ZONE, "test-zone-1").cpu("2"));
    pods.push(wishful.label("app", "baz").cpu("1"));
    world.provision(pods);
    assert_eq!(world.pending(), Vec::<&str>::new());
    world
}

#[test]
fn ignored_node_preferences_change_nothing() {
    let world = among_zones(pod("wishful").prefer(1, &[req(ZONE, "In", &["test-zone-2"])]));
    assert_eq!(world.nodes_of("wishful"), world.nodes_of("one"));
}

#[test]
fn ignored_pod_affinity_preferences_change_nothing() {
    for key in [ZONE, HOSTNAME] {
        let world = among_zones(pod("wishful").prefer_affinity(1, term(key, &[("app", "bar")])));
        assert_eq!(world.nodes_of("wishful"), world.nodes_of("one"), "{key}");
    }
}

#[test]
fn ignored_soft_spreads_change_nothing() {
    for key in [ZONE, HOSTNAME] {
        let mut soft = spread(key, 1);
        soft["whenUnsatisfiable"] = "ScheduleAnyway".into();
        let mut world = ignoring();
        world.provision(replicas(5, &pod("a").label("test", "test").spread(soft)));
        assert_eq!((world.nodes_of("").len(), world.pending().len()), (1, 0), "{key}");
    }
}

#[test]
fn ignored_pod_anti_affinity_preferences_change_nothing() {
    for key in [ZONE, HOSTNAME] {
        let mut world = ignoring();
        let pod = pod("a")
            .label("app", "foo")
            .prefer_anti_affinity(1, term(key, &[("app", "foo")]));
        world.provision(replicas(5, &pod));
        assert_eq!((world.nodes_of("").len(), world.pending().len()), (1, 0), "{key}");
    }
}
