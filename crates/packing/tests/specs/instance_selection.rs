//! Is the cheapest machine launched, and is every option valid?

use std::sync::Arc;

use serde_json::Value;
use workloads::catalogue::InstanceType;

use super::fixture::{labels::*, *};

type Wish = (&'static str, &'static str);

const AMD: Wish = (ARCH, "amd64");
const ARM: Wish = (ARCH, "arm64");
const LINUX: Wish = (OS, "linux");
const WINDOWS: Wish = (OS, "windows");
const ZONE_1: Wish = (ZONE, "test-zone-1");
const ZONE_2: Wish = (ZONE, "test-zone-2");
const SPOT: Wish = (CAPACITY_TYPE, "spot");
const ON_DEMAND: Wish = (CAPACITY_TYPE, "on-demand");

fn pool_of(wishes: &[Wish]) -> Object {
    let wide = [
        req(CAPACITY_TYPE, "In", &["spot", "on-demand"]),
        req(ARCH, "In", &["arm64", "amd64"]),
    ];
    let requirements: Vec<Value> = match wishes {
        [] => wide.to_vec(),
        wishes => wishes.iter().map(|(key, value)| req(key, "In", &[value])).collect(),
    };
    requirements.into_iter().fold(pool("default"), Build::requirement)
}

fn pod_of(wishes: &[Wish]) -> Object {
    let wishes: Vec<Value> = wishes.iter().map(|(key, value)| req(key, "In", &[value])).collect();
    if wishes.is_empty() {
        pod("a")
    } else {
        pod("a").require(&wishes)
    }
}

/// The assorted types out of order, so that whoever forgets to sort is found out.
fn shuffled() -> Vec<InstanceType> {
    let mut types = assorted();
    let middle = types.len() / 2;
    types.reverse();
    types.rotate_left(middle + 7);
    types
}

fn price(kind: &InstanceType) -> f64 {
    kind.offerings[0].price.parse().unwrap()
}

fn has(kind: &InstanceType, (key, value): Wish) -> bool {
    kind.requirements
        .iter()
        .any(|requirement| requirement["key"] == key && requirement["values"][0] == value)
}

#[test]
fn cheapest_type_is_launched_and_every_option_is_valid() {
    let cases: [(&[Wish], &[Wish]); 17] = [
        (&[], &[]),
        (&[], &[AMD]),
        (&[], &[ARM]),
        (&[AMD], &[]),
        (&[ARM], &[]),
        (&[WINDOWS], &[]),
        (&[], &[WINDOWS]),
        (&[], &[LINUX]),
        (&[ZONE_2], &[]),
        (&[], &[ZONE_2]),
        (&[SPOT], &[]),
        (&[], &[SPOT]),
        (&[ON_DEMAND, ZONE_1], &[]),
        (&[], &[SPOT, ZONE_1]),
        (&[SPOT], &[ZONE_2]),
        (&[ARM, WINDOWS, ON_DEMAND, ZONE_1], &[]),
        (&[AMD, LINUX], &[SPOT, ZONE_2]),
    ];
    let types = shuffled();
    let least = types.iter().map(price).min_by(f64::total_cmp).unwrap();
    for (of_pool, of_pod) in cases {
        let mut world = World::of(types.clone()).with(pool_of(of_pool));
        let plan = world.provision([pod_of(of_pod)]);
        let launched = world.label("a", INSTANCE_TYPE).expect("it is scheduled");
        let kind = |name: &str| types.iter().find(|kind| kind.name == name).unwrap();
        assert!(
            (price(kind(launched)) - least).abs() < 1e-9,
            "{of_pool:?} {of_pod:?}: {launched}"
        );
        for option in options(&plan.claims[0]) {
            let is_valid = of_pool.iter().chain(of_pod).all(|wish| has(kind(option), *wish));
            assert!(is_valid, "{of_pool:?} {of_pod:?}: {option}");
        }
    }
}

#[test]
fn cheapest_type_is_launched_for_a_pod_with_many_wishes() {
    let mut world = World::of(shuffled()).with(pool_of(&[]));
    let plan = world.provision([pod_of(&[AMD, LINUX, SPOT, ZONE_2])]);
    assert_eq!(
        world.label("a", INSTANCE_TYPE),
        Some("1-cpu-1-mem-amd64-linux-test-zone-2-spot")
    );
    let is_valid = |option: &&str| option.ends_with("amd64-linux-test-zone-2-spot");
    assert!(options(&plan.claims[0]).iter().all(is_valid));
}

