//! How pods without a place come to claims, told against an API server.

#![allow(clippy::unwrap_used, reason = "a test fails where it stands")]
#![allow(clippy::float_cmp, reason = "counters count in whole numbers")]

mod buffer;
mod overlay;
mod static_pool;
mod trouble;
mod world;

use std::time::Duration;

use serde_json::{Value, json};
use world::World;

fn names(claims: &[Value]) -> Vec<String> {
    let names = claims.iter().map(|claim| claim["metadata"]["name"].as_str().unwrap());
    names.map(ToOwned::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn pending_pod_gets_a_claim_and_hears_of_it() {
    let mut world = World::new();
    world.pool("p", &json!({}));
    world.start();
    world.pending("web", 3);
    world.until("a claim", |world| !world.claims().is_empty()).await;
    let claims = world.claims();
    let [name] = &names(&claims)[..] else {
        panic!("{claims:?}")
    };
    assert_eq!(claims[0]["metadata"]["labels"]["karpenter.sh/nodepool"], "p");
    assert_eq!(claims[0]["metadata"]["ownerReferences"][0]["name"], "p");
    world.until("an event", |world| !world.said().is_empty()).await;
    let nominated = (
        "Nominated".to_owned(),
        "web".to_owned(),
        format!("Pod should schedule on: nodeclaim/{name}"),
    );
    assert_eq!(world.said(), [nominated]);
    let metrics = &world.metrics;
    assert_eq!(
        metrics.nodeclaims_created_total.value(["provisioned", "p", "false"]),
        1.0
    );
    assert_eq!(world.server.writes(), 1, "the claim, and nothing else");
}

#[tokio::test(start_paused = true)]
async fn pods_that_come_together_are_planned_together() {
    let mut world = World::new();
    world.pool("p", &json!({}));
    world.start();
    for at in 0..2000 {
        world.pending(&format!("web-{at}"), 1);
    }
    world.until("claims", |world| !world.claims().is_empty()).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let controllers = &world.metrics.controller_runtime_reconcile_total;
    assert!(controllers.value(["provisioner", "success"]) >= 1.0);
    assert_eq!(world.asked(), (2000, 2000));
    assert_eq!(world.claims().len(), 250, "eight to a node");
    assert_eq!(world.server.writes(), 250);
}

#[tokio::test(start_paused = true)]
async fn nothing_new_is_made_for_pods_whose_claims_are_in_flight() {
    let mut world = World::new();
    world.pool("p", &json!({}));
    world.launch_after(Duration::from_mins(1));
    world.start();
    for at in 0..20 {
        world.pending(&format!("web-{at}"), 3);
    }
    world.until("claims", |world| !world.claims().is_empty()).await;
    let first = names(&world.claims());
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!(names(&world.claims()), first, "before the launch");
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(names(&world.claims()), first, "after the launch");
    world.pending("late", 8);
    world
        .until("one more", |world| world.claims().len() > first.len())
        .await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(world.claims().len(), first.len() + 1);
}

#[tokio::test(start_paused = true)]
async fn claim_that_takes_the_place_of_one_that_went_has_another_name() {
    let mut world = World::new();
    world.pool("p", &json!({}));
    world.launch_after(Duration::from_mins(1));
    world.start();
    world.pending("web", 3);
    world.until("a claim", |world| world.claims().len() == 1).await;
    let first = names(&world.claims());
    world.remove_claim(&first[0]);
    world.until("another claim", |world| world.claims().len() == 1).await;
    assert_ne!(names(&world.claims()), first);
}

#[tokio::test(start_paused = true)]
async fn limits_hold_at_every_instant_while_pods_keep_coming() {
    let mut world = World::new();
    world.pool("few", &json!({ "limits": { "nodes": "3" } }));
    world.pool("small", &json!({ "limits": { "cpu": "20" } }));
    world.launch_after(Duration::from_secs(7));
    world.start();
    let mut changes = world.server.changes();
    for at in 0..40 {
        world.pending(&format!("web-{at}"), 7);
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
    tokio::time::sleep(Duration::from_mins(1)).await;
    let mut seen = 0;
    while changes.try_recv().is_ok() {
        seen += 1;
    }
    assert!(seen > 40);
    let of = |pool: &str| {
        let claims = world.claims();
        let of_pool = |claim: &&Value| claim["metadata"]["labels"]["karpenter.sh/nodepool"] == pool;
        claims.iter().filter(of_pool).count()
    };
    assert_eq!(
        (of("few"), of("small")),
        (3, 2),
        "claims are never taken back, so the end is the most there ever was"
    );
    let said = world.said();
    let refused = said.iter().filter(|(reason, ..)| reason == "FailedScheduling");
    assert!(refused.count() >= 35, "those without a place hear of it");
}

#[tokio::test(start_paused = true)]
async fn pool_with_a_broken_node_class_gets_no_claims_and_others_go_on() {
    let mut world = World::new();
    world.pool("broken", &json!({ "weight": 100 }));
    world.pool("good", &json!({}));
    let broken = |pool: &mut Value| pool["status"]["conditions"][0]["status"] = json!("False");
    world.server.update("NodePool", "broken", broken).unwrap();
    world.start();
    world.pending("web", 1);
    world.until("a claim", |world| !world.claims().is_empty()).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let pools: Vec<_> = world
        .claims()
        .iter()
        .map(|claim| claim["metadata"]["labels"]["karpenter.sh/nodepool"].clone())
        .collect();
    assert_eq!(pools, ["good"]);
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_node_that_goes_away_get_a_place_before_it_is_gone() {
    let mut world = World::new();
    world.pool("p", &json!({}));
    let labels = json!({ "karpenter.sh/nodepool": "p", "node.kubernetes.io/instance-type": "large",
        "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true" });
    world.create(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": { "name": "old", "labels": labels, "finalizers": ["karpenter.sh/termination"] },
        "spec": { "requirements": [] }, "status": { "providerID": "kwok://old" },
    }));
    world.create(json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": "old", "labels": labels },
        "spec": { "providerID": "kwok://old" }, "status": { "allocatable": { "cpu": "8", "pods": "100" } },
    }));
    world.create(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "web", "namespace": "default" },
        "spec": { "nodeName": "old", "containers": [{ "name": "c", "resources": { "requests": { "cpu": "3" } } }] },
        "status": { "phase": "Running" },
    }));
    world.start();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(names(&world.claims()), ["old"]);
    world.server.delete("NodeClaim", "old").unwrap();
    world.until("a replacement", |world| world.claims().len() == 2).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!((world.claims().len(), world.server.writes()), (2, 1));
}
