//! The kwok provider against an API server in this process.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod crash;
mod world;

use std::time::Duration;

use cloud::{CloudError, CloudProvider, RepairPolicies, conformance};
use model::object::NodeClaim;
use serde_json::json;
use simulator::Fault;
use world::{World, claim, token};

const AT_ONCE: Duration = Duration::ZERO;
const SLOW: Duration = Duration::from_secs(30);

#[tokio::test(start_paused = true)]
async fn kwok_keeps_the_contract_whether_its_nodes_join_at_once_or_later() {
    for delay in [AT_ONCE, SLOW] {
        let failures = conformance::failures(|| async { World::new(delay) }).await;
        assert_eq!(failures, [""; 0], "{delay:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_has_upstreams_name_labels_annotations_taint_and_resources() {
    let world = World::new(AT_ONCE);
    let claim = claim("default-abcde", "2026-01-01T00:00:00Z".parse().unwrap());
    let launched = world.cloud.create(&claim, &token(&claim, 1)).await.unwrap();
    let name = launched.provider_id.strip_prefix("kwok://").unwrap();
    assert!(name.starts_with("kwok-default-abcde-"), "{name}");
    let node = world.server.get("Node", name).unwrap();
    let labels = json!({
        "karpenter.sh/nodepool": "default",
        "team": "blue",
        "example.com/rack": "7",
        "node.kubernetes.io/instance-type": "c-1x-amd64-linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "karpenter.sh/capacity-type": "on-demand",
        "topology.kubernetes.io/zone": "test-zone-b",
        "karpenter.kwok.sh/instance-size": "1",
        "karpenter.kwok.sh/instance-family": "c",
        "karpenter.kwok.sh/instance-cpu": "1",
        "karpenter.kwok.sh/instance-memory": "2Gi",
        "eks-node-viewer/instance-price": "0.027147",
        "kwok-partition": "a",
        "kubernetes.io/hostname": "default-abcde",
        "kwok.x-k8s.io/node": "fake",
    });
    assert_eq!(node["metadata"]["labels"], labels);
    let annotations = json!({
        "karpenter.sh/nodepool-hash": "1",
        "kwok.x-k8s.io/node": "fake",
        "karpenter.kwok.sh/nodeclaim-uid": "uid-of-default-abcde",
    });
    assert_eq!(node["metadata"]["annotations"], annotations);
    // The second is the API server's own, on every node that is created.
    let spec = json!({
        "providerID": launched.provider_id,
        "taints": [
            {"key": "karpenter.sh/unregistered", "effect": "NoExecute"},
            {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
        ],
    });
    assert_eq!(node["spec"], spec);
    assert_eq!(node["status"]["capacity"], json!({"cpu": "600m", "pods": "3"}));
    let allocatable = json!({"cpu": "900m", "memory": "2038Mi", "ephemeral-storage": "20Gi", "pods": "16"});
    assert_eq!(node["status"]["allocatable"], allocatable);
    assert_eq!(node["status"]["phase"], "Pending");
    assert_eq!(serde_json::to_value(&launched.allocatable).unwrap(), allocatable);
}

#[tokio::test(start_paused = true)]
async fn a_node_joins_after_the_delay_of_its_class() {
    let world = World::new(SLOW);
    let claim = claim("a", "2026-01-01T00:00:00Z".parse().unwrap());
    let launched = world.cloud.create(&claim, &token(&claim, 1)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(29)).await;
    assert_eq!(world.nodes(), [""; 0]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(world.nodes(), [launched.provider_id.strip_prefix("kwok://").unwrap()]);
}

#[tokio::test(start_paused = true)]
async fn a_machine_whose_node_is_refused_is_launched_and_joins_when_it_is_let_in() {
    let world = World::new(AT_ONCE);
    let claim = claim("a", "2026-01-01T00:00:00Z".parse().unwrap());
    world.fail_creations([Fault::Fail(422), Fault::Fail(422)]);
    let launched = world.cloud.create(&claim, &token(&claim, 1)).await.unwrap();
    assert_eq!(world.nodes(), [""; 0]);
    let instances = world.cloud.list().await.unwrap();
    let ids: Vec<_> = instances.iter().map(|it| it.provider_id.as_str()).collect();
    assert_eq!(ids, [&*launched.provider_id]);
    tokio::time::sleep(SLOW).await;
    assert_eq!(world.nodes(), [launched.provider_id.strip_prefix("kwok://").unwrap()]);
}

#[tokio::test(start_paused = true)]
async fn a_claim_deleted_before_its_node_joined_never_gets_one() {
    let world = World::new(SLOW);
    let claim = claim("a", "2026-01-01T00:00:00Z".parse().unwrap());
    world.cloud.create(&claim, &token(&claim, 1)).await.unwrap();
    let deleted = world.cloud.delete(&claim).await;
    assert!(deleted.is_err_and(|error| error.is_not_found()));
    tokio::time::sleep(2 * SLOW).await;
    assert_eq!(world.nodes(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_machine_counts_as_gone_while_its_node_waits_for_finalizers() {
    let world = World::new(AT_ONCE);
    let claim = claim("a", "2026-01-01T00:00:00Z".parse().unwrap());
    let launched = world.cloud.create(&claim, &token(&claim, 1)).await.unwrap();
    let name = world.nodes().remove(0);
    let finalizers = json!(["karpenter.sh/termination"]);
    let keep = |node: &mut serde_json::Value| node["metadata"]["finalizers"] = finalizers;
    world.server.update("Node", &name, keep).unwrap();
    assert_eq!(world.cloud.delete(&claim).await, Ok(()));
    let gone = CloudError::NotFound("instance terminated".to_owned());
    assert_eq!(world.cloud.delete(&claim).await, Err(gone));
    let got = world.cloud.get(&launched.provider_id.into()).await;
    assert!(got.is_err_and(|error| error.is_not_found()));
    let listed = world.cloud.list().await.unwrap();
    let leaving: Vec<_> = listed.iter().map(|it| it.is_terminating).collect();
    assert_eq!(leaving, [true]);
}

#[tokio::test(start_paused = true)]
async fn launches_that_cannot_be_are_refused_with_upstreams_words() {
    let world = World::new(AT_ONCE);
    let refused = async |change: fn(&mut NodeClaim)| {
        let mut claim = claim("a", "2026-01-01T00:00:00Z".parse().unwrap());
        change(&mut claim);
        world
            .cloud
            .create(&claim, &token(&claim, 1))
            .await
            .unwrap_err()
            .to_string()
    };
    let no_type = "translating nodeclaim to node, instance type requirement not found";
    assert_eq!(
        refused(|claim| claim.spec.requirements = Vec::new().into()).await,
        no_type
    );
    let unknown = refused(|claim| rewrite(claim, "node.kubernetes.io/instance-type", "huge")).await;
    assert_eq!(
        unknown,
        "translating nodeclaim to node, instance type not found (instance-type=huge)"
    );
    let nowhere = refused(|claim| rewrite(claim, "topology.kubernetes.io/zone", "mars")).await;
    let words = "insufficient capacity, translating nodeclaim to node, no available offering of the instance types";
    assert!(nowhere.starts_with(words), "{nowhere}");
    let classless = refused(|claim| {
        let class = claim.spec.node_class_ref.as_mut().unwrap();
        class.name = "missing".into();
    });
    let classless = classless.await;
    let words = "insufficient capacity, resolving node class from nodeclaim, ";
    assert!(classless.starts_with(words), "{classless}");
    world
        .server
        .update("KWOKNodeClass", "default", |class| {
            class["status"]["conditions"][0]["status"] = json!("False");
            class["status"]["conditions"][0]["message"] = json!("not today");
        })
        .unwrap();
    assert_eq!(refused(|_| ()).await, "NodeClassRef not ready, not today");
    assert_eq!(world.nodes(), [""; 0]);
}

fn rewrite(claim: &mut NodeClaim, key: &str, value: &str) {
    let mut requirements = claim.spec.requirements.to_vec();
    let meant = requirements.iter_mut().find(|it| *it.key == *key).unwrap();
    meant.values = vec![value.into()].into();
    claim.spec.requirements = requirements.into();
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_launches_reads_the_node_class_twice() {
    let world = World::new(SLOW);
    let claims: Vec<_> = (0..50)
        .map(|n| claim(&format!("c{n}"), "2026-01-01T00:00:00Z".parse().unwrap()))
        .collect();
    let cloud = std::sync::Arc::new(world.process());
    let mut running = tokio::task::JoinSet::new();
    for claim in claims {
        let cloud = std::sync::Arc::clone(&cloud);
        running.spawn(async move { cloud.create(&claim, &token(&claim, 1)).await });
    }
    assert!(running.join_all().await.iter().all(Result::is_ok));
    let reads = world.server.log();
    let reads = reads.iter().filter(|request| request.path.contains("kwoknodeclasses"));
    assert_eq!(reads.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_reboot_shows_as_a_new_boot_id_and_the_same_one_when_asked_again() {
    let world = World::new(AT_ONCE);
    let mut claim = claim("a", "2026-01-01T00:00:00Z".parse().unwrap());
    let unregistered = world.cloud.reboot(&claim, "op").await.unwrap_err().to_string();
    assert_eq!(
        unregistered,
        "rebooting nodeclaim, node is not registered (NodeClaim=a)"
    );
    world.cloud.create(&claim, &token(&claim, 1)).await.unwrap();
    let name = world.nodes().remove(0);
    claim.status.node_name = Some(name.as_str().into());
    for _ in 0..2 {
        world.cloud.reboot(&claim, "op").await.unwrap();
        let node = world.server.get("Node", &name).unwrap();
        assert_eq!(node["status"]["nodeInfo"]["bootID"], "kwok-op");
    }
}

#[tokio::test(start_paused = true)]
async fn the_repair_policies_pass_upstreams_validation() {
    let policies = World::new(AT_ONCE).cloud.repair_policies();
    let kinds: Vec<_> = policies.iter().map(|it| it.condition_type).collect();
    assert_eq!(kinds, ["Ready", "Ready", "KWOKUnhealthy", "KWOKRebootRequired"]);
    RepairPolicies::new(policies).unwrap();
}
