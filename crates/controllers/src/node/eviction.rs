//! `eviction-queue`: pods that are to leave their nodes, asked until they do.
//!
//! Whether a pod may go is the API server's word: it counts the budgets, and a refusal waits and asks again.

mod bucket;
mod decide;
mod entries;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use api::condition::names::nodeclaim::DISRUPTION_REASON;
use async_trait::async_trait;
use jiff::Timestamp;
use model::object::{ConditionStatus, Node, ObjectKey, Pod};
use runtime::{ApiError, Delete, Settings, queue::Backoff};
use state::{Change, State};

use self::{
    bucket::Bucket,
    decide::{Refusal, Verdict},
    entries::Entries,
};
use super::{claim_of, drain, events};
use crate::{Cluster, Controller, Next, Problem, Work};

pub use entries::{EvictionKey, Order};

/// Why pods go from a node that nobody gave a reason to disrupt.
const FORCEFUL_TERMINATION: &str = "Forceful Termination";

/// The controller, and the pods it works on.
pub struct Evictions {
    entries: Entries,
    work: OnceLock<Work<Self>>,
    retries: Bucket,
}

impl Evictions {
    /// With as many retries per second as there are workers.
    pub fn new(settings: &Settings) -> Self {
        Self {
            entries: Entries::default(),
            work: OnceLock::new(),
            retries: Bucket::new(workers(settings)),
        }
    }

    /// Runs until the future is dropped.
    pub fn run(this: &Arc<Self>, cluster: &Arc<Cluster>) -> impl Future<Output = ()> + Send + use<> {
        let (work, running) = crate::run(Arc::clone(this), Arc::clone(cluster));
        for key in this.entries.queued() {
            work.add(key);
        }
        let _ = this.work.set(work);
        running
    }

    /// Asks pods to go. One that is asked already is not woken: at most its order becomes stricter.
    pub fn add(&self, pods: &[Arc<Pod>], order: Order, now: Timestamp) {
        for pod in pods {
            let key = EvictionKey::of(pod);
            if self.entries.add(key.clone(), order, now)
                && let Some(work) = self.work.get()
            {
                work.add(key);
            }
        }
    }

    /// True while the pod is asked to go.
    pub fn has(&self, pod: &Pod) -> bool {
        self.entries.order(&EvictionKey::of(pod)).is_some()
    }

    async fn evict(&self, cluster: &Cluster, key: &EvictionKey, pod: &Pod, order: Order) -> Result<Next, Problem> {
        if self.entries.attempts(key) > 0 {
            tokio::time::sleep(self.retries.take()).await;
        }
        self.entries.count_attempt(key);
        let requests = &cluster.metrics().pods_eviction_requests_total;
        let Err(error) = cluster.api().evict(&key.object, &key.uid).await else {
            requests.inc(["200"]);
            let reason = reason(cluster, pod);
            cluster.publish(events::evicted(pod, &reason));
            cluster.metrics().pods_drained_total.inc([&reason]);
            self.asked(cluster, key);
            return Ok(Next::Change);
        };
        if let Some(code) = error.code {
            requests.inc([&code.to_string()]);
        }
        self.refused(cluster, key, pod, order, error)
    }

    /// What follows from a refusal. A pod whose node is gone is dropped, not forgotten in the queue: it may be added anew.
    fn refused(
        &self,
        cluster: &Cluster,
        key: &EvictionKey,
        pod: &Pod,
        order: Order,
        error: ApiError,
    ) -> Result<Next, Problem> {
        match decide::refusal(&error) {
            Refusal::Gone => Ok(self.forget(key)),
            Refusal::Budget(why) => {
                let Some(node) = node_of(cluster, pod) else {
                    return Ok(self.forget(key));
                };
                cluster.publish(events::held_by_budget(&node, why, &key.object));
                Ok(self.later(key, pod, order, cluster.now()))
            }
            Refusal::Other => Err(error.into()),
        }
    }

    /// Deletes a pod that would outlive its node, whatever protects it.
    async fn delete(
        &self,
        cluster: &Cluster,
        key: &EvictionKey,
        pod: &Pod,
        deadline: Timestamp,
        grace: i64,
    ) -> Result<Next, Problem> {
        cluster.publish(events::deleted(pod, grace, deadline));
        let options = Delete {
            uid: Some(key.uid.clone()),
            grace_period_seconds: Some(grace),
            ..Delete::default()
        };
        match cluster.delete::<Pod>(&key.object, &options).await {
            Err(error) if error.is_not_found() => Ok(self.forget(key)),
            Err(error) => Err(error.into()),
            Ok(()) => {
                tracing::debug!(
                    namespace = %key.object.namespace, name = %key.object.name,
                    "pod.terminationGracePeriodSeconds" = pod.spec.termination_grace_period_seconds.unwrap_or_default(),
                    "delete.gracePeriodSeconds" = grace, "nodeclaim.terminationTime" = %deadline, "deleting pod"
                );
                cluster.metrics().pods_drained_total.inc([&reason(cluster, pod)]);
                self.asked(cluster, key);
                Ok(Next::Change)
            }
        }
    }

