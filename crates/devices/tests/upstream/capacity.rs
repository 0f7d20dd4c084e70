//! Devices that several claims share: upstream's P1 to P10 and its consumable-capacity suite.

use serde_json::{Value, json};

use crate::cluster::{Cluster, claim, exactly, held, nothing, slice, template, types};

const ONE_TYPE: &[&str] = &["gpu-node"];

/// A device with 80Gi of memory that claims may share.
fn board(memory: &Value) -> Value {
    json!([{ "name": "board", "allowMultipleAllocations": true, "capacity": { "memory": memory } }])
}

fn plain() -> Value {
    board(&json!({ "value": "80Gi" }))
}

/// A claim for part of a device.
fn part(amount: Option<&str>) -> Value {
    let mut request = exactly("gpu", "gpu", 1);
    if let Some(amount) = amount {
        request["exactly"]["capacity"] = json!({ "requests": { "memory": amount } });
    }
    json!({ "requests": [request] })
}

fn with_board(board: &Value) -> Cluster {
    Cluster::new().instance_type("gpu-node", &template(board))
}

#[test]
fn p1_claim_gets_a_slice_of_a_shared_device() {
    let mut run = with_board(&plain()).claim("c", part(Some("20Gi"))).run();
    assert_eq!(run.put_on(claim(0, ONE_TYPE), &["c"]), types(ONE_TYPE));
    let instance_type = run.allocator.type_id("gpu-node").unwrap();
    let consumed: Vec<_> = run
        .allocator
        .allocations()
        .flat_map(|(_, _, allocation)| allocation.devices(instance_type))
        .map(|device| device.consumed.clone())
        .collect();
    assert_eq!(consumed, [vec![("memory".into(), "20Gi".parse().unwrap())]]);
}

#[test]
fn p2_p3_claims_share_a_device_until_its_capacity_is_used_up() {
    let mut cluster = with_board(&plain());
    for name in ["a", "b", "c"] {
        cluster = cluster.claim(name, part(Some("40Gi")));
    }
    let mut run = cluster.run();
    assert_eq!(run.put_on(claim(0, ONE_TYPE), &["a"]), types(ONE_TYPE));
    assert_eq!(run.put_on(claim(0, ONE_TYPE), &["b"]), types(ONE_TYPE));
    assert_eq!(run.try_on(claim(0, ONE_TYPE), &["c"]), nothing());
    assert_eq!(run.try_on(claim(1, ONE_TYPE), &["c"]), types(ONE_TYPE));
}

/// A claim that holds part of the published device.
fn share(amount: &str, pods: &[&str]) -> Value {
    let mut status = held("net", "board", pods);
    status["allocation"]["devices"]["results"][0]["consumedCapacity"] = json!({ "memory": amount });
    status
}

#[test]
fn p4_share_of_moving_pods_is_free_and_that_of_live_ones_is_not() {
    let cases = [
        ("40Gi", &["mover"][..], "40Gi", types(&["cpu"])),
        ("40Gi", &["mover"], "41Gi", nothing()),
        ("40Gi", &["mover", "live"], "1Gi", nothing()),
        ("40Gi", &["live"], "1Gi", nothing()),
    ];
    for (moving, pods, wanted, expected) in cases {
        let mut run = Cluster::new()
            .slice(slice("net", &plain()))
            .instance_type("cpu", &json!([]))
            .held_claim("live", part(None), share("40Gi", &["live"]))
            .held_claim("moving", part(None), share(moving, pods))
            .claim("new", part(Some(wanted)))
            .moving("mover")
            .run();
        assert_eq!(run.try_on(claim(0, &["cpu"]), &["new"]), expected, "{pods:?} {wanted}");
    }
}

#[test]
fn shared_device_of_moving_pods_alone_is_all_free() {
    let mut run = Cluster::new()
        .slice(slice("net", &plain()))
        .instance_type("cpu", &json!([]))
        .held_claim("old", part(None), share("80Gi", &["mover"]))
        .claim("new", part(Some("80Gi")))
        .moving("mover")
        .run();
    assert_eq!(run.try_on(claim(0, &["cpu"]), &["new"]), types(&["cpu"]));
}

