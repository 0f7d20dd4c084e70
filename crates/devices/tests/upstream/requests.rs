//! What claims may ask and what is wrong with others: upstream's request, constraint and binding suites.

use serde_json::{Value, json};

use crate::cluster::{
    Answer, Cluster, GPU, all, alternative, claim, exactly, gpus, gpus_with, nothing, slice, template, types,
};

const ONE_TYPE: &[&str] = &["gpu-node"];

fn invalid(reason: &str) -> Answer {
    Err(format!("validating claim \"c\": {reason}"))
}

fn selecting(request: Value, expression: &str) -> Value {
    let mut request = request;
    request["exactly"]["selectors"] = json!([{ "cel": { "expression": expression } }]);
    request
}

fn is_model(model: &str) -> String {
    format!("device.attributes[\"{GPU}\"].model == \"{model}\"")
}

#[test]
fn claim_that_cannot_be_read_says_what_is_wrong_with_it() {
    let gpu = || exactly("gpu", "gpu", 1);
    let mut no_cel = gpu();
    no_cel["exactly"]["selectors"] = json!([{}]);
    let first = |alternatives: &[Value]| json!({ "requests": [{ "name": "gpu", "firstAvailable": alternatives }] });
    let cases = [
        (
            json!({ "requests": [{ "name": "gpu" }] }),
            "claim \"c\" request \"gpu\": only Exactly and FirstAvailable requests are supported",
        ),
        (
            json!({ "requests": [no_cel] }),
            "claim \"c\" request \"gpu\": unsupported selector type (only CEL is supported)",
        ),
        (
            json!({ "requests": [exactly("gpu", "odd", 1)] }),
            "claim \"c\" request \"gpu\": DeviceClass \"odd\" has unsupported selector type (only CEL is supported)",
        ),
        (
            json!({ "requests": [gpu()], "constraints": [{ "distinctAttribute": "a/b" }] }),
            "claim \"c\": DistinctAttribute constraints not done yet",
        ),
        (
            json!({ "requests": [gpu()], "constraints": [{ "requests": ["gpu"] }] }),
            "claim \"c\": unsupported constraint type",
        ),
        (
            first(&[alternative("good", "gpu", 1), alternative("bad", "lost", 1)]),
            "claim \"c\" request \"bad\": DeviceClass \"lost\" not found: \
             DeviceClass.resource.k8s.io \"lost\" not found",
        ),
        (
            json!({ "requests": [exactly("a", "gpu", 16), exactly("b", "gpu", 17)] }),
            "claim \"c\" requests 33 total devices, exceeding maximum of 32",
        ),
        (
            first(&[alternative("many", "gpu", 34), alternative("fewer", "gpu", 33)]),
            "claim \"c\" requests 33 total devices, exceeding maximum of 32",
        ),
    ];
    for (wish, reason) in cases {
        let mut run = Cluster::new()
            .class("odd", &json!([{}]))
            .instance_type("gpu-node", &template(&gpus(1)))
            .claim("c", wish.clone())
            .run();
        assert_eq!(run.try_on(claim(0, ONE_TYPE), &["c"]), invalid(reason), "{wish}");
    }
}

#[test]
fn expression_that_does_not_compile_fails_the_claim() {
    let wish = json!({ "requests": [selecting(exactly("gpu", "gpu", 1), "this is not valid CEL")] });
    let mut run = Cluster::new()
        .instance_type("gpu-node", &template(&gpus(1)))
        .claim("c", wish)
        .run();
    let refusal = run.try_on(claim(0, ONE_TYPE), &["c"]).unwrap_err();
    let start = "validating claim \"c\": claim \"c\" request \"gpu\": CEL expression \"this is not valid CEL\" failed \
                 to compile: ";
    assert!(refusal.starts_with(start), "{refusal}");
}

#[test]
fn thirty_two_devices_are_allowed() {
    let mut run = Cluster::new()
        .instance_type("gpu-node", &template(&gpus(32)))
        .claim(
            "c",
            json!({ "requests": [exactly("a", "gpu", 16), exactly("b", "gpu", 16)] }),
        )
        .run();
    assert_eq!(run.try_on(claim(0, ONE_TYPE), &["c"]), types(ONE_TYPE));
}