    /// The server said that the pod goes. It is remembered only while the state does not know that.
    fn asked(&self, cluster: &Cluster, key: &EvictionKey) {
        let now = cluster.now();
        cluster.look(|state| {
            let pod = state.get::<Pod>(&key.object);
            if pod.is_some_and(|pod| pod.metadata.uid == key.uid && !pod.metadata.is_deleting()) {
                self.entries.asked(key, now);
            } else {
                self.entries.remove(key);
            }
        });
    }

    /// Asks again, waiting longer each time, but no longer than until the pod must be deleted.
    fn later(&self, key: &EvictionKey, pod: &Pod, order: Order, now: Timestamp) -> Next {
        let due = match order {
            Order::ForceDelete(Some(deadline)) => drain::deletion_due(pod, deadline),
            _ => None,
        };
        let wait = due.and_then(|due| Duration::try_from(due.duration_since(now)).ok());
        if let (Some(wait), Some(work)) = (wait, self.work.get()) {
            work.add_after(key.clone(), wait + Duration::from_millis(1));
        }
        Next::Again
    }

    fn forget(&self, key: &EvictionKey) -> Next {
        self.entries.remove(key);
        Next::Change
    }
}

#[async_trait]
impl Controller for Evictions {
    type Key = EvictionKey;

    fn name(&self) -> &'static str {
        "eviction-queue"
    }

    fn workers(&self, settings: &Settings) -> usize {
        workers(settings)
    }

    fn backoff(&self) -> Backoff {
        Backoff {
            least: Duration::from_millis(100),
            most: Duration::from_secs(10),
        }
    }

    /// A pod that goes or is no longer protected is looked at, and when a budget opens, as many pods as it lets go.
    fn concerns(&self, change: &Change, state: &State) -> Vec<EvictionKey> {
        match change {
            Change::Pod(pod) => self.entries.hear(pod).into_iter().collect(),
            Change::PodDisruptionBudget(budget) => {
                let Some(open) = decide::opened(budget) else {
                    return Vec::new();
                };
                let held = |key: &EvictionKey| {
                    state
                        .get::<Pod>(&key.object)
                        .is_some_and(|pod| open.budget.selects(pod))
                };
                let queued = self.entries.queued_in(&open.budget.metadata.namespace);
                queued.into_iter().filter(held).take(open.allowed).collect()
            }
            _ => Vec::new(),
        }
    }

    async fn reconcile(&self, cluster: &Cluster, key: &EvictionKey) -> Result<Next, Problem> {
        let Some(order) = self.entries.order(key) else {
            return Ok(Next::Change);
        };
        let pod = cluster.get::<Pod>(&key.object);
        let Some(pod) = pod.filter(|pod| pod.metadata.uid == key.uid) else {
            return Ok(self.forget(key));
        };
        let now = cluster.now();
        let verdict = decide::verdict(order, &pod, now);
        if let Some(event) = decide::speaks(&verdict, &pod, now) {
            cluster.publish(event);
        }
        match verdict {
            Verdict::Drop => Ok(self.forget(key)),
            Verdict::Delete { deadline, grace } => self.delete(cluster, key, &pod, deadline, grace).await,
            Verdict::Wait => Ok(self.later(key, &pod, order, now)),
            Verdict::Evict => self.evict(cluster, key, &pod, order).await,
        }
    }
}

fn workers(settings: &Settings) -> usize {
    settings.workers(100, 5000)
}

fn node_of(cluster: &Cluster, pod: &Pod) -> Option<Arc<Node>> {
    let name = pod.node_name.as_ref()?;
    cluster.get::<Node>(&ObjectKey::cluster_scoped(name.as_str()))
}

/// Why the pod goes: the reason its node is disrupted for, as the claim says. Empty when there is no claim to ask.
fn reason(cluster: &Cluster, pod: &Pod) -> String {
    let Some(node) = node_of(cluster, pod) else {
        return String::new();
    };
    let Some(claim) = cluster.look(|state| claim_of(state, &node).cloned()) else {
        return String::new();
    };
    let condition = claim.condition(DISRUPTION_REASON);
    let given = condition.filter(|condition| condition.status == ConditionStatus::True);
    given
        .map_or(FORCEFUL_TERMINATION, |condition| &condition.reason)
        .to_owned()
}
