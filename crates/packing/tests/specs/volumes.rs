//! Where do a pod's volumes allow it to go, and how many fit on a node?

use serde_json::json;

use super::fixture::{labels::*, *};

const DRIVER: &str = "fake.csi.provider";

/// A class for volumes in zones 2 and 3.
fn class() -> Object {
    storage_class("class", "test-provisioner", &["test-zone-2", "test-zone-3"])
}

fn world() -> World {
    World::new().with(pool("default")).with(class())
}

/// Machines on which only volumes are scarce.
fn roomy(name: &str) -> FakeType {
    instance_type(name).resource("cpu", "1024").resource("pods", "1024")
}

/// A cloud of one roomy type and a class of the driver in zone 1.
fn roomy_world(kind: FakeType) -> World {
    let class = storage_class("my-storage-class", DRIVER, &["test-zone-1"]);
    World::of([kind.build()])
        .with(pool("default").with("spec.limits", json!({})))
        .with(class)
}

fn limited_world() -> World {
    roomy_world(roomy("limited").volume_limit(DRIVER, 10))
}

/// How many volumes of each driver a node takes.
fn csi_node(name: &str, limits: &[(&str, u32)]) -> Object {
    let driver =
        |(driver, count): &(&str, u32)| json!({ "name": driver, "nodeID": "id", "allocatable": { "count": count } });
    let drivers: Vec<_> = limits.iter().map(driver).collect();
    object("storage.k8s.io/v1", "CSINode", "", name).with("spec.drivers", drivers)
}

/// Pods with a claim of their own each.
fn pods_with_claims(world: &mut World, count: usize, volumes: usize) -> Vec<Object> {
    let mut pods = replicas(count, &pod("a"));
    for pod in &mut pods {
        for at in 0..volumes {
            let name = format!("{}-claim-{at}", pod.name());
            *pod = pod.clone().claims(&name);
            world.add(volume_claim(&name, Some("my-storage-class"), None));
        }
    }
    pods
}

fn hostname_term() -> [serde_json::Value; 1] {
    [req(HOSTNAME, "In", &["some-host"])]
}

/// A volume on a disk of one node.
fn local_volume(name: &str, source: &str) -> Object {
    volume(name, &[])
        .with("spec.csi", json!(null))
        .with(&format!("spec.{source}"), json!({ "path": "/mnt/disk" }))
}

#[test]
fn pod_with_a_claim_that_does_not_exist_is_not_scheduled() {
    let mut world = world();
    world.provision([pod("a").claims("invalid")]);
    assert_eq!(world.pending(), ["a"]);
}

#[test]
fn class_of_a_bound_claim_need_not_exist() {
    for class in ["", "missing-storage-class"] {
        let mut world = world();
        world.add(volume_claim("claim", Some(class), Some("test-volume")));
        world.add(volume("test-volume", &[]).with("spec.storageClassName", class));
        world.provision([pod("a").claims("claim")]);
        assert!(world.is_scheduled("a"), "{class:?}");
    }
}

#[test]
fn class_of_an_unbound_claim_must_exist() {
    for class in ["", "missing-storage-class"] {
        let mut world = world();
        world.add(volume_claim("claim", Some(class), None));
        world.provision([pod("a").claims("claim")]);
        assert_eq!(world.pending(), ["a"], "{class:?}");
    }
}

#[test]
fn pod_with_an_invalid_claim_does_not_stop_others() {
    for claim in [
        None,
        Some(volume_claim("claim", Some("invalid-storage-class"), None)),
        Some(volume_claim("claim", None, Some("invalid-volume-name"))),
    ] {
        let mut world = world();
        if let Some(claim) = claim {
            world.add(claim);
        }
        world.provision([pod("invalid").claims("claim"), pod("valid")]);
        assert_eq!(world.pending(), ["invalid"]);
    }
}

