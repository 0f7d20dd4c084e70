//! Is the demand for variety met, or lowered where that is allowed?

use model::plan::PlannedClaim;
use serde_json::Value;

use super::fixture::{labels::*, *};

const RELAXED: &str = "karpenter.sh/nodeclaim-min-values-relaxed";

fn at_least(mut requirement: Value, count: u32) -> Value {
    requirement["minValues"] = count.into();
    requirement
}

fn three_types() -> Value {
    req(
        INSTANCE_TYPE,
        "In",
        &["instance-type-1", "instance-type-2", "instance-type-3"],
    )
}

fn three_zones() -> Value {
    req(ZONE, "In", &["test-zone-1", "test-zone-2", "test-zone-3"])
}

fn arm(name: &str) -> FakeType {
    instance_type(name).arch("arm64").systems(&["linux"])
}

/// Two types, each in a zone of its own.
fn two_types() -> World {
    World::of([
        arm("instance-type-1").offer("spot", "test-zone-1-spot", 0.52).build(),
        arm("instance-type-2").offer("spot", "test-zone-2-spot", 0.52).build(),
    ])
}

/// One type in these zones.
fn one_type(zones: &[&str]) -> World {
    let kind = zones
        .iter()
        .fold(arm("instance-type-1"), |kind, zone| kind.offer("spot", zone, 0.52));
    World::of([kind.build()])
}

fn best_effort(world: World) -> World {
    world.setting("minValuesPolicy", "BestEffort")
}

fn small_pod() -> Object {
    pod("a").cpu("0.9").memory("0.9Gi")
}

fn is_relaxed(claim: &PlannedClaim) -> bool {
    claim
        .annotations
        .iter()
        .any(|(key, value)| **key == *RELAXED && **value == *"true")
}

/// Values and minimum of the claim's requirement on zones.
fn zones(claim: &PlannedClaim) -> (Vec<&str>, Option<u32>) {
    let spec = claim.constraints.iter().find(|spec| spec.key == ZONE).unwrap();
    (spec.values.iter().map(String::as_str).collect(), spec.min_values)
}

/// A pod whose volume must be made in zone 1.
fn bound_to_zone_1(world: &mut World) -> Object {
    world.add(storage_class("class", "test-provisioner", &["test-zone-1"]));
    world.add(volume_claim("claim", Some("class"), None));
    small_pod().claims("claim")
}

#[test]
fn too_few_types_are_no_offer() {
    let plan = two_types()
        .with(pool("default").requirement(at_least(three_types(), 3)))
        .plan_for([small_pod()]);
    assert_eq!((plan.claims.len(), plan.unplaced.len()), (0, 1));
}

#[test]
fn too_few_types_are_accepted_with_best_effort() {
    let pool = pool("default").weight(100).requirement(at_least(three_types(), 3));
    let plan = best_effort(two_types().with(pool)).plan_for([small_pod()]);
    assert_eq!(options(&plan.claims[0]), ["instance-type-1", "instance-type-2"]);
    assert!(is_relaxed(&plan.claims[0]));
}

#[test]
fn minimum_is_lowered_before_a_lighter_pool_is_tried() {
    for lighter in [three_types(), at_least(three_types(), 3)] {
        let mut world = best_effort(two_types());
        world.add(pool("heavy").weight(100).requirement(at_least(three_types(), 3)));
        world.add(pool("a-light").weight(10).requirement(lighter.clone()));
        let plan = world.plan_for([small_pod()]);
        assert_eq!(plan.claims[0].node_pool.as_str(), "heavy", "{lighter}");
        assert_eq!(options(&plan.claims[0]), ["instance-type-1", "instance-type-2"]);
        assert!(is_relaxed(&plan.claims[0]));
    }
}

#[test]
fn too_few_zones_are_no_offer() {
    let pool = pool("default").requirement(at_least(three_zones(), 3));
    let plan = one_type(&["test-zone-1", "test-zone-2"])
        .with(pool)
        .plan_for([small_pod()]);
    assert_eq!((plan.claims.len(), plan.unplaced.len()), (0, 1));
}

#[test]
fn volume_that_leaves_too_few_zones_stops_its_pod() {
    let pool = pool("default").requirement(at_least(three_zones(), 3));
    let mut world = one_type(&["test-zone-1", "test-zone-2", "test-zone-3"]).with(pool);
    let pod = bound_to_zone_1(&mut world);
    let plan = world.plan_for([pod]);
    assert_eq!((plan.claims.len(), plan.unplaced.len()), (0, 1));
}

#[test]
fn too_few_zones_are_accepted_with_best_effort() {
    let pool = pool("default").requirement(at_least(three_zones(), 3));
    let plan = best_effort(one_type(&["test-zone-1", "test-zone-2"]).with(pool)).plan_for([small_pod()]);
    assert!(is_relaxed(&plan.claims[0]));
    assert_eq!(
        zones(&plan.claims[0]),
        (vec!["test-zone-1", "test-zone-2", "test-zone-3"], Some(2))
    );
}

#[test]
fn minimum_of_zones_is_lowered_to_what_a_volume_leaves() {
    let pool = pool("default").requirement(at_least(three_zones(), 3));
    let mut world = best_effort(one_type(&["test-zone-1", "test-zone-2", "test-zone-3"]).with(pool));
    let pod = bound_to_zone_1(&mut world);
    let plan = world.plan_for([pod]);
    assert!(is_relaxed(&plan.claims[0]));
    assert_eq!(zones(&plan.claims[0]), (vec!["test-zone-1"], Some(1)));
}

#[test]
fn minimums_of_several_keys_are_lowered_each() {
    let pool = pool("default")
        .requirement(at_least(three_types(), 3))
        .requirement(at_least(three_zones(), 3));
    let plan = best_effort(one_type(&["test-zone-1", "test-zone-2"]).with(pool)).plan_for([small_pod()]);
    assert!(is_relaxed(&plan.claims[0]));
    assert_eq!(options(&plan.claims[0]), ["instance-type-1"]);
    assert_eq!(
        zones(&plan.claims[0]),
        (vec!["test-zone-1", "test-zone-2", "test-zone-3"], Some(2))
    );
}
