//! Do pods get the devices they claim, on new nodes and on those there are?

use model::{
    object::NodeName,
    plan::{Plan, PlannedClaim, RefusalKind},
};
use packing::Prepared;
use serde_json::{Value, json};

use super::fixture::{devices::*, labels::*, *};

const DRIVERS: &str = "karpenter.sh/requested-dra-drivers";

fn drivers(claim: &PlannedClaim) -> Option<&str> {
    claim
        .annotations
        .iter()
        .find(|(key, _)| **key == *DRIVERS)
        .map(|(_, value)| &**value)
}

#[test]
fn pod_gets_a_node_with_the_device_and_its_driver_is_named() {
    let plan = plan_for_one([gpus(2)], exactly("gpu", 1));
    assert_eq!((outcome(&plan), drivers(&plan.claims[0])), ((1, 0, 0), Some(GPU)));
}

#[test]
fn only_types_with_the_device_are_options() {
    let plan = plan_for_one([gpus(1), instance_type("no-gpu-it")], exactly("gpu", 1));
    assert_eq!(options(&plan.claims[0]), ["gpu-it"]);
}

#[test]
fn pod_without_claims_names_no_driver() {
    let plan = world([gpus(1)]).plan_for([pod("a")]);
    assert_eq!((outcome(&plan), drivers(&plan.claims[0])), ((1, 0, 0), None));
}

fn of_template(name: &str, generated: Value) -> Object {
    pod(name)
        .with(
            "spec.resourceClaims",
            json!([{ "name": "gpu", "resourceClaimTemplateName": "gpu-template" }]),
        )
        .with(
            "status.resourceClaimStatuses",
            json!([{ "name": "gpu", "resourceClaimName": generated }]),
        )
        .value(|pod| pod["spec"]["containers"][0]["resources"]["claims"] = json!([{ "name": "gpu" }]))
}

#[test]
fn claim_made_from_a_template_is_found_by_the_pods_status() {
    let plan = world([gpus(1)])
        .with(gpu_claim("a-gpu"))
        .plan_for([of_template("a", json!("a-gpu"))]);
    assert_eq!((outcome(&plan), drivers(&plan.claims[0])), ((1, 0, 0), Some(GPU)));
}

#[test]
fn template_that_needs_no_claim_is_skipped() {
    let plan = world([gpus(1)]).plan_for([of_template("a", json!(null))]);
    assert_eq!((outcome(&plan), drivers(&plan.claims[0])), ((1, 0, 0), None));
}

#[test]
fn pods_share_a_node_until_its_devices_are_gone() {
    let each = [exactly("gpu", 1), exactly("gpu", 1)];
    assert_eq!(outcome(&plan_for_each(gpus(2), &each)), (1, 0, 0));
    assert_eq!(outcome(&plan_for_each(gpus(1), &each)), (2, 0, 0));
}

#[test]
fn request_for_all_devices_takes_them_all() {
    let all = json!({ "name": "req", "exactly": { "deviceClassName": "gpu", "allocationMode": "All" } });
    assert_eq!(outcome(&plan_for_one([gpus(3)], all.clone())), (1, 0, 0));
    assert_eq!(outcome(&plan_for_each(gpus(3), &[all, exactly("gpu", 1)])), (2, 0, 0));
}

#[test]
fn devices_that_must_agree_on_an_attribute_are_found() {
    let root = "gpu.example.com/pcieRoot";
    for (second, placed) in [("root-a", true), ("root-b", false)] {
        let device = |name: &str, value: &str| json!({ "name": name, "attributes": { root: { "string": value } } });
        let devices = json!([device("gpu-0", "root-a"), device("gpu-1", second)]);
        let kind = instance_type("gpu-it").devices(json!([template(GPU, "gpu-it-pool", devices)]));
        let named = |name: &str| {
            let mut request = exactly("gpu", 1);
            request["name"] = name.into();
            request
        };
        let claim = claim_for("gpu", json!([named("req-a"), named("req-b")]))
            .with("spec.devices.constraints", json!([{ "matchAttribute": root }]));
        let plan = world([kind]).with(claim).plan_for([user("a", &["gpu"])]);
        assert_eq!(plan.claims.len() == 1, placed, "{second}");
    }
}

