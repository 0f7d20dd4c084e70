//! DaemonSets: a pod on every node that takes it.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::{
    News, is_deleting, key, nodes, pods,
    taint::{is_tolerated, taints},
    text,
    workload::{Owned, hash, is_gone, new_pod, tell},
};
use crate::{ApiServer, Resource, pod::is_ready, selector::Selector};

const HASH: &str = "controller-revision-hash";

/// Keeps a pod on every node.
pub(super) async fn spread(server: ApiServer) {
    let sets = Resource::new("apps", "daemonsets");
    let mut news = News::of(&server);
    while news.next(&[nodes(), pods(), sets.clone()]).await.is_some() {
        let all = server.all(&sets);
        if all.is_empty() {
            continue;
        }
        let (owned, nodes) = (Owned::of(&server), server.all(&nodes()));
        for set in all.iter().filter(|set| !is_deleting(set)) {
            reconcile(&server, set, &owned, &nodes);
        }
    }
}

fn reconcile(server: &ApiServer, set: &Value, owned: &Owned, nodes: &[Arc<Value>]) {
    let mut by_node: BTreeMap<String, Vec<&Arc<Value>>> = BTreeMap::new();
    for pod in owned.by(set) {
        by_node.entry(node_of(pod)).or_default().push(pod);
    }
    let revision = hash(&set["spec"]["template"]);
    let tolerations = tolerations(&set["spec"]["template"]["spec"]);
    let (mut desired, mut current, mut is_ready_count, mut updated) = (0, 0, 0, 0);
    let mut old = Vec::new();
    for node in nodes {
        let there = by_node.remove(text(node, "/metadata/name")).unwrap_or_default();
        let mut alive = there.iter().filter(|pod| !is_gone(pod));
        if !takes(node, &set["spec"]["template"]["spec"], &tolerations) {
            alive.for_each(|pod| drop(server.delete("Pod", &key(pod))));
            continue;
        }
        desired += 1;
        let Some(pod) = alive.next() else {
            if there.iter().all(|pod| !is_deleting(pod)) {
                for over in &there {
                    let _ = server.delete_now("Pod", &key(over));
                }
                let _ = server.create(pod_for(set, node, &tolerations, &revision));
            }
            continue;
        };
        current += 1;
        is_ready_count += usize::from(is_ready(pod));
        if text(pod, "/metadata/labels/controller-revision-hash") == revision {
            updated += 1;
        } else {
            old.push(Arc::clone(pod));
        }
    }
    let is_rolling = set["spec"]["updateStrategy"]["type"] != "OnDelete";
    if is_rolling && is_ready_count == desired && !old.is_empty() {
        let _ = server.delete("Pod", &key(&old[0]));
    }
    let status = [
        ("observedGeneration", set["metadata"]["generation"].clone()),
        ("desiredNumberScheduled", json!(desired)),
        ("currentNumberScheduled", json!(current)),
        ("numberMisscheduled", json!(0)),
        ("numberReady", json!(is_ready_count)),
        ("numberAvailable", json!(is_ready_count)),
        ("numberUnavailable", json!(desired - is_ready_count)),
        ("updatedNumberScheduled", json!(updated)),
    ];
    tell(server, set, &status, &[]);
}

/// The node a pod is on, or is meant for.
fn node_of(pod: &Value) -> String {
    let meant = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0";
    match text(pod, "/spec/nodeName") {
        "" => text(pod, meant).to_owned(),
        node => node.to_owned(),
    }
}

/// What every pod of a DaemonSet tolerates.
fn tolerations(spec: &Value) -> Vec<Value> {
    let mut all = spec["tolerations"].as_array().cloned().unwrap_or_default();
    for (name, effect) in [
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    ] {
        let toleration = json!({"key": format!("node.kubernetes.io/{name}"), "operator": "Exists", "effect": effect});
        if !all.contains(&toleration) {
            all.push(toleration);
        }
    }
    all
}

/// Whether a node takes the pods of a template. One that is not ready yet gets its pod already.
fn takes(node: &Value, spec: &Value, tolerations: &[Value]) -> bool {
    let labels = &node["metadata"]["labels"];
    let selector = spec["nodeSelector"].as_object().into_iter().flatten();
    let is_chosen = selector.into_iter().all(|(key, value)| labels.get(key) == Some(value));
    let required = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let terms = required["nodeSelectorTerms"].as_array();
    let is_near = terms.is_none_or(|terms| {
        let fits = |term: &Value| Selector::of_object(Some(term)).is_some_and(|selector| selector.chooses(node));
        terms.iter().any(fits)
    });
    let is_lifecycle =
        |taint: &Value| taint["key"] == "node.kubernetes.io/not-ready" && taint["effect"] == "NoSchedule";
    let is_welcome = taints(node)
        .iter()
        .filter(|taint| taint["effect"] != "PreferNoSchedule" && !is_lifecycle(taint))
        .all(|taint| is_tolerated(taint, tolerations));
    is_chosen && is_near && is_welcome && !is_deleting(node)
}

fn pod_for(set: &Value, node: &Value, tolerations: &[Value], revision: &str) -> Value {
    let mut pod = new_pod(set, &set["spec"]["template"]);
    pod["metadata"]["labels"][HASH] = json!(revision);
    pod["spec"]["tolerations"] = json!(tolerations);
    let there = json!([{"key": "metadata.name", "operator": "In", "values": [node["metadata"]["name"]]}]);
    pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
        json!({"nodeSelectorTerms": [{"matchFields": there}]});
    pod
}
