//! When did a pod last come to a claim's node or leave it? Consolidation waits for nodes to be quiet.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use model::object::{Node, NodeClaim, ObjectKey, Pod, Text};
use runtime::Settings;
use state::{Change, Kind, State, Transition};

use super::Managed;
use crate::{Cluster, Controller, Next, Problem, patch::Lock};

/// Events within this time of the last one are the same one.
const QUIET: SignedDuration = SignedDuration::from_secs(10);

/// `nodeclaim.podevents`
pub struct PodEvents {
    managed: Managed,
}

impl PodEvents {
    /// For the claims that are ours.
    pub fn new(managed: Managed) -> Self {
        Self { managed }
    }
}

/// The node that a pod came to or leaves: any of
/// - it is bound now and was not, or is new and bound;
/// - it is terminal now and was not;
/// - it is being deleted now and was not;
/// - it is gone without having been either.
fn node_of(change: &Transition<Pod>) -> Option<&str> {
    let pod = change.latest().filter(|pod| !pod.is_owned_by_daemon_set())?;
    let node = pod.node_name.as_ref()?;
    let is_event = match (&change.before, &change.after) {
        (Some(before), Some(after)) => {
            let bound = before.node_name.is_none();
            let terminal = !before.is_terminal() && after.is_terminal();
            let terminating = !before.metadata.is_deleting() && after.metadata.is_deleting();
            bound || terminal || terminating
        }
        (Some(before), None) => before.is_active(),
        (None, _) => true,
    };
    is_event.then_some(node.as_str())
}

/// The claim with the time of the event; none when the last one was just now.
fn noted(claim: &NodeClaim, now: Timestamp) -> Option<NodeClaim> {
    let last = claim.status.last_pod_event_time;
    if last.is_some_and(|last| now.duration_since(last) < QUIET) {
        return None;
    }
    let mut after = claim.clone();
    after.status.last_pod_event_time = Timestamp::from_second(now.as_second()).ok();
    Some(after)
}

#[async_trait]
impl Controller for PodEvents {
    type Key = Text;

    fn name(&self) -> &'static str {
        "nodeclaim.podevents"
    }

    fn workers(&self, _: &Settings) -> usize {
        1
    }

    /// Pods that were there before we began are no event: a restart must not make every node look busy.
    fn concerns(&self, change: &Change, state: &State) -> Vec<Text> {
        let Change::Pod(pod) = change else { return Vec::new() };
        if pod.is_new() && !state.is_listed(Kind::Pod) {
            return Vec::new();
        }
        let Some(node) = node_of(pod).and_then(|name| state.get::<Node>(&ObjectKey::cluster_scoped(name))) else {
            return Vec::new();
        };
        let id = node.spec.provider_id.as_ref();
        let claims: Vec<&Arc<NodeClaim>> =
            id.map_or_else(Vec::new, |id| state.claims_of_provider_id(id.as_str()).collect());
        match claims.as_slice() {
            [claim] if self.managed.claim(claim) => vec![claim.metadata.name.clone()],
            _ => Vec::new(),
        }
    }

    async fn reconcile(&self, cluster: &Cluster, name: &Text) -> Result<Next, Problem> {
        let Some(claim) = cluster.get::<NodeClaim>(&ObjectKey::cluster_scoped(name)) else {
            return Ok(Next::Change);
        };
        let Some(after) = noted(&claim, cluster.now()) else {
            return Ok(Next::Change);
        };
        match cluster.update_status(&*claim, &after, Lock::None).await {
            Err(error) if !error.is_not_found() => Err(error.into()),
            _ => Ok(Next::Change),
        }
    }
}

#[cfg(test)]
#[allow(
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    reason = "a literal reads better without a reference"
)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(node: Option<&str>, phase: &str, more: Value) -> Option<Arc<Pod>> {
        let mut json = json!({"metadata": more, "spec": {"containers": []}, "status": {"phase": phase}});
        if let Some(node) = node {
            json["spec"]["nodeName"] = json!(node);
        }
        Some(Arc::new(serde_json::from_value(json).unwrap()))
    }

    #[test]
    fn pods_that_come_or_leave_are_events_and_nothing_else_is() {
        let deleting = json!({"deletionTimestamp": "2026-11-16T10:00:00Z"});
        let daemon =
            json!({"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u"}]});
        let running = || pod(Some("n"), "Running", json!({}));
        let cases = [
            (
                pod(None, "Pending", json!({})),
                pod(Some("n"), "Pending", json!({})),
                Some("n"),
            ),
            (None, running(), Some("n")),
            (None, pod(None, "Pending", json!({})), None),
            (pod(Some("n"), "Pending", json!({})), running(), None),
            (running(), pod(Some("n"), "Succeeded", json!({})), Some("n")),
            (running(), pod(Some("n"), "Running", deleting.clone()), Some("n")),
            (
                pod(Some("n"), "Running", deleting.clone()),
                pod(Some("n"), "Running", deleting.clone()),
                None,
            ),
            (running(), None, Some("n")),
            (pod(Some("n"), "Running", deleting), None, None),
            (None, pod(Some("n"), "Running", daemon), None),
        ];
        for (before, after, expected) in cases {
            let change = Transition { before, after };
            assert_eq!(node_of(&change), expected, "{change:?}");
        }
    }

    #[test]
    fn events_within_ten_seconds_are_one() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let mut claim = NodeClaim::default();
        claim = noted(&claim, at(100)).unwrap();
        assert_eq!(claim.status.last_pod_event_time, Some(at(100)));
        assert_eq!(noted(&claim, at(109)), None);
        assert_eq!(
            noted(&claim, at(110)).unwrap().status.last_pod_event_time,
            Some(at(110))
        );
    }
}