#[test]
fn volume_yet_to_be_made_goes_to_a_zone_of_its_class() {
    for (zones, expected) in [
        (&["test-zone-1", "test-zone-3"][..], Some("test-zone-3")),
        (&["test-zone-1"], None),
    ] {
        for is_ephemeral in [false, true] {
            let mut world = world();
            world.add(volume_claim(
                if is_ephemeral { "a-tmp" } else { "claim" },
                Some("class"),
                None,
            ));
            let pod = pod("a").require(&[req(ZONE, "In", zones)]);
            world.provision([if is_ephemeral {
                pod.ephemeral("tmp", Some("class"))
            } else {
                pod.claims("claim")
            }]);
            assert_eq!(world.label("a", ZONE), expected, "{zones:?} {is_ephemeral}");
        }
    }
}

#[test]
fn pod_goes_to_the_zone_of_its_bound_volume() {
    for (zones, expected) in [(None, Some("test-zone-3")), (Some("test-zone-1"), None)] {
        for is_ephemeral in [false, true] {
            let mut world = world().with(volume("volume", &["test-zone-3"]));
            world.add(volume_claim(
                if is_ephemeral { "a-tmp" } else { "claim" },
                Some("class"),
                Some("volume"),
            ));
            let pod = zones
                .iter()
                .fold(pod("a"), |pod, zone| pod.require(&[req(ZONE, "In", &[zone])]));
            world.provision([if is_ephemeral {
                pod.ephemeral("tmp", Some("class"))
            } else {
                pod.claims("claim")
            }]);
            assert_eq!(world.label("a", ZONE), expected, "{zones:?} {is_ephemeral}");
        }
    }
}

#[test]
fn host_of_a_local_volume_does_not_pin_the_pod() {
    for source in ["local", "hostPath"] {
        for is_ephemeral in [false, true] {
            let mut world = world().with(storage_class("local-path", "kubernetes.io/no-provisioner", &[]));
            world.add(local_volume("volume", source).volume_terms(&[&hostname_term()]));
            world.add(volume_claim(
                if is_ephemeral { "a-tmp" } else { "claim" },
                Some("local-path"),
                Some("volume"),
            ));
            let pod = pod("a");
            world.provision([if is_ephemeral {
                pod.ephemeral("tmp", Some("local-path"))
            } else {
                pod.claims("claim")
            }]);
            assert!(world.is_scheduled("a"), "{source} {is_ephemeral}");
        }
    }
}

#[test]
fn host_of_any_other_volume_pins_the_pod() {
    let mut world = world().with(volume("volume", &[]).volume_terms(&[&hostname_term()]));
    world.add(volume_claim("claim", Some("class"), Some("volume")));
    world.provision([pod("a").claims("claim")]);
    assert_eq!(world.pending(), ["a"]);
}

#[test]
fn zone_of_a_volume_counts_in_every_alternative_of_the_pod() {
    let mut world = world().with(volume("volume", &["test-zone-3"]));
    world.add(volume_claim("claim", Some("class"), Some("volume")));
    let pod = pod("a")
        .claims("claim")
        .require(&[req("example.com/label", "In", &["unsupported"])])
        .require(&[req(CAPACITY_TYPE, "In", &["on-demand"])]);
    world.provision([pod]);
    assert_eq!(world.label("a", ZONE), Some("test-zone-3"));
}

#[test]
fn node_takes_no_more_volumes_than_its_driver_says() {
    let mut world = roomy_world(roomy("roomy"));
    world.provision([pod("first")]);
    world.add(csi_node("launched-001", &[(DRIVER, 10)]));
    let pods = pods_with_claims(&mut world, 6, 2);
    world.provision(pods);
    assert_eq!((world.of_kind("Node").count(), world.pending().len()), (2, 0));
}

#[test]
fn volume_shared_by_pods_counts_once() {
    let mut world = roomy_world(roomy("roomy"));
    world.provision([pod("first")]);
    world.add(csi_node("launched-001", &[(DRIVER, 10)]));
    world.add(volume("my-volume", &["test-zone-1"]));
    world.add(volume_claim("my-claim", Some("my-storage-class"), Some("my-volume")));
    world.provision(replicas(100, &pod("a").claims("my-claim")));
    assert_eq!((world.of_kind("Node").count(), world.pending().len()), (1, 0));
}

