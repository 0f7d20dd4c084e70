//! What happens to the pods, the volumes and the machine of a node that goes away, told against an API server.

#![allow(clippy::unwrap_used, reason = "a fixture that cannot be built fails its test")]
#![allow(clippy::float_cmp, reason = "counters count whole things")]

mod bad_days;
mod crash;
mod eviction;
mod reboot;
mod world;

use std::time::Duration;

use serde_json::{Value, json};
use world::{World, claim_of};

fn owned_by_daemon_set() -> Value {
    json!({"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true}]}})
}

fn with_priority(class: &str) -> Value {
    json!({"spec": {"priorityClassName": class}})
}

/// One pod of each tier, made in the opposite order.
fn one_of_each_tier(world: &World, node: &str) {
    let mut last = owned_by_daemon_set();
    world::merge(&mut last, &with_priority("system-node-critical"));
    world.pod("critical-daemon", node, &last);
    world.pod("critical", node, &with_priority("system-cluster-critical"));
    world.pod("daemon", node, &owned_by_daemon_set());
    world.pod("web", node, &json!({}));
}

const TIERS: [&str; 4] = ["web", "daemon", "critical", "critical-daemon"];

#[tokio::test(start_paused = true)]
async fn node_is_closed_drained_tier_by_tier_and_let_go_after_its_machine() {
    let mut world = World::new();
    world.node("n");
    one_of_each_tier(&world, "n");
    world.start();
    world.server.delete("Node", "n").unwrap();
    world
        .until("machine asked to end", |_| world.cloud.deletions() > 0)
        .await;
    let node = world.server.get("Node", "n").unwrap();
    assert_eq!(
        node["spec"]["taints"],
        json!([{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}])
    );
    let label = &node["metadata"]["labels"]["node.kubernetes.io/exclude-from-external-load-balancers"];
    assert_eq!(label, "karpenter");
    assert_eq!(world.evicted(), TIERS);
    assert!(world.server.list("Pod").is_empty());
    world.until_released("n").await;
    assert!(!world.cloud.has("n"));
    let node = world.server.get("Node", "n").unwrap();
    assert_eq!(node["metadata"]["finalizers"], json!(["example.com/other"]));
    let holds = |kind: &str| world.condition("n", kind) == Some(("True".to_owned(), kind.to_owned()));
    assert!(
        ["Drained", "VolumesDetached", "InstanceTerminating"]
            .into_iter()
            .all(holds)
    );
    assert_eq!(world.metrics.nodes_terminated_total.value(["default", "z"]), 1.0);
    assert_eq!(world.metrics.nodes_drained_total.value(["default"]), 1.0);
    assert_eq!(world.metrics.pods_drained_total.value(["Forceful Termination"]), 4.0);
    let writes = "claim's deletion, taint, two writes of its conditions, four evictions, finalizer";
    assert_eq!(world.server.writes(), 9, "{writes}");
}

#[tokio::test(start_paused = true)]
async fn deleting_a_node_deletes_its_claim() {
    let mut world = World::new();
    world.node("n");
    world.start();
    world.server.delete("Node", "n").unwrap();
    world.until_released("n").await;
    let claim = world.server.get("NodeClaim", &claim_of("n")).unwrap();
    assert!(!claim["metadata"]["deletionTimestamp"].is_null());
    assert!(!world.cloud.has("n"));
}

#[tokio::test(start_paused = true)]
async fn node_without_a_claim_is_drained_and_let_go_without_a_word_to_the_cloud() {
    let mut world = World::new();
    world.lone_node("n");
    world.pod("web", "n", &json!({}));
    world.start();
    world.server.delete("Node", "n").unwrap();
    world.until_released("n").await;
    assert_eq!((world.evicted(), world.cloud.deletions()), (vec!["web".to_owned()], 0));
}

#[tokio::test(start_paused = true)]
async fn silent_node_whose_machine_is_gone_is_let_go_at_once() {
    let mut world = World::new();
    world.node("n");
    world.pod("web", "n", &json!({}));
    let silent = |node: &mut Value| node["status"]["conditions"][0]["status"] = json!("Unknown");
    world.server.update("Node", "n", silent).unwrap();
    world.cloud.lose("n");
    world.start();
    world.server.delete("Node", "n").unwrap();
    world.until_released("n").await;
    assert_eq!((world.evicted(), world.cloud.deletions()), (Vec::new(), 0));
    assert_eq!(world.condition("n", "Drained"), None);
}

#[tokio::test(start_paused = true)]
async fn pod_held_by_a_budget_goes_as_soon_as_the_budget_opens() {
    let mut world = World::new();
    world.node("n");
    world.pod("web", "n", &json!({}));
    world.budget("hold", "web", 0);
    world.start();
    world.server.delete("Node", "n").unwrap();
    tokio::time::sleep(Duration::from_mins(2)).await;
    let refused = world.refusals("web", 429);
    assert!((10..=25).contains(&refused), "{refused} refusals in two minutes");
    let why = "Failed to drain node, evicting pod violates a PDB (Pod=default/web)";
    assert!(
        world
            .said()
            .contains(&("FailedDraining".into(), "n".into(), why.into()))
    );
    assert_eq!(
        world.condition("n", "Drained"),
        Some(("Unknown".into(), "Draining".into()))
    );
    let opened = world.now();
    let open = |budget: &mut Value| budget["status"]["disruptionsAllowed"] = json!(1);
    world
        .server
        .update("PodDisruptionBudget", "default/hold", open)
        .unwrap();
    world.until("web evicted", |_| world.evicted() == ["web"]).await;
    let waited = world.now().duration_since(opened).as_millis();
    assert!(waited < 1000, "{waited} ms after the budget opened");
    world.until_released("n").await;
    assert_eq!(world.metrics.pods_eviction_requests_total.value(["200"]), 1.0);
}

#[tokio::test(start_paused = true)]
async fn pod_under_two_budgets_holds_its_node_and_an_event_says_why() {
    let mut world = World::new();
    world.node("n");
    world.pod("web", "n", &json!({}));
    world.budget("one", "web", 1);
    world.budget("two", "web", 1);
    world.start();
    world.server.delete("Node", "n").unwrap();
    let why = "Failed to drain node, eviction does not support multiple PDBs (Pod=default/web)";
    let event = ("FailedDraining".to_owned(), "n".to_owned(), why.to_owned());
    world.until("event", |_| world.said().contains(&event)).await;
    assert_eq!(world.evicted(), Vec::<String>::new());
    world.server.delete("PodDisruptionBudget", "default/two").unwrap();
    world.until_released("n").await;
    assert!(world.metrics.pods_eviction_requests_total.value(["500"]) >= 1.0);
}

#[tokio::test(start_paused = true)]
async fn protected_pod_stalls_the_drain_until_the_deadline_forces_it() {
    let mut world = World::new();
    world.node("n");
    let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}, "spec": {"terminationGracePeriodSeconds": 60}});
    world.pod("web", "n", &protected);
    world.set_deadline("n", 300);
    let begun = world.now();
    world.start();
    world.server.delete("Node", "n").unwrap();
    world
        .until("web asked to go", |server| {
            let pod = server.get("Pod", "default/web").unwrap();
            !pod["metadata"]["deletionTimestamp"].is_null()
        })
        .await;
    let waited = world.now().duration_since(begun).as_secs();
    assert!((240..=242).contains(&waited), "deleted after {waited} s");
    let pod = world.server.get("Pod", "default/web").unwrap();
    let granted = pod["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap();
    assert!((58..=60).contains(&granted), "{granted} s granted");
    world.until_released("n").await;
    assert_eq!(world.evicted(), Vec::<String>::new());
    let said: Vec<_> = world.said().into_iter().map(|(reason, ..)| reason).collect();
    for reason in ["TerminationGracePeriodExpiring", "FailedDraining", "Disrupted"] {
        assert!(said.iter().any(|said| said == reason), "{reason} in {said:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn protection_for_a_while_says_when_it_ends_and_then_ends() {
    let mut world = World::new();
    world.node("n");
    world.pod(
        "web",
        "n",
        &json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "2m"}}}),
    );
    world.start();
    world.server.delete("Node", "n").unwrap();
    world.until("web evicted", |_| world.evicted() == ["web"]).await;
    let second = world.now().as_second() - "2026-11-16T10:00:00Z".parse::<jiff::Timestamp>().unwrap().as_second();
    assert!((120..=131).contains(&second), "evicted after {second} s");
    let until = "The karpenter.sh/do-not-disrupt grace period will elapse at 2026-11-16T10:02:00Z";
    assert!(
        world
            .said()
            .contains(&("DoNotDisruptUntil".into(), "web".into(), until.into()))
    );
}

