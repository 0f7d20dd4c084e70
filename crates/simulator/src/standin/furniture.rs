//! What every cluster has from the start: namespaces, their service accounts, the priority classes of the system.

use serde_json::{Value, json};

use super::{is_deleting, key, text};
use crate::{ApiServer, Event, Resource};

/// Puts it in.
pub(super) fn put(server: &ApiServer) {
    for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name,
            "labels": {"kubernetes.io/metadata.name": name}}, "spec": {"finalizers": ["kubernetes"]}});
        let _ = server.create(namespace);
    }
    for (name, value) in [
        ("system-cluster-critical", 2_000_000_000),
        ("system-node-critical", 2_000_001_000),
    ] {
        let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
            "value": value, "globalDefault": false, "preemptionPolicy": "PreemptLowerPriority",
            "description": "Used for system critical pods."});
        let _ = server.create(class);
    }
}

/// Gives every namespace its service account, and takes out what was in one that is gone.
pub(super) async fn keep(server: ApiServer) {
    let namespaces = Resource::new("", "namespaces");
    let mut changes = server.changes();
    for namespace in server.all(&namespaces) {
        settle(&server, &namespace);
    }
    while let Some(change) = changes.recv().await {
        if change.resource != namespaces {
            continue;
        }
        if change.event == Event::Deleted {
            clear(&server, text(&change.object, "/metadata/name"));
        } else {
            settle(&server, &change.object);
        }
    }
}

fn settle(server: &ApiServer, namespace: &Value) {
    let name = text(namespace, "/metadata/name");
    if !is_deleting(namespace) && server.get("ServiceAccount", &format!("{name}/default")).is_none() {
        let account =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}});
        let _ = server.create(account);
    }
}

fn clear(server: &ApiServer, namespace: &str) {
    for object in server.everything() {
        if text(&object, "/metadata/namespace") == namespace {
            let _ = server.delete(text(&object, "/kind"), &key(&object));
        }
    }
}