#[test]
fn nfs_volumes_are_no_obstacle() {
    let mut world = roomy_world(roomy("roomy"));
    world.provision([pod("first")]);
    let nfs = json!({ "server": "fake.server", "path": "/some/path" });
    world.add(
        volume("my-volume", &["test-zone-1"])
            .with("spec.csi", json!(null))
            .with("spec.nfs", nfs),
    );
    world.add(volume_claim("my-claim", Some(""), Some("my-volume")));
    world.provision(replicas(5, &pod("a").claims("my-claim")));
    assert_eq!((world.of_kind("Node").count(), world.pending().len()), (1, 0));
}

#[test]
fn limit_of_the_type_opens_enough_nodes_in_one_run() {
    let mut world = limited_world();
    let pods = pods_with_claims(&mut world, 100, 1);
    assert_eq!(world.plan_for(pods).claims.len(), 10);
}

#[test]
fn limit_of_the_type_counts_until_the_driver_has_spoken() {
    for is_registered in [false, true] {
        let mut world = limited_world();
        world.provision([pod("first").select(ZONE, "test-zone-1")]);
        world.remove("Pod", "first");
        if !is_registered {
            world.remove("Node", "launched-001");
            world.change("NodeClaim", "launched-001", |claim| claim.with("status.nodeName", ""));
        }
        let pods = pods_with_claims(&mut world, 11, 1);
        let plan = world.plan_for(pods);
        assert_eq!((plan.claims.len(), plan.unplaced.len()), (1, 0), "{is_registered}");
    }
}

#[test]
fn limit_of_the_type_counts_all_volumes_of_a_pod() {
    let mut world = limited_world();
    let pods = pods_with_claims(&mut world, 6, 2);
    assert_eq!(world.plan_for(pods).claims.len(), 2);
}

#[test]
fn limit_of_the_type_counts_a_shared_volume_once() {
    let mut world = limited_world();
    world.add(volume_claim("my-claim", Some("my-storage-class"), None));
    assert_eq!(
        world.plan_for(replicas(100, &pod("a").claims("my-claim"))).claims.len(),
        1
    );
}

#[test]
fn limit_of_another_driver_does_not_count() {
    let mut world = roomy_world(roomy("roomy").volume_limit("other.csi.provider", 1));
    let pods = pods_with_claims(&mut world, 20, 1);
    assert_eq!(world.plan_for(pods).claims.len(), 1);
}

#[test]
fn pod_with_more_volumes_than_any_type_takes_is_not_scheduled() {
    let mut world = limited_world();
    let pods = pods_with_claims(&mut world, 1, 11);
    world.provision(pods);
    assert_eq!(world.pending(), ["a-00"]);
}

#[test]
fn types_that_take_too_few_volumes_are_left_out() {
    let small = roomy("small-limit")
        .resource("cpu", "16")
        .volume_limit(DRIVER, 2)
        .build();
    let mut world = roomy_world(roomy("large-limit").volume_limit(DRIVER, 20));
    world.types.insert(0, small);
    let pods = pods_with_claims(&mut world, 1, 5);
    world.provision(pods);
    assert_eq!(world.label("a-00", INSTANCE_TYPE), Some("large-limit"));
}

#[test]
fn types_must_take_the_volumes_of_every_driver() {
    let local = "local.csi.provider";
    let partial = roomy("partial")
        .resource("cpu", "16")
        .volume_limit(DRIVER, 10)
        .volume_limit(local, 1)
        .build();
    let mut world = roomy_world(roomy("full").volume_limit(DRIVER, 10).volume_limit(local, 10));
    world.types.insert(0, partial);
    world.add(storage_class("local-class", local, &["test-zone-1"]));
    let mut pod = pod("a");
    for at in 0..2 {
        for (name, class) in [("claim", "my-storage-class"), ("local", "local-class")] {
            world.add(volume_claim(&format!("{name}-{at}"), Some(class), None));
            pod = pod.claims(&format!("{name}-{at}"));
        }
    }
    world.provision([pod]);
    assert_eq!(world.label("a", INSTANCE_TYPE), Some("full"));
}