#[tokio::test(start_paused = true)]
async fn pod_that_never_stops_holds_its_node_for_a_minute_past_its_time() {
    let mut world = World::new();
    world.node("n");
    world.pod("web", "n", &json!({"metadata": {"labels": {"stops": "never"}}}));
    world.start();
    let begun = world.now();
    world.server.delete("Node", "n").unwrap();
    world
        .until("machine asked to end", |_| world.cloud.deletions() > 0)
        .await;
    let waited = world.now().duration_since(begun).as_secs();
    assert!(
        (90..=93).contains(&waited),
        "30 s of grace and a minute, not {waited} s"
    );
    world.until_released("n").await;
    assert_eq!(world.evicted(), ["web"], "asked once");
}

fn attach(world: &World, name: &str, volume: &str) {
    world.create(json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": name},
        "spec": {"attacher": "csi", "nodeName": "n", "source": {"persistentVolumeName": volume}},
    }));
}

#[tokio::test(start_paused = true)]
async fn machine_ends_only_after_its_volumes_are_detached() {
    let mut world = World::new();
    world.node("n");
    attach(&world, "a", "pv-a");
    world.start();
    world.server.delete("Node", "n").unwrap();
    let awaiting = Some(("Unknown".to_owned(), "AwaitingVolumeDetachment".to_owned()));
    world
        .until("awaits volumes", |_| {
            world.condition("n", "VolumesDetached") == awaiting
        })
        .await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(world.cloud.deletions(), 0);
    let why = "Awaiting deletion of bound volumeattachments (a)";
    assert!(
        world
            .said()
            .contains(&("AwaitingVolumeDetachment".into(), "n".into(), why.into()))
    );
    world.server.delete("VolumeAttachment", "a").unwrap();
    world.until_released("n").await;
    assert_eq!(
        world.condition("n", "VolumesDetached"),
        Some(("True".into(), "VolumesDetached".into()))
    );
}

