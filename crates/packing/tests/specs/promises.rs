//! Do pods that wait for machines on their way stay with those they were planned for?

use model::plan::Plan;
use packing::{Options, planned};

use super::fixture::{labels::*, *};

/// Plans with all passes for pods that earlier plans have on these claims.
fn planned_again(world: &World, promises: &[(&str, &str)]) -> Plan {
    let snapshot = world.snapshot();
    let key = |pod: &str| model::object::ObjectKey::new("default", pod);
    let promised = promises.iter().map(|(pod, claim)| (key(pod), (*claim).into()));
    let options = Options {
        promised: promised.collect(),
        ..Options::default()
    };
    planned(&snapshot, &options).plan
}

fn machine(world: &mut World, name: &str, cpu: &str, zone: &str) {
    let node = node(name, &[("cpu", cpu), ("memory", "64Gi"), ("pods", "100")])
        .label(HOSTNAME, name)
        .label(ZONE, zone);
    world.add(claim(&node, "default"));
    world.add(node.label(NODE_POOL, "default"));
}

fn asking(name: &str, cpu: &str) -> Object {
    pod(name).limited("cpu", cpu)
}

/// Two machines that just hold three pods: the largest on the one that comes second by name.
fn tight() -> World {
    let mut world = World::new().with(pool("default"));
    machine(&mut world, "a", "3", "test-zone-1");
    machine(&mut world, "b", "2", "test-zone-1");
    for (name, cpu) in [("large", "2"), ("one", "1500m"), ("two", "1500m")] {
        world.add(asking(name, cpu));
    }
    world
}

const KEPT: [(&str, &str); 3] = [("large", "b"), ("one", "a"), ("two", "a")];

#[test]
fn pods_that_were_planned_for_machines_on_their_way_buy_no_others() {
    let world = tight();
    let without = planned_again(&world, &[]);
    assert_eq!(
        without.claims.len(),
        1,
        "first fit puts the largest pod where the others just fit"
    );
    let with = planned_again(&world, &KEPT);
    assert_eq!((with.claims.len(), with.unplaced.len()), (0, 0));
    let places: Vec<_> = with
        .existing
        .iter()
        .flat_map(|node| node.pods.iter().map(|pod| (&*pod.metadata.name, node.name.as_str())))
        .collect();
    assert_eq!(places.len(), 3);
    assert!(KEPT.iter().all(|kept| places.contains(kept)), "{places:?}");
}

/// A plan that buys nothing may still shuffle the pods, and the next round then finds them on the wrong machines.
#[test]
fn pods_stay_with_the_machine_they_were_planned_for_though_another_would_do() {
    let mut world = World::new().with(pool("default"));
    machine(&mut world, "a", "4", "test-zone-1");
    machine(&mut world, "b", "4", "test-zone-1");
    for (name, cpu) in [("one", "2"), ("two", "1")] {
        world.add(asking(name, cpu));
    }
    let node_of = |promises: &[(&str, &str)]| -> Vec<String> {
        let plan = planned_again(&world, promises);
        assert_eq!((plan.claims.len(), plan.unplaced.len()), (0, 0));
        let nodes = plan.existing.iter().filter(|node| !node.pods.is_empty());
        nodes.map(|node| node.name.as_str().to_owned()).collect()
    };
    assert_eq!(node_of(&[]), ["a"], "first fit takes the first machine for both");
    assert_eq!(node_of(&[("one", "b"), ("two", "b")]), ["b"]);
}

#[test]
fn a_pod_that_comes_later_takes_what_the_others_leave() {
    let mut world = tight();
    world.add(asking("late", "1"));
    let plan = planned_again(&world, &KEPT);
    let bought: Vec<_> = plan.claims.iter().flat_map(|claim| &claim.pods).collect();
    assert_eq!(bought.len(), 1);
    assert_eq!(&*bought[0].metadata.name, "late");
}

#[test]
fn a_promise_that_no_longer_holds_keeps_nobody_from_a_place() {
    let mut world = tight();
    world.remove("Node", "a");
    world.remove("NodeClaim", "a");
    let plan = planned_again(&world, &[("large", "gone"), ("one", "a"), ("two", "b")]);
    assert_eq!(plan.unplaced.len(), 0);
    let alone = planned_again(&world, &[]);
    assert!(plan.price() <= alone.price());
}

#[test]
fn pods_spread_over_zones_keep_their_places_whichever_is_tried_first() {
    let mut world = World::new().with(pool("default"));
    let mut promises = Vec::new();
    for (machine_name, zone) in [("a", "test-zone-1"), ("b", "test-zone-2"), ("c", "test-zone-3")] {
        machine(&mut world, machine_name, "3", zone);
        for at in 0..3 {
            promises.push((format!("web-{machine_name}-{at}"), machine_name));
        }
    }
    for (name, _) in &promises {
        world.add(asking(name, "1").label("app", "web").spread(spread(ZONE, 1)));
    }
    let promises: Vec<_> = promises.iter().map(|(pod, claim)| (&**pod, *claim)).collect();
    let plan = planned_again(&world, &promises);
    assert_eq!((plan.claims.len(), plan.unplaced.len()), (0, 0));
    for node in &plan.existing {
        let own = |pod: &str| promises.contains(&(pod, node.name.as_str()));
        assert!(node.pods.iter().all(|pod| own(&pod.metadata.name)));
    }
}
