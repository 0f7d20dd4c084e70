//! How many pods of a budget may be disrupted now.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::{News, is_deleting, key, pods, text};
use crate::{
    ApiServer, Resource,
    pod::{is_ready, set_condition},
    selector::Selector,
};

/// Keeps the status of every budget.
pub(super) async fn count(server: ApiServer) {
    let budgets = Resource::new("policy", "poddisruptionbudgets");
    let mut news = News::of(&server);
    while news.next(&[pods(), budgets.clone()]).await.is_some() {
        for budget in server.all(&budgets) {
            recount(&server, &budget);
        }
    }
}

fn recount(server: &ApiServer, budget: &Value) {
    let Some(selector) = Selector::of_object(budget["spec"].get("selector")) else {
        return;
    };
    let is_covered = |pod: &&Arc<Value>| {
        let over = matches!(text(pod, "/status/phase"), "Succeeded" | "Failed");
        pod["metadata"]["namespace"] == budget["metadata"]["namespace"] && !over && selector.chooses(pod)
    };
    let all = server.all(&pods());
    let covered: Vec<&Arc<Value>> = all.iter().filter(is_covered).collect();
    let disrupted = still_disrupted(budget, &covered);
    let healthy = covered
        .iter()
        .filter(|pod| is_ready(pod) && !is_deleting(pod) && !disrupted.contains_key(text(pod, "/metadata/name")))
        .count();
    let expected = expected(server, &covered);
    let desired = desired(&budget["spec"], expected);
    let allowed = if expected == 0 {
        0
    } else {
        healthy.saturating_sub(desired)
    };
    let now = server.now();
    let _ = server.update("PodDisruptionBudget", &key(budget), |budget| {
        let generation = budget["metadata"]["generation"].clone();
        let (status, reason) = if allowed > 0 {
            ("True", "SufficientPods")
        } else {
            ("False", "InsufficientPods")
        };
        for (field, value) in [
            ("currentHealthy", json!(healthy)),
            ("desiredHealthy", json!(desired)),
            ("expectedPods", json!(expected)),
            ("disruptionsAllowed", json!(allowed)),
            ("observedGeneration", generation.clone()),
        ] {
            budget["status"][field] = value;
        }
        budget["status"]["disruptedPods"] = json!(disrupted);
        let condition = json!({"type": "DisruptionAllowed", "status": status, "reason": reason, "message": "",
            "observedGeneration": generation});
        set_condition(budget, condition, now);
    });
}

/// Pods whose eviction was allowed and which are not seen going yet.
fn still_disrupted(budget: &Value, covered: &[&Arc<Value>]) -> BTreeMap<String, Value> {
    let noted = budget["status"]["disruptedPods"].as_object();
    noted
        .into_iter()
        .flatten()
        .filter(|(name, _)| {
            covered
                .iter()
                .any(|pod| text(pod, "/metadata/name") == *name && !is_deleting(pod))
        })
        .map(|(name, time)| (name.clone(), time.clone()))
        .collect()
}

/// How many pods there should be: what their ReplicaSets ask for, and those that have none.
fn expected(server: &ApiServer, covered: &[&Arc<Value>]) -> usize {
    let mut sets = server.all(&Resource::new("apps", "replicasets"));
    sets.extend(server.all(&Resource::new("apps", "statefulsets")));
    let mut wanted: BTreeMap<&str, usize> = BTreeMap::new();
    for pod in covered {
        let owner = text(pod, "/metadata/ownerReferences/0/uid");
        let set = sets.iter().find(|set| text(set, "/metadata/uid") == owner);
        let replicas = set.and_then(|set| set["spec"]["replicas"].as_u64());
        match replicas {
            Some(replicas) => wanted.insert(owner, usize::try_from(replicas).unwrap_or(usize::MAX)),
            None => wanted.insert(text(pod, "/metadata/uid"), 1),
        };
    }
    wanted.values().sum()
}

fn desired(spec: &Value, expected: usize) -> usize {
    match (spec.get("minAvailable"), spec.get("maxUnavailable")) {
        (Some(least), _) => scaled(least, expected),
        (None, Some(most)) => expected.saturating_sub(scaled(most, expected)),
        (None, None) => 0,
    }
}

/// A number, or a percentage, rounded up.
fn scaled(value: &Value, of: usize) -> usize {
    if let Some(number) = value.as_u64() {
        return usize::try_from(number).unwrap_or(usize::MAX);
    }
    let percent = value.as_str().and_then(|text| text.strip_suffix('%'));
    let percent: usize = percent.and_then(|text| text.parse().ok()).unwrap_or(0);
    (of * percent).div_ceil(100)
}
