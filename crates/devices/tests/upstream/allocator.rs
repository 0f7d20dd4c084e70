//! Who has which device and for how long: upstream's allocator suite.

use serde_json::json;

use crate::cluster::{Cluster, GPU, all, claim, exactly, gpus, gpus_with, held, node, nothing, slice, template, types};

const CPU: &[&str] = &["cpu"];

/// Published devices that every host can use, and a type without any.
fn with_pool(count: usize) -> Cluster {
    Cluster::new()
        .slice(slice("net", &gpus(count)))
        .instance_type("cpu", &json!([]))
}

#[test]
fn pod_without_claims_to_allocate_keeps_all_types() {
    let mut run = with_pool(0).run();
    assert_eq!(run.try_on(claim(0, CPU), &[]), types(CPU));
    assert_eq!(run.asked_of(claim(0, CPU), &[]), Ok(Vec::new()));
}

#[test]
fn requests_and_claims_of_a_pod_share_what_there_is() {
    let two = json!({ "requests": [exactly("a", "gpu", 1), exactly("b", "gpu", 1)] });
    let cases = [(1, nothing()), (2, nothing()), (3, types(CPU))];
    for (devices, expected) in cases {
        let mut run = with_pool(devices).claim("two", two.clone()).gpus("one", 1).run();
        assert_eq!(run.try_on(claim(0, CPU), &["two", "one"]), expected, "{devices}");
    }
}

#[test]
fn attempt_that_is_not_committed_takes_nothing() {
    let mut run = with_pool(1).gpus("a", 1).gpus("b", 1).run();
    assert_eq!(run.try_on(claim(0, CPU), &["a"]), types(CPU));
    assert_eq!(run.try_on(claim(0, CPU), &["b"]), types(CPU));
    assert_eq!(run.try_on(claim(1, CPU), &["b"]), types(CPU));
}

#[test]
fn published_device_serves_one_host_only() {
    let mut run = with_pool(1).gpus("a", 1).gpus("b", 1).run();
    assert_eq!(run.put_on(claim(0, CPU), &["a"]), types(CPU));
    assert_eq!(run.try_on(claim(0, CPU), &["b"]), nothing());
    assert_eq!(run.try_on(claim(1, CPU), &["b"]), nothing());
}

#[test]
fn published_device_may_serve_several_types_of_one_nodeclaim() {
    let both: &[&str] = &["cpu", "arm"];
    let mut run = with_pool(1)
        .instance_type("arm", &json!([]))
        .gpus("a", 1)
        .gpus("b", 1)
        .run();
    assert_eq!(run.put_on_keeping(claim(0, both), &["a"], both), types(both));
    assert_eq!(run.devices("a", "cpu"), ["gpu: net/gpu-0"]);
    assert_eq!(run.devices("a", "arm"), ["gpu: net/gpu-0"]);
}

#[test]
fn device_is_free_again_when_the_last_type_that_holds_it_is_dropped() {
    let both: &[&str] = &["cpu", "arm"];
    let cases = [(both, nothing()), (&["arm"][..], nothing()), (&[], types(CPU))];
    for (kept, expected) in cases {
        let mut run = with_pool(1)
            .instance_type("arm", &json!([]))
            .gpus("a", 1)
            .gpus("b", 1)
            .run();
        assert_eq!(run.put_on_keeping(claim(0, both), &["a"], kept), types(both));
        assert_eq!(run.try_on(claim(1, CPU), &["b"]), expected, "{kept:?}");
    }
}

#[test]
fn published_devices_come_before_those_of_the_type() {
    let mut run = Cluster::new()
        .slice(slice("net", &gpus(1)))
        .instance_type("gpu-node", &template(&gpus(2)))
        .gpus("c", 2)
        .run();
    assert_eq!(run.put_on(claim(0, &["gpu-node"]), &["c"]), types(&["gpu-node"]));
    assert_eq!(run.devices("c", "gpu-node"), ["gpu: net/gpu-0", "gpu: node/gpu-0*"]);
}

#[test]
fn device_of_a_node_serves_that_node_only() {
    let build = || {
        Cluster::new()
            .node("worker")
            .node_slice("worker", slice("worker", &gpus(1)))
            .instance_type("cpu", &json!([]))
            .gpus("c", 1)
    };
    let cases = [
        (node(0, "worker", CPU), types(CPU)),
        (node(1, "other", CPU), nothing()),
        (claim(0, CPU), nothing()),
    ];
    for (host, expected) in cases {
        assert_eq!(build().run().try_on(host, &["c"]), expected);
    }
}