#[tokio::test(start_paused = true)]
async fn volumes_are_given_up_at_the_deadline() {
    let mut world = World::new();
    world.node("n");
    attach(&world, "a", "pv-a");
    world.set_deadline("n", 60);
    world.start();
    world.server.delete("Node", "n").unwrap();
    let begun = world.now();
    world.until_released("n").await;
    assert!(world.now().duration_since(begun).as_secs() >= 60);
    assert_eq!(
        world.condition("n", "VolumesDetached"),
        Some(("False".into(), "TerminationGracePeriodElapsed".into()))
    );
}

#[tokio::test(start_paused = true)]
async fn pod_is_not_evicted_twice_because_the_watch_is_late() {
    let mut world = World::new();
    world.server.set_watch_lag(Duration::from_secs(4));
    world.node("n");
    for name in ["a", "b", "c"] {
        world.pod(name, "n", &json!({}));
    }
    world.start();
    world.server.delete("Node", "n").unwrap();
    world.until_released("n").await;
    assert_eq!(world.evicted().len(), 3);
    assert_eq!(world.metrics.pods_eviction_requests_total.value(["200"]), 3.0);
}

#[tokio::test(start_paused = true)]
async fn lease_that_nobody_owns_renews_or_backs_is_collected() {
    let mut world = World::new();
    world.node("n");
    let lease = |name: &str, renewed: &str| {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"namespace": "kube-node-lease", "name": name, "creationTimestamp": "2026-11-16T09:00:00Z"},
            "spec": {"holderIdentity": name, "renewTime": renewed},
        })
    };
    world.create(lease("n", "2026-11-16T09:00:00.000000Z"));
    world.create(lease("gone", "2026-11-16T09:00:00.000000Z"));
    world.create(lease("fresh", "2026-11-16T11:00:00.000000Z"));
    world.start();
    world
        .until("lease collected", |server| {
            server.get("Lease", "kube-node-lease/gone").is_none()
        })
        .await;
    let left: Vec<_> = world
        .server
        .list("Lease")
        .iter()
        .map(|lease| lease["metadata"]["name"].clone())
        .collect();
    assert_eq!(left, ["fresh", "n"]);
}
