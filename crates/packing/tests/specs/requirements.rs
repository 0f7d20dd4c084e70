//! Do nodes fulfil what pods and NodePools require of labels?

use std::slice;

use serde_json::Value;

use super::fixture::{labels::*, *};

/// The pod's node has this label, or the pod has no node.
fn label_of(pool: Object, pod: Object, label: &str) -> Option<String> {
    let mut world = World::new().with(pool);
    let name = pod.name().to_string();
    world.provision([pod]);
    world.label(&name, label).map(str::to_string)
}

fn is_scheduled(pool: Object, pod: Object) -> bool {
    let mut world = World::new().with(pool);
    let name = pod.name().to_string();
    world.provision([pod]);
    world.is_scheduled(&name)
}

fn labelled_pool() -> Object {
    pool("default").template_label("test-key", "test-value")
}

fn zonal_pool(zones: &[&str]) -> Object {
    pool("default").requirement(req(ZONE, "In", zones))
}

fn keyed_pool(values: &[&str]) -> Object {
    pool("default").requirement(req("test-key", "In", values))
}

fn requiring(requirement: Value) -> Object {
    pod("a").require(&[requirement])
}

#[test]
fn unconstrained_pod_gets_the_labels_of_the_pool() {
    assert_eq!(
        label_of(labelled_pool(), pod("a"), "test-key").as_deref(),
        Some("test-value")
    );
}

#[test]
fn pod_with_a_conflicting_node_selector_is_not_scheduled() {
    assert!(!is_scheduled(
        labelled_pool(),
        pod("a").select("test-key", "different-value")
    ));
}

#[test]
fn pod_that_selects_an_undefined_key_is_not_scheduled() {
    assert!(!is_scheduled(
        pool("default"),
        pod("a").select("test-key", "test-value")
    ));
}

#[test]
fn pod_with_matching_requirements_is_scheduled() {
    let pod = requiring(req("test-key", "In", &["test-value", "another-value"]));
    assert_eq!(
        label_of(labelled_pool(), pod, "test-key").as_deref(),
        Some("test-value")
    );
}

#[test]
fn pod_with_conflicting_requirements_is_not_scheduled() {
    assert!(!is_scheduled(
        labelled_pool(),
        requiring(req("test-key", "In", &["another-value"]))
    ));
}

#[test]
fn pool_constraints_choose_the_zone() {
    assert_eq!(
        label_of(zonal_pool(&["test-zone-2"]), pod("a"), ZONE).as_deref(),
        Some("test-zone-2")
    );
}

#[test]
fn node_selectors_choose_among_the_zones_of_the_pool() {
    let pod = pod("a").select(ZONE, "test-zone-2");
    let pool = zonal_pool(&["test-zone-1", "test-zone-2"]);
    assert_eq!(label_of(pool, pod, ZONE).as_deref(), Some("test-zone-2"));
}

#[test]
fn pod_that_selects_a_hostname_gets_no_node() {
    assert!(!is_scheduled(pool("default"), pod("a").select(HOSTNAME, "red-node")));
}

#[test]
fn pod_that_selects_an_unknown_zone_is_not_scheduled() {
    assert!(!is_scheduled(
        zonal_pool(&["test-zone-1"]),
        pod("a").select(ZONE, "unknown")
    ));
}

#[test]
fn pod_that_selects_outside_the_pools_constraints_is_not_scheduled() {
    assert!(!is_scheduled(
        zonal_pool(&["test-zone-1"]),
        pod("a").select(ZONE, "test-zone-2")
    ));
}

#[test]
fn integer_bounds_of_the_pool_choose_the_machine() {
    for (operator, bound, cores) in [
        ("Gt", "8", "16"),
        ("Lt", "8", "2"),
        ("Gte", "16", "16"),
        ("Lte", "2", "2"),
    ] {
        let pool = pool("default").requirement(req(INTEGER, operator, &[bound]));
        assert_eq!(
            label_of(pool, pod("a"), INTEGER).as_deref(),
            Some(cores),
            "{operator} {bound}"
        );
    }
}