#[test]
fn node_of_a_type_nobody_offers_uses_what_it_published() {
    let mut run = Cluster::new()
        .node("worker")
        .node_slice("worker", slice("worker", &gpus(1)))
        .gpus("a", 1)
        .gpus("b", 1)
        .run();
    let host = node(0, "worker", &["retired"]);
    assert_eq!(run.put_on(host, &["a"]), types(&["retired"]));
    assert_eq!(run.try_on(host, &["b"]), nothing());
}

#[test]
fn same_name_in_two_pools_is_two_devices() {
    let mut run = with_pool(1).slice(slice("other", &gpus(1))).gpus("c", 2).run();
    assert_eq!(run.put_on(claim(0, CPU), &["c"]), types(CPU));
    assert_eq!(run.devices("c", "cpu"), ["gpu: net/gpu-0", "gpu: other/gpu-0"]);
}

#[test]
fn only_the_newest_generation_of_a_pool_counts() {
    let generation = |number: i64, count: usize| {
        let mut slice = slice("net", &gpus(count));
        slice["pool"]["generation"] = json!(number);
        slice
    };
    let orders = [
        [generation(1, 3), generation(2, 1)],
        [generation(2, 1), generation(1, 3)],
    ];
    for [first, second] in orders {
        let mut run = Cluster::new()
            .slice(first)
            .slice(second)
            .instance_type("cpu", &json!([]))
            .gpus("one", 1)
            .gpus("two", 2)
            .run();
        assert_eq!(run.try_on(claim(0, CPU), &["one"]), types(CPU));
        assert_eq!(run.try_on(claim(0, CPU), &["two"]), nothing());
    }
}

#[test]
fn slice_that_says_nothing_of_nodes_reaches_none() {
    let mut nowhere = slice("net", &gpus(1));
    nowhere["allNodes"] = json!(false);
    let mut run = Cluster::new()
        .slice(nowhere)
        .instance_type("cpu", &json!([]))
        .gpus("c", 1)
        .run();
    assert_eq!(run.try_on(claim(0, CPU), &["c"]), nothing());
}

#[test]
fn constraints_make_the_search_go_back_over_requests() {
    // The first device alone would leave the second request without a match.
    let devices = gpus_with("rack", &["r1", "r2", "r3", "r3"]);
    let wish = json!({
        "requests": [exactly("a", "gpu", 1), exactly("b", "gpu", 1)],
        "constraints": [{ "matchAttribute": "gpu.example.com/rack" }],
    });
    let mut run = Cluster::new()
        .slice(slice("net", &devices))
        .instance_type("cpu", &json!([]))
        .claim("c", wish)
        .run();
    assert_eq!(run.put_on(claim(0, CPU), &["c"]), types(CPU));
    assert_eq!(run.devices("c", "cpu"), ["a: net/gpu-2", "b: net/gpu-3"]);
}

#[test]
fn constraints_of_one_type_do_not_leak_into_the_next() {
    let of = |value: &str| template(&gpus_with("rack", &[value, value]));
    let wish = json!({
        "requests": [exactly("a", "gpu", 2)],
        "constraints": [{ "matchAttribute": "gpu.example.com/rack" }],
    });
    let three: &[&str] = &["a", "odd", "b"];
    let mut run = Cluster::new()
        .instance_type("a", &of("r1"))
        .instance_type("odd", &template(&gpus_with("rack", &["r1", "r2"])))
        .instance_type("b", &of("r2"))
        .claim("c", wish)
        .run();
    assert_eq!(run.try_on(claim(0, three), &["c"]), types(&["a", "b"]));
}

#[test]
fn claim_is_allocated_anew_only_when_all_its_pods_move() {
    let gpu = json!({ "requests": [exactly("gpu", "gpu", 1)] });
    let mut by_somebody_else = held("net", "gpu-0", &[]);
    by_somebody_else["reservedFor"] = json!([{ "apiGroup": "x.example.com", "resource": "jobs", "uid": "mover" }]);
    let cases = [
        (held("net", "gpu-0", &["mover"]), vec!["gpu: net/gpu-0"]),
        (held("net", "gpu-0", &["mover", "live"]), vec![]),
        (held("net", "gpu-0", &["live"]), vec![]),
        (held("net", "gpu-0", &[]), vec![]),
        (by_somebody_else, vec![]),
    ];
    for (status, expected) in cases {
        let mut run = with_pool(1)
            .held_claim("c", gpu.clone(), status.clone())
            .moving("mover")
            .run();
        assert_eq!(run.put_on(claim(0, CPU), &["c"]), types(CPU));
        assert_eq!(run.devices("c", "cpu"), expected, "{status}");
    }
}

