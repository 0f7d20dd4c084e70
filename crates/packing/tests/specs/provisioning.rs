//! Do pods get nodes, and do resources of all kinds of containers count?

use serde_json::json;

use super::fixture::{labels::*, *};

fn world() -> World {
    World::new().with(pool("default"))
}

#[test]
fn pending_pod_gets_a_node() {
    let mut world = world();
    world.provision([pod("a")]);
    assert_eq!((world.of_kind("Node").count(), world.pending().len()), (1, 0));
}

#[test]
fn a_hundred_pending_pods_get_nodes() {
    let mut world = world();
    world.provision(replicas(100, &pod("a")));
    assert_eq!((world.of_kind("Node").count(), world.pending().len()), (20, 0));
}

#[test]
fn pool_that_is_going_away_gets_no_pods() {
    let mut world = World::new().with(pool("default").deleting());
    let plan = world.provision([pod("a")]);
    assert_eq!((plan.claims.len(), world.pending()), (0, vec!["a"]));
}

#[test]
fn pools_registration_health_does_not_matter() {
    for status in ["True", "False", "Unknown"] {
        let health = json!({ "type": "NodeRegistrationHealthy", "status": status, "reason": "reason" });
        let mut world = World::new().with(pool("default").push("status.conditions", health));
        world.provision([pod("a")]);
        assert!(world.is_scheduled("a"), "{status}");
    }
}

const KNOWN: [(&str, &str); 5] = [
    (NODE_POOL, "default"),
    (ZONE, "test-zone-1"),
    (INSTANCE_TYPE, "default-instance-type"),
    (ARCH, "arm64"),
    (OS, "linux"),
];
const UNKNOWN: [(&str, &str); 7] = [
    (NODE_POOL, "unknown"),
    (ZONE, "unknown"),
    (INSTANCE_TYPE, "unknown"),
    (ARCH, "unknown"),
    (OS, "unknown"),
    (CAPACITY_TYPE, "unknown"),
    ("foo", "bar"),
];

#[test]
fn pods_are_scheduled_by_supported_node_selectors() {
    for (cases, is_scheduled) in [(&KNOWN[..], true), (&UNKNOWN, false)] {
        for (key, value) in cases {
            let mut world = world();
            world.provision([pod("a").select(key, value)]);
            assert_eq!(world.is_scheduled("a"), is_scheduled, "{key} {value}");
        }
    }
}

#[test]
fn pods_are_scheduled_by_supported_node_affinities() {
    for (cases, is_scheduled) in [(&KNOWN[..], true), (&UNKNOWN, false)] {
        for (key, value) in cases {
            let mut world = world();
            world.provision([pod("a").require(&[req(key, "In", &[value])])]);
            assert_eq!(world.is_scheduled("a"), is_scheduled, "{key} {value}");
        }
    }
}

#[test]
fn accelerators_are_provisioned() {
    let mut world = world();
    world.provision([
        pod("a").limited("fake.com/vendor-a", "1"),
        pod("b").limited("fake.com/vendor-b", "1"),
    ]);
    assert_eq!(world.label("a", INSTANCE_TYPE), Some("gpu-vendor-instance-type"));
    assert_eq!(world.label("b", INSTANCE_TYPE), Some("gpu-vendor-b-instance-type"));
}

#[test]
fn machine_for_one_pod_takes_one_pod() {
    let mut world =
        World::new().with(pool("default").requirement(req(INSTANCE_TYPE, "In", &["single-pod-instance-type"])));
    world.provision(replicas(3, &pod("a")));
    assert_eq!((world.nodes_of("").len(), world.pending().len()), (3, 0));
}

#[test]
fn pods_of_a_node_that_goes_away_join_the_pending_ones_on_one_new_node() {
    let own = node("own", &[])
        .label(NODE_POOL, "default")
        .label(INSTANCE_TYPE, "default-instance-type")
        .deleting();
    let mut world = world().with(claim(&own, "default").deleting()).with(own);
    for bound in replicas(3, &pod("bound")) {
        world.add(bound.on("own"));
    }
    let plan = world.plan_for(replicas(2, &pod("a")));
    assert_eq!(
        (plan.claims.len(), plan.existing.len(), plan.claims[0].pods.len()),
        (1, 0, 5)
    );
}

/// The cores of the machine a pod gets of machines of 10, 11 and 12 cores with 4, 5 and 6 GiB.
fn cores(pod: Object) -> Option<String> {
    let example = |name: &str, cpu: &str, memory: &str, price| {
        let kind = instance_type(name).size(cpu, memory).arch("arch").systems(&["linux"]);
        kind.offer("spot", "test-zone-1", price).build()
    };
    let mut world = world();
    world.types.extend([
        example("example-10", "10", "4Gi", 1.43),
        example("example-11", "11", "5Gi", 1.64),
        example("example-12", "12", "6Gi", 1.84),
    ]);
    let name = pod.name().to_string();
    world.provision([pod]);
    world.label(&name, INTEGER).map(str::to_string)
}

fn sized(cpu: &str, memory: &str) -> Object {
    pod("a")
        .cpu(cpu)
        .memory(memory)
        .limited("cpu", cpu)
        .limited("memory", memory)
}

#[test]
fn sidecar_after_an_init_container_counts_with_the_containers() {
    let init = [("cpu", "10"), ("memory", "4Gi")];
    let sidecar = [("cpu", "4.9"), ("memory", "2.9Gi")];
    let pod = sized("6", "2Gi")
        .init(None, &init, &init)
        .init(Some("Always"), &sidecar, &sidecar);
    assert_eq!(cores(pod).as_deref(), Some("11"));
}

#[test]
fn sidecar_before_a_small_init_container_counts_with_the_containers() {
    let sidecar = [("cpu", "4.9"), ("memory", "2.9Gi")];
    let init = [("cpu", "5"), ("memory", "1Gi")];
    let pod = sized("6", "2Gi")
        .init(Some("Always"), &sidecar, &sidecar)
        .init(None, &init, &init);
    assert_eq!(cores(pod).as_deref(), Some("11"));
}

#[test]
fn sidecar_before_a_large_init_container_counts_with_it() {
    let sidecar = [("cpu", "4.9"), ("memory", "2.9Gi")];
    let init = [("cpu", "6"), ("memory", "2Gi")];
    let pod = sized("5", "1Gi")
        .init(Some("Always"), &sidecar, &sidecar)
        .init(None, &init, &init);
    assert_eq!(cores(pod).as_deref(), Some("11"));
}

#[test]
fn resources_of_the_pod_as_a_whole_go_before_those_of_its_containers() {
    let init = [("cpu", "6"), ("memory", "2Gi")];
    let sidecar = [("cpu", "4"), ("memory", "2Gi")];
    let whole = json!({ "limits": { "cpu": "10", "memory": "4Gi" }, "requests": { "cpu": "9.9", "memory": "3.9Gi" } });
    let pod = sized("5", "1Gi")
        .init(None, &init, &init)
        .init(Some("Always"), &sidecar, &sidecar);
    assert_eq!(cores(pod.with("spec.resources", whole)).as_deref(), Some("10"));
}
