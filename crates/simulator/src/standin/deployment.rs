//! Deployments: a ReplicaSet per template, and from one to the next within the bounds of the strategy.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    News, is_deleting, key, text,
    workload::{controller, hash, owner_of, share, tell, whole},
};
use crate::{ApiServer, Resource};

const HASH: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";

fn deployments() -> Resource {
    Resource::new("apps", "deployments")
}

fn sets() -> Resource {
    Resource::new("apps", "replicasets")
}

/// Rolls deployments out.
pub(super) async fn roll(server: ApiServer) {
    let mut news = News::of(&server);
    while news.next(&[deployments(), sets()]).await.is_some() {
        for deployment in server.all(&deployments()).iter().filter(|one| !is_deleting(one)) {
            reconcile(&server, deployment);
        }
    }
}

fn reconcile(server: &ApiServer, deployment: &Value) {
    let own = |set: &Arc<Value>| controller(set) == text(deployment, "/metadata/uid") && !is_deleting(set);
    let mut all = server.all(&sets());
    all.retain(own);
    let is_paused = deployment["spec"]["paused"] == true;
    let current = all
        .iter()
        .find(|set| is_of(set, &deployment["spec"]["template"]))
        .cloned();
    let Some(current) = current.or_else(|| (!is_paused).then(|| begin(server, deployment, &all)).flatten()) else {
        return report(server, deployment, None, &all);
    };
    let old: Vec<Arc<Value>> = all
        .iter()
        .filter(|set| text(set, "/metadata/uid") != text(&current, "/metadata/uid"))
        .cloned()
        .collect();
    note_revision(server, deployment, &current, &old);
    if !is_paused {
        advance(server, deployment, &current, &old);
        forget(server, deployment, &old);
    }
    report(server, deployment, Some(&current), &all);
}

/// Whether a ReplicaSet is of a template.
fn is_of(set: &Value, template: &Value) -> bool {
    let mut own = set["spec"]["template"].clone();
    if let Some(labels) = own["metadata"]["labels"].as_object_mut() {
        labels.remove(HASH);
    }
    own == *template
}

fn revision(object: &Value) -> u64 {
    let said = object["metadata"]["annotations"][REVISION].as_str();
    said.and_then(|said| said.parse().ok()).unwrap_or(0)
}

fn begin(server: &ApiServer, deployment: &Value, known: &[Arc<Value>]) -> Option<Arc<Value>> {
    let spec = &deployment["spec"];
    let hash = hash(&spec["template"]);
    let mut selector = spec["selector"].clone();
    let mut template = spec["template"].clone();
    selector["matchLabels"][HASH] = json!(hash);
    template["metadata"]["labels"][HASH] = json!(hash);
    let next = known.iter().map(|set| revision(set)).max().unwrap_or(0) + 1;
    let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {
            "name": format!("{}-{hash}", text(deployment, "/metadata/name")),
            "namespace": deployment["metadata"]["namespace"], "labels": template["metadata"]["labels"],
            "annotations": {REVISION: next.to_string()}, "ownerReferences": [owner_of(deployment)],
        }, "spec": {"replicas": 0, "selector": selector, "template": template}});
    server.create(set).ok()
}

/// The template in use has the highest revision; a deployment that goes back counts on.
fn note_revision(server: &ApiServer, deployment: &Value, current: &Value, old: &[Arc<Value>]) {
    let newest = old.iter().map(|set| revision(set)).max().unwrap_or(0);
    let mut own = revision(current);
    if own <= newest {
        own = newest + 1;
        annotate(server, current, own);
    }
    if revision(deployment) != own {
        annotate(server, deployment, own);
    }
}

fn annotate(server: &ApiServer, object: &Value, revision: u64) {
    let _ = server.update(text(object, "/kind"), &key(object), |object| {
        object["metadata"]["annotations"][REVISION] = json!(revision.to_string());
    });
}

fn replicas(set: &Value) -> usize {
    whole(set, "/spec/replicas", 1)
}

fn scale(server: &ApiServer, set: &Value, wanted: usize) {
    if replicas(set) != wanted {
        let _ = server.update("ReplicaSet", &key(set), |set| set["spec"]["replicas"] = json!(wanted));
    }
}