#[test]
fn class_and_request_must_both_match() {
    let devices = gpus_with("model", &["A", "B"]);
    let cases = [("A", types(ONE_TYPE)), ("B", nothing())];
    for (model, expected) in cases {
        let class = json!([{ "cel": { "expression": is_model("A") } }]);
        let wish = json!({ "requests": [selecting(exactly("gpu", "a", 1), &is_model(model))] });
        let mut run = Cluster::new()
            .class("a", &class)
            .instance_type("gpu-node", &template(&devices))
            .claim("c", wish)
            .run();
        assert_eq!(run.try_on(claim(0, ONE_TYPE), &["c"]), expected, "{model}");
    }
}

#[test]
fn expression_that_cannot_be_evaluated_matches_nothing_or_fails_a_request_for_all() {
    let mut devices = gpus_with("model", &["A"]);
    devices.as_array_mut().unwrap().push(json!({ "name": "bare" }));
    let build = |request: Value| {
        Cluster::new()
            .instance_type("gpu-node", &template(&devices))
            .claim("c", json!({ "requests": [selecting(request, &is_model("A"))] }))
    };
    let mut run = build(exactly("gpu", "gpu", 1)).run();
    assert_eq!(run.put_on(claim(0, ONE_TYPE), &["c"]), types(ONE_TYPE));
    let mut run = build(exactly("gpu", "gpu", 2)).run();
    assert_eq!(run.try_on(claim(0, ONE_TYPE), &["c"]), nothing());
    let mut run = build(all("gpu", "gpu")).run();
    let refusal = run.try_on(claim(0, ONE_TYPE), &["c"]).unwrap_err();
    assert!(refusal.contains("evaluation failed"), "{refusal}");
}

#[test]
fn all_devices_of_an_incomplete_or_ambiguous_pool_cannot_be_had() {
    let twice = json!([{ "name": "gpu-0" }, { "name": "gpu-0" }]);
    let mut incomplete = slice("net", &gpus(2));
    incomplete["pool"]["resourceSliceCount"] = json!(2);
    let cases = [
        (
            incomplete,
            "claim \"c\" request \"gpu\": pool gpu.example.com/net is incomplete (missing slices)",
        ),
        (
            slice("net", &twice),
            "claim \"c\" request \"gpu\": pool gpu.example.com/net is invalid (duplicate device names)",
        ),
    ];
    for (pool, reason) in cases {
        let mut run = Cluster::new()
            .slice(pool)
            .instance_type("gpu-node", &template(&gpus(1)))
            .claim("c", json!({ "requests": [all("gpu", "gpu")] }))
            .gpus("one", 1)
            .run();
        assert_eq!(run.try_on(claim(0, ONE_TYPE), &["c"]), invalid(reason));
        // A request for some devices passes such a pool by.
        assert_eq!(run.put_on(claim(0, ONE_TYPE), &["one"]), types(ONE_TYPE));
        assert_eq!(run.devices("one", "gpu-node"), ["gpu: node/gpu-0*"]);
    }
}

#[test]
fn all_devices_are_those_published_and_those_of_each_type() {
    let mut run = Cluster::new()
        .slice(slice("net", &gpus(1)))
        .instance_type("none", &json!([]))
        .instance_type("two", &template(&gpus(2)))
        .claim("c", json!({ "requests": [all("gpu", "gpu")] }))
        .run();
    assert_eq!(run.put_on(claim(0, &["none", "two"]), &["c"]), types(&["none", "two"]));
    assert_eq!(run.devices("c", "none"), ["gpu: net/gpu-0"]);
    assert_eq!(
        run.devices("c", "two"),
        ["gpu: net/gpu-0", "gpu: node/gpu-0*", "gpu: node/gpu-1*"]
    );
}

