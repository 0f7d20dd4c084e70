//! Pods leave nodes whose taints they do not tolerate, at once or when their patience ends.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;
use tokio::task::{AbortHandle, JoinSet};

use super::{News, is_deleting, key, nodes, pods, text};
use crate::ApiServer;

/// Evicts pods from nodes with taints that do not let them stay.
pub(super) async fn evict(server: ApiServer) {
    let mut news = News::of(&server);
    // By pod: for how long it stays, and who ends it then.
    let mut patience: BTreeMap<String, (Option<u64>, AbortHandle)> = BTreeMap::new();
    let mut ends = JoinSet::new();
    while let Some(changed) = news.next(&[nodes(), pods()]).await {
        while ends.try_join_next().is_some() {}
        let mut concerned: BTreeMap<String, Value> = BTreeMap::new();
        for (resource, object) in changed {
            if resource == pods() {
                let node = text(&object, "/spec/nodeName");
                if let Some(node) = server.get("Node", node).filter(has_bad_taint) {
                    concerned.insert(text(&node, "/metadata/name").to_owned(), node);
                }
            } else if has_bad_taint(&object) || !patience.is_empty() {
                concerned.insert(text(&object, "/metadata/name").to_owned(), (*object).clone());
            }
        }
        if concerned.is_empty() {
            continue;
        }
        for pod in server.all(&pods()) {
            let Some(node) = concerned.get(text(&pod, "/spec/nodeName")) else {
                continue;
            };
            let uid = text(&pod, "/metadata/uid").to_owned();
            let stays = if is_deleting(&pod) { None } else { stays(&pod, node) };
            if let Some((known, _)) = patience.get(&uid)
                && Some(*known) == stays.map(Some)
            {
                continue;
            }
            if let Some((_, end)) = patience.remove(&uid) {
                end.abort();
            }
            if let Some(seconds) = stays {
                let end = ends.spawn(end(server.clone(), key(&pod), uid.clone(), seconds));
                patience.insert(uid, (Some(seconds), end));
            }
        }
    }
}

async fn end(server: ApiServer, pod: String, uid: String, seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    if server
        .get("Pod", &pod)
        .is_some_and(|pod| text(&pod, "/metadata/uid") == uid)
    {
        let _ = server.delete("Pod", &pod);
    }
}

pub(super) fn taints(node: &Value) -> &[Value] {
    node["spec"]["taints"].as_array().map_or(&[], Vec::as_slice)
}

fn is_bad(taint: &Value) -> bool {
    taint["effect"] == "NoExecute"
}

fn has_bad_taint(node: &Value) -> bool {
    taints(node).iter().any(is_bad)
}

/// For how many more seconds a pod stays on a node; none if for ever.
fn stays(pod: &Value, node: &Value) -> Option<u64> {
    let tolerations = pod["spec"]["tolerations"].as_array().map_or(&[][..], Vec::as_slice);
    let mut least = None;
    for taint in taints(node).iter().filter(|taint| is_bad(taint)) {
        let fitting: Vec<&Value> = tolerations.iter().filter(|one| tolerates(one, taint)).collect();
        if fitting.is_empty() {
            return Some(0);
        }
        let seconds = fitting.iter().filter_map(|one| one["tolerationSeconds"].as_i64()).min();
        let seconds = seconds.map(|seconds| u64::try_from(seconds).unwrap_or(0));
        least = match (least, seconds) {
            (Some(one), Some(other)) => Some(std::cmp::min::<u64>(one, other)),
            (one, other) => one.or(other),
        };
    }
    least
}

pub(super) fn is_tolerated(taint: &Value, tolerations: &[Value]) -> bool {
    tolerations.iter().any(|toleration| tolerates(toleration, taint))
}

fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let given = |field: &str| toleration[field].as_str().filter(|text| !text.is_empty());
    let is_effect = given("effect").is_none_or(|effect| taint["effect"] == effect);
    let is_key = given("key").is_none_or(|key| taint["key"] == key);
    let any_value = given("operator") == Some("Exists");
    let value = |object: &Value| object["value"].as_str().unwrap_or_default().to_owned();
    is_effect && is_key && (any_value || value(toleration) == value(taint))
}