/// Two pods that keep away from each other's zone, each with a volume that can be in zone 1 or 2.
fn apart_in_two_zones(mut world: World, claim: impl Fn(usize) -> Object) {
    let apart = pod("a").label("app", "a").anti_affinity(term(ZONE, &[("app", "a")]));
    let mut pods = replicas(2, &apart);
    for (at, pod) in pods.iter_mut().enumerate() {
        let claim = claim(at);
        *pod = pod.clone().claims(claim.name());
        world.add(claim);
    }
    world.provision([pods.remove(0), pods.remove(0)]);
    let zones = world.spread_over(ZONE, &[("app", "a")]);
    assert_eq!(zones.keys().collect::<Vec<_>>(), ["test-zone-1", "test-zone-2"]);
}

#[test]
fn volume_reachable_from_several_zones_leaves_the_choice() {
    let mut world = roomy_world(roomy("roomy"));
    let zone = |zone: &str| [req(ZONE, "In", &[zone])];
    for at in 0..2 {
        let terms = [&zone("test-zone-1")[..], &zone("test-zone-2")];
        world.add(volume(&format!("volume-{at}"), &[]).volume_terms(&terms));
    }
    apart_in_two_zones(world, |at| {
        volume_claim(&format!("claim-{at}"), None, Some(&format!("volume-{at}")))
    });
}

#[test]
fn class_with_several_zones_leaves_the_choice() {
    let zone = |zone: &str| json!({ "matchLabelExpressions": [{ "key": ZONE, "values": [zone] }] });
    let class = storage_class("multi", "test-provisioner", &[])
        .with("allowedTopologies", json!([zone("test-zone-1"), zone("test-zone-2")]));
    let world = roomy_world(roomy("roomy")).with(class);
    apart_in_two_zones(world, |at| volume_claim(&format!("claim-{at}"), Some("multi"), None));
}

#[test]
fn alternative_without_its_hostname_allows_every_node() {
    for source in ["local", "hostPath"] {
        let terms = [&hostname_term()[..], &[req(ZONE, "In", &["invalid-zone"])]];
        let mut world = roomy_world(roomy("roomy")).with(local_volume("volume", source).volume_terms(&terms));
        world.add(volume_claim("claim", None, Some("volume")));
        world.provision([pod("a").claims("claim")]);
        assert!(world.is_scheduled("a"), "{source}");
    }
}

#[test]
fn alternatives_of_several_volumes_are_combined_where_they_agree() {
    let expression = |key: &str, value: &str| json!({ "key": key, "values": [value] });
    let alternatives = |name: &str, terms: &[serde_json::Value]| {
        let terms: Vec<_> = terms
            .iter()
            .map(|term| json!({ "matchLabelExpressions": term }))
            .collect();
        storage_class(name, "test-provisioner", &[]).with("allowedTopologies", terms)
    };
    let one = [
        json!([expression(SPECIAL, "required")]),
        json!([expression(SPECIAL, "optional")]),
    ];
    let other = [
        json!([expression(ZONE, "test-zone-1"), expression(SPECIAL, "optional")]),
        json!([expression(ZONE, "test-zone-2"), expression(SPECIAL, "required")]),
    ];
    let mut world = World::of(fake(5)).with(pool("default"));
    world.add(alternatives("class-a", &one));
    world.add(alternatives("class-b", &other));
    world.add(volume_claim("claim-a", Some("class-a"), None));
    world.add(volume_claim("claim-b", Some("class-b"), None));
    world.provision([pod("a").claims("claim-a").claims("claim-b")]);
    assert_eq!(world.label("a", ZONE), Some("test-zone-1"));
    assert_eq!(world.label("a", SPECIAL), Some("optional"));
}

