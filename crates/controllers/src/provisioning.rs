//! Pending pods become NodeClaims.
//!
//! Pods and nodes trigger; triggers that come together make one batch; a batch is one pass. A pass takes a snapshot,
//! plans on the engine's threads, decides what follows from the plan, and acts. Whatever it leaves undone, the next pass
//! finds again: what was created is in the state at once and counts as room on its way.

pub(crate) mod act;
mod batch;
mod buffer;
pub(crate) mod claim;
pub(crate) mod create;
pub(crate) mod decide;
#[cfg(test)]
pub(crate) mod fixture;
mod foresight;
pub(crate) mod in_flight;
mod listed;
mod name;
mod nominated;
pub(crate) mod pass;
pub(crate) mod tell;
#[cfg(test)]
mod tests;
mod trigger;
mod zone;

use std::sync::Arc;

pub use batch::Batch;
pub(crate) use buffer::is_stand_in;
pub use pass::Provisioner;
pub use trigger::{NodeTrigger, PodTrigger};

use model::object::NodePool;
use runtime::settings::Steering;

use crate::{Cluster, controller, steering::withdraw::Withdrawal};

/// Whether a pool's node class is one that the cloud launches from.
pub(crate) fn is_managed(pool: &NodePool, cluster: &Cluster) -> bool {
    let class = pool.spec.template.spec.node_class_ref.as_ref();
    let kinds = cluster.cloud().node_classes();
    class.is_some_and(|class| {
        kinds
            .iter()
            .any(|kind| *kind.group == *class.group && *kind.kind == *class.kind)
    })
}

/// Runs everything that turns pending pods into NodeClaims, until the future is dropped. The batch is for others that
/// want passes.
pub fn run(cluster: &Arc<Cluster>, batch: &Arc<Batch>) -> impl Future<Output = ()> + Send + use<> {
    let (_, pods) = controller::run(Arc::new(PodTrigger(Arc::clone(batch))), Arc::clone(cluster));
    let (_, nodes) = controller::run(Arc::new(NodeTrigger(Arc::clone(batch))), Arc::clone(cluster));
    let withdrawals = withdrawals(cluster);
    let provisioner = Arc::new(Provisioner::default());
    let (work, passes) = controller::run(provisioner, Arc::clone(cluster));
    let (cluster, batch) = (Arc::clone(cluster), Arc::clone(batch));
    async move {
        let windows = async {
            loop {
                let settings = cluster.settings();
                batch
                    .window(settings.batch_idle_duration, settings.batch_max_duration)
                    .await;
                work.add(pass::CLUSTER);
            }
        };
        tokio::join!(pods, nodes, passes, windows, withdrawals);
    }
}

/// Whoever nominates also takes nominations back.
fn withdrawals(cluster: &Arc<Cluster>) -> impl Future<Output = ()> + Send + use<> {
    let nominates = cluster.settings().steering >= Steering::Nominate;
    let work = nominates.then(|| controller::run(Arc::new(Withdrawal::default()), Arc::clone(cluster)).1);
    async move {
        match work {
            Some(work) => work.await,
            None => std::future::pending().await,
        }
    }
}