fn advance(server: &ApiServer, deployment: &Value, current: &Value, old: &[Arc<Value>]) {
    let wanted = replicas(deployment);
    let there = |set: &Value| whole(set, "/status/replicas", 0);
    if deployment["spec"]["strategy"]["type"] == "Recreate" {
        for set in old {
            scale(server, set, 0);
        }
        if old.iter().all(|set| there(set) == 0) {
            scale(server, current, wanted);
        }
        return;
    }
    let (surge, unavailable) = bounds(deployment, wanted);
    let old_total: usize = old.iter().map(|set| replicas(set)).sum();
    let room = (wanted + surge).saturating_sub(old_total + replicas(current));
    let next = match replicas(current) {
        now if now > wanted => wanted,
        now => (now + room).min(wanted),
    };
    scale(server, current, next);
    // Old pods that are not available help nobody and go first; others may go as new ones become available.
    let available = |set: &Value| whole(set, "/status/availableReplicas", 0).min(replicas(set));
    let all: usize = old.iter().map(|set| available(set)).sum::<usize>() + available(current);
    let mut spare = all.saturating_sub(wanted.saturating_sub(unavailable));
    for set in old.iter().filter(|set| replicas(set) > 0) {
        let idle = replicas(set) - available(set);
        let go = (idle + spare.min(available(set))).min(replicas(set));
        spare -= spare.min(available(set));
        scale(server, set, replicas(set) - go);
    }
}

fn bounds(deployment: &Value, wanted: usize) -> (usize, usize) {
    let rolling = &deployment["spec"]["strategy"]["rollingUpdate"];
    let quarter = json!("25%");
    let bound = |field: &str, rounds_up: bool| {
        let value = rolling.get(field).unwrap_or(&quarter);
        share(value, wanted, rounds_up).unwrap_or(0)
    };
    match (bound("maxSurge", true), bound("maxUnavailable", false)) {
        (0, 0) => (0, 1),
        bounds => bounds,
    }
}

/// Old ReplicaSets are kept to go back to, but not all.
fn forget(server: &ApiServer, deployment: &Value, old: &[Arc<Value>]) {
    let keep = whole(deployment, "/spec/revisionHistoryLimit", 10);
    let is_idle = |set: &&Arc<Value>| replicas(set) == 0 && whole(set, "/status/replicas", 0) == 0;
    let mut idle: Vec<&Arc<Value>> = old.iter().filter(is_idle).collect();
    idle.sort_by_key(|set| revision(set));
    for set in &idle[..idle.len().saturating_sub(keep)] {
        let _ = server.delete("ReplicaSet", &key(set));
    }
}

fn report(server: &ApiServer, deployment: &Value, current: Option<&Arc<Value>>, all: &[Arc<Value>]) {
    let sum = |field: &str| -> usize { all.iter().map(|set| whole(set, &format!("/status/{field}"), 0)).sum() };
    let wanted = replicas(deployment);
    let name = current.map_or("", |set| text(set, "/metadata/name")).to_owned();
    let updated = current
        .and_then(|current| {
            all.iter()
                .find(|set| text(set, "/metadata/name") == text(current, "/metadata/name"))
        })
        .map_or(0, |set| whole(set, "/status/replicas", 0));
    let (total, available) = (sum("replicas"), sum("availableReplicas"));
    let status = [
        ("observedGeneration", deployment["metadata"]["generation"].clone()),
        ("replicas", json!(total)),
        ("updatedReplicas", json!(updated)),
        ("readyReplicas", json!(sum("readyReplicas"))),
        ("availableReplicas", json!(available)),
        (
            "unavailableReplicas",
            json!(total.max(wanted).saturating_sub(available)),
        ),
    ];
    let least = wanted.saturating_sub(bounds(deployment, wanted).1);
    let condition = |kind: &str, is_true: bool, reason: &str, message: String| json!({"type": kind, "status": if is_true { "True" } else { "False" }, "reason": reason, "message": message});
    let is_available = available >= least;
    let is_done = updated == wanted && total == wanted && available == wanted;
    let conditions = [
        if is_available {
            condition(
                "Available",
                true,
                "MinimumReplicasAvailable",
                "Deployment has minimum availability.".to_owned(),
            )
        } else {
            let message = "Deployment does not have minimum availability.".to_owned();
            condition("Available", false, "MinimumReplicasUnavailable", message)
        },
        if is_done {
            let message = format!("ReplicaSet \"{name}\" has successfully progressed.");
            condition("Progressing", true, "NewReplicaSetAvailable", message)
        } else {
            let message = format!("ReplicaSet \"{name}\" is progressing.");
            condition("Progressing", true, "ReplicaSetUpdated", message)
        },
    ];
    tell(server, deployment, &status, &conditions);
}
