//! Upstream's provisioning/dra_test, each behaviour under the letter it has there, as far as it is about devices. What
//! is left to the solver: A3, H3, N1, R1.

use crate::cluster::{
    Cluster, GPU, all, alternative, claim, exactly, gpus, gpus_with, held, node, nothing, pod, slice, template, types,
    zonal_slice, zones,
};
use devices::HostId;
use serde_json::json;

const ONE_TYPE: &[&str] = &["gpu-node"];

fn with_type(count: usize) -> Cluster {
    Cluster::new().instance_type("gpu-node", &template(&gpus(count)))
}

#[test]
fn a1_nodeclaim_gets_the_device_its_type_comes_with_and_names_the_driver() {
    let mut run = with_type(1).gpus("c", 1).run();
    assert_eq!(run.put_on(claim(0, ONE_TYPE), &["c"]), types(ONE_TYPE));
    assert_eq!(run.devices("c", "gpu-node"), ["gpu: node/gpu-0*"]);
    assert_eq!(run.drivers(HostId::Claim(0)), [GPU]);
    assert!(run.drivers(HostId::Claim(1)).is_empty());
}

#[test]
fn a2_only_types_that_provide_the_device_remain() {
    let mut run = with_type(1).instance_type("cpu-node", &json!([])).gpus("c", 1).run();
    let both = &["cpu-node", "gpu-node"];
    assert_eq!(run.put_on(claim(0, both), &["c"]), types(ONE_TYPE));
}

#[test]
fn a4_claim_made_from_a_template_is_found_in_the_pods_status() {
    let run = with_type(1).gpus("made-for-p", 1).run();
    let made = serde_json::from_value(json!({
        "metadata": { "namespace": "default", "name": "p" },
        "spec": { "containers": [], "resourceClaims": [{ "name": "gpu", "resourceClaimTemplateName": "t" }] },
        "status": { "resourceClaimStatuses": [{ "name": "gpu", "resourceClaimName": "made-for-p" }] },
    }))
    .unwrap();
    assert_eq!(
        run.allocator.claims_of(&made),
        run.allocator.claims_of(&pod(&["made-for-p"]))
    );
}

#[test]
fn b1_pods_on_one_nodeclaim_get_distinct_devices() {
    let mut run = with_type(2).gpus("a", 1).gpus("b", 1).run();
    for name in ["a", "b"] {
        assert_eq!(run.put_on(claim(0, ONE_TYPE), &[name]), types(ONE_TYPE));
    }
    assert_eq!(run.devices("a", "gpu-node"), ["gpu: node/gpu-0*"]);
    assert_eq!(run.devices("b", "gpu-node"), ["gpu: node/gpu-1*"]);
}

#[test]
fn b2_nodeclaim_without_devices_left_refuses_and_a_second_one_accepts() {
    let mut run = with_type(1).gpus("a", 1).gpus("b", 1).run();
    assert_eq!(run.put_on(claim(0, ONE_TYPE), &["a"]), types(ONE_TYPE));
    assert_eq!(run.try_on(claim(0, ONE_TYPE), &["b"]), nothing());
    assert_eq!(run.try_on(claim(1, ONE_TYPE), &["b"]), types(ONE_TYPE));
}

#[test]
fn c1_initialised_node_serves_the_device_it_published() {
    let published = slice("worker", &gpus(1));
    let mut run = Cluster::new()
        .node("worker")
        .node_slice("worker", published)
        .gpus("c", 1)
        .run();
    assert_eq!(run.put_on(node(0, "worker", &["m5"]), &["c"]), types(&["m5"]));
    assert_eq!(run.devices("c", "m5"), ["gpu: worker/gpu-0"]);
}

#[test]
fn d1_zonal_device_tightens_a_new_nodeclaim() {
    let mut run = Cluster::new()
        .slice(zonal_slice("net", &["zone-1"], &gpus(1)))
        .instance_type("cpu", &json!([]))
        .gpus("c", 1)
        .run();
    let host = claim(0, &["cpu"]).in_zones(&["zone-1", "zone-2"]);
    assert_eq!(run.asked_of(host, &["c"]), Ok(zones(&["zone-1"])));
    assert_eq!(run.try_on(host.in_zones(&["zone-2"]), &["c"]), nothing());
}

