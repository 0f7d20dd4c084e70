//! Which instance types can take a pod at all?

use super::fixture::{labels::*, *};

const GPU_1: &str = "karpenter.sh/super-great-gpu";
const GPU_2: &str = "karpenter.sh/even-better-gpu";

fn both_archs() -> Object {
    pool("default").requirement(req(ARCH, "In", &["arm64", "amd64"]))
}

fn amd_only() -> World {
    World::new().with(pool("default").requirement(req(ARCH, "In", &["amd64"])))
}

/// Five types; the first has one kind of GPU, the second another.
fn with_gpus() -> World {
    let mut types = fake(5);
    types[0].capacity.insert(GPU_1.to_string(), "25".into());
    types[1].capacity.insert(GPU_2.to_string(), "25".into());
    World::of(types).with(pool("default"))
}

#[test]
fn pod_larger_than_every_type_is_not_scheduled() {
    let mut world = World::new().with(pool("default"));
    world.provision([pod("a").cpu("512")]);
    assert_eq!(world.pending(), ["a"]);
}

#[test]
fn pods_that_select_different_values_get_different_nodes() {
    for (first, second) in [
        ((ARCH, "amd64"), (ARCH, "arm64")),
        ((OS, "linux"), (OS, "windows")),
        (
            ("beta.kubernetes.io/instance-type", "small-instance-type"),
            (INSTANCE_TYPE, "default-instance-type"),
        ),
        ((ZONE, "test-zone-1"), (ZONE, "test-zone-2")),
    ] {
        let mut world = World::new().with(both_archs());
        world.provision([pod("a").select(first.0, first.1), pod("b").select(second.0, second.1)]);
        assert_eq!(world.nodes_of("").len(), 2, "{first:?} {second:?}");
    }
}

#[test]
fn type_the_pod_asks_for_but_the_pool_excludes_is_not_launched() {
    for requirement in [
        req(INSTANCE_TYPE, "In", &["arm-instance-type"]),
        req(OS, "In", &["ios"]),
    ] {
        let mut world = amd_only();
        world.provision([pod("a").require(std::slice::from_ref(&requirement))]);
        assert_eq!(world.pending(), ["a"], "{requirement}");
    }
}

#[test]
fn only_type_large_enough_is_not_launched_when_the_pool_excludes_it() {
    let mut world = amd_only();
    world.provision([pod("a").limited("cpu", "14")]);
    assert_eq!(world.pending(), ["a"]);
}

#[test]
fn pods_whose_resources_no_single_type_has_get_different_nodes() {
    let mut world = with_gpus();
    world.provision([pod("a").limited(GPU_1, "1"), pod("b").limited(GPU_2, "1")]);
    assert_eq!(world.nodes_of("").len(), 2);
}

#[test]
fn pod_whose_resources_no_single_type_has_is_not_scheduled() {
    let mut world = with_gpus();
    world.provision([pod("a").limited(GPU_1, "1").limited(GPU_2, "1")]);
    assert_eq!(world.pending(), ["a"]);
}

#[test]
fn provider_labels_filter_types() {
    let mut world = World::of(fake(5)).with(pool("default"));
    world.provision([pod("large").select(SIZE, "large"), pod("small").select(SIZE, "small")]);
    assert_eq!(world.label("large", INSTANCE_TYPE), Some("fake-it-4"));
    assert_eq!(world.label("small", INSTANCE_TYPE), Some("fake-it-0"));
}

#[test]
fn provider_labels_that_no_type_combines_are_not_scheduled() {
    let mut world = World::of(fake(5)).with(pool("default"));
    world.provision([
        pod("a").select(SIZE, "large").select(INSTANCE_TYPE, "fake-it-0"),
        pod("b").select(SIZE, "small").select(INSTANCE_TYPE, "fake-it-4"),
    ]);
    assert_eq!(world.pending(), ["a", "b"]);
}

#[test]
fn label_only_some_types_have_can_be_required() {
    let mut world = World::of(fake(5)).with(pool("default"));
    world.provision([pod("a").require(&[req(SPECIAL, "Exists", &[])])]);
    assert_eq!(world.label("a", SPECIAL), Some("optional"));
    assert_eq!(world.label("a", INSTANCE_TYPE), Some("fake-it-4"));
}

#[test]
fn label_only_some_types_have_can_be_refused() {
    let mut world = World::of(fake(5)).with(pool("default"));
    world.provision([pod("a").require(&[req(SPECIAL, "DoesNotExist", &[])])]);
    assert!(world.is_scheduled("a"));
    assert_eq!(world.label("a", SPECIAL), None);
}
