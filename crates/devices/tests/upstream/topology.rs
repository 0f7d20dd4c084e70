//! Where devices can be used and what that asks of NodeClaims: upstream's topology, accumulation and release suites.

use serde_json::{Value, json};

use crate::cluster::{
    Cluster, GPU, ZONE, claim, exactly, gpus, gpus_with, held, nothing, slice, template, types, zonal_slice, zones,
};

const CPU: &[&str] = &["cpu"];

fn with_cpu() -> Cluster {
    Cluster::new().instance_type("cpu", &json!([]))
}

/// A claim for one device of a model.
fn of_model(model: &str) -> Value {
    let mut request = exactly("gpu", "gpu", 1);
    let expression = format!("device.attributes[\"{GPU}\"].model == \"{model}\"");
    request["exactly"]["selectors"] = json!([{ "cel": { "expression": expression } }]);
    json!({ "requests": [request] })
}

fn zonal(pool: &str, zone: &str) -> Value {
    zonal_slice(pool, &[zone], &gpus_with("model", &[pool]))
}

#[test]
fn devices_in_zones_apart_cannot_serve_one_claim() {
    let build = |second: &str| {
        with_cpu()
            .slice(zonal("a", "zone-1"))
            .slice(zonal("b", second))
            .gpus("c", 2)
    };
    assert_eq!(
        build("zone-1").run().asked_of(claim(0, CPU), &["c"]),
        Ok(zones(&["zone-1"]))
    );
    assert_eq!(build("zone-2").run().try_on(claim(0, CPU), &["c"]), nothing());
}

#[test]
fn search_goes_back_from_a_zone_where_the_rest_cannot_be_had() {
    let mut run = with_cpu()
        .slice(zonal("a", "zone-1"))
        .slice(zonal_slice("b", &["zone-2"], &gpus(2)))
        .gpus("c", 2)
        .run();
    assert_eq!(run.asked_of(claim(0, CPU), &["c"]), Ok(zones(&["zone-2"])));
    assert_eq!(run.put_on(claim(0, CPU), &["c"]), types(CPU));
    assert_eq!(run.devices("c", "cpu"), ["gpu: b/gpu-0", "gpu: b/gpu-1"]);
}

#[test]
fn what_one_type_needs_holds_for_the_types_after_it() {
    // "own" has a device; the others need published ones, and the first of them decides on the zone.
    let wish = of_model("a");
    let build = |second: &str| {
        Cluster::new()
            .slice(zonal("a", "zone-1"))
            .slice(zonal("b", second))
            .instance_type("one", &json!([]))
            .instance_type("own", &template(&gpus_with("model", &["a"])))
            .claim("c", wish.clone())
            .claim("d", of_model("b"))
    };
    let both: &[&str] = &["one", "own"];
    assert_eq!(
        build("zone-1").run().asked_of(claim(0, both), &["c"]),
        Ok(zones(&["zone-1"]))
    );
    let mut run = build("zone-2").run();
    assert_eq!(run.put_on(claim(0, both), &["c"]), types(both));
    assert_eq!(run.devices("c", "own"), ["gpu: a/gpu-0"]);
}

#[test]
fn terms_of_a_selector_are_alternatives_to_matching_and_conditions_to_the_nodeclaim() {
    let mut run = with_cpu()
        .slice(zonal_slice("net", &["zone-1", "zone-2"], &gpus(1)))
        .gpus("c", 1)
        .run();
    // The slice reaches zone-1, but a device of it would ask for zone-1 and zone-2 at once.
    assert_eq!(run.try_on(claim(0, CPU).in_zones(&["zone-1"]), &["c"]), nothing());
}

/// The status of a claim whose device is in a zone.
fn held_in(zone: &str) -> Value {
    let term = json!({ "matchExpressions": [{ "key": ZONE, "operator": "In", "values": [zone] }] });
    let mut status = held("far", zone, &["live"]);
    status["allocation"]["nodeSelector"] = json!({ "nodeSelectorTerms": [term] });
    status
}