#[test]
fn p6_p8_p9_what_a_device_cannot_give_refuses_the_claim() {
    let values =
        board(&json!({ "value": "80Gi", "requestPolicy": { "default": "10Gi", "validValues": ["10Gi", "20Gi"] } }));
    let range = board(&json!({ "value": "80Gi", "requestPolicy":
        { "default": "10Gi", "validRange": { "min": "10Gi", "max": "40Gi", "step": "10Gi" } } }));
    let mut elsewhere = part(Some("1"));
    elsewhere["requests"][0]["exactly"]["capacity"]["requests"] = json!({ "bandwidth": "1" });
    let cases = [
        (plain(), part(Some("80Gi")), types(ONE_TYPE)),
        (plain(), part(Some("81Gi")), nothing()),
        (plain(), elsewhere, nothing()),
        (values.clone(), part(Some("15Gi")), types(ONE_TYPE)),
        (values, part(Some("30Gi")), nothing()),
        (range.clone(), part(Some("35Gi")), types(ONE_TYPE)),
        (range, part(Some("41Gi")), nothing()),
    ];
    for (device, wish, expected) in cases {
        let mut run = with_board(&device).claim("c", wish.clone()).run();
        assert_eq!(run.try_on(claim(0, ONE_TYPE), &["c"]), expected, "{device} {wish}");
    }
}

/// How many claims without an amount, or with one, fit one device.
fn fitting(device: &Value, amount: Option<&str>) -> usize {
    let names: Vec<String> = (0..20).map(|at| format!("c{at:02}")).collect();
    let mut cluster = with_board(device);
    for name in &names {
        cluster = cluster.claim(name, part(amount));
    }
    let mut run = cluster.run();
    let placed = names
        .iter()
        .take_while(|name| run.put_on(claim(0, ONE_TYPE), &[name]).is_ok());
    placed.count()
}

#[test]
fn p10_amounts_are_rounded_up_by_the_policy_and_default_to_its_default() {
    let policy = |policy: Value| board(&json!({ "value": "80Gi", "requestPolicy": policy }));
    let values = json!({ "default": "20Gi", "validValues": ["10Gi", "20Gi", "40Gi"] });
    let steps = json!({ "default": "10Gi", "validRange": { "min": "10Gi", "step": "15Gi" } });
    let least = json!({ "default": "10Gi", "validRange": { "min": "16Gi" } });
    let cases = [
        (plain(), None, 1),
        (plain(), Some("30Gi"), 2),
        (policy(values.clone()), None, 4),
        (policy(values.clone()), Some("5Gi"), 8),
        (policy(values), Some("21Gi"), 2),
        (policy(steps.clone()), None, 8),
        (policy(steps), Some("11Gi"), 3),
        (policy(least.clone()), Some("1Gi"), 5),
        (policy(least), Some("17Gi"), 4),
    ];
    for (device, amount, expected) in cases {
        assert_eq!(fitting(&device, amount), expected, "{device} {amount:?}");
    }
}

#[test]
fn slots_of_one_request_may_share_a_device_within_its_capacity() {
    let cases = [(2, types(ONE_TYPE)), (3, nothing())];
    for (count, expected) in cases {
        let mut wish = part(Some("40Gi"));
        wish["requests"][0]["exactly"]["count"] = json!(count);
        let mut run = with_board(&plain()).claim("c", wish).run();
        assert_eq!(run.try_on(claim(0, ONE_TYPE), &["c"]), expected, "{count}");
    }
}

#[test]
fn device_without_dimensions_is_shared_without_limit() {
    let device = json!([{ "name": "board", "allowMultipleAllocations": true }]);
    assert_eq!(fitting(&device, None), 20);
}

#[test]
fn of_types_that_may_be_launched_the_hungriest_counts_towards_other_hosts() {
    // Only "small" has a device of its own; "large" must take from the shared one.
    let own = json!([{ "name": "own" }]);
    let wish = |amount| {
        let mut wish = part(Some(amount));
        wish["requests"][0]["exactly"]["deviceClassName"] = json!("any");
        wish
    };
    let exclusive = json!({ "requests": [exactly("gpu", "gpu", 1)] });
    let build = || {
        Cluster::new()
            .slice(slice("net", &plain()))
            .instance_type("small", &template(&own))
            .instance_type("large", &json!([]))
            .claim("first", wish("50Gi"))
            .claim("second", wish("40Gi"))
            .claim("own", exclusive.clone())
    };
    let both: &[&str] = &["small", "large"];
    let mut run = build().run();
    assert_eq!(run.put_on(claim(0, both), &["first"]), types(both));
    assert_eq!(run.try_on(claim(1, &["large"]), &["second"]), nothing());
    // With both types gone, what they held is free again.
    let mut run = build().run();
    assert_eq!(run.put_on_keeping(claim(0, both), &["first"], &[]), types(both));
    assert_eq!(run.try_on(claim(1, &["large"]), &["second"]), types(&["large"]));
    assert_eq!(run.drivers(devices::HostId::Claim(0)), Vec::<String>::new());
}
