//! Which NodePool does a pod go to?

use super::fixture::{labels::*, *};

fn pool_of(world: &mut World, pod: Object) -> Option<String> {
    let name = pod.name().to_string();
    world.provision([pod]);
    world.label(&name, NODE_POOL).map(str::to_string)
}

#[test]
fn pod_goes_to_the_pool_it_selects() {
    let mut world = World::new().with(pool("a")).with(pool("b"));
    assert_eq!(
        pool_of(&mut world, pod("pod").select(NODE_POOL, "b")).as_deref(),
        Some("b")
    );
}

#[test]
fn pod_goes_to_the_pool_with_the_labels_it_selects() {
    let mut world = World::new()
        .with(pool("a"))
        .with(pool("b").template_label("foo", "bar"));
    assert_eq!(
        pool_of(&mut world, pod("pod").select("foo", "bar")).as_deref(),
        Some("b")
    );
}

#[test]
fn heaviest_pool_comes_first() {
    let mut world = World::new()
        .with(pool("a"))
        .with(pool("b").weight(20))
        .with(pool("c").weight(100));
    let plan = world.provision(replicas(3, &pod("pod")));
    assert_eq!(plan.claims.len(), 1);
    assert_eq!(plan.claims[0].node_pool.as_str(), "c");
}

#[test]
fn selected_pool_goes_before_heavier_ones() {
    let mut world = World::new()
        .with(pool("a"))
        .with(pool("b").weight(20))
        .with(pool("c").weight(100));
    assert_eq!(
        pool_of(&mut world, pod("pod").select(NODE_POOL, "a")).as_deref(),
        Some("a")
    );
}

#[test]
fn static_pool_launches_nothing_for_pods() {
    let fixed = || {
        pool("a-static")
            .with("spec.replicas", 2)
            .with("spec.limits", serde_json::json!({}))
    };
    let mut world = World::new().with(fixed());
    assert_eq!(pool_of(&mut world, pod("pod")), None);
    let mut world = World::new().with(fixed()).with(pool("dynamic"));
    assert_eq!(pool_of(&mut world, pod("pod")).as_deref(), Some("dynamic"));
}