#[test]
fn ephemeral_volumes_count_for_the_driver_of_their_class() {
    // Which class a claim without one gets is the API server's business: it writes the default, or the newest of several, into the claim.
    for driver in [DRIVER, "kubernetes.io/aws-ebs"] {
        let counted = if driver == DRIVER { DRIVER } else { "ebs.csi.aws.com" };
        let mut world = roomy_world(roomy("roomy")).with(storage_class("mine", driver, &["test-zone-1"]));
        world.add(volume_claim("first-tmp", Some("mine"), None));
        world.add(volume_claim("second-tmp", Some("mine"), None));
        world.provision([pod("first").ephemeral("tmp", Some("mine"))]);
        world.add(csi_node("launched-001", &[(counted, 1), ("other-provider", 10)]));
        world.provision([pod("second").ephemeral("tmp", Some("mine"))]);
        assert_eq!(world.nodes_of("second"), ["launched-002"].into(), "{driver}");
    }
}

#[test]
fn in_tree_volumes_count_for_the_driver_they_migrate_to() {
    let class = storage_class("in-tree", "kubernetes.io/aws-ebs", &["test-zone-1"]);
    let mut world = roomy_world(roomy("roomy")).with(class);
    world.add(volume_claim("claim-1", Some("in-tree"), None));
    world.add(volume_claim("claim-2", Some("in-tree"), None));
    world.provision([pod("first").claims("claim-1")]);
    world.add(csi_node("launched-001", &[("ebs.csi.aws.com", 1)]));
    world.provision([pod("second").claims("claim-2")]);
    assert_eq!(world.nodes_of("second"), ["launched-002"].into());
}

#[test]
fn unbound_claim_of_an_immediate_class_is_waited_for() {
    let class = storage_class("immediate", "other-provider", &["test-zone-1"]).with("volumeBindingMode", "Immediate");
    let mut world = roomy_world(roomy("roomy")).with(class);
    world.add(volume_claim("claim", Some("immediate"), None));
    world.provision([pod("a").claims("claim")]);
    assert_eq!(world.pending(), ["a"]);
}

#[test]
fn claim_that_is_lost_or_going_away_stops_its_pod() {
    let claim = || volume_claim("claim", Some("my-storage-class"), None);
    for claim in [claim().deleting(), claim().with("status.phase", "Lost")] {
        let mut world = roomy_world(roomy("roomy")).with(claim);
        world.provision([pod("a").claims("claim")]);
        assert_eq!(world.pending(), ["a"]);
    }
}

#[test]
fn volume_that_is_going_away_stops_its_pod() {
    let mut world = roomy_world(roomy("roomy")).with(volume("volume", &[]).deleting());
    world.add(volume_claim("a-tmp", None, Some("volume")));
    world.provision([pod("a").ephemeral("tmp", None)]);
    assert_eq!(world.pending(), ["a"]);
}

#[test]
fn claim_that_names_a_volume_must_be_bound_to_it() {
    for is_bound in [false, true] {
        let claim = volume_claim("claim", Some("my-storage-class"), Some("volume"));
        let claim = if is_bound {
            claim
        } else {
            claim.with("metadata.annotations", json!({}))
        };
        let mut world = roomy_world(roomy("roomy")).with(volume("volume", &[])).with(claim);
        world.provision([pod("a").claims("claim")]);
        assert_eq!(world.is_scheduled("a"), is_bound);
    }
}

#[test]
fn ephemeral_volume_without_a_usable_class_needs_a_bound_claim() {
    for class in ["non-existent", ""] {
        for is_bound in [false, true] {
            let mut world = roomy_world(roomy("roomy")).with(volume("test-pv", &[]));
            if is_bound {
                world.add(volume_claim("a-tmp", Some(class), Some("test-pv")));
            }
            world.provision([pod("a").ephemeral("tmp", Some(class))]);
            assert_eq!(world.is_scheduled("a"), is_bound, "{class:?}");
        }
    }
}
