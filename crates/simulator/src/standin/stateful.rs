//! StatefulSets: numbered pods, one after the other, with claims of their own.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::{
    News, is_deleting, key, pods, text,
    workload::{Owned, hash, is_gone, new_pod, tell, whole},
};
use crate::{ApiServer, Resource, pod::is_ready};

const HASH: &str = "controller-revision-hash";

/// Keeps as many pods as each set asks for.
pub(super) async fn number(server: ApiServer) {
    let sets = Resource::new("apps", "statefulsets");
    let mut news = News::of(&server);
    while news.next(&[pods(), sets.clone()]).await.is_some() {
        let owned = Owned::of(&server);
        for set in server.all(&sets).iter().filter(|set| !is_deleting(set)) {
            reconcile(&server, set, &owned);
        }
    }
}

fn reconcile(server: &ApiServer, set: &Value, owned: &Owned) {
    let wanted = whole(set, "/spec/replicas", 1);
    let revision = format!("{}-{}", text(set, "/metadata/name"), hash(&set["spec"]["template"]));
    let is_parallel = set["spec"]["podManagementPolicy"] == "Parallel";
    let own: BTreeMap<usize, &Arc<Value>> = owned
        .by(set)
        .iter()
        .filter_map(|pod| Some((ordinal(pod)?, pod)))
        .collect();
    let mut is_blocked = false;
    for at in 0..wanted {
        match own.get(&at) {
            None => {
                create(server, set, at, &revision);
                is_blocked |= !is_parallel;
            }
            Some(pod) if is_gone(pod) => is_blocked |= !is_parallel,
            Some(pod) => is_blocked |= !is_parallel && !is_ready(pod),
        }
        if is_blocked {
            break;
        }
    }
    if !is_blocked || is_parallel {
        shrink(server, &own, wanted, is_parallel);
        renew(server, set, &own, wanted, &revision);
    }
    report(server, set, &own, &revision);
}

fn ordinal(pod: &Value) -> Option<usize> {
    text(pod, "/metadata/name").rsplit_once('-')?.1.parse().ok()
}

fn create(server: &ApiServer, set: &Value, at: usize, revision: &str) {
    let name = format!("{}-{at}", text(set, "/metadata/name"));
    let mut pod = new_pod(set, &set["spec"]["template"]);
    let metadata = crate::write::fields(&mut pod["metadata"]);
    metadata.remove("generateName");
    metadata.insert("name".to_owned(), json!(name));
    pod["metadata"]["labels"][HASH] = json!(revision);
    pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = json!(name);
    pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] = json!(at.to_string());
    pod["spec"]["hostname"] = json!(name);
    for template in set["spec"]["volumeClaimTemplates"].as_array().into_iter().flatten() {
        let volume = text(template, "/metadata/name");
        let claim = format!("{volume}-{name}");
        let object = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": claim,
            "namespace": set["metadata"]["namespace"], "labels": set["spec"]["selector"]["matchLabels"]},
            "spec": template["spec"], "status": {"phase": "Pending"}});
        let _ = server.create(object);
        if !pod["spec"]["volumes"].is_array() {
            pod["spec"]["volumes"] = json!([]);
        }
        if let Some(volumes) = pod["spec"]["volumes"].as_array_mut() {
            volumes.push(json!({"name": volume, "persistentVolumeClaim": {"claimName": claim}}));
        }
    }
    let _ = server.create(pod);
}

/// The highest go first.
fn shrink(server: &ApiServer, own: &BTreeMap<usize, &Arc<Value>>, wanted: usize, is_parallel: bool) {
    for (_, pod) in own.range(wanted..).rev() {
        if !is_deleting(pod) {
            let _ = server.delete("Pod", &key(pod));
        }
        if !is_parallel {
            return;
        }
    }
}

/// Replaces one pod of an older template at a time, the highest first, once all others are ready.
fn renew(server: &ApiServer, set: &Value, own: &BTreeMap<usize, &Arc<Value>>, wanted: usize, revision: &str) {
    let strategy = &set["spec"]["updateStrategy"];
    let first = whole(strategy, "/rollingUpdate/partition", 0);
    if strategy["type"] == "OnDelete" || own.len() != wanted || own.values().any(|pod| !is_ready(pod) || is_gone(pod)) {
        return;
    }
    let is_old = |pod: &Value| text(pod, "/metadata/labels/controller-revision-hash") != revision;
    if let Some((_, pod)) = own.range(first..).rev().find(|(_, pod)| is_old(pod)) {
        let _ = server.delete("Pod", &key(pod));
    }
}

fn report(server: &ApiServer, set: &Value, own: &BTreeMap<usize, &Arc<Value>>, revision: &str) {
    let alive = || own.values().filter(|pod| !is_gone(pod));
    let ready = alive().filter(|pod| is_ready(pod)).count();
    let is_new = |pod: &Value| text(pod, "/metadata/labels/controller-revision-hash") == revision;
    let updated = alive().filter(|pod| is_new(pod)).count();
    let total = alive().count();
    let current = if updated == total {
        json!(revision)
    } else {
        let known = &set["status"]["currentRevision"];
        if known.is_null() {
            json!(revision)
        } else {
            known.clone()
        }
    };
    let status = [
        ("observedGeneration", set["metadata"]["generation"].clone()),
        ("replicas", json!(total)),
        ("readyReplicas", json!(ready)),
        ("availableReplicas", json!(ready)),
        (
            "currentReplicas",
            json!(if updated == total { total } else { total - updated }),
        ),
        ("updatedReplicas", json!(updated)),
        ("currentRevision", current),
        ("updateRevision", json!(revision)),
        ("collisionCount", json!(0)),
    ];
    tell(server, set, &status, &[]);
}
