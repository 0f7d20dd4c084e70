//! Which claims of a static pool go first? Those without a machine, then empty ones, then those whose pods lose least.

use std::sync::Arc;

use api::annotations::{DISRUPTION_COST, POD_DELETION_COST};
use api::duration::NillableDuration;
use jiff::Timestamp;
use model::object::{NodeClaim, Pod};

/// A claim that may go, with what runs on its node.
#[derive(Debug, Clone)]
pub(crate) struct Resident {
    /// The claim.
    pub claim: Arc<NodeClaim>,
    /// The pods of its node.
    pub pods: Vec<Arc<Pod>>,
}

/// How a pod's cost is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Costs {
    /// Deletion costs are written by us, so they say nothing of the user's mind.
    pub is_deletion_cost_managed: bool,
    /// The time.
    pub now: Timestamp,
}

/// How much a claim's going would hurt, least first.
type Rank = (u8, bool, i128);

/// Pods count in 2⁻²⁷ of an ordinary one.
const ONE: i64 = 1 << 27;
/// Lifetimes count in 2⁻³⁰.
const WHOLE: i128 = 1 << 30;

/// The first so many claims to go.
pub(crate) fn first(mut residents: Vec<Resident>, count: usize, costs: Costs) -> Vec<Arc<NodeClaim>> {
    residents.sort_by_cached_key(|resident| (costs.rank(resident), resident.claim.metadata.name.clone()));
    residents
        .into_iter()
        .take(count)
        .map(|resident| resident.claim)
        .collect()
}

impl Costs {
    fn rank(self, resident: &Resident) -> Rank {
        if resident.claim.status.provider_id.is_none() {
            return (0, false, 0);
        }
        let is_protected = resident.pods.iter().any(|pod| pod.protection(self.now).is_active());
        let is_empty = resident.pods.iter().all(|pod| pod.is_owned_by_daemon_set()) && !is_protected;
        if is_empty {
            return (1, false, 0);
        }
        let cost: i64 = resident.pods.iter().map(|pod| self.eviction_cost(pod)).sum();
        (2, is_protected, i128::from(cost) * self.lifetime_left(&resident.claim))
    }

    /// One for any pod, more or less by its annotation and priority, between ten less and ten more than nothing.
    fn eviction_cost(self, pod: &Pod) -> i64 {
        let annotations = &pod.metadata.annotations;
        let of_user = annotations.get(DISRUPTION_COST);
        let of_owner = || {
            annotations
                .get(POD_DELETION_COST)
                .filter(|_| !self.is_deletion_cost_managed)
        };
        let stated = of_user.or_else(of_owner).and_then(|cost| cost.parse::<i32>().ok());
        let priority = i64::from(pod.spec.priority.unwrap_or(0));
        let cost = ONE + i64::from(stated.unwrap_or(0)) + 4 * priority;
        cost.clamp(-10 * ONE, 10 * ONE)
    }

    /// The part of a claim's life that is left.
    fn lifetime_left(self, claim: &NodeClaim) -> i128 {
        let span = claim.spec.expire_after.as_ref().and_then(NillableDuration::span);
        let whole = span.map_or(0, |span| i128::from(span.as_nanos()));
        let created = claim.metadata.creation_timestamp.filter(|_| whole > 0);
        let Some(created) = created else { return WHOLE };
        let left = whole - self.now.duration_since(created).as_nanos();
        (left * WHOLE / whole).clamp(0, WHOLE)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOW: &str = "2026-11-16T12:00:00Z";

    fn resident(name: &str, is_launched: bool, expire_after: &str, pods: Vec<Value>) -> Resident {
        let claim = json!({
            "metadata": { "name": name, "creationTimestamp": "2026-11-16T11:00:00Z" },
            "spec": { "expireAfter": expire_after },
            "status": if is_launched { json!({ "providerID": name }) } else { json!({}) },
        });
        let read = |pod| Arc::new(serde_json::from_value::<Pod>(pod).unwrap());
        Resident {
            claim: Arc::new(serde_json::from_value(claim).unwrap()),
            pods: pods.into_iter().map(read).collect(),
        }
    }

    fn pod(priority: i32, annotations: &[(&str, &str)], owner: &str) -> Value {
        let annotations: serde_json::Map<_, _> = annotations
            .iter()
            .map(|(key, value)| ((*key).to_owned(), json!(value)))
            .collect();
        json!({
            "metadata": { "name": "p", "annotations": annotations,
                "ownerReferences": [{ "apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "u" }] },
            "spec": { "priority": priority }, "status": { "phase": "Running" },
        })
    }

    #[test]
    fn claims_go_in_the_order_of_what_their_going_costs() {
        let plain = || pod(0, &[], "ReplicaSet");
        let daemon = pod(0, &[], "DaemonSet");
        let held = |value| pod(0, &[("karpenter.sh/do-not-disrupt", value)], "DaemonSet");
        let cheap = pod(0, &[("karpenter.sh/disruption-cost", "-100000000")], "ReplicaSet");
        let unreadable = pod(
            0,
            &[
                ("karpenter.sh/disruption-cost", "1.5"),
                ("controller.kubernetes.io/pod-deletion-cost", "-100000000"),
            ],
            "ReplicaSet",
        );
        let dear = pod(1_000_000_000, &[], "ReplicaSet");
        let residents = vec![
            resident("held", true, "Never", vec![held("true")]),
            resident("dear", true, "Never", vec![dear]),
            resident("two", true, "Never", vec![plain(), plain()]),
            resident("unreadable", true, "Never", vec![unreadable]),
            resident("aged", true, "2h", vec![plain()]),
            resident("cheap", true, "Never", vec![cheap]),
            resident("empty", true, "Never", vec![daemon, held("false")]),
            resident("unlaunched", false, "Never", vec![]),
        ];
        let costs = Costs {
            is_deletion_cost_managed: false,
            now: NOW.parse().unwrap(),
        };
        let order: Vec<_> = first(residents, 8, costs)
            .iter()
            .map(|claim| claim.metadata.name.to_string())
            .collect();
        let expected = [
            "unlaunched",
            "empty",
            "cheap",
            "aged",
            "unreadable",
            "two",
            "dear",
            "held",
        ];
        assert_eq!(order, expected);
    }
}
