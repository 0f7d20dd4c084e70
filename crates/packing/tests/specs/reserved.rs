//! Is reserved capacity used first, and never promised twice?

use model::plan::{Plan, RefusalKind};
use packing::ReservedMode;
use workloads::catalogue::InstanceType;

use super::fixture::{labels::*, *};

fn reserving(name: &str, size: &str) -> FakeType {
    instance_type(name).size(size, &format!("{size}Gi")).everywhere()
}

/// Three sizes; one instance is reserved of each of the smaller ones.
fn three_types() -> Vec<InstanceType> {
    let types = [
        reserving("large-instance-type", "6"),
        reserving("medium-instance-type", "3").reserved("r-medium-instance-type", 1),
        reserving("small-instance-type", "2").reserved("r-small-instance-type", 1),
    ];
    types.map(FakeType::build).to_vec()
}

/// Pods that share no node and want a small machine.
fn apart(name: &str) -> Object {
    pod(name)
        .label("app", "test")
        .anti_affinity(term(HOSTNAME, &[("app", "test")]))
}

fn small(name: &str) -> Object {
    apart(name).require(&[req(INSTANCE_TYPE, "In", &["small-instance-type"])])
}

/// Type, capacity type and reservation of the nodes launched in this run.
fn launched(world: &mut World, plan: &Plan) -> Vec<(String, String, Option<String>)> {
    let pods: Vec<String> = plan
        .claims
        .iter()
        .map(|claim| claim.pods[0].metadata.name.to_string())
        .collect();
    let label = |pod: &str, key: &str| world.label(pod, key).map(str::to_string);
    pods.iter()
        .map(|pod| {
            (
                label(pod, INSTANCE_TYPE).unwrap(),
                label(pod, CAPACITY_TYPE).unwrap(),
                label(pod, RESERVATION_ID),
            )
        })
        .collect()
}

fn reserved(kind: &str, id: &str) -> (String, String, Option<String>) {
    (kind.to_string(), "reserved".to_string(), Some(id.to_string()))
}

fn unreserved(launched: &[(String, String, Option<String>)], kind: &str) -> bool {
    matches!(launched, [(launched, capacity, None)] if launched == kind && capacity != "reserved")
}

#[test]
fn pods_wait_for_reserved_capacity_before_they_fall_back() {
    let mut world = World::of(three_types()).with(pool("default"));
    let plan = world.provision(replicas(3, &pod("a").cpu("1800m")));
    assert_eq!(
        launched(&mut world, &plan),
        [reserved("small-instance-type", "r-small-instance-type")]
    );
    let kinds: Vec<RefusalKind> = plan.unplaced.iter().map(|unplaced| unplaced.kind).collect();
    assert_eq!(kinds, [RefusalKind::Deferred, RefusalKind::Deferred]);
    let plan = world.provision([]);
    assert_eq!(
        launched(&mut world, &plan),
        [reserved("medium-instance-type", "r-medium-instance-type")]
    );
    let plan = world.provision([]);
    assert!(unreserved(&launched(&mut world, &plan), "small-instance-type"));
    assert_eq!(world.pending(), Vec::<&str>::new());
}

#[test]
fn reservation_shared_by_pools_is_given_once() {
    let mut world = World::of(three_types()).with(pool("np-1")).with(pool("np-2"));
    let of_pool = |name: &str, pool: &str| small(name).select(NODE_POOL, pool);
    let plan = world.provision([of_pool("a", "np-1"), of_pool("b", "np-2")]);
    assert_eq!(
        launched(&mut world, &plan),
        [reserved("small-instance-type", "r-small-instance-type")]
    );
    let plan = world.provision([]);
    assert!(unreserved(&launched(&mut world, &plan), "small-instance-type"));
}

