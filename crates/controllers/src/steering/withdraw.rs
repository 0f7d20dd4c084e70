//! A nomination that nobody will honour any more is withdrawn, so that its pod is planned for again.
//!
//! kube-scheduler withdraws it when it tries the pod in vain. It does not try when nothing happens that could help the pod,
//! as when the node went away before it opened, or when whoever nominated has died in between.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use api::labels::NODEPOOL;
use async_trait::async_trait;
use model::object::{Node, NodeName, ObjectKey, Pod};
use runtime::{Patch, Settings};
use serde_json::json;
use state::{Change, State};
use tokio::time::Instant;

use super::is_held;
use crate::{Cluster, Controller, Next, Problem};

/// How long a nomination is left alone.
const GRACE: Duration = Duration::from_secs(20);

/// `pod.nomination`
#[derive(Debug, Default)]
pub(crate) struct Withdrawal {
    /// Since when we know of which nomination.
    seen: Mutex<BTreeMap<ObjectKey, (NodeName, Instant)>>,
}

impl Withdrawal {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, (NodeName, Instant)>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long a pod has been nominated for a node.
    fn age(&self, pod: &ObjectKey, node: &NodeName) -> Duration {
        let mut seen = self.lock();
        let entry = seen
            .entry(pod.clone())
            .or_insert_with(|| (node.clone(), Instant::now()));
        if entry.0 != *node {
            *entry = (node.clone(), Instant::now());
        }
        entry.1.elapsed()
    }
}

/// Whether a nomination will not be honoured. One to somebody else's node, or to one that pods are leaving, is
/// kube-scheduler's own: it waits for those it preempted.
fn is_void(node: &NodeName, state: &State) -> bool {
    let Some(known) = state.get::<Node>(&ObjectKey::cluster_scoped(node.as_str())) else {
        return true;
    };
    let is_ours = known.metadata.labels.get(NODEPOOL).is_some();
    let mut here = state.pods_on_node(node.as_str());
    is_ours && !is_held(known) && !here.any(|pod| pod.metadata.is_deleting())
}

fn nomination(pod: &Pod) -> Option<&NodeName> {
    let nominated = pod.status.nominated_node_name.as_ref();
    nominated.filter(|_| pod.node_name.is_none() && pod.is_active())
}

#[async_trait]
impl Controller for Withdrawal {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        "pod.nomination"
    }

    fn workers(&self, _: &Settings) -> usize {
        10
    }

    fn concerns(&self, change: &Change, _: &State) -> Vec<ObjectKey> {
        let Change::Pod(pod) = change else { return Vec::new() };
        let nominated = pod.latest().filter(|pod| pod.status.nominated_node_name.is_some());
        let before = pod.before.as_ref().filter(|pod| nomination(pod).is_some());
        let concerned = nominated.or(before);
        concerned.map(|pod| pod.metadata.key()).into_iter().collect()
    }

    async fn reconcile(&self, cluster: &Cluster, key: &ObjectKey) -> Result<Next, Problem> {
        let pod = cluster.get::<Pod>(key);
        let Some((pod, node)) = pod.and_then(|pod| nomination(&pod).cloned().map(|node| (pod, node))) else {
            self.lock().remove(key);
            return Ok(Next::Change);
        };
        let age = self.age(key, &node);
        if age < GRACE {
            return Ok(Next::After(GRACE.saturating_sub(age)));
        }
        if !cluster.look(|state| is_void(&node, state)) {
            return Ok(Next::After(GRACE));
        }
        let uid = pod.uid().to_string();
        let body = json!({"metadata": {"uid": uid}, "status": {"nominatedNodeName": null}});
        let result = cluster.patch_status::<Pod>(key, &Patch::Merge(body)).await;
        let word = super::word(&result);
        cluster.metrics().steering_writes_total.inc(["withdrawal", word]);
        match result {
            Ok(_) => tracing::info!(Pod = %key, Node = %node, "withdrew a nomination that nobody honoured"),
            Err(error) if error.is_not_found() || error.is_conflict() => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Next::Change)
    }
}
