#![allow(
    clippy::needless_pass_by_value,
    reason = "a literal reads better without a reference"
)]

use serde_json::{Value, json};

use super::*;

fn node(ready: &str, taints: Value) -> Node {
    serde_json::from_value(json!({
        "metadata": {"name": "n"},
        "spec": {"taints": taints},
        "status": {
            "allocatable": {"cpu": "4", "nvidia.com/gpu": "0"},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }))
    .unwrap()
}

fn claim(requests: Value) -> NodeClaim {
    serde_json::from_value(json!({
        "metadata": {"annotations": {"karpenter.sh/requested-dra-drivers": "gpu.example.com,nic.example.com"}},
        "spec": {
            "startupTaints": [{"key": "cilium", "value": "x", "effect": "NoExecute"}],
            "resources": {"requests": requests},
        },
    }))
    .unwrap()
}

#[test]
fn the_first_thing_missing_is_named() {
    let blocked = |reason, message: &str| Some(Blocked::new(reason, message));
    let cases = [
        (
            claim(json!({})),
            node("False", json!([{"key": "cilium", "effect": "NoExecute"}])),
            blocked("NodeNotReady", "Node status is NotReady"),
        ),
        (
            claim(json!({})),
            node(
                "True",
                json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
                       {"key": "cilium", "value": "y", "effect": "NoExecute"}]),
            ),
            blocked("StartupTaintsExist", "StartupTaint \"cilium=y:NoExecute\" still exists"),
        ),
        (
            claim(json!({})),
            node(
                "True",
                json!([{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]),
            ),
            blocked(
                "KnownEphemeralTaintsExist",
                "KnownEphemeralTaint \"karpenter.sh/unregistered:NoExecute\" still exists",
            ),
        ),
        (
            claim(json!({"cpu": "1", "nvidia.com/gpu": "1", "memory": "0"})),
            node("True", json!([])),
            blocked(
                "ResourceNotRegistered",
                "Resource \"nvidia.com/gpu\" was requested but not registered",
            ),
        ),
        (
            claim(json!({"cpu": "1", "nvidia.com/gpu": "0"})),
            node("True", json!([{"key": "cilium", "effect": "NoSchedule"}])),
            None,
        ),
    ];
    for (claim, node, expected) in cases {
        assert_eq!(judge(&claim, &node, None), expected);
    }
    assert_eq!(
        judge(&claim(json!({})), &Node::default(), None),
        blocked("NodeNotReady", "Node status is NotReady")
    );
}

fn slice(driver: &str, pool: &str, generation: i64, count: i64) -> Arc<ResourceSlice> {
    let spec = json!({
        "driver": driver, "nodeName": "n",
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
    });
    Arc::new(serde_json::from_value(json!({"spec": spec})).unwrap())
}

#[test]
fn each_driver_must_have_published_one_pool_whole() {
    let gpu = |pool, generation, count| slice("gpu.example.com", pool, generation, count);
    let nic = slice("nic.example.com", "n", 1, 1);
    let missing = |driver: &str| {
        let message = format!("DRA driver \"{driver}\" has not published a complete resource pool");
        Some(Blocked::new("DRADriverPoolsNotPublished", message))
    };
    let cases = [
        (vec![], missing("gpu.example.com")),
        (vec![gpu("p", 1, 1)], missing("nic.example.com")),
        (vec![gpu("p", 1, 2), nic.clone()], missing("gpu.example.com")),
        (vec![gpu("p", 1, 2), gpu("p", 1, 2), nic.clone()], None),
        (
            vec![gpu("p", 1, 1), gpu("p", 2, 2), nic.clone()],
            missing("gpu.example.com"),
        ),
        (vec![gpu("p", 2, 1), gpu("p", 1, 2), nic.clone()], None),
        (vec![gpu("p", 1, 0), nic.clone()], missing("gpu.example.com")),
        (vec![gpu("p", 1, 2), gpu("q", 1, 1), nic], None),
    ];
    for (slices, expected) in cases {
        let blocked = judge(&claim(json!({})), &node("True", json!([])), Some(&slices));
        assert_eq!(blocked, expected, "{slices:?}");
    }
}

#[test]
fn a_slice_is_local_by_name_or_by_owner() {
    let read = |json: Value| -> ResourceSlice { serde_json::from_value(json).unwrap() };
    let owned =
        json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]}});
    let cases = [
        (read(json!({"spec": {"nodeName": "n"}})), true),
        (read(json!({"spec": {"nodeName": "m"}})), false),
        (read(owned), true),
        (read(json!({"spec": {"allNodes": true}})), false),
    ];
    for (slice, expected) in cases {
        assert_eq!(is_local(&slice, &node("True", json!([]))), expected, "{slice:?}");
    }
}

#[test]
fn a_node_is_not_initialised_before_registration_nor_during_a_reboot() {
    let with = |conditions: Value| -> NodeClaim {
        serde_json::from_value(json!({"status": {"conditions": conditions}})).unwrap()
    };
    let registered = json!({"type": "Registered", "status": "True"});
    let cases = [
        (with(json!([])), false),
        (with(json!([registered])), true),
        (
            with(json!([registered, {"type": "Rebooting", "status": "True"}])),
            false,
        ),
        (
            with(json!([registered, {"type": "Rebooting", "status": "False"}])),
            true,
        ),
    ];
    for (claim, expected) in cases {
        assert_eq!(is_due(&claim), expected, "{claim:?}");
    }
}