#[test]
fn pod_whose_wishes_no_type_meets_is_not_scheduled() {
    let no_arm: Vec<InstanceType> = assorted().into_iter().filter(|kind| has(kind, AMD)).collect();
    let no_arm_in_zone_2 = || {
        assorted()
            .into_iter()
            .filter(|kind| !has(kind, ZONE_2) || has(kind, AMD))
            .collect()
    };
    let cases: [(Vec<InstanceType>, &[Wish], &[Wish]); 3] = [
        (no_arm, &[], &[ARM]),
        (no_arm_in_zone_2(), &[], &[ARM, ZONE_2]),
        (no_arm_in_zone_2(), &[ARM], &[ZONE_2]),
    ];
    for (types, of_pool, of_pod) in cases {
        let plan = World::of(types).with(pool_of(of_pool)).plan_for([pod_of(of_pod)]);
        assert_eq!(
            (plan.claims.len(), plan.unplaced.len()),
            (0, 1),
            "{of_pool:?} {of_pod:?}"
        );
    }
}

#[test]
fn every_option_has_room_for_all_pods_of_its_claim() {
    let size = |name: &str| -> (f64, f64) {
        let mut parts = name.split('-');
        let (cpu, memory) = (parts.next().unwrap(), parts.nth(1).unwrap());
        (cpu.parse().unwrap(), memory.parse().unwrap())
    };
    let world = World::of(shuffled()).with(pool_of(&[]));
    let empty = world.snapshot();
    for cpu in [0.1, 1.0, 2.0, 2.5, 4.0, 8.0, 16.0] {
        for memory in [0.1, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0] {
            let pod = pod("a").cpu(&format!("{cpu:.1}")).memory(&format!("{memory:.1}Gi"));
            let pods = replicas(3, &pod)
                .into_iter()
                .map(|pod| Arc::new(serde_json::from_value(pod.0).unwrap()));
            let plan = packing::plan(&empty.with_pods(pods), &world.options);
            assert_eq!((plan.claims.len(), plan.unplaced.len()), (1, 0), "{cpu} {memory}");
            for option in options(&plan.claims[0]) {
                let (has_cpu, has_memory) = size(option);
                let is_enough = 3.0 * cpu + 0.1 < has_cpu + 1e-9 && 3.0 * memory + 10.0 / 1024.0 < has_memory + 1e-9;
                assert!(is_enough, "{cpu} {memory}: {option}");
            }
        }
    }
}

#[test]
fn types_are_ordered_by_the_prices_that_can_be_paid() {
    let sold = |name: &str, on_demand, spot| {
        let kind = instance_type(name).size("1", "1Gi").systems(&["linux"]);
        kind.offer("on-demand", "test-zone-1a", on_demand)
            .offer("spot", "test-zone-1a", spot)
            .build()
    };
    let mut world = World::of([sold("test-instance1", 1.0, 0.2), sold("test-instance2", 1.3, 0.1)]);
    world.add(pool_of(&[ON_DEMAND]));
    let plan = world.provision([pod("a")]);
    assert_eq!(world.label("a", INSTANCE_TYPE), Some("test-instance1"));
    assert_eq!(options(&plan.claims[0]), ["test-instance1", "test-instance2"]);
}

const GENERATION: &str = "karpenter/numerical-value";

fn at_least(mut requirement: Value, count: u32) -> Value {
    requirement["minValues"] = count.into();
    requirement
}

/// An ARM type of so many cores and GiB.
fn arm(name: &str, size: &str, price: f64) -> FakeType {
    let kind = instance_type(name)
        .arch("arm64")
        .systems(&["linux"])
        .size(size, &format!("{size}Gi"));
    kind.offer("spot", "test-zone-1-spot", price)
}

fn of_generation(name: &str, size: &str, price: f64, generation: &str) -> InstanceType {
    arm(name, size, price)
        .requirement(req(GENERATION, "In", &[generation]))
        .build()
}

fn two_pods() -> Vec<Object> {
    replicas(2, &pod("a").cpu("0.9").memory("0.9Gi"))
}

fn pool_with(requirements: &[Value]) -> Object {
    requirements.iter().fold(pool("default"), |pool, requirement| {
        pool.requirement(requirement.clone())
    })
}

/// Each of two pods that would share the largest type gets a node of its own, so that two types stay possible.
fn get_two_nodes(types: Vec<InstanceType>, requirements: &[Value]) {
    let mut world = World::of(types).with(pool_with(requirements));
    let plan = world.provision(two_pods());
    assert_eq!((world.nodes_of("").len(), world.pending().len()), (2, 0));
    assert!(plan.claims.iter().all(|claim| claim.options.len() >= 2));
}

fn two_sizes() -> Vec<InstanceType> {
    vec![
        arm("instance-type-1", "1", 0.52).build(),
        arm("instance-type-2", "4", 1.0).build(),
    ]
}

fn both_types() -> Value {
    req(INSTANCE_TYPE, "In", &["instance-type-1", "instance-type-2"])
}

#[test]
fn minimum_of_types_keeps_small_types_possible() {
    get_two_nodes(two_sizes(), &[at_least(both_types(), 2)]);
}

