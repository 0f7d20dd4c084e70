//! What the controllers of a whole cluster make of what people ask for.
#![allow(clippy::unwrap_used, reason = "a test")]

mod speaking;

use std::time::Duration;

use serde_json::{Value, json};
use simulator::{ApiServer, Running, Standins};
use speaking::{Speaker, server};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kwok.x-k8s.io/node": "fake", "kubernetes.io/hostname": name}},
        "status": {"capacity": {"cpu": "8", "memory": "16Gi", "pods": "110"},
            "allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"}}})
}

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
        {"name": "c", "image": image, "resources": {"requests": {"cpu": "100m"}}}]}})
}

fn deployment(replicas: u32) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}}, "template": template("one")}})
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

async fn cluster(nodes: &[&str]) -> (ApiServer, Running) {
    let server = server();
    let running = Standins::all().start(&server);
    for name in nodes {
        server.create(node(name)).unwrap();
    }
    seconds(10).await;
    (server, running)
}

fn pods(server: &ApiServer) -> Vec<Value> {
    let mut pods = server.list("Pod");
    pods.retain(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    pods
}

fn on(server: &ApiServer, node: &str) -> usize {
    pods(server)
        .iter()
        .filter(|pod| pod["spec"]["nodeName"] == node)
        .count()
}

#[tokio::test(start_paused = true)]
async fn a_deployment_rolls_over_without_falling_below_its_bounds_and_can_go_back() {
    let (server, _running) = cluster(&["a", "b"]).await;
    server.create(deployment(4)).unwrap();
    seconds(10).await;
    let mut changes = server.changes();
    let change = json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "two"}]}}}});
    Speaker::to(&server).merge(&format!("{DEPLOYMENTS}/web"), change).await;
    seconds(60).await;
    let least = std::iter::from_fn(|| changes.try_recv().ok())
        .filter(|change| change.resource.plural == "deployments")
        .filter_map(|change| change.object["status"]["availableReplicas"].as_u64())
        .min();
    assert_eq!(least, Some(3), "a quarter of four may be missing");
    let status = server.get("Deployment", "default/web").unwrap()["status"].clone();
    assert_eq!(
        [
            &status["replicas"],
            &status["updatedReplicas"],
            &status["availableReplicas"]
        ],
        [4, 4, 4]
    );
    assert!(
        pods(&server)
            .iter()
            .all(|pod| pod["spec"]["containers"][0]["image"] == "two")
    );
    let revisions = |server: &ApiServer| -> Vec<(String, u64)> {
        let mut all: Vec<(String, u64)> = server
            .list("ReplicaSet")
            .iter()
            .map(|set| {
                let revision = &set["metadata"]["annotations"]["deployment.kubernetes.io/revision"];
                (
                    revision.as_str().unwrap().to_owned(),
                    set["spec"]["replicas"].as_u64().unwrap(),
                )
            })
            .collect();
        all.sort();
        all
    };
    assert_eq!(revisions(&server), [("1".to_owned(), 0), ("2".to_owned(), 4)]);
    server
        .update("Deployment", "default/web", |web| {
            web["spec"]["template"] = template("one");
        })
        .unwrap();
    seconds(60).await;
    assert_eq!(revisions(&server), [("2".to_owned(), 0), ("3".to_owned(), 4)]);
}