#[test]
fn request_for_all_devices_fails_when_there_are_none_or_one_is_taken() {
    let wish = json!({ "requests": [all("gpu", "gpu")] });
    let mut run = Cluster::new()
        .instance_type("none", &json!([]))
        .claim("c", wish.clone())
        .run();
    assert_eq!(run.try_on(claim(0, &["none"]), &["c"]), nothing());
    let mut run = Cluster::new()
        .slice(slice("net", &gpus(2)))
        .instance_type("none", &json!([]))
        .claim("c", wish)
        .gpus("one", 1)
        .run();
    assert_eq!(run.put_on(claim(1, &["none"]), &["one"]), types(&["none"]));
    assert_eq!(run.try_on(claim(0, &["none"]), &["c"]), nothing());
}

#[test]
fn type_with_too_many_devices_for_one_claim_is_pruned() {
    let build = |counts: &[usize]| {
        let mut cluster = Cluster::new().claim("c", json!({ "requests": [all("gpu", "gpu"), exactly("n", "any", 1)] }));
        for count in counts {
            cluster = cluster.instance_type(&format!("t{count}"), &template(&gpus(*count)));
        }
        cluster
    };
    // One more device is left for the second request.
    let mut run = build(&[32]).run();
    let reason = "claim \"c\": all instance types pruned, no instance type can satisfy this claim without exceeding \
                  the maximum of 32 devices";
    assert_eq!(run.try_on(claim(0, &["t32"]), &["c"]), invalid(reason));
}

#[test]
fn alternatives_are_limited_along_the_way_and_not_only_up_front() {
    let first = |name: &str, many: u32, few: u32| json!({ "name": name, "firstAvailable": [alternative("many", "gpu", many), alternative("few", "gpu", few)] });
    let mut run = Cluster::new()
        .instance_type("gpu-node", &template(&gpus(40)))
        .claim("c", json!({ "requests": [first("a", 20, 1), first("b", 20, 1)] }))
        .run();
    assert_eq!(run.put_on(claim(0, ONE_TYPE), &["c"]), types(ONE_TYPE));
    let devices = run.devices("c", "gpu-node");
    assert_eq!(
        (devices.len(), devices[0].as_str(), devices[20].as_str()),
        (21, "a/many: node/gpu-0*", "b/few: node/gpu-20*")
    );
}

#[test]
fn earlier_request_falls_back_when_a_later_one_would_get_nothing() {
    let first = json!({ "name": "a", "firstAvailable": [alternative("two", "gpu", 2), alternative("one", "gpu", 1)] });
    let mut run = Cluster::new()
        .instance_type("gpu-node", &template(&gpus(2)))
        .claim("c", json!({ "requests": [first, exactly("b", "gpu", 1)] }))
        .run();
    assert_eq!(run.put_on(claim(0, ONE_TYPE), &["c"]), types(ONE_TYPE));
    assert_eq!(run.devices("c", "gpu-node"), ["a/one: node/gpu-0*", "b: node/gpu-1*"]);
}

fn constrained(requests: &[Value], constraints: Value) -> Value {
    json!({ "requests": requests, "constraints": constraints })
}

#[test]
fn constraint_holds_for_the_requests_it_names() {
    let rack = format!("{GPU}/rack");
    let two = [exactly("a", "gpu", 1), exactly("b", "gpu", 1)];
    let choice = json!({ "name": "b", "firstAvailable": [alternative("x", "gpu", 1), alternative("y", "gpu", 1)] });
    let with_choice = [exactly("a", "gpu", 1), choice];
    let scoped = |names: &[&str]| json!([{ "matchAttribute": rack, "requests": names }]);
    let cases = [
        (constrained(&two, json!([{ "matchAttribute": rack }])), nothing()),
        (constrained(&two, scoped(&["a", "b"])), nothing()),
        (constrained(&two, scoped(&["a"])), types(ONE_TYPE)),
        (constrained(&with_choice, scoped(&["a", "b"])), nothing()),
        // Only the first alternative is held to it, so the second one is taken.
        (constrained(&with_choice, scoped(&["a", "b/x"])), types(ONE_TYPE)),
    ];
    for (wish, expected) in cases {
        let mut run = Cluster::new()
            .instance_type("gpu-node", &template(&gpus_with("rack", &["r1", "r2"])))
            .claim("c", wish.clone())
            .run();
        assert_eq!(run.try_on(claim(0, ONE_TYPE), &["c"]), expected, "{wish}");
    }
}

