//! Bad input and bad days: nothing is wedged, nothing is lost, and something says why.

use std::time::Duration;

use serde_json::{Value, json};
use simulator::{Fault, Verb};

use super::world::{World, claim_of};

#[tokio::test(start_paused = true)]
async fn node_of_two_claims_is_drained_as_if_it_had_none() {
    let mut world = World::new();
    world.node("n");
    let mut twin = world.server.get("NodeClaim", &claim_of("n")).unwrap();
    twin["metadata"] = json!({"name": "twin"});
    world.create(twin);
    world.pod("web", "n", &json!({}));
    world.start();
    world.server.delete("Node", "n").unwrap();
    world.until_released("n").await;
    assert_eq!((world.evicted(), world.cloud.deletions()), (vec!["web".to_owned()], 0));
    let going = |claim: &Value| !claim["metadata"]["deletionTimestamp"].is_null();
    assert!(!world.server.list("NodeClaim").iter().any(going));
}

#[tokio::test(start_paused = true)]
async fn node_is_not_taken_for_empty_while_its_pods_cannot_be_listed() {
    let mut world = World::new();
    world.node("n");
    world.pod("web", "n", &json!({}));
    world.server.set_faults(|request| {
        let lists_pods = request.verb == Verb::List && request.resource.plural == "pods";
        if lists_pods { Fault::Fail(403) } else { Fault::None }
    });
    world.start();
    world.server.delete("Node", "n").unwrap();
    tokio::time::sleep(Duration::from_mins(3)).await;
    assert_eq!((world.server.writes(), world.cloud.deletions()), (0, 0));
    let why = "Failed to drain node, Pods have not been listed yet; if this lasts, see the log for why the list fails";
    assert!(
        world
            .said()
            .contains(&("FailedDraining".into(), "n".into(), why.into()))
    );
    world.server.clear_faults();
    world.until_released("n").await;
    assert_eq!(world.evicted(), ["web"]);
}

#[tokio::test(start_paused = true)]
async fn server_that_refuses_every_write_for_minutes_delays_the_end_and_no_more() {
    let mut world = World::new();
    world.node("n");
    world.pod("web", "n", &json!({}));
    world.server.set_faults(|request| match request.write {
        Some(_) => Fault::Fail(503),
        None => Fault::None,
    });
    world.start();
    world.server.delete("Node", "n").unwrap();
    tokio::time::sleep(Duration::from_mins(3)).await;
    assert_eq!(world.cloud.deletions(), 0);
    world.server.clear_faults();
    let begun = world.now();
    world.until_released("n").await;
    let took = world.now().duration_since(begun).as_secs();
    assert!(took < 40, "{took} s after the server came back");
    assert_eq!(world.evicted(), ["web"]);
}

#[tokio::test(start_paused = true)]
async fn unreadable_deadline_stops_the_drain_until_somebody_corrects_it() {
    let mut world = World::new();
    world.node("n");
    world.pod("web", "n", &json!({}));
    let break_it = |claim: &mut Value| {
        claim["metadata"]["annotations"] = json!({"karpenter.sh/nodeclaim-termination-timestamp": "tomorrow"});
    };
    world.server.update("NodeClaim", &claim_of("n"), break_it).unwrap();
    world.start();
    world.server.delete("Node", "n").unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(world.evicted(), Vec::<String>::new());
    world.set_deadline("n", 600);
    world.until_released("n").await;
    assert_eq!(world.evicted(), ["web"]);
}

#[tokio::test(start_paused = true)]
async fn pods_are_counted_under_the_reason_their_node_is_disrupted_for() {
    let mut world = World::new();
    world.node("n");
    world.pod("web", "n", &json!({}));
    let disrupt = |claim: &mut Value| {
        claim["status"]["conditions"].as_array_mut().unwrap().push(json!({
            "type": "DisruptionReason", "status": "True", "reason": "Drifted", "message": "Drifted",
            "lastTransitionTime": "2026-11-16T10:00:00Z", "observedGeneration": 1,
        }));
    };
    world.server.update("NodeClaim", &claim_of("n"), disrupt).unwrap();
    world.start();
    world.server.delete("Node", "n").unwrap();
    world.until_released("n").await;
    assert_eq!(world.metrics.pods_drained_total.value(["Drifted"]), 1.0);
    let event = ("Evicted".into(), "web".into(), "Evicted pod: Drifted".into());
    assert!(world.said().contains(&event));
}

#[tokio::test(start_paused = true)]
async fn pod_that_comes_late_is_evicted_before_the_machine_ends() {
    let mut world = World::new();
    world.node("n");
    world.start();
    world.server.delete("Node", "n").unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(world.cloud.deletions(), 0);
    world.pod("late", "n", &json!({}));
    world
        .until("machine asked to end", |_| world.cloud.deletions() > 0)
        .await;
    assert_eq!(world.evicted(), ["late"]);
}