#[test]
fn allocated_claim_asks_for_its_zone_and_narrows_the_search_for_the_others() {
    let gpu = json!({ "requests": [exactly("gpu", "gpu", 1)] });
    let build = |zone: &str| {
        with_cpu()
            .held_claim("old", gpu.clone(), held_in("zone-1"))
            .slice(zonal("a", zone))
            .gpus("new", 1)
    };
    let host = claim(0, CPU).in_zones(&["zone-1", "zone-2"]);
    assert_eq!(build("zone-1").run().asked_of(host, &["old"]), Ok(zones(&["zone-1"])));
    assert_eq!(build("zone-1").run().try_on(host, &["old", "new"]), types(CPU));
    assert_eq!(build("zone-2").run().try_on(host, &["old", "new"]), nothing());
    let refusal = "in-cluster allocation topology is incompatible with NodeClaim requirements \
                   (ResourceClaim=default/old)";
    let elsewhere = build("zone-1").run().try_on(host.in_zones(&["zone-2"]), &["old"]);
    assert_eq!(elsewhere, Err(refusal.to_owned()));
}

#[test]
fn what_allocated_claims_ask_is_left_out_as_soon_as_others_are_searched_for() {
    let gpu = json!({ "requests": [exactly("gpu", "gpu", 1)] });
    let mut run = with_cpu()
        .held_claim("old", gpu, held_in("zone-1"))
        .slice(slice("net", &gpus(1)))
        .gpus("new", 1)
        .run();
    assert_eq!(run.asked_of(claim(0, CPU), &["old", "new"]), Ok(Vec::new()));
}

#[test]
fn selector_by_the_nodes_name_asks_nothing() {
    let gpu = json!({ "requests": [exactly("gpu", "gpu", 1)] });
    let term = json!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["far"] }] });
    let mut status = held("far", "gpu-0", &["live"]);
    status["allocation"]["nodeSelector"] = json!({ "nodeSelectorTerms": [term] });
    let mut run = with_cpu().held_claim("old", gpu, status).run();
    assert_eq!(run.try_on(claim(0, CPU), &["old"]), types(CPU));
}

#[test]
fn claim_of_this_run_asks_its_zone_of_every_other_host() {
    let mut run = with_cpu().slice(zonal("a", "zone-1")).gpus("shared", 1).run();
    assert_eq!(run.put_on(claim(0, CPU), &["shared"]), types(CPU));
    let other = claim(1, CPU).in_zones(&["zone-1", "zone-2"]);
    assert_eq!(run.asked_of(other, &["shared"]), Ok(zones(&["zone-1"])));
    let refusal = "in-memory allocation topology is incompatible with NodeClaim requirements \
                   (ResourceClaim=default/shared)";
    assert_eq!(
        run.try_on(other.in_zones(&["zone-2"]), &["shared"]),
        Err(refusal.to_owned())
    );
}

#[test]
fn claim_of_this_run_is_relaxed_when_the_type_that_needs_the_zone_is_dropped() {
    // "own" is tried first and has a device of its own that is not published.
    let build = || {
        Cluster::new()
            .slice(zonal("a", "zone-1"))
            .slice(slice("wide", &gpus_with("model", &["b"])))
            .instance_type("one", &json!([]))
            .instance_type("two", &json!([]))
            .gpus("first", 1)
            .gpus("second", 1)
    };
    let both: &[&str] = &["one", "two"];
    let mut run = build().run();
    assert_eq!(run.put_on_keeping(claim(0, both), &["first"], &["one"]), types(both));
    assert_eq!(run.asked_of(claim(1, both), &["first"]), Ok(zones(&["zone-1"])));
    let mut run = build().run();
    assert_eq!(run.put_on_keeping(claim(0, both), &["first"], &[]), types(both));
    assert_eq!(run.asked_of(claim(1, both), &["first"]), Ok(Vec::new()));
}

#[test]
fn host_that_was_narrowed_to_a_zone_no_longer_sees_devices_of_others() {
    let mut run = with_cpu()
        .slice(zonal("a", "zone-1"))
        .slice(zonal("b", "zone-2"))
        .claim("first", of_model("a"))
        .claim("second", of_model("b"))
        .run();
    assert_eq!(run.put_on(claim(0, CPU), &["first"]), types(CPU));
    // Even if the caller forgot to narrow the claim itself.
    assert_eq!(run.try_on(claim(0, CPU), &["second"]), nothing());
    assert_eq!(run.try_on(claim(1, CPU), &["second"]), types(CPU));
}

#[test]
fn label_that_is_not_well_known_must_be_there() {
    let mut racks = slice("net", &gpus(1));
    racks["allNodes"] = json!(null);
    let expression = json!({ "key": "example.com/rack", "operator": "In", "values": ["r1"] });
    racks["nodeSelector"] = json!({ "nodeSelectorTerms": [{ "matchExpressions": [expression] }] });
    let mut run = with_cpu().slice(racks).gpus("c", 1).run();
    assert_eq!(run.try_on(claim(0, CPU), &["c"]), nothing());
}