#[test]
fn d2_two_claims_collapse_a_nodeclaim_to_the_zone_they_share() {
    let in_zones = |pool, zones: &[&str]| {
        let mut spec = zonal_slice(pool, &[], &gpus_with("pool", &[pool]));
        let expression = json!({ "key": crate::cluster::ZONE, "operator": "In", "values": zones });
        spec["nodeSelector"]["nodeSelectorTerms"] = json!([{ "matchExpressions": [expression] }]);
        spec
    };
    let of = |pool: &str| {
        let selector = json!([{ "cel": { "expression": format!("device.attributes[\"{GPU}\"].pool == \"{pool}\"") } }]);
        let mut request = exactly("gpu", "gpu", 1);
        request["exactly"]["selectors"] = selector;
        json!({ "requests": [request] })
    };
    let mut run = Cluster::new()
        .slice(in_zones("left", &["zone-1", "zone-2"]))
        .slice(in_zones("right", &["zone-2", "zone-3"]))
        .instance_type("cpu", &json!([]))
        .claim("l", of("left"))
        .claim("r", of("right"))
        .run();
    assert_eq!(run.asked_of(claim(0, &["cpu"]), &["l", "r"]), Ok(zones(&["zone-2"])));
}

#[test]
fn e1_shared_claim_on_a_published_device_is_allocated_once_and_used_by_other_hosts() {
    let mut run = Cluster::new()
        .slice(slice("net", &gpus(1)))
        .instance_type("cpu", &json!([]))
        .gpus("shared", 1)
        .run();
    assert_eq!(run.put_on(claim(0, &["cpu"]), &["shared"]), types(&["cpu"]));
    assert_eq!(run.put_on(claim(0, &["cpu"]), &["shared"]), types(&["cpu"]));
    assert_eq!(run.put_on(claim(1, &["cpu"]), &["shared"]), types(&["cpu"]));
    assert_eq!(run.devices("shared", "cpu"), ["gpu: net/gpu-0"]);
}

#[test]
fn e2_shared_claim_on_a_device_to_come_keeps_its_pods_on_one_nodeclaim() {
    let mut run = with_type(1).gpus("shared", 1).run();
    assert_eq!(run.put_on(claim(0, ONE_TYPE), &["shared"]), types(ONE_TYPE));
    assert_eq!(run.put_on(claim(0, ONE_TYPE), &["shared"]), types(ONE_TYPE));
    let elsewhere = run.try_on(claim(1, ONE_TYPE), &["shared"]);
    let refusal = "claim is bound to a different in-flight NodeClaim (ResourceClaim=default/shared)";
    assert_eq!(elsewhere, Err(refusal.to_owned()));
}

#[test]
fn f1_request_for_all_devices_gets_every_match() {
    let mut run = with_type(3)
        .claim("c", json!({ "requests": [all("gpus", "gpu")] }))
        .run();
    assert_eq!(run.put_on(claim(0, ONE_TYPE), &["c"]), types(ONE_TYPE));
    let expected = ["gpus: node/gpu-0*", "gpus: node/gpu-1*", "gpus: node/gpu-2*"];
    assert_eq!(run.devices("c", "gpu-node"), expected);
}

#[test]
fn f2_devices_of_two_requests_share_the_constrained_attribute() {
    let devices = gpus_with("rack", &["r1", "r2", "r2"]);
    let constraint = json!([{ "matchAttribute": format!("{GPU}/rack") }]);
    let wish = json!({ "requests": [exactly("a", "gpu", 1), exactly("b", "gpu", 1)], "constraints": constraint });
    let mut run = Cluster::new()
        .instance_type("gpu-node", &template(&devices))
        .claim("c", wish)
        .run();
    assert_eq!(run.put_on(claim(0, ONE_TYPE), &["c"]), types(ONE_TYPE));
    assert_eq!(run.devices("c", "gpu-node"), ["a: node/gpu-1*", "b: node/gpu-2*"]);
}

