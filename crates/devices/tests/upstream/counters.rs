//! Devices that are parts of one another: upstream's K1 to K7 and its shared-counters suites.

use serde_json::{Value, json};

use crate::cluster::{
    Cluster, GPU, all, claim, exactly, gpus, held, node, nothing, slice, template, types, zonal_slice,
};

const ONE_TYPE: &[&str] = &["gpu-node"];

/// Partitions that draw from counters of the set `board`.
fn parts(draws: &[&[(&str, &str)]]) -> Value {
    let part = |(at, draws): (usize, &&[(&str, &str)])| {
        let counters: serde_json::Map<String, Value> = draws
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!({ "value": value })))
            .collect();
        json!({ "name": format!("part-{at}"), "consumesCounters": [{ "counterSet": "board", "counters": counters }] })
    };
    let parts: Vec<Value> = draws.iter().enumerate().map(part).collect();
    json!(parts)
}

fn board(counters: &[(&str, &str)]) -> Value {
    let counters: serde_json::Map<String, Value> = counters
        .iter()
        .map(|(name, value)| ((*name).to_owned(), json!({ "value": value })))
        .collect();
    json!([{ "name": "board", "counters": counters }])
}

/// What a type comes with: partitions and what they draw from.
fn partitioned(devices: &Value, counters: &Value) -> Value {
    let mut templates = template(devices);
    let counting = json!({ "driver": GPU, "pool": { "name": "node" }, "sharedCounters": counters });
    templates.as_array_mut().unwrap().push(counting);
    templates
}

/// The same as two published slices.
fn published(cluster: Cluster, devices: &Value, counters: &Value) -> Cluster {
    let mut offering = slice("net", devices);
    offering["pool"]["resourceSliceCount"] = json!(2);
    let mut counting = slice("net", &json!([]));
    counting["pool"]["resourceSliceCount"] = json!(2);
    counting["sharedCounters"] = counters.clone();
    cluster.slice(offering).slice(counting)
}

fn with_claims(mut cluster: Cluster, count: usize) -> Cluster {
    for at in 0..count {
        cluster = cluster.gpus(&format!("c{at}"), 1);
    }
    cluster
}

#[test]
fn k1_k2_partitions_fit_one_nodeclaim_within_the_budget_and_no_further() {
    let devices = parts(&[&[("memory", "40Gi")], &[("memory", "40Gi")], &[("memory", "40Gi")]]);
    let templates = partitioned(&devices, &board(&[("memory", "80Gi")]));
    let mut run = with_claims(Cluster::new().instance_type("gpu-node", &templates), 3).run();
    assert_eq!(run.put_on(claim(0, ONE_TYPE), &["c0"]), types(ONE_TYPE));
    assert_eq!(run.put_on(claim(0, ONE_TYPE), &["c1"]), types(ONE_TYPE));
    assert_eq!(run.try_on(claim(0, ONE_TYPE), &["c2"]), nothing());
    assert_eq!(run.try_on(claim(1, ONE_TYPE), &["c2"]), types(ONE_TYPE));
}

#[test]
fn k3_k7_every_counter_has_its_own_budget() {
    let light = &[("memory", "10Gi"), ("cores", "4")][..];
    let cases = [
        (board(&[("memory", "20Gi"), ("cores", "8")]), types(ONE_TYPE)),
        (board(&[("memory", "20Gi"), ("cores", "7")]), nothing()),
        (board(&[("memory", "19Gi"), ("cores", "8")]), nothing()),
    ];
    for (budget, expected) in cases {
        let templates = partitioned(&parts(&[light, light]), &budget);
        let mut run = with_claims(Cluster::new().instance_type("gpu-node", &templates), 2).run();
        assert_eq!(run.put_on(claim(0, ONE_TYPE), &["c0"]), types(ONE_TYPE));
        assert_eq!(run.try_on(claim(0, ONE_TYPE), &["c1"]), expected, "{budget}");
    }
}

