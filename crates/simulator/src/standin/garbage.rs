//! What has lost its owner goes, and so do pods whose node is gone.

use std::{collections::BTreeSet, time::Duration};

use serde_json::Value;
use tokio::task::JoinSet;

use super::{News, key, nodes, text};
use crate::{ApiServer, Event};

/// Deletes what has lost all its owners.
pub(super) async fn collect(server: ApiServer) {
    let mut changes = server.changes();
    orphans(&server);
    while let Some(change) = changes.recv().await {
        let has_owners = change.object["metadata"]["ownerReferences"].is_array();
        if change.event == Event::Deleted || has_owners {
            while changes.try_recv().is_ok() {}
            orphans(&server);
        }
    }
}

fn orphans(server: &ApiServer) {
    let everything = server.everything();
    let alive: BTreeSet<&str> = everything.iter().map(|object| text(object, "/metadata/uid")).collect();
    let is_orphan = |object: &Value| {
        let owners = object["metadata"]["ownerReferences"].as_array();
        owners.is_some_and(|owners| !owners.iter().any(|owner| alive.contains(text(owner, "/uid"))))
    };
    for object in everything
        .iter()
        .filter(|object| !super::is_deleting(object) && is_orphan(object))
    {
        let _ = server.delete(text(object, "/kind"), &key(object));
    }
}

/// How long the pod garbage collector waits before it believes that a node is gone.
const QUARANTINE: Duration = Duration::from_secs(40);

/// Removes pods whose node is gone.
pub(super) async fn collect_pods(server: ApiServer) {
    let mut news = News::of(&server);
    let mut waiting = JoinSet::new();
    while let Some(changed) = news.next(&[nodes()]).await {
        for (_, node) in changed {
            let name = text(&node, "/metadata/name").to_owned();
            if server.get("Node", &name).is_none() {
                waiting.spawn(forget(server.clone(), name));
            }
        }
    }
}

async fn forget(server: ApiServer, node: String) {
    tokio::time::sleep(QUARANTINE).await;
    if server.get("Node", &node).is_some() {
        return;
    }
    for pod in server.list("Pod") {
        if text(&pod, "/spec/nodeName") == node {
            let _ = server.delete_now("Pod", &key(&pod));
        }
    }
}