#[test]
fn values_of_all_kinds_can_be_matched_but_not_across_kinds() {
    let two = |one: Value, other: Value| json!([{ "name": "gpu-0", "attributes": { "x": one } }, { "name": "gpu-1", "attributes": { "x": other } }]);
    let cases = [
        (two(json!({ "int": 1 }), json!({ "int": 1 })), types(ONE_TYPE)),
        (two(json!({ "int": 1 }), json!({ "int": 2 })), nothing()),
        (two(json!({ "bool": true }), json!({ "bool": true })), types(ONE_TYPE)),
        (
            two(json!({ "version": "1.0.0" }), json!({ "version": "1.0.0" })),
            types(ONE_TYPE),
        ),
        (
            two(json!({ "string": "1.0.0" }), json!({ "version": "1.0.0" })),
            nothing(),
        ),
        (two(json!({ "string": "a" }), json!({ "string": "a" })), types(ONE_TYPE)),
    ];
    for (devices, expected) in cases {
        let wish = constrained(
            &[exactly("gpu", "any", 2)],
            json!([{ "matchAttribute": format!("{GPU}/x") }]),
        );
        let mut run = Cluster::new()
            .instance_type("gpu-node", &template(&devices))
            .claim("c", wish)
            .run();
        assert_eq!(run.try_on(claim(0, ONE_TYPE), &["c"]), expected, "{devices}");
    }
}

/// A type whose devices will share values of `example.com/rack` by groups.
fn bound(devices: &Value, groups: &[&[&str]]) -> Cluster {
    let id = |device: &&str| json!({ "driver": GPU, "pool": "node", "device": device });
    let group = |names: &&[&str]| {
        let devices: Vec<Value> = names.iter().map(id).collect();
        json!({ "attribute": "example.com/rack", "devices": devices })
    };
    let groups: Vec<Value> = groups.iter().map(group).collect();
    Cluster::new().bound_instance_type("gpu-node", &template(devices), &json!(groups))
}

#[test]
fn devices_bound_by_the_provider_match_in_what_nobody_knows_yet() {
    let cases: [(&[&[&str]], u32, Answer); 7] = [
        (&[], 2, nothing()),
        (&[&["gpu-0"]], 1, nothing()),
        (&[&["gpu-1", "gpu-2"]], 2, types(ONE_TYPE)),
        (&[&["gpu-1", "gpu-2"]], 3, nothing()),
        (&[&["gpu-0", "gpu-1"], &["gpu-2", "gpu-3"]], 3, nothing()),
        (
            &[&["gpu-0", "gpu-1"], &["gpu-2", "gpu-3"], &["gpu-1", "gpu-2"]],
            4,
            types(ONE_TYPE),
        ),
        (&[&["gpu-0", "gpu-0"]], 1, types(ONE_TYPE)),
    ];
    for (groups, count, expected) in cases {
        let wish = constrained(
            &[exactly("gpu", "gpu", count)],
            json!([{ "matchAttribute": "example.com/rack" }]),
        );
        let mut run = bound(&gpus(4), groups).claim("c", wish).run();
        assert_eq!(run.try_on(claim(0, ONE_TYPE), &["c"]), expected, "{groups:?} {count}");
    }
}

#[test]
fn known_values_and_promised_ones_do_not_mix() {
    let devices = json!([
        { "name": "gpu-0" },
        { "name": "gpu-1", "attributes": { "example.com/rack": { "string": "r1" } } },
    ]);
    let wish = constrained(
        &[exactly("gpu", "gpu", 2)],
        json!([{ "matchAttribute": "example.com/rack" }]),
    );
    let mut run = bound(&devices, &[&["gpu-0", "gpu-1"]]).claim("c", wish).run();
    assert_eq!(run.try_on(claim(0, ONE_TYPE), &["c"]), nothing());
}