#[test]
fn k5_partition_larger_than_the_budget_cannot_be_had() {
    let cases = [
        ("0", "0", types(ONE_TYPE)),
        ("0", "1", nothing()),
        ("80Gi", "81Gi", nothing()),
    ];
    for (budget, drawn, expected) in cases {
        let templates = partitioned(&parts(&[&[("memory", drawn)]]), &board(&[("memory", budget)]));
        let mut run = with_claims(Cluster::new().instance_type("gpu-node", &templates), 1).run();
        assert_eq!(run.try_on(claim(0, ONE_TYPE), &["c0"]), expected, "{budget} {drawn}");
    }
}

#[test]
fn k6_device_that_draws_from_what_is_not_there_cannot_be_had() {
    let devices = parts(&[&[("memory", "1Gi")]]);
    let elsewhere = json!([{ "name": "other", "counters": { "memory": { "value": "80Gi" } } }]);
    for counters in [elsewhere, board(&[("cores", "8")])] {
        let templates = partitioned(&devices, &counters);
        let to_come = Cluster::new().instance_type("gpu-node", &templates);
        let there = published(
            Cluster::new().instance_type("gpu-node", &json!([])),
            &devices,
            &counters,
        );
        for cluster in [to_come, there] {
            let mut run = with_claims(cluster, 1).run();
            assert_eq!(run.try_on(claim(0, ONE_TYPE), &["c0"]), nothing(), "{counters}");
        }
    }
}

#[test]
fn template_without_counters_offers_no_device_that_draws_from_them() {
    let templates = template(&parts(&[&[("memory", "1Gi")]]));
    let mut run = with_claims(Cluster::new().instance_type("gpu-node", &templates), 1).run();
    assert_eq!(run.try_on(claim(0, ONE_TYPE), &["c0"]), nothing());
}

#[test]
fn published_counters_are_shared_by_all_hosts() {
    let devices = parts(&[&[("memory", "40Gi")], &[("memory", "40Gi")], &[("memory", "40Gi")]]);
    let cluster = Cluster::new().instance_type("cpu", &json!([]));
    let mut run = with_claims(published(cluster, &devices, &board(&[("memory", "80Gi")])), 3).run();
    assert_eq!(run.put_on(claim(0, &["cpu"]), &["c0"]), types(&["cpu"]));
    assert_eq!(run.put_on(claim(1, &["cpu"]), &["c1"]), types(&["cpu"]));
    assert_eq!(run.try_on(claim(2, &["cpu"]), &["c2"]), nothing());
}

#[test]
fn devices_allocated_in_the_cluster_have_drawn_already_even_where_the_host_cannot_see_them() {
    let gpu = json!({ "requests": [exactly("gpu", "gpu", 1)] });
    let draws = parts(&[&[("memory", "50Gi")]]);
    let mut hidden = draws.clone();
    hidden[0]["name"] = json!("hidden");
    let of_three = |mut slice: Value| {
        slice["pool"]["resourceSliceCount"] = json!(3);
        slice
    };
    let mut counting = of_three(slice("net", &json!([])));
    counting["sharedCounters"] = board(&[("memory", "80Gi")]);
    let cases = [("hidden", nothing()), ("somebody-else", types(&["cpu"]))];
    for (device, expected) in cases {
        let cluster = Cluster::new()
            .instance_type("cpu", &json!([]))
            .slice(of_three(zonal_slice("net", &["zone-1"], &draws)))
            .slice(of_three(zonal_slice("net", &["zone-2"], &hidden)))
            .slice(counting.clone())
            .held_claim("old", gpu.clone(), held("net", device, &["live"]));
        let mut run = with_claims(cluster, 1).run();
        assert_eq!(
            run.try_on(claim(0, &["cpu"]).in_zones(&["zone-1"]), &["c0"]),
            expected,
            "{device}"
        );
    }
}

#[test]
fn dropped_types_give_back_what_only_they_had_drawn() {
    // "with" has a partition of its own, so only "without" draws from the published board.
    let shared = parts(&[&[("memory", "50Gi")], &[("memory", "50Gi")]]);
    let build = || {
        let cluster = Cluster::new()
            .instance_type("a", &json!([]))
            .instance_type("b", &json!([]));
        with_claims(published(cluster, &shared, &board(&[("memory", "80Gi")])), 2)
    };
    let both: &[&str] = &["a", "b"];
    let cases = [(both, nothing()), (&["a"][..], nothing()), (&[], types(&["a"]))];
    for (kept, expected) in cases {
        let mut run = build().run();
        assert_eq!(run.put_on_keeping(claim(0, both), &["c0"], kept), types(both));
        assert_eq!(run.try_on(claim(1, &["a"]), &["c1"]), expected, "{kept:?}");
    }
}