#[test]
fn zone_requirements_of_pods_are_fulfilled() {
    let cases: [(&str, &[&str], Option<&str>); 4] = [
        ("In", &["test-zone-3"], Some("test-zone-3")),
        ("In", &["unknown"], None),
        ("NotIn", &["test-zone-1", "test-zone-2", "unknown"], Some("test-zone-3")),
        ("NotIn", &["test-zone-1", "test-zone-2", "test-zone-3", "unknown"], None),
    ];
    for (operator, zones, expected) in cases {
        let pod = requiring(req(ZONE, operator, zones));
        assert_eq!(
            label_of(pool("default"), pod, ZONE).as_deref(),
            expected,
            "{operator} {zones:?}"
        );
    }
}

#[test]
fn compatible_zone_preferences_of_pods_are_met() {
    let anywhere = req(ZONE, "In", &["test-zone-1", "test-zone-2", "test-zone-3", "unknown"]);
    for preference in [
        req(ZONE, "In", &["test-zone-2", "unknown"]),
        req(ZONE, "NotIn", &["test-zone-1", "test-zone-3"]),
    ] {
        let pod = requiring(anywhere.clone()).prefer(1, slice::from_ref(&preference));
        assert_eq!(
            label_of(pool("default"), pod, ZONE).as_deref(),
            Some("test-zone-2"),
            "{preference}"
        );
    }
}

#[test]
fn incompatible_zone_preferences_of_pods_do_not_stop_them() {
    let anywhere = req(ZONE, "In", &["test-zone-1", "test-zone-2", "test-zone-3", "unknown"]);
    for preference in [
        req(ZONE, "In", &["unknown"]),
        req(ZONE, "NotIn", &["test-zone-1", "test-zone-2", "test-zone-3"]),
    ] {
        let pod = requiring(anywhere.clone()).prefer(1, slice::from_ref(&preference));
        assert!(is_scheduled(pool("default"), pod), "{preference}");
    }
}

#[test]
fn selectors_preferences_and_requirements_count_together() {
    let zones = req(ZONE, "In", &["test-zone-1", "test-zone-2", "test-zone-3"]);
    let pod = requiring(zones.clone()).prefer(1, &[zones]).select(ZONE, "test-zone-3");
    assert_eq!(label_of(pool("default"), pod, ZONE).as_deref(), Some("test-zone-3"));
}

#[test]
fn selectors_preferences_and_requirements_count_together_over_several_keys() {
    let pod = pod("a")
        .select(ZONE, "test-zone-3")
        .select(INSTANCE_TYPE, "arm-instance-type")
        .require(&[
            req(ZONE, "In", &["test-zone-1", "test-zone-3"]),
            req(INSTANCE_TYPE, "In", &["default-instance-type", "arm-instance-type"]),
        ])
        .prefer(
            1,
            &[
                req(ZONE, "NotIn", &["unknown"]),
                req(INSTANCE_TYPE, "NotIn", &["unknown"]),
            ],
        );
    let mut world = World::new().with(pool("default"));
    world.provision([pod]);
    assert_eq!(world.label("a", ZONE), Some("test-zone-3"));
    assert_eq!(world.label("a", INSTANCE_TYPE), Some("arm-instance-type"));
}

#[test]
fn pod_that_requires_a_restricted_label_is_not_scheduled() {
    assert!(!is_scheduled(
        pool("default"),
        requiring(req(HOSTNAME, "In", &["test"]))
    ));
}

#[test]
fn pod_that_requires_a_label_of_a_restricted_domain_is_not_scheduled() {
    let label = "karpenter.sh/test";
    assert!(
        !is_scheduled(pool("default"), requiring(req(label, "In", &["test"]))),
        "{label}"
    );
}