#[test]
fn claim_that_two_moving_pods_share_is_allocated_anew_once() {
    let gpu = json!({ "requests": [exactly("gpu", "gpu", 1)] });
    let status = held("net", "gpu-0", &["mover", "other"]);
    let mut run = with_pool(1)
        .held_claim("c", gpu, status)
        .moving("mover")
        .moving("other")
        .run();
    assert_eq!(run.put_on(claim(0, CPU), &["c"]), types(CPU));
    assert_eq!(run.put_on(claim(0, CPU), &["c"]), types(CPU));
    assert_eq!(run.devices("c", "cpu"), ["gpu: net/gpu-0"]);
}

#[test]
fn search_without_end_is_given_up_and_ends_the_run() {
    // Half of the devices are in one rack and half in the other: no way to have all but one of them alike.
    let racks: Vec<&str> = (0..30).map(|at| if at < 15 { "r1" } else { "r2" }).collect();
    let wish = json!({
        "requests": [exactly("a", "gpu", 15), exactly("b", "gpu", 14)],
        "constraints": [{ "matchAttribute": "gpu.example.com/rack", "requests": ["a"] },
                        { "matchAttribute": "gpu.example.com/missing", "requests": ["b"] }],
    });
    let two: &[&str] = &["x", "y"];
    let mut run = Cluster::new()
        .instance_type("x", &template(&gpus_with("rack", &racks)))
        .instance_type("y", &template(&gpus_with("rack", &racks)))
        .claim("c", wish)
        .run();
    assert_eq!(
        run.try_on(claim(0, two), &["c"]),
        Err("context deadline exceeded".to_owned())
    );
}

#[test]
fn request_for_all_and_one_for_some_do_not_get_the_same_device() {
    let wish = json!({ "requests": [exactly("one", "gpu", 1), all("all", "gpu")] });
    let mut run = with_pool(2).claim("c", wish).run();
    assert_eq!(run.try_on(claim(0, CPU), &["c"]), nothing());
}

#[test]
fn device_of_one_type_does_not_speak_for_its_namesake_of_another() {
    let wish = || {
        let expression = format!("device.attributes[\"{GPU}\"].model == \"large\"");
        let mut request = exactly("gpu", "gpu", 1);
        request["exactly"]["selectors"] = json!([{ "cel": { "expression": expression } }]);
        json!({ "requests": [request] })
    };
    let cluster = || {
        Cluster::new()
            .instance_type("small", &template(&gpus_with("model", &["small"])))
            .instance_type("large", &template(&gpus_with("model", &["large"])))
            .claim("c", wish())
    };
    let orders: [&[&str]; 2] = [&["small", "large"], &["large", "small"]];
    for order in orders {
        assert_eq!(cluster().run().try_on(claim(0, order), &["c"]), types(&["large"]));
    }
    // Upstream's mistake, when asked for: the first type decides for both.
    let by_name = |order| {
        let mut run = cluster().run();
        run.allocator = run.allocator.matching_by_name();
        run.try_on(claim(0, order), &["c"])
    };
    assert_eq!(orders.map(by_name), [nothing(), types(&["large", "small"])]);
}

#[test]
fn hosts_may_be_tried_from_several_threads_with_the_same_answers() {
    let wish = json!({ "requests": [exactly("gpu", "gpu", 1)] });
    let run = with_pool(1).claim("c", wish).run();
    let requirements = model::requirement::Requirements::default();
    let types = [run.allocator.type_id("cpu").unwrap()];
    let claims = run.allocator.claims_of(&crate::cluster::pod(&["c"])).unwrap();
    let attempt = |number| {
        let host = devices::Host {
            id: devices::HostId::Claim(number),
            node_name: None,
            requirements: &requirements,
            types: &types,
            has_templates: true,
        };
        let allocation = run.allocator.allocate(&host, &claims, &run.vocabulary);
        allocation.map(|allocation| allocation.types)
    };
    let attempt = &attempt;
    let answers = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|number| scope.spawn(move || attempt(number))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect::<Vec<_>>()
    });
    assert_eq!(answers, vec![Ok(types.to_vec()); 4]);
}