#[test]
fn counters_of_a_published_pool_and_of_one_to_come_are_apart_even_under_one_name() {
    let devices = parts(&[&[("memory", "80Gi")]]);
    let mut templates = partitioned(&devices, &board(&[("memory", "80Gi")]));
    for template in templates.as_array_mut().unwrap() {
        template["pool"]["name"] = json!("net");
    }
    let cluster = Cluster::new().instance_type("gpu-node", &templates);
    let mut run = with_claims(published(cluster, &devices, &board(&[("memory", "80Gi")])), 3).run();
    assert_eq!(run.put_on(claim(0, ONE_TYPE), &["c0"]), types(ONE_TYPE));
    assert_eq!(run.devices("c0", "gpu-node"), ["gpu: net/part-0"]);
    assert_eq!(run.put_on(claim(0, ONE_TYPE), &["c1"]), types(ONE_TYPE));
    assert_eq!(run.devices("c1", "gpu-node"), ["gpu: net/part-0*"]);
    assert_eq!(run.try_on(claim(0, ONE_TYPE), &["c2"]), nothing());
}

#[test]
fn all_partitions_can_only_be_had_when_the_budget_serves_them_together() {
    let devices = parts(&[&[("memory", "40Gi")], &[("memory", "40Gi")]]);
    let cases = [("80Gi", types(ONE_TYPE)), ("79Gi", nothing())];
    for (budget, expected) in cases {
        let templates = partitioned(&devices, &board(&[("memory", budget)]));
        let mut run = Cluster::new()
            .instance_type("gpu-node", &templates)
            .claim("c", json!({ "requests": [all("gpu", "gpu")] }))
            .run();
        assert_eq!(run.try_on(claim(0, ONE_TYPE), &["c"]), expected, "{budget}");
    }
}

#[test]
fn counter_that_is_used_up_keeps_devices_of_other_counters_out_within_one_attempt() {
    // Upstream stops looking at a pool's counting devices as soon as one of its counters is empty.
    let devices = parts(&[&[("memory", "80Gi")], &[("cores", "8")]]);
    let budget = board(&[("memory", "80Gi"), ("cores", "8")]);
    let build = |count| {
        let cluster = Cluster::new().instance_type("cpu", &json!([]));
        published(cluster, &devices, &budget).gpus("c", count).gpus("d", 1)
    };
    let mut run = build(2).run();
    assert_eq!(run.try_on(claim(0, &["cpu"]), &["c"]), nothing());
    let mut run = build(1).run();
    assert_eq!(run.put_on(claim(0, &["cpu"]), &["c"]), types(&["cpu"]));
    assert_eq!(run.put_on(claim(0, &["cpu"]), &["d"]), types(&["cpu"]));
}

#[test]
fn pool_with_one_set_of_counters_twice_offers_nothing_and_fails_requests_for_all() {
    let counting = |name: &str| {
        let mut slice = slice(name, &json!([]));
        slice["pool"]["resourceSliceCount"] = json!(3);
        slice["sharedCounters"] = board(&[("memory", "80Gi")]);
        slice
    };
    let mut offering = slice("net", &gpus(1));
    offering["pool"]["resourceSliceCount"] = json!(3);
    let mut run = Cluster::new()
        .instance_type("cpu", &json!([]))
        .slice(offering)
        .slice(counting("net"))
        .slice(counting("net"))
        .gpus("one", 1)
        .claim("all", json!({ "requests": [all("gpu", "gpu")] }))
        .run();
    assert_eq!(run.try_on(claim(0, &["cpu"]), &["one"]), nothing());
    let refusal = "validating claim \"all\": claim \"all\" request \"gpu\": pool gpu.example.com/net is invalid \
                   (duplicate device names)";
    assert_eq!(run.try_on(claim(0, &["cpu"]), &["all"]), Err(refusal.to_owned()));
    assert_eq!(run.try_on(node(0, "n", &["cpu"]), &["all"]), Err(refusal.to_owned()));
}
