//! What pods should say, until they say it or it no longer matters.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use api::annotations::POD_DELETION_COST;
use async_trait::async_trait;
use disruption::PodCost;
use model::object::{ObjectKey, Pod};
use runtime::{Patch, Settings, queue::Backoff};
use serde_json::json;
use state::{Change, State};

use crate::{Cluster, Controller, Next, Problem};

/// `pod.deletioncost.queue`
#[derive(Default)]
pub(super) struct Writer {
    wanted: Mutex<BTreeMap<ObjectKey, PodCost>>,
}

impl Writer {
    /// Takes what a pod should say; the last word counts. True when nothing was wanted of it before.
    pub(super) fn want(&self, cost: &PodCost) -> bool {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.insert(cost.pod.clone(), cost.clone()).is_none()
    }

    fn wanted(&self, pod: &ObjectKey) -> Option<PodCost> {
        let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.get(pod).cloned()
    }

    /// A word that came meanwhile stays wanted.
    fn forget(&self, cost: &PodCost) -> Next {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        if wanted.get(&cost.pod) == Some(cost) {
            wanted.remove(&cost.pod);
            return Next::Change;
        }
        Next::After(Duration::ZERO)
    }
}

/// The annotation alone: what else is annotated is not ours, and we do not even know all of it.
fn patch(pod: &Pod, cost: Option<i32>) -> Patch {
    Patch::Merge(json!({"metadata": {
        "resourceVersion": pod.metadata.resource_version,
        "annotations": {POD_DELETION_COST: cost.map(|cost| cost.to_string())},
    }}))
}

#[async_trait]
impl Controller for Writer {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        "pod.deletioncost.queue"
    }

    fn workers(&self, settings: &Settings) -> usize {
        settings.workers(100, 5000)
    }

    fn backoff(&self) -> Backoff {
        Backoff {
            least: Duration::from_millis(100),
            most: Duration::from_secs(10),
        }
    }

    fn concerns(&self, _: &Change, _: &State) -> Vec<ObjectKey> {
        Vec::new()
    }

    async fn reconcile(&self, cluster: &Cluster, key: &ObjectKey) -> Result<Next, Problem> {
        let Some(cost) = self.wanted(key) else {
            return Ok(Next::Change);
        };
        let pod = cluster.get::<Pod>(key).filter(|pod| pod.metadata.uid == cost.uid);
        let Some(pod) = pod else {
            return Ok(self.forget(&cost));
        };
        let (result, written) = if cost.is_said_by(&pod) {
            ("skipped_unchanged", Ok(()))
        } else {
            let written = cluster.patch::<Pod>(key, &patch(&pod, cost.cost)).await;
            match written {
                Ok(_) => ("updated", Ok(())),
                Err(error) if error.is_not_found() => ("skipped_notfound", Ok(())),
                Err(error) if error.is_conflict() => ("skipped_conflict", Ok(())),
                Err(error) => ("error", Err(error)),
            }
        };
        let writes = &cluster.metrics().pod_deletion_cost_pod_annotation_writes_total;
        writes.inc([result]);
        written?;
        Ok(self.forget(&cost))
    }
}
