//! Pods on nodes that go, or had better go, are the first their ReplicaSets give up: `pod.deletioncost` says which,
//! `pod.deletioncost.queue` writes it on them.

mod writer;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use disruption::DeletionCosts;
use jiff::Timestamp;
use runtime::Settings;
use state::{Change, State};

use super::{facts, memory::Memory, rounds::NEEDED};
use crate::{Cluster, Controller, Next, Problem, Work};
use writer::Writer;

/// How often it is looked whether anything changed.
const EVERY: Duration = Duration::from_mins(1);
/// How long it waits for kinds to be listed.
const UNLISTED: Duration = Duration::from_secs(1);
/// The one item of work.
const CLUSTER: &str = "cluster";

/// Runs both until the future is dropped.
pub fn run(cluster: &Arc<Cluster>) -> impl Future<Output = ()> + Send + use<> {
    let writer = Arc::new(Writer::default());
    let (work, write) = crate::run(Arc::clone(&writer), Arc::clone(cluster));
    let costs = DeletionCost {
        writer,
        work,
        last: Mutex::default(),
    };
    let (_, look) = crate::run(Arc::new(costs), Arc::clone(cluster));
    async {
        tokio::join!(write, look);
    }
}

/// `pod.deletioncost`
struct DeletionCost {
    writer: Arc<Writer>,
    work: Work<Writer>,
    /// The change of the cluster after which it was last worked out.
    last: Mutex<Option<Timestamp>>,
}

impl DeletionCost {
    fn show(cluster: &Cluster, costs: &DeletionCosts) {
        let gauge = &cluster.metrics().pod_deletion_cost_nodes_with_pending_annotation_writes;
        gauge.retain(|_| false);
        for (pool, nodes) in &costs.nodes {
            gauge.set([pool.as_str()], f64::from(*nodes));
        }
    }
}

#[async_trait]
impl Controller for DeletionCost {
    type Key = &'static str;

    fn name(&self) -> &'static str {
        "pod.deletioncost"
    }

    fn workers(&self, _: &Settings) -> usize {
        1
    }

    fn initial(&self) -> Vec<&'static str> {
        vec![CLUSTER]
    }

    fn concerns(&self, _: &Change, _: &State) -> Vec<&'static str> {
        Vec::new()
    }

    async fn reconcile(&self, cluster: &Cluster, _: &&'static str) -> Result<Next, Problem> {
        if !cluster.look(|state| NEEDED.iter().all(|kind| state.is_listed(*kind))) {
            return Ok(Next::After(UNLISTED));
        }
        let now = cluster.now();
        let changed = Some(cluster.note(|state| state.consolidation_state(now)));
        if changed == *self.last.lock().unwrap_or_else(PoisonError::into_inner) {
            return Ok(Next::After(EVERY));
        }
        let memory = Memory::default();
        let (seen, warm) = (facts::seen(cluster, &memory, None), memory.warm());
        let objects = seen.snapshot.objects();
        if objects.nodes.iter().next().is_none() && objects.node_claims.iter().next().is_none() {
            return Ok(Next::After(EVERY));
        }
        let costs = cluster
            .engine()
            .run(move || warm.deletion_costs(&seen.snapshot, &seen.facts, now))
            .await?;
        Self::show(cluster, &costs);
        for cost in costs.pods {
            if self.writer.want(&cost) {
                self.work.add(cost.pod);
            }
        }
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = changed;
        Ok(Next::After(EVERY))
    }
}
