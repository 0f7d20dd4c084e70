//! What when pools, devices or offerings leave nothing to launch?

use model::plan::RefusalKind;
use serde_json::json;
use workloads::catalogue::Offering;

use super::fixture::{labels::*, *};

const FILTERED: &str = "nodepool requirements filtered out all available instance types";

#[test]
fn pool_whose_requirements_no_type_meets_says_so() {
    let cases = [
        vec![req(INSTANCE_TYPE, "In", &["non-existent-instance-type"])],
        vec![req(ARCH, "In", &["non-existent-arch"])],
        vec![req(ARCH, "In", &["amd64"]), req(ARCH, "In", &["arm64"])],
        vec![req(ZONE, "In", &["non-existent-zone-1", "non-existent-zone-2"])],
    ];
    for requirements in cases {
        let pool = requirements.iter().fold(pool("default"), |pool, requirement| {
            pool.requirement(requirement.clone())
        });
        let plan = World::new()
            .with(pool)
            .plan_for(replicas(3, &pod("a").cpu("32").memory("256Gi")));
        assert_eq!(plan.unplaced.len(), 3, "{requirements:?}");
        for unplaced in &plan.unplaced {
            assert!(
                unplaced.message.contains(FILTERED),
                "{requirements:?}: {}",
                unplaced.message
            );
        }
    }
}

#[test]
fn pod_that_asks_for_devices_is_refused_while_such_requests_are_ignored() {
    let claims = json!([{ "name": "gpu-claim" }]);
    let plain = || pod("a").cpu("1").memory("1Gi");
    let container = |pod: Object| pod.value(|pod| pod["spec"]["containers"][0]["resources"]["claims"] = claims.clone());
    let init = |pod: Object| {
        pod.init(None, &[("cpu", "500m"), ("memory", "512Mi")], &[])
            .value(|pod| pod["spec"]["initContainers"][0]["resources"]["claims"] = claims.clone())
    };
    for (pod, is_refused) in [
        (container(plain()), true),
        (init(plain()), true),
        (init(container(plain())), true),
        (plain(), false),
    ] {
        let plan = World::new().with(pool("default")).plan_for([pod]);
        let refused: Vec<RefusalKind> = plan.unplaced.iter().map(|unplaced| unplaced.kind).collect();
        let expected: &[RefusalKind] = if is_refused {
            &[RefusalKind::DeviceRequestsIgnored]
        } else {
            &[]
        };
        assert_eq!((plan.claims.len(), &refused[..]), (usize::from(!is_refused), expected));
    }
}

#[test]
fn daemons_that_ask_for_devices_count_only_when_such_requests_do() {
    let daemon = pod("").cpu("3").value(|pod| {
        pod["spec"]["containers"][0]["resources"]["claims"] = json!([{ "name": "gpu-claim" }]);
    });
    for (is_ignored, expected) in [(true, "small-instance-type"), (false, "arm-instance-type")] {
        let mut world = World::new().with(pool("default")).with(daemon_set("ds", &daemon));
        world.settings["ignoreDRARequests"] = is_ignored.into();
        let plan = world.plan_for([pod("a").cpu("1")]);
        assert_eq!(
            plan.claims[0].options.iter().next().unwrap().as_str(),
            expected,
            "{is_ignored}"
        );
    }
}

/// A type whose offerings come again with four slots of an extended resource and more memory kept back.
fn with_overrides(is_available: bool) -> FakeType {
    let base = instance_type("override-capable").size("4", "8Gi").everywhere();
    [
        ("spot", "test-zone-1"),
        ("on-demand", "test-zone-1"),
        ("on-demand", "test-zone-2"),
    ]
    .iter()
    .fold(base, |kind, (capacity, zone)| {
        let mut offering = Offering::new(capacity, zone, "1.258993".to_string());
        offering.available = is_available;
        offering.capacity_override = json!({ "test.com/extended-slots": "4" }).as_object().cloned().unwrap();
        offering.overhead_override =
            json!({ "kubeReserved": {}, "systemReserved": { "memory": "1Gi" }, "evictionThreshold": {} });
        kind.offering(offering)
    })
}

fn slot_pod() -> Object {
    pod("a")
        .request("test.com/extended-slots", "1")
        .limited("test.com/extended-slots", "1")
}

#[test]
fn resource_of_an_offering_makes_its_type_the_only_option() {
    let normal = instance_type("normal").size("4", "8Gi").build();
    let plan = World::of([with_overrides(true).build(), normal])
        .with(pool("default"))
        .plan_for([slot_pod()]);
    assert_eq!(options(&plan.claims[0]), ["override-capable"]);
}

#[test]
fn resource_of_an_offering_that_cannot_be_had_does_not_help() {
    let plan = World::of([with_overrides(false).build()])
        .with(pool("default"))
        .plan_for([slot_pod()]);
    assert_eq!((plan.claims.len(), plan.unplaced.len()), (0, 1));
}