#[test]
fn first_alternative_that_can_be_had_is_taken() {
    let alternative = |name: &str, count: u32| json!({ "name": name, "deviceClassName": "gpu", "count": count });
    let request =
        json!({ "name": "req", "firstAvailable": [alternative("prefer-4", 4), alternative("fallback-2", 2)] });
    assert_eq!(outcome(&plan_for_one([gpus(2)], request.clone())), (1, 0, 0));
    // What is left of four devices tells which alternative was taken.
    assert_eq!(
        outcome(&plan_for_each(gpus(4), &[request.clone(), exactly("gpu", 1)])),
        (2, 0, 0)
    );
    assert_eq!(
        outcome(&plan_for_each(gpus(3), &[request, exactly("gpu", 1)])),
        (1, 0, 0)
    );
}

#[test]
fn all_drivers_whose_devices_are_used_are_named() {
    let devices = json!([
        template(GPU, "gpu-pool", json!([{ "name": "gpu-0" }])),
        template(NIC, "nic-pool", json!([{ "name": "nic-0" }]))
    ]);
    let mut world = world([instance_type("multi-it").devices(devices)]);
    world.add(gpu_claim("gpu"));
    world.add(claim_for("nic", json!([exactly("nic", 1)])));
    let plan = world.plan_for([user("a", &["gpu", "nic"])]);
    assert_eq!(drivers(&plan.claims[0]), Some("gpu.example.com,nic.example.com"));
}

#[test]
fn device_a_running_pod_holds_is_not_given_again() {
    let mut world = world([gpus(1)])
        .with(node_with("gpu-it", "own").initialized())
        .with(slice_of("own", "gpu-0"));
    let holder = user("holder", &["held"]).on("own");
    let pool = format!("{GPU}-own");
    let allocated = held("held", exactly("gpu", 1), None, &holder).value(|claim| {
        let result = &mut claim["status"]["allocation"]["devices"]["results"][0];
        result["pool"] = pool.as_str().into();
        result["device"] = "gpu-0".into();
    });
    world.add(allocated);
    world.add(holder);
    world.add(gpu_claim("gpu"));
    assert_eq!(outcome(&world.plan_for([user("a", &["gpu"])])), (1, 0, 0));
}

#[test]
fn claim_that_does_not_exist_yet_is_waited_for() {
    let mut world = world([gpus(1)]);
    assert_eq!(outcome(&world.plan_for([user("a", &["late"])])), (0, 0, 1));
    world.add(gpu_claim("late"));
    assert_eq!(outcome(&world.plan()), (1, 0, 0));
}

#[test]
fn claims_are_refused_while_such_requests_are_ignored() {
    let mut world = world([gpus(1)])
        .with(gpu_claim("gpu"))
        .setting("ignoreDRARequests", true);
    let plan = world.plan_for([user("a", &["gpu"])]);
    assert_eq!(
        (plan.claims.len(), plan.unplaced[0].kind),
        (0, RefusalKind::DeviceRequestsIgnored)
    );
}

#[test]
fn device_no_type_has_cannot_be_had() {
    assert_eq!(
        outcome(&plan_for_one([instance_type("no-gpu-it")], exactly("gpu", 1))),
        (0, 0, 1)
    );
}

#[test]
fn class_that_does_not_exist_cannot_be_had() {
    assert_eq!(outcome(&plan_for_one([gpus(1)], exactly("missing", 1))), (0, 0, 1));
}

/// A pod that needs a GPU and a NIC, each only in one zone.
fn zoned(gpu_zone: &str, nic_zone: &str) -> Plan {
    let mut world = world([plain()])
        .with(gpu_claim("gpu"))
        .with(claim_for("nic", json!([exactly("nic", 1)])));
    world.add(slice("zoned-gpu", GPU, &["zoned-gpu-0"], &in_zone(gpu_zone)));
    world.add(slice("zoned-nic", NIC, &["zoned-nic-0"], &in_zone(nic_zone)));
    world.plan_for([user("a", &["gpu", "nic"])])
}

#[test]
fn devices_of_different_zones_cannot_be_combined() {
    assert_eq!(outcome(&zoned("test-zone-1", "test-zone-2")), (0, 0, 1));
}

#[test]
fn devices_of_one_zone_bind_the_claim_to_it() {
    let plan = zoned("test-zone-2", "test-zone-2");
    assert_eq!(
        (outcome(&plan), values(&plan.claims[0], ZONE)),
        ((1, 0, 0), vec!["test-zone-2"])
    );
}