#[test]
fn minimum_of_values_above_a_bound_is_kept() {
    let types = vec![
        of_generation("instance-type-1", "1", 0.52, "2"),
        of_generation("instance-type-2", "1", 1.0, "3"),
        of_generation("instance-type-3", "4", 1.2, "4"),
    ];
    get_two_nodes(types, &[at_least(req(GENERATION, "Gt", &["2"]), 2)]);
}

#[test]
fn minimum_of_values_below_a_bound_is_kept() {
    let types = vec![
        of_generation("instance-type-1", "1", 0.52, "2"),
        of_generation("instance-type-2", "2", 1.0, "3"),
        of_generation("instance-type-3", "4", 1.2, "4"),
    ];
    get_two_nodes(types, &[at_least(req(GENERATION, "Lt", &["4"]), 2)]);
}

#[test]
fn too_few_values_above_a_bound_are_no_offer() {
    let types = [
        of_generation("instance-type-1", "1", 0.52, "2"),
        of_generation("instance-type-2", "4", 1.0, "3"),
    ];
    let mut world = World::of(types).with(pool_with(&[at_least(req(GENERATION, "Exists", &[]), 2)]));
    let bounded = two_pods()
        .into_iter()
        .map(|pod| pod.require(&[req(GENERATION, "Gt", &["2"])]));
    let plan = world.plan_for(bounded);
    assert_eq!((plan.claims.len(), plan.unplaced.len()), (0, 2));
    let words = "minValues requirement is not met for label(s) (label(s)=[karpenter/numerical-value])";
    for unplaced in &plan.unplaced {
        assert!(unplaced.message.contains(words), "{}", unplaced.message);
    }
}

#[test]
fn too_few_values_below_a_bound_are_no_offer() {
    let types = [
        of_generation("instance-type-1", "2", 0.52, "2"),
        of_generation("instance-type-2", "4", 1.2, "4"),
    ];
    let mut world = World::of(types).with(pool_with(&[at_least(req(GENERATION, "Lt", &["4"]), 2)]));
    let plan = world.plan_for(two_pods());
    assert_eq!((plan.claims.len(), plan.unplaced.len()), (0, 2));
}

#[test]
fn larger_minimum_of_two_requirements_counts() {
    let mut three = two_sizes();
    three[1] = arm("instance-type-2", "2", 1.0).build();
    three.push(arm("instance-type-3", "4", 1.2).build());
    let all = req(
        INSTANCE_TYPE,
        "In",
        &["instance-type-1", "instance-type-2", "instance-type-3"],
    );
    let but_one = req(INSTANCE_TYPE, "NotIn", &["instance-type-3"]);
    get_two_nodes(three, &[at_least(all, 1), at_least(but_one, 2)]);
    get_two_nodes(
        two_sizes(),
        &[
            at_least(req(INSTANCE_TYPE, "Exists", &[]), 1),
            at_least(both_types(), 2),
        ],
    );
}

#[test]
fn larger_minimum_of_two_bounds_counts() {
    let types = vec![
        of_generation("instance-type-1", "1", 0.52, "2"),
        of_generation("instance-type-2", "1", 1.0, "3"),
        of_generation("instance-type-3", "4", 1.2, "4"),
        of_generation("instance-type-4", "4", 1.2, "5"),
    ];
    let bounds = [
        at_least(req(GENERATION, "Gt", &["2"]), 1),
        at_least(req(GENERATION, "Lt", &["5"]), 2),
    ];
    get_two_nodes(types, &bounds);
}

#[test]
fn fewer_types_than_the_minimum_are_no_offer() {
    let types: Vec<InstanceType> = assorted().into_iter().take(10).collect();
    let mut world = World::of(types).with(pool_with(&[at_least(req(INSTANCE_TYPE, "Exists", &[]), 11)]));
    world.provision([pod("a")]);
    assert_eq!(world.pending(), ["a"]);
}

#[test]
fn minimum_that_the_cut_to_600_types_breaks_is_not_met() {
    let cheap = (0..600).map(|at| arm(&format!("cheap-{at}"), "1", 0.1).build());
    let types = cheap.chain([arm("dear", "16", 9.0).build()]);
    let mut world = World::of(types).with(pool_with(&[at_least(req(SIZE, "Exists", &[]), 2)]));
    let plan = world.plan_for([pod("a").cpu("0.1")]);
    assert_eq!((plan.claims.len(), plan.unplaced.len()), (0, 1));
}

#[test]
fn minimums_of_several_keys_are_kept_together() {
    let types = vec![
        arm("instance-type-1", "1", 0.52).build(),
        arm("instance-type-2", "4", 1.0).arch("amd64").build(),
    ];
    get_two_nodes(
        types,
        &[at_least(req(ARCH, "Exists", &[]), 2), at_least(both_types(), 1)],
    );
}
