//! What is left when the API server fails, answers get lost, or we die in the middle.

use std::time::Duration;

use serde_json::json;
use simulator::{Fault, Verb};

use crate::{names, world::World};

/// Every second write goes wrong.
fn every_second(world: &World, fault: Fault) {
    world.server.set_faults(move |request| match request.write {
        Some(number) if number % 2 == 1 => fault,
        _ => Fault::None,
    });
}

async fn with_bad_writes(fault: Fault) {
    let mut world = World::new();
    world.pool("p", &json!({}));
    world.start();
    every_second(&world, fault);
    for at in 0..40 {
        world.pending(&format!("web-{at}"), 8);
    }
    world
        .until("a claim for each", |world| world.claims().len() >= 40)
        .await;
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(world.claims().len(), 40, "{fault:?}");
}

#[tokio::test(start_paused = true)]
async fn refused_writes_are_made_good_and_none_is_made_twice() {
    with_bad_writes(Fault::Fail(500)).await;
    with_bad_writes(Fault::Fail(429)).await;
}

#[tokio::test(start_paused = true)]
async fn lost_answers_do_not_launch_twice() {
    with_bad_writes(Fault::LoseAnswer).await;
}

#[tokio::test(start_paused = true)]
async fn crash_around_any_write_leaves_one_claim_for_each_pod() {
    for write in 1..=6 {
        for fault in [Fault::CrashBefore, Fault::CrashAfter] {
            let mut world = World::new();
            world.pool("p", &json!({}));
            world.start();
            world.server.set_faults(move |request| match request.write {
                Some(number) if number == write => fault,
                _ => Fault::None,
            });
            for at in 0..6 {
                world.pending(&format!("web-{at}"), 8);
            }
            world.server.crashed().await;
            world.kill();
            world.start();
            world.until("a claim for each", |world| world.claims().len() >= 6).await;
            tokio::time::sleep(Duration::from_mins(1)).await;
            assert_eq!(world.claims().len(), 6, "{fault:?} at write {write}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn second_leader_with_the_same_plan_makes_the_same_claims() {
    let mut world = World::new();
    world.pool("p", &json!({}));
    for at in 0..6 {
        world.pending(&format!("web-{at}"), 8);
    }
    world.server.set_faults(|request| match request.verb {
        Verb::Create => Fault::Delay(Duration::from_secs(5)),
        _ => Fault::None,
    });
    world.start();
    tokio::time::sleep(Duration::from_secs(3)).await;
    world.kill();
    world.start();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(world.claims().len(), 6, "{:?}", names(&world.claims()));
}

#[tokio::test(start_paused = true)]
async fn name_that_somebody_else_has_is_passed_by() {
    let mut first = World::new();
    first.pool("p", &json!({}));
    first.start();
    first.create(pod("web", "the-pod"));
    first.until("a claim", |world| !world.claims().is_empty()).await;
    let name = names(&first.claims()).remove(0);

    let mut world = World::new();
    world.pool("p", &json!({}));
    world.create(pod("web", "the-pod"));
    world.server.set_watch_lag(Duration::from_mins(10));
    world.start();
    tokio::time::sleep(Duration::from_millis(500)).await;
    world.create(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": { "name": name },
        "spec": { "requirements": [] }, "status": { "providerID": "kwok://other" },
    }));
    world.until("a claim of ours", |world| world.claims().len() == 2).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(world.claims().len(), 2);
    let refused = world.server.log().into_iter().filter(|request| request.code == 409);
    assert_eq!(refused.count(), 1, "the name was tried once");
}

fn pod(name: &str, uid: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": "default", "uid": uid },
        "spec": { "containers": [{ "name": "c", "resources": { "requests": { "cpu": "1" } } }] },
        "status": { "phase": "Pending", "conditions": [
            { "type": "PodScheduled", "status": "False", "reason": "Unschedulable" },
        ] },
    })
}

/// What a pod heard of why it has no place.
fn refusal(world: &World, pod: &str) -> Option<String> {
    let said = world.said().into_iter();
    let mut refusals = said.filter(|(reason, object, _)| reason == "FailedScheduling" && object == pod);
    refusals.next().map(|(_, _, message)| message)
}

#[tokio::test(start_paused = true)]
async fn pool_whose_limits_allow_nothing_is_named_to_pods_and_serves_them_once_it_may() {
    let mut world = World::new();
    world.pool("none", &json!({ "limits": { "cpu": "0" } }));
    world.start();
    world.pending("web", 1);
    world.until("heard", |world| refusal(world, "web").is_some()).await;
    let why = refusal(&world, "web").unwrap();
    assert!(
        why.contains("all available instance types exceed limits for nodepool (NodePool=none)"),
        "{why}"
    );
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(names(&world.claims()), Vec::<String>::new());
    let raise = |pool: &mut serde_json::Value| pool["spec"]["limits"]["cpu"] = json!("8");
    world.server.update("NodePool", "none", raise).unwrap();
    world.until("a claim", |world| world.claims().len() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn pod_that_asks_for_a_key_nobody_knows_hears_which_and_holds_up_nobody() {
    let mut world = World::new();
    world.pool("p", &json!({}));
    world.start();
    let mut odd = pod("odd", "the-odd-pod");
    odd["spec"]["nodeSelector"] = json!({ "topology.k8s.io/zone": "z" });
    world.create(odd);
    world.pending("web", 1);
    world.until("a claim", |world| world.claims().len() == 1).await;
    world.until("heard", |world| refusal(world, "odd").is_some()).await;
    let why = refusal(&world, "odd").unwrap();
    let key = r#"label "topology.k8s.io/zone" does not have known values (typo of "topology.kubernetes.io/zone"?)"#;
    assert!(why.contains(key), "{why}");
    assert_eq!(refusal(&world, "web"), None);
}