#[test]
fn pools_with_reservations_of_their_own_do_not_wait_for_each_other() {
    let distinct = reserving("small-distinct", "2").reserved("r-distinct", 1).build();
    let mut world = World::of(three_types().into_iter().chain([distinct]))
        .with(pool("np-1"))
        .with(pool("np-2"));
    world
        .types_of_pool
        .insert("np-1".to_string(), ["small-instance-type"].into_iter().collect());
    world
        .types_of_pool
        .insert("np-2".to_string(), ["small-distinct"].into_iter().collect());
    let plan = world.provision([
        apart("a").select(NODE_POOL, "np-1"),
        apart("b").select(NODE_POOL, "np-2"),
    ]);
    let mut nodes = launched(&mut world, &plan);
    nodes.sort();
    assert_eq!(
        nodes,
        [
            reserved("small-distinct", "r-distinct"),
            reserved("small-instance-type", "r-small-instance-type")
        ]
    );
}

#[test]
fn claim_that_could_use_two_reservations_holds_both() {
    let mut types = three_types();
    types[2] = reserving("small-instance-type", "2")
        .reserved("r-small-instance-type", 1)
        .reserved("r-second", 2)
        .build();
    let mut world = World::of(types).with(pool("default"));
    let is_reserved = |nodes: &[(String, String, Option<String>)]| nodes.iter().all(|(_, kind, _)| kind == "reserved");
    for expected in [2, 1] {
        let pods = if expected == 2 {
            replicas(4, &small("a"))
        } else {
            Vec::new()
        };
        let plan = world.provision(pods);
        let nodes = launched(&mut world, &plan);
        assert!(nodes.len() == expected && is_reserved(&nodes), "{nodes:?}");
    }
    let plan = world.provision([]);
    assert!(unreserved(&launched(&mut world, &plan), "small-instance-type"));
}

#[test]
fn pods_wait_for_the_reservation_of_a_heavier_pool() {
    let fallback = reserving("small-fallback", "2").reserved("r-fallback", 1).build();
    let mut world = World::of(three_types().into_iter().chain([fallback]));
    world.add(pool("np-primary").weight(100));
    world.add(pool("np-fallback").weight(50));
    world
        .types_of_pool
        .insert("np-primary".to_string(), ["small-instance-type"].into_iter().collect());
    world
        .types_of_pool
        .insert("np-fallback".to_string(), ["small-fallback"].into_iter().collect());
    let plan = world.provision([apart("a"), apart("b")]);
    assert_eq!(
        launched(&mut world, &plan),
        [reserved("small-instance-type", "r-small-instance-type")]
    );
    let plan = world.provision([]);
    assert!(unreserved(&launched(&mut world, &plan), "small-instance-type"));
    assert_eq!(plan.claims[0].node_pool.as_str(), "np-primary");
}

#[test]
fn preferences_are_kept_while_a_pod_waits_for_reserved_capacity() {
    let mut world = World::of(three_types()).with(pool("np-1")).with(pool("np-2"));
    let prefers = |name: &str| small(name).prefer(1, &[req(NODE_POOL, "In", &["np-1"])]);
    let plan = world.provision([prefers("a"), prefers("b")]);
    assert_eq!(
        launched(&mut world, &plan),
        [reserved("small-instance-type", "r-small-instance-type")]
    );
    assert_eq!(plan.claims[0].node_pool.as_str(), "np-1");
    let plan = world.provision([]);
    assert!(unreserved(&launched(&mut world, &plan), "small-instance-type"));
    assert_eq!(plan.claims[0].node_pool.as_str(), "np-1");
}

#[test]
fn pods_share_a_reserved_node() {
    let mut world = World::of(three_types()).with(pool("np-1"));
    let together = pod("a")
        .label("app", "test")
        .affinity(term(ZONE, &[("app", "test")]))
        .require(&[
            req(INSTANCE_TYPE, "In", &["small-instance-type"]),
            req(NODE_POOL, "In", &["np-1"]),
            req(CAPACITY_TYPE, "In", &["reserved"]),
            req(ZONE, "In", &["test-zone-1"]),
        ]);
    let plan = world.provision(replicas(2, &together));
    assert_eq!(
        launched(&mut world, &plan),
        [reserved("small-instance-type", "r-small-instance-type")]
    );
    assert_eq!(world.pending(), Vec::<&str>::new());
}