#[test]
fn device_of_a_zone_binds_the_claim_to_it() {
    let mut world = world([gpus(1)]).with(gpu_claim("gpu"));
    world.add(slice("zoned-gpu", GPU, &["zoned-gpu-0"], &in_zone("test-zone-2")));
    let plan = world.plan_for([user("a", &["gpu"])]);
    assert_eq!(
        (outcome(&plan), values(&plan.claims[0], ZONE)),
        ((1, 0, 0), vec!["test-zone-2"])
    );
}

#[test]
fn type_with_the_device_must_meet_the_pods_other_wishes() {
    let devices = json!([template(GPU, "arm-gpu-pool", json!([{ "name": "arm-gpu-0" }]))]);
    let types = [
        instance_type("arm-gpu-it").arch("arm64").devices(devices),
        instance_type("amd-no-gpu-it"),
    ];
    let mut world = world(types).with(gpu_claim("gpu"));
    let plan = world.plan_for([user("a", &["gpu"]).require(&[req(ARCH, "In", &["amd64"])])]);
    assert_eq!(outcome(&plan), (0, 0, 1));
}

#[test]
fn types_of_a_claim_with_a_pod_are_searched_by_the_daemons_they_run() {
    let models = |model: &str| {
        let device = json!({ "name": "gpu-0", "attributes": { "model": { "string": model } } });
        json!([template(GPU, "pool", json!([device]))])
    };
    let mut request = exactly("gpu", 1);
    let is_large = format!("device.attributes[\"{GPU}\"].model == \"large\"");
    request["exactly"]["selectors"] = json!([{ "cel": { "expression": is_large } }]);
    let types = [
        instance_type("first"),
        instance_type("second").arch("arm64").devices(models("small")),
        instance_type("third").devices(models("large")),
    ];
    let mut world = world(types).with(claim_for("gpu", json!([request])));
    world.add(daemon_set("daemon", &pod("daemon").select(ARCH, "amd64")));
    // What the device of one type says is then remembered of all devices of its name.
    world.options.is_matching_devices_by_name = true;
    let plan = world.plan_for([pod("plain").cpu("1"), user("a", &["gpu"])]);
    assert_eq!(outcome(&plan), (1, 0, 0));
    assert_eq!(options(&plan.claims[0]), ["second", "third"]);
}

#[test]
fn pods_with_and_without_claims_are_planned_together() {
    let plan = world([gpus(1)])
        .with(gpu_claim("gpu"))
        .plan_for([user("a", &["gpu"]), pod("b")]);
    assert_eq!((plan.placed(), plan.unplaced.len()), (2, 0));
}

#[test]
fn device_of_a_running_node_is_used_before_a_new_node_is_launched() {
    let mut world = world([gpus(1)]).with(gpu_claim("gpu"));
    world.add(node_with("gpu-it", "own").initialized());
    world.add(slice_of("own", "incluster-gpu-0"));
    assert_eq!(outcome(&world.plan_for([user("a", &["gpu"])])), (0, 1, 0));
}

#[test]
fn pods_that_share_a_claim_share_its_device() {
    let mut one = world([plain()]).with(gpu_claim("shared"));
    one.add(slice("shared", GPU, &["shared-0"], &json!({ "allNodes": true })));
    let plan = one.plan_for([user("a", &["shared"]), user("b", &["shared"])]);
    assert_eq!((plan.placed(), plan.unplaced.len()), (2, 0));
    let mut other = world([gpus(2)]).with(gpu_claim("shared"));
    assert_eq!(
        outcome(&other.plan_for([user("a", &["shared"]), user("b", &["shared"])])),
        (1, 0, 0)
    );
}

/// A cluster whose only GPU a pod holds, on a node that stays or goes.
fn with_held_device(is_leaving: bool) -> World {
    let own = node_with("plain-it", "own").initialized();
    let holder = pod("holder").on("own");
    let mut world = world([plain()]).with(if is_leaving { own.deleting() } else { own });
    world.add(slice("shared", GPU, &["shared-0"], &json!({ "allNodes": true })));
    world.add(held("held", exactly("gpu", 1), None, &holder));
    world.add(holder);
    world.add(gpu_claim("new"));
    world
}

