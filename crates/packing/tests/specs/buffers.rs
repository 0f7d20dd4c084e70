//! Is room kept for CapacityBuffers, and can it be told whose it is?

use std::collections::BTreeMap;

use api::annotations::{CAPACITY_BUFFER_FAKE_POD, CAPACITY_BUFFER_NAME, CAPACITY_BUFFER_NAMESPACE};
use model::object::Pod;
use packing::demand::{Demand, Origin};
use serde_json::json;

use super::fixture::*;

/// A buffer of pods of one core.
fn add_buffer(world: &mut World, namespace: &str, name: &str, replicas: u32) {
    let template =
        object("v1", "PodTemplate", namespace, "template").with("template.spec", pod("").cpu("1").get("spec").clone());
    world.add(template);
    world.add(
        object("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", namespace, name).with(
            "spec",
            json!({ "podTemplateRef": { "name": "template" }, "replicas": replicas }),
        ),
    );
}

fn world() -> World {
    World::new().with(pool("default")).gate("CapacityBuffer", true)
}

/// The buffer a pod stands for.
fn buffer_of(pod: &Pod) -> Option<String> {
    let note = |key: &str| {
        pod.metadata
            .annotations
            .iter()
            .find(|(found, _)| **found == *key)
            .map(|(_, value)| &**value)
    };
    note(CAPACITY_BUFFER_FAKE_POD).filter(|value| *value == "true")?;
    Some(format!(
        "{}/{}",
        note(CAPACITY_BUFFER_NAMESPACE)?,
        note(CAPACITY_BUFFER_NAME)?
    ))
}

#[test]
fn stand_ins_are_told_by_the_buffer_they_stand_for_and_real_pods_are_not() {
    let mut world = world();
    add_buffer(&mut world, "default", "mine", 2);
    world.add(pod("real"));
    world.add(pod("noted").annotate("karpenter.sh/do-not-disrupt", "true"));
    let demand = Demand::of(&world.snapshot());
    let mut told: Vec<(bool, Option<String>)> = demand
        .pods
        .iter()
        .map(|entry| (entry.origin == Origin::Buffer, buffer_of(&entry.pod)))
        .collect();
    told.sort();
    let mine = || (true, Some("default/mine".to_string()));
    assert_eq!(told, [(false, None), (false, None), mine(), mine()]);
}

#[test]
fn room_of_buffers_is_told_apart_on_nodes_there_are_and_on_new_ones() {
    let mut world = world();
    world.add(node("own", &[("cpu", "1"), ("memory", "4Gi"), ("pods", "10")]).initialized());
    add_buffer(&mut world, "default", "mine", 2);
    add_buffer(&mut world, "other", "mine", 1);
    let plan = world.plan_for([pod("real")]);
    assert_eq!(plan.unplaced, []);
    let mut rooms: BTreeMap<Option<String>, usize> = BTreeMap::new();
    let existing = plan.existing.iter().flat_map(|node| &node.pods);
    for pod in existing.chain(plan.claims.iter().flat_map(|claim| &claim.pods)) {
        *rooms.entry(buffer_of(pod)).or_default() += 1;
    }
    let told = |buffer: &str| Some(buffer.to_string());
    assert_eq!(
        rooms,
        BTreeMap::from([(None, 1), (told("default/mine"), 2), (told("other/mine"), 1)])
    );
}

#[test]
fn buffer_that_fits_the_nodes_there_are_launches_none() {
    for (cpu, claims) in [("4", 0), ("2", 1)] {
        let mut world = world();
        world.add(node("own", &[("cpu", cpu), ("memory", "4Gi"), ("pods", "10")]).initialized());
        add_buffer(&mut world, "default", "mine", 3);
        let plan = world.plan();
        assert_eq!((plan.claims.len(), plan.unplaced.len()), (claims, 0), "{cpu}");
    }
}

#[test]
fn empty_buffer_asks_for_nothing() {
    let mut world = world();
    add_buffer(&mut world, "default", "mine", 0);
    assert_eq!(world.plan(), model::plan::Plan::default());
}