#[test]
fn g1_every_driver_of_an_allocated_device_is_named_in_order() {
    let nic = json!({ "driver": "nic.example.com", "pool": { "name": "node" }, "devices": [{ "name": "nic-0" }] });
    let gpu = template(&gpus(1))[0].clone();
    let wish = json!({ "requests": [exactly("n", "nic", 1), exactly("g", "gpu", 1)] });
    let mut run = Cluster::new()
        .instance_type("gpu-node", &json!([nic, gpu]))
        .claim("c", wish)
        .run();
    assert_eq!(run.put_on(claim(0, ONE_TYPE), &["c"]), types(ONE_TYPE));
    assert_eq!(run.drivers(HostId::Claim(0)), [GPU, "nic.example.com"]);
}

#[test]
fn h1_fallback_alternative_is_named_with_its_request() {
    let alternatives = [alternative("many", "gpu", 4), alternative("few", "gpu", 2)];
    let wish = json!({ "requests": [{ "name": "gpu", "firstAvailable": alternatives }] });
    let mut run = with_type(2).claim("c", wish).run();
    assert_eq!(run.put_on(claim(0, ONE_TYPE), &["c"]), types(ONE_TYPE));
    assert_eq!(
        run.devices("c", "gpu-node"),
        ["gpu/few: node/gpu-0*", "gpu/few: node/gpu-1*"]
    );
}

#[test]
fn h2_preferred_alternative_is_taken_when_it_fits() {
    let alternatives = [alternative("many", "gpu", 2), alternative("few", "gpu", 1)];
    let wish = json!({ "requests": [{ "name": "gpu", "firstAvailable": alternatives }] });
    let mut run = with_type(2).claim("c", wish).run();
    assert_eq!(run.put_on(claim(0, ONE_TYPE), &["c"]), types(ONE_TYPE));
    assert_eq!(
        run.devices("c", "gpu-node"),
        ["gpu/many: node/gpu-0*", "gpu/many: node/gpu-1*"]
    );
}

#[test]
fn h1_device_of_an_earlier_run_is_not_allocated_again() {
    let gpu = json!({ "requests": [exactly("gpu", "gpu", 1)] });
    let mut run = Cluster::new()
        .slice(slice("net", &gpus(2)))
        .held_claim("old", gpu, held("net", "gpu-0", &["live"]))
        .instance_type("cpu", &json!([]))
        .gpus("new", 1)
        .run();
    assert_eq!(run.put_on(claim(0, &["cpu"]), &["new"]), types(&["cpu"]));
    assert_eq!(run.devices("new", "cpu"), ["gpu: net/gpu-1"]);
}

#[test]
fn h2_claim_of_an_earlier_run_needs_nothing_more() {
    let gpu = json!({ "requests": [exactly("gpu", "gpu", 1)] });
    let mut run = with_type(0)
        .held_claim("old", gpu, held("net", "gpu-0", &["live"]))
        .run();
    assert_eq!(run.put_on(claim(0, ONE_TYPE), &["old"]), types(ONE_TYPE));
    assert!(run.devices("old", "gpu-node").is_empty());
}

#[test]
fn i1_node_that_is_not_initialised_offers_the_devices_of_its_type() {
    let mut run = with_type(1).gpus("c", 1).run();
    let fresh = node(0, "fresh", ONE_TYPE).uninitialised();
    assert_eq!(run.put_on(fresh, &["c"]), types(ONE_TYPE));
    assert_eq!(run.devices("c", "gpu-node"), ["gpu: node/gpu-0*"]);
}

#[test]
fn i2_devices_of_a_node_count_once_before_and_after_it_initialises() {
    let cluster = |is_initialised: bool| {
        let cluster = with_type(1)
            .node_slice("n", slice("n", &gpus(1)))
            .gpus("a", 1)
            .gpus("b", 1);
        if is_initialised { cluster.node("n") } else { cluster }
    };
    let host = node(0, "n", ONE_TYPE);
    for (mut run, host) in [
        (cluster(false).run(), host.uninitialised()),
        (cluster(true).run(), host),
    ] {
        assert_eq!(run.put_on(host, &["a"]), types(ONE_TYPE));
        assert_eq!(run.try_on(host, &["b"]), nothing());
    }
}

#[test]
fn r2_allocations_are_known_by_the_claims_namespace_and_name() {
    let mut run = with_type(1).gpus("c", 1).run();
    assert_eq!(run.put_on(claim(0, ONE_TYPE), &["c"]), types(ONE_TYPE));
    let names: Vec<_> = run
        .allocator
        .allocations()
        .map(|(namespace, name, allocation)| (namespace.as_ref(), name.as_ref(), allocation.host))
        .collect();
    assert_eq!(names, [("default", "c", HostId::Claim(0))]);
}