#[test]
fn pool_may_set_labels_of_the_kubernetes_domains_and_below() {
    for label in [
        "kubernetes.io/test",
        "k8s.io/test",
        "subdomain.kubernetes.io/test",
        "subdomain.k8s.io/test",
    ] {
        let pool = pool("default").requirement(req(label, "In", &["test-value"]));
        assert_eq!(
            label_of(pool, pod("a"), label).as_deref(),
            Some("test-value"),
            "{label}"
        );
    }
}

#[test]
fn pods_that_select_well_known_labels_are_scheduled() {
    let mut world = World::new().with(pool("default"));
    world.provision([
        pod("zone").select(ZONE, "test-zone-1"),
        pod("type").select(INSTANCE_TYPE, "default-instance-type"),
        pod("arch").select(ARCH, "arm64"),
        pod("system").select(OS, "linux"),
        pod("capacity").select(CAPACITY_TYPE, "spot"),
    ]);
    assert_eq!(world.pending(), Vec::<&str>::new());
}

#[test]
fn pool_that_is_not_ready_gets_no_pods() {
    assert!(!is_scheduled(pool("default").not_ready(), pod("a")));
}

#[test]
fn undefined_keys_admit_only_operators_that_need_no_label() {
    let cases: [(&str, &[&str], bool); 4] = [
        ("In", &["test-value"], false),
        ("NotIn", &["test-value"], true),
        ("Exists", &[], false),
        ("DoesNotExist", &[], true),
    ];
    for (operator, values, expected) in cases {
        let mut world = World::new().with(pool("default"));
        world.provision([requiring(req("test-key", operator, values))]);
        assert_eq!(world.is_scheduled("a"), expected, "{operator}");
        assert_ne!(world.label("a", "test-key"), Some("test-value"), "{operator}");
        assert!(operator != "DoesNotExist" || world.label("a", "test-key").is_none());
    }
}

#[test]
fn keys_the_pool_defines_are_matched_by_value() {
    let cases: [(&str, &[&str], bool); 6] = [
        ("In", &["test-value"], true),
        ("NotIn", &["test-value"], false),
        ("Exists", &[], true),
        ("DoesNotExist", &[], false),
        ("In", &["another-value"], false),
        ("NotIn", &["another-value"], true),
    ];
    for (operator, values, expected) in cases {
        let label = label_of(
            keyed_pool(&["test-value"]),
            requiring(req("test-key", operator, values)),
            "test-key",
        );
        assert_eq!(
            label.as_deref(),
            expected.then_some("test-value"),
            "{operator} {values:?}"
        );
    }
}

#[test]
fn unconstrained_pod_gets_the_value_the_pool_requires() {
    assert_eq!(
        label_of(keyed_pool(&["test-value"]), pod("a"), "test-key").as_deref(),
        Some("test-value")
    );
}

#[test]
fn compatible_pods_share_a_node() {
    let mut world = World::new().with(keyed_pool(&["test-value", "another-value"]));
    world.provision([
        pod("a").require(&[req("test-key", "In", &["test-value"])]),
        pod("b").require(&[req("test-key", "NotIn", &["another-value"])]),
    ]);
    assert_eq!(world.label("a", "test-key"), Some("test-value"));
    assert_eq!(world.label("b", "test-key"), Some("test-value"));
    assert_eq!(world.nodes_of("").len(), 1);
}

#[test]
fn incompatible_pods_get_nodes_of_their_own() {
    let mut world = World::new().with(keyed_pool(&["test-value", "another-value"]));
    world.provision([
        pod("a").require(&[req("test-key", "In", &["test-value"])]),
        pod("b").require(&[req("test-key", "In", &["another-value"])]),
    ]);
    assert_eq!(world.label("a", "test-key"), Some("test-value"));
    assert_eq!(world.label("b", "test-key"), Some("another-value"));
    assert_eq!(world.nodes_of("").len(), 2);
}

#[test]
fn exists_does_not_widen_a_value_required_beside_it() {
    let pod = pod("a").require(&[req(ZONE, "In", &["non-existent-zone"]), req(ZONE, "Exists", &[])]);
    assert!(!is_scheduled(pool("default"), pod));
}
