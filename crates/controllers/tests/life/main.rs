//! The life of a claim, told against an API server and a cloud.

#![allow(
    clippy::float_cmp,
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    clippy::unwrap_used,
    unreachable_pub,
    missing_docs,
    reason = "a helper of a test fails as the test does"
)]

mod crash;
mod world;

use std::{sync::atomic::Ordering, time::Duration};

use cloud::conformance::Fault;
use jiff::SignedDuration;
use serde_json::{Value, json};
use world::{World, fresh_node, node_of};

fn yes(kind: &str) -> Option<(String, String)> {
    Some(("True".to_owned(), kind.to_owned()))
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_launched_registered_and_initialised() {
    let mut world = World::new();
    world.claim("a", &json!({}));
    world.start();
    world.until_ready("a").await;
    for kind in ["Launched", "Registered", "Initialized", "Ready"] {
        assert_eq!(world.condition("a", kind), yes(kind), "{kind}");
    }
    let claim = world.server.get("NodeClaim", "a").unwrap();
    let id = claim["status"]["providerID"].as_str().unwrap();
    assert_eq!(claim["status"]["nodeName"], node_of(id));
    assert_eq!(claim["metadata"]["labels"]["topology.kubernetes.io/zone"], "z");
    let node = world.server.get("Node", &node_of(id)).unwrap();
    let labels = &node["metadata"]["labels"];
    let shown = [
        "karpenter.sh/registered",
        "karpenter.sh/initialized",
        "team",
        "kubernetes.io/os",
    ]
    .map(|key| &labels[key]);
    assert_eq!(shown, ["true", "true", "web", "linux"]);
    let taints = json!([{"key": "dedicated", "value": "web", "effect": "NoSchedule"}]);
    assert_eq!(node["spec"]["taints"], taints);
    assert_eq!(node["metadata"]["finalizers"], json!(["karpenter.sh/termination"]));
    assert_eq!(
        node["metadata"]["annotations"]["dovetail.dev/launch-attempt"],
        Value::Null
    );
    assert_eq!(world.metrics.nodes_created_total.value(["default", "z"]), 1.0);
    let pool = world.server.get("NodePool", "default").unwrap();
    let healthy = pool["status"]["conditions"].as_array().unwrap().iter();
    let mut healthy = healthy.filter(|condition| condition["type"] == "NodeRegistrationHealthy");
    assert_eq!(healthy.next().unwrap()["status"], "True");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_comes_ready_costs_one_write_and_its_claim_four() {
    let mut world = World::new();
    world.claim("a", &json!({}));
    world.start_with(|cluster| {
        let managed = controllers::node_claim::Managed::by(&**cluster.cloud());
        let lifecycle = controllers::node_claim::lifecycle::Lifecycle::new(managed, std::sync::Arc::default());
        controllers::run(std::sync::Arc::new(lifecycle), std::sync::Arc::clone(cluster)).1
    });
    world.until_ready("a").await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let claim = "Patch /apis/karpenter.sh/v1/nodeclaims/a";
    let writes = world.writes();
    let of = |path: &str| writes.iter().filter(|write| *write == path).count();
    // The finalizer; labels; what was launched; that it is registered and initialised.
    assert_eq!((of(claim), of(&format!("{claim}/status"))), (2, 2), "{writes:#?}");
    assert_eq!(of("Patch /api/v1/nodes/node-1"), 1, "{writes:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_not_ready_yet_is_initialised_when_it_is() {
    let mut world = World::new();
    world.is_mute.store(true, Ordering::Relaxed);
    world.claim(
        "a",
        &json!({"spec": {"startupTaints": [{"key": "cni", "effect": "NoSchedule"}]}}),
    );
    world.start();
    world
        .until("launched", |_| world.condition("a", "Launched") == yes("Launched"))
        .await;
    let id = world.cloud.machines()[0].to_string();
    let mut node = fresh_node("n", &id, world.now());
    node["status"]["conditions"][0]["status"] = json!("False");
    world.create(node);
    let waits = |reason: &str| Some(("Unknown".to_owned(), reason.to_owned()));
    world
        .until("registered", |_| {
            world.condition("a", "Initialized") == waits("NodeNotReady")
        })
        .await;
    let ready = |node: &mut Value| node["status"]["conditions"][0]["status"] = json!("True");
    world.server.update("Node", "n", ready).unwrap();
    world
        .until("ready", |_| {
            world.condition("a", "Initialized") == waits("StartupTaintsExist")
        })
        .await;
    let untaint = |node: &mut Value| node["spec"]["taints"] = json!([]);
    world.server.update("Node", "n", untaint).unwrap();
    world.until_ready("a").await;
    let node = world.server.get("Node", "n").unwrap();
    assert_eq!(node["metadata"]["labels"]["karpenter.sh/initialized"], "true");
}

/// Claim `a`, registered, with a node `n` that is not ready yet.
async fn with_node_that_is_not_ready() -> World {
    let mut world = World::new();
    world.is_mute.store(true, Ordering::Relaxed);
    world.claim("a", &json!({}));
    world.start();
    world
        .until("launched", |_| world.condition("a", "Launched") == yes("Launched"))
        .await;
    let id = world.cloud.machines()[0].to_string();
    let mut node = fresh_node("n", &id, world.now());
    node["status"]["conditions"][0]["status"] = json!("False");
    world.create(node);
    world
        .until("registered", |_| {
            world.condition("a", "Registered") == yes("Registered")
        })
        .await;
    world
}

fn make_ready(node: &mut Value) {
    node["status"]["conditions"][0]["status"] = json!("True");
}

fn is_marked(world: &World) -> bool {
    let node = world.server.get("Node", "n").unwrap();
    node["metadata"]["labels"]["karpenter.sh/initialized"] == "true"
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_node_could_not_be_marked_for_a_conflict_is_not_called_initialised() {
    let world = with_node_that_is_not_ready().await;
    world.server.set_faults(|request| {
        let is_mark = request.write.is_some() && request.name == "n";
        if is_mark {
            simulator::Fault::Fail(409)
        } else {
            simulator::Fault::None
        }
    });
    world.server.update("Node", "n", make_ready).unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(!is_marked(&world));
    assert_ne!(world.condition("a", "Initialized"), yes("Initialized"));
    world.server.clear_faults();
    world.until_ready("a").await;
    assert!(is_marked(&world));
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_the_cloud_cannot_serve_is_deleted_and_says_why() {
    let mut world = World::new();
    world.cloud.inject(Fault::OutOfStock);
    world.claim("a", &json!({}));
    world.start();
    world.until_nothing_is_left().await;
    let message = "NodeClaim a event: insufficient capacity, no offering that the NodeClaim admits is in stock";
    let said = (
        "InsufficientCapacityError".to_owned(),
        "a".to_owned(),
        message.to_owned(),
    );
    assert_eq!(world.said().iter().filter(|event| **event == said).count(), 1);
    let labels = ["insufficient_capacity", "default", "", "", "graceful"];
    assert_eq!(world.metrics.nodeclaims_disrupted_total.value(labels), 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_claim_without_a_machine_after_five_minutes_is_given_up() {
    let mut world = World::new();
    for _ in 0..100 {
        world.cloud.inject(Fault::Throttled(Duration::from_secs(1)));
    }
    world.claim("a", &json!({}));
    world.start();
    let failed = Some(("Unknown".to_owned(), "LaunchFailed".to_owned()));
    world
        .until("failed", |_| world.condition("a", "Launched") == failed)
        .await;
    let began = world.now();
    world.until_nothing_is_left().await;
    let took = world.now().duration_since(began);
    assert!(
        took >= SignedDuration::from_secs(295) && took < SignedDuration::from_mins(7),
        "{took:?}"
    );
    let labels = ["launch_timeout", "default", "", "", "graceful"];
    assert_eq!(world.metrics.nodeclaims_disrupted_total.value(labels), 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_machine_whose_node_never_comes_is_given_up_after_fifteen_minutes() {
    let mut world = World::new();
    world.is_mute.store(true, Ordering::Relaxed);
    world.claim("a", &json!({}));
    world.start();
    world
        .until("launched", |_| world.condition("a", "Launched") == yes("Launched"))
        .await;
    let waits = Some(("Unknown".to_owned(), "NodeNotFound".to_owned()));
    assert_eq!(world.condition("a", "Registered"), waits);
    let began = world.now();
    world.until_nothing_is_left().await;
    let took = world.now().duration_since(began);
    assert!(
        took >= SignedDuration::from_mins(14) && took < SignedDuration::from_mins(17),
        "{took:?}"
    );
    let labels = ["registration_timeout", "default", "spot", "", "graceful"];
    assert_eq!(world.metrics.nodeclaims_disrupted_total.value(labels), 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_launch_whose_answer_is_lost_gives_one_machine() {
    let mut world = World::new();
    world.cloud.inject(Fault::LostResponse);
    world.claim("a", &json!({}));
    world.start();
    world.until_ready("a").await;
    assert_eq!(world.cloud.machines().len(), 1);
    world.server.delete("NodeClaim", "a").unwrap();
    world.until_nothing_is_left().await;
}

#[tokio::test(start_paused = true)]
async fn two_nodes_with_one_provider_id_never_register() {
    let mut world = World::new();
    world.is_mute.store(true, Ordering::Relaxed);
    world.claim("a", &json!({}));
    world.start();
    world
        .until("launched", |_| world.condition("a", "Launched") == yes("Launched"))
        .await;
    let id = world.cloud.machines()[0].to_string();
    world.kill();
    world.create(fresh_node("n", &id, world.now()));
    world.create(fresh_node("m", &id, world.now()));
    world.start();
    let twice = Some(("False".to_owned(), "MultipleNodesFound".to_owned()));
    world
        .until("found twice", |_| world.condition("a", "Registered") == twice)
        .await;
    world
        .until("given up", |server| server.list("NodeClaim").is_empty())
        .await;
    assert!(world.cloud.machines().is_empty());
}

#[tokio::test(start_paused = true)]
async fn claims_of_somebody_elses_node_class_are_left_alone() {
    let mut world = World::new();
    let other = json!({"group": "example.com", "kind": "OtherClass", "name": "default"});
    world.claim("a", &json!({"spec": {"nodeClassRef": other}}));
    world.start();
    tokio::time::sleep(Duration::from_mins(20)).await;
    let touched = world
        .writes()
        .into_iter()
        .filter(|write| write.contains("nodeclaims"))
        .collect::<Vec<_>>();
    assert_eq!(touched, Vec::<String>::new());
    assert!(world.cloud.machines().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_machine_vanished_is_collected_once_its_node_is_not_ready() {
    let mut world = World::new();
    world.claim("a", &json!({}));
    world.start();
    world.until_ready("a").await;
    let id = world.cloud.machines()[0].clone();
    tokio::time::sleep(Duration::from_mins(3)).await;
    let unready = |node: &mut Value| node["status"]["conditions"][0]["status"] = json!("Unknown");
    world.server.update("Node", &node_of(id.as_str()), unready).unwrap();
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(world.server.list("NodeClaim").len(), 1, "the machine is still there");
    world.cloud.lose(&id);
    world.until_nothing_is_left().await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_whose_claim_vanished_is_removed() {
    let mut world = World::new();
    world.claim("a", &json!({}));
    world.start();
    world.until_ready("a").await;
    world.kill();
    world
        .server
        .update("NodeClaim", "a", |claim| claim["metadata"]["finalizers"] = json!([]))
        .unwrap();
    world.server.delete("NodeClaim", "a").unwrap();
    assert_eq!(
        (world.server.list("NodeClaim").len(), world.cloud.machines().len()),
        (0, 1)
    );
    world.start();
    world
        .until("machine removed", |_| world.cloud.machines().is_empty())
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_expires() {
    let mut world = World::new();
    world.claim(
        "a",
        &json!({"spec": {"expireAfter": "10m", "terminationGracePeriod": "1h"}}),
    );
    world.start();
    world.until_ready("a").await;
    let began = world.now();
    world.until_nothing_is_left().await;
    let took = world.now().duration_since(began);
    assert!(
        took >= SignedDuration::from_mins(9) && took < SignedDuration::from_mins(12),
        "{took:?}"
    );
    let labels = ["expired", "default", "spot", "", "eventual"];
    assert_eq!(world.metrics.nodeclaims_disrupted_total.value(labels), 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_pool_shows_its_hash_its_readiness_and_what_it_holds() {
    let mut world = World::new();
    world.claim("a", &json!({}));
    world.start();
    world.until_ready("a").await;
    let expected = json!({"cpu": "4", "memory": "16Gi", "pods": "110", "ephemeral-storage": "0", "nodes": "1"});
    world
        .until("counted", |server| {
            server.get("NodePool", "default").unwrap()["status"]["resources"] == expected
        })
        .await;
    let pool = world.server.get("NodePool", "default").unwrap();
    assert_eq!(pool["status"]["nodes"], 1);
    assert_eq!(
        pool["metadata"]["annotations"]["karpenter.sh/nodepool-hash-version"],
        "v3"
    );
    let conditions = pool["status"]["conditions"].as_array().unwrap();
    let mut shown: Vec<_> = conditions
        .iter()
        .map(|one| (one["type"].as_str().unwrap(), one["status"].as_str().unwrap()))
        .collect();
    shown.sort_unstable();
    let all = [
        "NodeClassReady",
        "NodeRegistrationHealthy",
        "Ready",
        "ValidationSucceeded",
    ];
    assert_eq!(shown, all.map(|kind| (kind, "True")));
    let writes = world.server.writes();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(world.server.writes(), writes, "a quiet cluster is left in peace");
}

#[tokio::test(start_paused = true)]
async fn a_pool_without_its_node_class_says_so_and_recovers() {
    let mut world = World::new();
    world.server.delete("KWOKNodeClass", "default").unwrap();
    world.start();
    let ready = |server: &simulator::ApiServer| {
        let pool = server.get("NodePool", "default").unwrap();
        let conditions = pool["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions
            .into_iter()
            .find(|condition| condition["type"] == "NodeClassReady");
        found.map(|condition| condition["reason"].as_str().unwrap().to_owned())
    };
    world
        .until("missed", |server| ready(server).as_deref() == Some("NodeClassNotFound"))
        .await;
    world.create(json!({
        "apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"},
        "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": ""}]},
    }));
    world
        .until("ready", |server| ready(server).as_deref() == Some("NodeClassReady"))
        .await;
}