#[test]
fn device_a_pod_holds_is_free_once_its_node_goes_away() {
    for (is_leaving, unplaced) in [(false, 1), (true, 0)] {
        let plan = with_held_device(is_leaving).plan_for([user("a", &["new"])]);
        assert_eq!(plan.unplaced.len(), unplaced, "{is_leaving}");
    }
}

#[test]
fn published_devices_of_a_node_not_yet_up_do_not_count() {
    let mut world = world([plain()])
        .with(gpu_claim("gpu"))
        .with(slice_of("own", "incluster-gpu-0"));
    let own = node_with("plain-it", "own");
    let condition = |kind: &str| json!({ "type": kind, "status": "True", "reason": kind });
    world.add(claim(&own, "default").with(
        "status.conditions",
        json!([condition("Launched"), condition("Registered")]),
    ));
    world.add(own);
    assert_eq!(outcome(&world.plan_for([user("a", &["gpu"])])), (0, 0, 1));
    world.initialize("own");
    assert_eq!(outcome(&world.plan()), (0, 1, 0));
}

#[test]
fn published_devices_of_a_node_nobody_knows_do_not_count() {
    let mut world = world([gpus(1)])
        .with(gpu_claim("gpu"))
        .with(slice_of("orphan-node", "orphan-gpu-0"));
    assert_eq!(outcome(&world.plan_for([user("a", &["gpu"])])), (1, 0, 0));
}

#[test]
fn devices_of_a_node_count_once_when_it_comes_up() {
    let mut world = world([gpus(1)]).with(gpu_claim("gpu")).with(gpu_claim("second"));
    world.add(node_with("gpu-it", "own").initialized());
    world.add(slice_of("own", "incluster-gpu-0"));
    let plan = world.plan_for([user("a", &["gpu"]), user("b", &["second"])]);
    assert_eq!(outcome(&plan), (1, 1, 0));
}

/// Where the pods of `own` would go without it.
fn plan_without_own(world: &World) -> Plan {
    let prepared = Prepared::new(&world.snapshot(), &world.options);
    let simulation = prepared.simulator().without(&[NodeName::from("own")]);
    simulation.unwrap().plan
}

/// A cluster of `own` and an empty node beside it. Devices of the pool `shared` are published as the slice says, and a pod
/// on `own` holds one.
fn with_holder_on_own(kind: FakeType, slice: Object) -> World {
    let holder = user("holder", &["held"]).on("own");
    let mut world = world([kind]).with(slice);
    world.add(node_with("plain-it", "own").initialized());
    world.add(node_with("plain-it", "beside").initialized());
    world.add(held("held", exactly("gpu", 1), None, &holder));
    world.add(holder);
    world
}

#[test]
fn pod_of_a_removed_node_needs_its_devices_anew() {
    let own = json!({ "apiVersion": "v1", "kind": "Node", "name": "own", "uid": "uid-own" });
    let local = slice("shared", GPU, &["shared-0"], &json!({ "nodeName": "own" })).owned_by(own);
    assert_eq!(
        outcome(&plan_without_own(&with_holder_on_own(gpus(1), local.clone()))),
        (1, 0, 0)
    );
    assert_eq!(
        outcome(&plan_without_own(&with_holder_on_own(plain(), local))),
        (0, 0, 1)
    );
}

#[test]
fn device_that_stays_goes_on_to_the_pod_that_moves() {
    let shared = slice("shared", GPU, &["shared-0"], &json!({ "allNodes": true }));
    let mut world = with_holder_on_own(plain(), shared);
    assert_eq!(outcome(&plan_without_own(&world)), (0, 1, 0));
    // One device, and a second pod that waits for it: only one of them can have it.
    world.add(gpu_claim("new"));
    world.add(user("a", &["new"]));
    assert_eq!(plan_without_own(&world).unplaced.len(), 1);
}

#[test]
fn devices_a_removed_node_publishes_for_all_go_with_it() {
    let own = json!({ "apiVersion": "v1", "kind": "Node", "name": "own", "uid": "uid-own" });
    let shared = slice("shared", GPU, &["shared-0"], &json!({ "allNodes": true })).owned_by(own);
    assert_eq!(
        outcome(&plan_without_own(&with_holder_on_own(plain(), shared))),
        (0, 0, 1)
    );
}
