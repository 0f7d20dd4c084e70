//! A reboot from its request to the node's return, or to its replacement.

use serde_json::{Value, json};

use super::world::{World, claim_of, merge};

/// A node whose reboot repair has asked for, with a minute to drain.
fn requested(world: &World) {
    world.node("n");
    world.pod("web", "n", &json!({}));
    boot(world, "b1", "True");
    let initialized = json!({"metadata": {"labels": {"karpenter.sh/initialized": "true"}}});
    world
        .server
        .update("Node", "n", |node| merge(node, &initialized))
        .unwrap();
    let since = world.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let ask = |claim: &mut Value| {
        let bound = json!({"karpenter.sh/reboot-termination-grace-period": "1m0s"});
        merge(claim, &json!({"metadata": {"annotations": bound}}));
        claim["status"]["conditions"].as_array_mut().unwrap().push(json!({
            "type": "Rebooting", "status": "True", "reason": "RebootRequested", "message": "rebooting for GPU/Xid",
            "lastTransitionTime": since, "observedGeneration": 1,
        }));
    };
    world.server.update("NodeClaim", &claim_of("n"), ask).unwrap();
}

fn boot(world: &World, id: &str, ready: &str) {
    let status = json!({"status": {"nodeInfo": {"bootID": id}, "conditions": [{"type": "Ready", "status": ready}]}});
    world.server.update("Node", "n", |node| merge(node, &status)).unwrap();
}

fn fence(world: &World) -> Value {
    world.server.get("Node", "n").unwrap()["spec"]["taints"].clone()
}

#[tokio::test(start_paused = true)]
async fn node_is_fenced_drained_rebooted_and_taken_back() {
    let mut world = World::new();
    requested(&world);
    world.start();
    world.until("asked", |_| !world.cloud.reboots().is_empty()).await;
    assert_eq!(world.evicted(), ["web"]);
    assert_eq!(
        fence(&world),
        json!([{"key": "karpenter.sh/rebooting", "effect": "NoSchedule"}])
    );
    let issued = Some(("True".to_owned(), "RebootIssued".to_owned()));
    world
        .until("issued", |_| world.condition("n", "Rebooting") == issued)
        .await;
    assert_eq!(
        world.condition("n", "Initialized"),
        Some(("Unknown".into(), "Rebooting".into()))
    );
    let claim = world.server.get("NodeClaim", &claim_of("n")).unwrap();
    let uid = claim["metadata"]["uid"].as_str().unwrap();
    assert_eq!(world.cloud.reboots(), [format!("{uid}-1794823200000000000-b1")]);
    world
        .until("no longer initialized", |server| {
            server.get("Node", "n").unwrap()["metadata"]["labels"]["karpenter.sh/initialized"].is_null()
        })
        .await;
    boot(&world, "b2", "False");
    world
        .until("fence removed", |_| fence(&world).as_array().is_none_or(Vec::is_empty))
        .await;
    boot(&world, "b2", "True");
    let done = Some(("False".to_owned(), "RebootSucceeded".to_owned()));
    world
        .until("succeeded", |_| world.condition("n", "Rebooting") == done)
        .await;
    let claim = world.server.get("NodeClaim", &claim_of("n")).unwrap();
    assert_eq!(
        claim["metadata"]["annotations"]["karpenter.sh/reboot-pre-boot-id"],
        Value::Null
    );
    assert_eq!(world.metrics.nodes_reboots_total.value(["succeeded"]), 1.0);
    assert!(world.said().iter().any(|(reason, ..)| reason == "RebootObserved"));
}

#[tokio::test(start_paused = true)]
async fn node_that_cannot_be_rebooted_is_replaced_within_the_bound() {
    let mut world = World::new();
    requested(&world);
    world.cloud.refuse_reboots();
    world.start();
    world
        .until("claim deleted", |server| {
            let claim = server.get("NodeClaim", &claim_of("n")).unwrap();
            !claim["metadata"]["deletionTimestamp"].is_null()
        })
        .await;
    let claim = world.server.get("NodeClaim", &claim_of("n")).unwrap();
    let deadline = claim["metadata"]["annotations"]["karpenter.sh/nodeclaim-termination-timestamp"].clone();
    assert_eq!(deadline, "2026-11-16T10:01:05Z");
    assert_eq!(fence(&world).as_array().map_or(0, Vec::len), 0);
    let why = "reboot rejected by the cloud provider: no such luck";
    let event = ("RebootFailed".to_owned(), claim_of("n"), why.to_owned());
    world.until("said", |_| world.said().contains(&event)).await;
    assert_eq!(world.cloud.reboots().len(), 1);
    assert_eq!(world.metrics.nodes_reboots_total.value(["provider_error"]), 1.0);
}