#[test]
fn s1_s2_slices_of_nodes_that_are_not_initialised_or_not_there_do_not_count() {
    let mut owned = slice("gone", &gpus(1));
    owned["allNodes"] = json!(true);
    let mut run = Cluster::new()
        .node("other")
        .node_slice("gone", owned)
        .instance_type("cpu", &json!([]))
        .gpus("c", 1)
        .run();
    assert_eq!(run.try_on(node(0, "gone", &["cpu"]), &["c"]), nothing());
}

#[test]
fn u1_pod_waits_for_a_claim_that_does_not_exist_yet() {
    let run = with_type(1).run();
    let refusal = "resourceclaim \"default/late\" not found".to_owned();
    assert_eq!(run.allocator.claims_of(&pod(&["late"])), Err(refusal));
}

#[test]
fn u2_device_that_no_type_provides_cannot_be_had() {
    let mut run = with_type(1)
        .claim("c", json!({ "requests": [exactly("n", "nic", 1)] }))
        .run();
    assert_eq!(run.try_on(claim(0, ONE_TYPE), &["c"]), nothing());
}

#[test]
fn u3_missing_class_fails_the_claim_by_name() {
    let mut run = with_type(1)
        .claim("c", json!({ "requests": [exactly("r", "lost", 1)] }))
        .run();
    let refusal = "validating claim \"c\": claim \"c\" request \"r\": DeviceClass \"lost\" not found: \
                   DeviceClass.resource.k8s.io \"lost\" not found";
    assert_eq!(run.try_on(claim(0, ONE_TYPE), &["c"]), Err(refusal.to_owned()));
}

#[test]
fn u4_reference_whose_claim_was_not_needed_asks_for_nothing() {
    let run = with_type(1).run();
    for statuses in [json!([]), json!([{ "name": "gpu" }])] {
        let pod = serde_json::from_value(json!({
            "metadata": { "namespace": "default", "name": "p" },
            "spec": { "containers": [], "resourceClaims": [{ "name": "gpu", "resourceClaimTemplateName": "t" }] },
            "status": { "resourceClaimStatuses": statuses },
        }))
        .unwrap();
        assert_eq!(run.allocator.claims_of(&pod), Ok(Vec::new()));
    }
}

#[test]
fn v1_device_whose_only_user_is_moving_is_free_and_v2_one_with_a_live_user_is_not() {
    let gpu = json!({ "requests": [exactly("gpu", "gpu", 1)] });
    let cases = [("mover", types(&["cpu"])), ("live", nothing())];
    for (user, expected) in cases {
        let mut run = Cluster::new()
            .slice(slice("net", &gpus(1)))
            .held_claim("old", gpu.clone(), held("net", "gpu-0", &[user]))
            .instance_type("cpu", &json!([]))
            .gpus("new", 1)
            .moving("mover")
            .run();
        assert_eq!(run.try_on(claim(0, &["cpu"]), &["new"]), expected, "{user}");
    }
}

#[test]
fn x1_claims_in_two_zones_fit_no_node() {
    let gpu = json!({ "requests": [exactly("gpu", "gpu", 1)] });
    let in_zone = |zone: &str| {
        let term = json!({ "matchExpressions": [{ "key": crate::cluster::ZONE, "operator": "In", "values": [zone] }] });
        let mut status = held("net", zone, &["live"]);
        status["allocation"]["nodeSelector"] = json!({ "nodeSelectorTerms": [term] });
        status
    };
    let mut run = with_type(0)
        .held_claim("one", gpu.clone(), in_zone("zone-1"))
        .held_claim("two", gpu, in_zone("zone-2"))
        .run();
    let refusal = "in-cluster allocation topology is incompatible with NodeClaim requirements \
                   (ResourceClaim=default/two)";
    assert_eq!(run.try_on(claim(0, ONE_TYPE), &["one", "two"]), Err(refusal.to_owned()));
}

#[test]
fn x3_types_that_fit_otherwise_are_pruned_when_they_lack_the_device() {
    let mut run = with_type(1).gpus("c", 2).run();
    assert_eq!(run.try_on(claim(0, ONE_TYPE), &["c"]), nothing());
}