#[tokio::test(start_paused = true)]
async fn what_a_deployment_owns_goes_with_it_unless_it_is_orphaned() {
    let (server, _running) = cluster(&["a"]).await;
    let speaker = Speaker::to(&server);
    let path = format!("{DEPLOYMENTS}/web");
    for (options, left) in [(json!({}), 0), (json!({"propagationPolicy": "Orphan"}), 2)] {
        server.create(deployment(2)).unwrap();
        seconds(10).await;
        assert_eq!(pods(&server).len(), 2);
        assert_eq!(speaker.delete(&path, options).await.0, 200);
        seconds(10).await;
        assert_eq!(pods(&server).len(), left);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stateful_set_numbers_its_pods_and_keeps_their_claims() {
    let (server, _running) = cluster(&["a"]).await;
    server
        .create(
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "disk"},
            "provisioner": "disk.example.com", "volumeBindingMode": "Immediate"}),
        )
        .unwrap();
    let claim = json!({"metadata": {"name": "data"}, "spec": {"storageClassName": "disk", "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": {"replicas": 3,
        "selector": {"matchLabels": {"app": "web"}}, "template": template("one"), "volumeClaimTemplates": [claim]}});
    server.create(set).unwrap();
    seconds(20).await;
    let names = |server: &ApiServer, kind: &str| -> Vec<String> {
        let all = server.list(kind);
        all.iter()
            .map(|one| one["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        names(&server, "Pod"),
        ["db-0", "db-1", "db-2"],
        "{:?}",
        server.list("Pod")[0]["status"]
    );
    assert_eq!(server.list("VolumeAttachment").len(), 3);
    server
        .update("StatefulSet", "default/db", |set| set["spec"]["replicas"] = json!(1))
        .unwrap();
    seconds(20).await;
    assert_eq!(names(&server, "Pod"), ["db-0"]);
    assert_eq!(
        names(&server, "PersistentVolumeClaim"),
        ["data-db-0", "data-db-1", "data-db-2"]
    );
    assert_eq!(server.list("VolumeAttachment").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_daemon_set_has_a_pod_on_every_node_that_takes_it() {
    let (server, _running) = cluster(&["a", "b"]).await;
    let mut tainted = node("c");
    tainted["spec"] = json!({"taints": [{"key": "gpu", "effect": "NoSchedule"}]});
    server.create(tainted).unwrap();
    let set = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"}, "spec": {
        "selector": {"matchLabels": {"app": "web"}}, "template": template("one")}});
    server.create(set).unwrap();
    seconds(10).await;
    assert_eq!(["a", "b", "c"].map(|name| on(&server, name)), [1, 1, 0]);
    server.create(node("d")).unwrap();
    seconds(10).await;
    assert_eq!(on(&server, "d"), 1);
    let status = server.get("DaemonSet", "default/agent").unwrap()["status"].clone();
    assert_eq!([&status["desiredNumberScheduled"], &status["numberReady"]], [3, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_job_ends_when_its_pods_have_run_and_a_cron_job_starts_another_in_time() {
    let (server, _running) = cluster(&["a"]).await;
    let spec = json!({"completions": 3, "parallelism": 2, "template": {"spec": {"restartPolicy": "Never",
        "containers": [{"name": "c", "image": "i"}]}}});
    server
        .create(json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}))
        .unwrap();
    seconds(20).await;
    assert_eq!(server.get("Job", "default/j").unwrap()["status"]["active"], 2);
    seconds(60).await;
    let status = server.get("Job", "default/j").unwrap()["status"].clone();
    assert_eq!(
        (&status["succeeded"], &status["conditions"][0]["type"]),
        (&json!(3), &json!("Complete"))
    );
    server
        .create(
            json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"},
            "spec": {"schedule": "*/10 * * * *", "jobTemplate": {"spec": spec}}}),
        )
        .unwrap();
    seconds(25 * 60).await;
    let started: Vec<Value> = server
        .list("Job")
        .iter()
        .map(|job| job["metadata"]["name"].clone())
        .collect();
    assert_eq!(started.len(), 3, "{started:?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_falls_silent_loses_its_pods_when_their_patience_ends() {
    let (server, running) = cluster(&["a"]).await;
    server.create(deployment(2)).unwrap();
    seconds(10).await;
    assert_eq!(on(&server, "a"), 2);
    server.create(node("b")).unwrap();
    seconds(10).await;
    running.stop_kubelet("a");
    seconds(49).await;
    let ready = |server: &ApiServer| {
        let node = server.get("Node", "a").unwrap();
        let conditions = node["status"]["conditions"].as_array().unwrap().clone();
        let ready = conditions.into_iter().find(|one| one["type"] == "Ready").unwrap();
        ready["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(ready(&server), "True");
    seconds(2).await;
    assert_eq!(ready(&server), "Unknown");
    seconds(290).await;
    assert_eq!((on(&server, "a"), on(&server, "b")), (2, 0), "pods stay five minutes");
    seconds(20).await;
    assert_eq!((on(&server, "a"), on(&server, "b")), (0, 2));
    running.start_kubelet("a");
    seconds(5).await;
    assert_eq!(ready(&server), "True");
    assert_eq!(server.get("Node", "a").unwrap()["spec"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn a_taint_sends_off_pods_that_do_not_tolerate_it() {
    let (server, _running) = cluster(&["a"]).await;
    let pod = |name: &str, tolerations: Value| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"nodeName": "a",
            "tolerations": tolerations, "containers": [{"name": "c"}]}})
    };
    server.create(pod("at-once", json!([]))).unwrap();
    let patient = json!([{"key": "x", "operator": "Exists", "tolerationSeconds": 30}]);
    server.create(pod("patient", patient)).unwrap();
    server.create(pod("stays", json!([{"operator": "Exists"}]))).unwrap();
    seconds(5).await;
    server
        .update("Node", "a", |node| {
            node["spec"]["taints"] = json!([{"key": "x", "effect": "NoExecute"}]);
        })
        .unwrap();
    let names = |server: &ApiServer| -> Vec<String> {
        let pods = pods(server);
        pods.iter()
            .map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    };
    seconds(5).await;
    assert_eq!(names(&server), ["patient", "stays"]);
    seconds(30).await;
    assert_eq!(names(&server), ["stays"]);
}

#[tokio::test(start_paused = true)]
async fn every_cluster_has_its_namespaces_and_what_was_in_one_goes_with_it() {
    let (server, _running) = cluster(&[]).await;
    let accounts: Vec<String> = server
        .list("ServiceAccount")
        .iter()
        .map(|one| one["metadata"]["namespace"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(accounts, ["default", "kube-node-lease", "kube-public", "kube-system"]);
    server
        .create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}))
        .unwrap();
    server
        .create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "x"}}))
        .unwrap();
    server.delete("Namespace", "x").unwrap();
    seconds(1).await;
    assert_eq!(server.get("ConfigMap", "x/m"), None);
}
