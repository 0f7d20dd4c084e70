//! Do taints keep the right pods away?

use serde_json::json;

use super::fixture::*;

#[test]
fn every_way_to_tolerate_a_taint_counts() {
    let gpu = "nvidia.com/gpu";
    let pool = pool("default").template_taint(taint(gpu, "true", "NoSchedule"));
    for (name, toleration) in [
        ("equal", toleration(gpu, "true", "NoSchedule")),
        (
            "exists",
            json!({ "key": gpu, "operator": "Exists", "effect": "NoSchedule" }),
        ),
        ("any effect", json!({ "key": gpu, "operator": "Exists" })),
        ("anything", json!({ "operator": "Exists" })),
    ] {
        let mut world = World::new().with(pool.clone());
        world.provision([pod("a").tolerate(toleration)]);
        assert!(world.is_scheduled("a"), "{name}");
    }
}

#[test]
fn nodes_get_the_taints_of_their_pool_and_intolerant_pods_no_node() {
    let pool = pool("default").template_taint(taint("test", "bar", "NoSchedule"));
    let mut world = World::new().with(pool);
    world.provision([
        pod("equal").tolerate(toleration("test", "bar", "NoSchedule")),
        pod("exists").tolerate(json!({ "key": "test", "operator": "Exists", "effect": "NoSchedule" })),
        pod("none"),
        pod("other-key").tolerate(json!({ "key": "invalid", "operator": "Exists" })),
        pod("other-value").tolerate(json!({ "key": "test", "operator": "Equal", "effect": "NoSchedule" })),
    ]);
    assert_eq!(world.pending(), ["none", "other-key", "other-value"]);
    let taints = world.node_of("equal").unwrap().get("spec.taints");
    assert_eq!(*taints, json!([taint("test", "bar", "NoSchedule")]));
}

#[test]
fn startup_taints_need_no_toleration() {
    let pool = pool("default").startup_taint(taint("ignore-me", "nothing-to-see-here", "NoSchedule"));
    let mut world = World::new().with(pool);
    world.provision([pod("a")]);
    assert!(world.is_scheduled("a"));
}

#[test]
fn tolerations_do_not_become_taints() {
    let mut world = World::new().with(pool("default"));
    world.provision([pod("a").tolerate(json!({ "key": "test-key", "operator": "Exists", "effect": "NoExecute" }))]);
    assert_eq!(*world.node_of("a").unwrap().get("spec.taints"), json!([]));
}

#[test]
fn pool_that_would_rather_not_is_taken_when_there_is_no_other() {
    let reluctant = || pool("a-reluctant").template_taint(taint("foo", "bar", "PreferNoSchedule"));
    let mut world = World::new().with(reluctant()).with(pool("b-willing"));
    let plan = world.provision([pod("a")]);
    assert_eq!(plan.claims[0].node_pool.as_str(), "b-willing");
    let mut world = World::new().with(reluctant());
    let plan = world.provision([pod("a")]);
    assert_eq!(plan.claims[0].node_pool.as_str(), "a-reluctant");
}
