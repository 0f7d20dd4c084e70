//! What is written on the claims: requirements, labels, resources.

use std::collections::BTreeMap;

use model::plan::PlannedClaim;

use super::fixture::{labels::*, *};

fn claim_for(pool: Object, pods: impl IntoIterator<Item = Object>) -> PlannedClaim {
    let plan = World::new().with(pool).plan_for(pods);
    let [claim] = &plan.claims[..] else { panic!("{plan:?}") };
    claim.clone()
}

fn sorted_options(claim: &PlannedClaim) -> Vec<&str> {
    let mut options = options(claim);
    options.sort_unstable();
    options
}

fn requests(claim: &PlannedClaim) -> BTreeMap<String, String> {
    claim
        .requests
        .iter()
        .map(|(name, quantity)| (name.to_string(), quantity.to_string()))
        .collect()
}

fn amounts(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries
        .iter()
        .map(|(name, quantity)| ((*name).to_string(), (*quantity).to_string()))
        .collect()
}

fn label<'a>(claim: &'a PlannedClaim, key: &str) -> Option<&'a str> {
    claim
        .labels
        .iter()
        .find(|(label, _)| **label == *key)
        .map(|(_, value)| &**value)
}

const ALL: [&str; 6] = [
    "arm-instance-type",
    "default-instance-type",
    "gpu-vendor-b-instance-type",
    "gpu-vendor-instance-type",
    "single-pod-instance-type",
    "small-instance-type",
];

#[test]
fn claim_names_its_pool_and_all_types_that_fit() {
    let claim = claim_for(pool("default"), [pod("a")]);
    assert_eq!(sorted_options(&claim), ALL);
    assert_eq!(values(&claim, NODE_POOL), ["default"]);
}

#[test]
fn claim_names_the_custom_requirements_of_its_pool() {
    let keys = ["custom-requirement-key", "custom-requirement-key2"];
    let pool = keys.iter().fold(pool("default"), |pool, key| {
        pool.requirement(req(key, "In", &["value"]))
    });
    let claim = claim_for(pool, [pod("a")]);
    assert_eq!(sorted_options(&claim), ALL);
    assert_eq!(values(&claim, NODE_POOL), ["default"]);
    assert_eq!(keys.map(|key| values(&claim, key)), [["value"], ["value"]]);
}

#[test]
fn claim_names_only_types_that_meet_the_pools_requirements() {
    for (key, value) in [(ARCH, "arm64"), (OS, "ios")] {
        let claim = claim_for(pool("default").requirement(req(key, "In", &[value])), [pod("a")]);
        assert_eq!(values(&claim, key), [value]);
        assert_eq!(sorted_options(&claim), ["arm-instance-type"]);
    }
}

#[test]
fn claim_names_only_types_that_have_what_the_pod_asks_for() {
    let vendor = "fake.com/vendor-a";
    let claim = claim_for(pool("default"), [pod("a").request(vendor, "1").limited(vendor, "1")]);
    assert_eq!(sorted_options(&claim), ["gpu-vendor-instance-type"]);
}

#[test]
fn claim_asks_for_what_its_pods_ask_for() {
    let vendor = "fake.com/vendor-a";
    let pod = pod("a")
        .cpu("1")
        .memory("1Mi")
        .request(vendor, "1")
        .limited(vendor, "1");
    let claim = claim_for(pool("default"), [pod]);
    assert_eq!(
        requests(&claim),
        amounts(&[("cpu", "1"), ("memory", "1Mi"), (vendor, "1"), ("pods", "1")])
    );
}

#[test]
fn claim_asks_for_its_daemons_once() {
    let daemon = pod("").cpu("1").memory("1Mi");
    for (pods, expected) in [
        (1, [("cpu", "2"), ("memory", "2Mi"), ("pods", "2")]),
        (2, [("cpu", "3"), ("memory", "3Mi"), ("pods", "3")]),
    ] {
        let mut world = World::new().with(pool("default")).with(daemon_set("ds", &daemon));
        let plan = world.plan_for(replicas(pods, &pod("a").cpu("1").memory("1Mi")));
        assert_eq!(plan.claims.len(), 1);
        assert_eq!(requests(&plan.claims[0]), amounts(&expected), "{pods}");
    }
}

#[test]
fn claim_carries_the_labels_of_its_pool_and_of_custom_requirements() {
    let pool = pool("default")
        .template_label("test-key-1", "test-value-1")
        .requirement(req("test-key-2", "In", &["test-value-2"]))
        .requirement(req("test-key-3", "NotIn", &["test-value-3"]))
        .requirement(req("test-key-4", "Lt", &["4"]))
        .requirement(req("test-key-5", "Gt", &["5"]))
        .requirement(req("test-key-6", "Exists", &[]))
        .requirement(req("test-key-7", "DoesNotExist", &[]));
    let claim = claim_for(pool, [pod("a")]);
    assert_eq!(label(&claim, NODE_POOL), Some("default"));
    assert_eq!(label(&claim, "test-key-1"), Some("test-value-1"));
    assert_eq!(label(&claim, "test-key-2"), Some("test-value-2"));
    assert!(label(&claim, "test-key-3").is_some_and(|value| value != "test-value-3"));
    let number = |key| label(&claim, key).and_then(|value| value.parse::<i64>().ok());
    assert!(number("test-key-4").is_some_and(|value| value < 4));
    assert!(number("test-key-5").is_some_and(|value| value > 5));
    assert!(label(&claim, "test-key-6").is_some());
    assert_eq!(label(&claim, "test-key-7"), None);
}

#[test]
fn claim_carries_labels_of_the_kubernetes_domains_and_below() {
    for key in [
        "kubernetes.io/test",
        "k8s.io/test",
        "subdomain.kubernetes.io/test",
        "subdomain.k8s.io/test",
    ] {
        let pool = pool("default").template_label(key, "test-value");
        let claim = claim_for(pool, [pod("a").require(&[req(key, "In", &["test-value"])])]);
        assert_eq!(label(&claim, key), Some("test-value"), "{key}");
    }
}

#[test]
fn claim_is_not_labelled_with_well_known_requirements() {
    let windows = "node.kubernetes.io/windows-build";
    let pool =
        pool("default")
            .requirement(req("foo", "In", &["bar"]))
            .requirement(req(windows, "NotIn", &["test-value"]));
    let claim = claim_for(pool, [pod("a")]);
    assert_eq!(label(&claim, windows), None);
    assert_eq!(label(&claim, "foo"), Some("bar"));
}
