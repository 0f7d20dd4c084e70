//! What the rest of the cluster does by itself.
#![allow(clippy::unwrap_used, reason = "a test")]

mod speaking;

use std::time::Duration;

use serde_json::{Value, json};
use simulator::{ApiServer, Standins};
use speaking::{Speaker, server};

fn node(name: &str, cpu: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kwok.x-k8s.io/node": "fake", "kubernetes.io/hostname": name}},
        "status": {"capacity": {"cpu": cpu, "memory": "8Gi", "pods": "110"},
            "allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}}})
}

fn pod(name: &str, cpu: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}})
}

fn condition(object: &Value, kind: &str) -> (String, String) {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions
        .iter()
        .find(|one| one["type"] == kind)
        .cloned()
        .unwrap_or_default();
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"))
}

fn where_is(server: &ApiServer, pod: &str) -> (String, String) {
    let pod = server.get("Pod", &format!("default/{pod}")).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&pod["spec"]["nodeName"]), text(&pod["status"]["phase"]))
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_for_a_node_to_be_ready_and_then_runs_on_it() {
    let server = server();
    let _standins = Standins::default().start(&server);
    server.create(pod("p", "1")).unwrap();
    seconds(1).await;
    let waiting = server.get("Pod", "default/p").unwrap();
    assert_eq!(
        condition(&waiting, "PodScheduled"),
        ("False".into(), "Unschedulable".into())
    );
    Speaker::to(&server).post("/api/v1/nodes", node("n", "2")).await;
    seconds(4).await;
    assert_eq!(where_is(&server, "p"), (String::new(), "Pending".into()));
    seconds(3).await;
    assert_eq!(where_is(&server, "p"), ("n".into(), "Running".into()));
    let node = server.get("Node", "n").unwrap();
    assert_eq!(
        (condition(&node, "Ready").0, &node["spec"]),
        ("True".into(), &json!({}))
    );
}

#[tokio::test(start_paused = true)]
async fn a_nominated_pod_goes_where_it_was_nominated() {
    let server = server();
    for name in ["a", "b"] {
        server.create(node(name, "2")).unwrap();
    }
    let mut nominated = pod("p", "1");
    nominated["status"] = json!({"nominatedNodeName": "b"});
    server.create(nominated).unwrap();
    let _standins = Standins::default().start(&server);
    seconds(3).await;
    assert_eq!(where_is(&server, "p"), ("b".into(), "Running".into()));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_ends_and_its_replica_set_makes_another() {
    let server = server();
    server.create(node("n", "4")).unwrap();
    let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"}, "spec": {"replicas": 2,
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod("", "1")["spec"]}}});
    server.create(set).unwrap();
    let _standins = Standins::default().start(&server);
    seconds(3).await;
    let names = || -> Vec<String> {
        let pods = server.list("Pod").into_iter();
        pods.map(|pod| {
            format!(
                "{} {}",
                pod["metadata"]["name"].as_str().unwrap(),
                pod["status"]["phase"]
            )
        })
        .collect()
    };
    let before = names();
    let gone = before[0].split(' ').next().unwrap().to_owned();
    server.delete("Pod", &format!("default/{gone}")).unwrap();
    seconds(4).await;
    let after = names();
    assert_eq!((before.len(), after.len()), (2, 2));
    assert!(
        after.contains(&before[1]) && !after.contains(&before[0]),
        "{before:?} {after:?}"
    );
    assert!(after.iter().all(|pod| pod.ends_with("\"Running\"")), "{after:?}");
}

#[tokio::test(start_paused = true)]
async fn budgets_count_the_healthy() {
    let server = server();
    server.create(node("n", "4")).unwrap();
    for name in ["a", "b", "c"] {
        let mut pod = pod(name, "1");
        pod["metadata"]["labels"] = json!({"app": "web"});
        server.create(pod).unwrap();
    }
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "pdb"},
        "spec": {"minAvailable": "60%", "selector": {"matchLabels": {"app": "web"}}}});
    server.create(budget).unwrap();
    let _standins = Standins::default().start(&server);
    let allowed = || server.get("PodDisruptionBudget", "default/pdb").unwrap()["status"]["disruptionsAllowed"].clone();
    seconds(3).await;
    assert_eq!(allowed(), json!(1));
    server.delete("Pod", "default/a").unwrap();
    seconds(0).await;
    tokio::task::yield_now().await;
    assert_eq!(allowed(), json!(0));
}

#[tokio::test(start_paused = true)]
async fn what_has_lost_its_owner_goes_and_finalizers_are_respected() {
    let server = server();
    let _standins = Standins::default().start(&server);
    let pool = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "p"}});
    let pool = server.create(pool).unwrap();
    for (name, finalizers) in [("free", json!(null)), ("held", json!(["karpenter.sh/termination"]))] {
        let claim = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": name,
            "finalizers": finalizers, "ownerReferences": [{"kind": "NodePool", "uid": pool["metadata"]["uid"]}]}});
        server.create(claim).unwrap();
    }
    seconds(1).await;
    assert_eq!(server.list("NodeClaim").len(), 2);
    server.delete("NodePool", "p").unwrap();
    seconds(1).await;
    let left = server.list("NodeClaim");
    assert_eq!((left.len(), &left[0]["metadata"]["name"]), (1, &json!("held")));
    assert!(left[0]["metadata"]["deletionTimestamp"].is_string());
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_node_that_is_gone_are_collected() {
    let server = server();
    server.create(node("n", "4")).unwrap();
    server.create(pod("p", "1")).unwrap();
    let _standins = Standins::default().start(&server);
    seconds(3).await;
    server.delete("Node", "n").unwrap();
    seconds(30).await;
    assert_eq!(server.list("Pod").len(), 1);
    seconds(15).await;
    assert_eq!(server.list("Pod").len(), 0);
}