/// A cloud of one type with this many reserved instances left.
fn one_type(left: u64) -> World {
    World::of([reserving("reserved-type", "4").reserved("r", left).build()])
}

fn reserved_only() -> Object {
    pool("reserved").requirement(req(CAPACITY_TYPE, "In", &["reserved"]))
}

fn fallback(mut world: World) -> World {
    world.options.reserved = ReservedMode::Fallback;
    world
}

#[test]
fn full_reservation_without_alternative_is_a_plain_refusal_when_falling_back() {
    let plan = fallback(one_type(0).with(reserved_only())).plan_for([pod("a").cpu("100m")]);
    assert_eq!(
        (plan.claims.len(), plan.unplaced[0].kind),
        (0, RefusalKind::Unschedulable)
    );
}

#[test]
fn reservation_with_room_is_used_when_falling_back() {
    let plan = fallback(one_type(3).with(reserved_only())).plan_for([pod("a").cpu("100m")]);
    assert_eq!(plan.claims.len(), 1);
    assert_eq!(values(&plan.claims[0], CAPACITY_TYPE), ["reserved"]);
    assert_eq!(values(&plan.claims[0], RESERVATION_ID), ["r"]);
}

#[test]
fn reservation_that_is_not_available_is_not_used() {
    let mut world = fallback(one_type(5).with(reserved_only()));
    world.types[0].offerings.last_mut().unwrap().available = false;
    let plan = world.plan_for([pod("a").cpu("100m")]);
    assert_eq!((plan.claims.len(), plan.unplaced.len()), (0, 1));
}

#[test]
fn full_reservation_does_not_hold_pods_back() {
    let plan = one_type(0).with(pool("mixed")).plan_for([pod("a").cpu("100m")]);
    assert_eq!((plan.claims.len(), plan.unplaced.len()), (1, 0));
    assert_eq!(values(&plan.claims[0], RESERVATION_ID), Vec::<&str>::new());
    let capacity = values(&plan.claims[0], CAPACITY_TYPE);
    assert!(capacity.is_empty() || capacity.contains(&"on-demand"), "{capacity:?}");
}

#[test]
fn full_reservation_without_alternative_is_waited_for() {
    let plan = one_type(0).with(reserved_only()).plan_for([pod("a").cpu("100m")]);
    assert_eq!((plan.claims.len(), plan.unplaced[0].kind), (0, RefusalKind::Deferred));
}

#[test]
fn reservation_with_room_goes_before_on_demand() {
    let mut world = one_type(1).with(pool("mixed"));
    let plan = world.provision([pod("a").cpu("100m")]);
    assert_eq!(launched(&mut world, &plan), [reserved("reserved-type", "r")]);
}

#[test]
fn full_reservation_of_a_heavier_pool_falls_back_to_a_lighter_one() {
    let on_demand = pool("on-demand")
        .weight(1)
        .requirement(req(CAPACITY_TYPE, "In", &["on-demand"]));
    let mut world = fallback(one_type(0).with(reserved_only().weight(100)).with(on_demand));
    let plan = world.plan_for([pod("a").cpu("100m")]);
    assert_eq!((plan.claims.len(), plan.unplaced.len()), (1, 0));
    assert_eq!(values(&plan.claims[0], CAPACITY_TYPE), ["on-demand"]);
}

#[test]
fn slot_that_comes_free_is_given_out() {
    let mut world = one_type(0).with(reserved_only());
    world.options.credited_reservations.insert("r".to_string(), 1);
    let plan = world.plan_for([pod("a").cpu("100m")]);
    assert_eq!((plan.claims.len(), plan.unplaced.len()), (1, 0));
    assert_eq!(values(&plan.claims[0], RESERVATION_ID), ["r"]);
}

#[test]
fn no_more_slots_than_come_free_are_given_out() {
    let mut world = one_type(0).with(reserved_only());
    world.options.credited_reservations.insert("r".to_string(), 1);
    let plan = world.plan_for([apart("a"), apart("b")]);
    assert_eq!((plan.claims.len(), plan.unplaced.len()), (1, 1));
}
