//! NodeClaims from launch to end.

pub mod consistency;
pub mod disruption;
mod ending;
pub mod expiration;
pub mod garbage_collection;
pub mod hydration;
pub mod lifecycle;
mod overlay;
mod ownership;
pub mod pod_events;
pub mod state_garbage_collection;

use std::{sync::Arc, time::Duration};

use model::object::Text;
use runtime::queue::Backoff;
use state::Change;

pub use ending::Reason;
pub(crate) use ending::{end, is_gone, label, termination_mode};
pub(crate) use overlay::{overlaid, with_pair};
pub(crate) use ownership::Joined;
pub use ownership::Managed;

use crate::{Cluster, node_pool::RegistrationHealth};

/// Runs everything that concerns claims, until the future is dropped. The health of pools is shared with the
/// controllers of pools.
pub fn run(cluster: &Arc<Cluster>, health: Arc<RegistrationHealth>) -> impl Future<Output = ()> + Send + use<> {
    let managed = Managed::by(&**cluster.cloud());
    let lifecycle = crate::run(
        Arc::new(lifecycle::Lifecycle::new(managed, health)),
        Arc::clone(cluster),
    )
    .1;
    let consistency = crate::run(Arc::new(consistency::Consistency::new(managed)), Arc::clone(cluster)).1;
    let disruption = crate::run(Arc::new(disruption::Disruption::new(managed)), Arc::clone(cluster)).1;
    let expiration = crate::run(Arc::new(expiration::Expiration::new(managed)), Arc::clone(cluster)).1;
    let collection = garbage_collection::GarbageCollection::new(managed);
    let collection = crate::run(Arc::new(collection), Arc::clone(cluster)).1;
    let hydration = crate::run(Arc::new(hydration::Hydration::new(managed)), Arc::clone(cluster)).1;
    let pod_events = crate::run(Arc::new(pod_events::PodEvents::new(managed)), Arc::clone(cluster)).1;
    let ghosts = state_garbage_collection::StateGarbageCollection;
    let ghosts = crate::run(Arc::new(ghosts), Arc::clone(cluster)).1;
    async {
        tokio::join!(
            lifecycle,
            consistency,
            disruption,
            expiration,
            collection,
            hydration,
            pod_events,
            ghosts
        );
    }
}

/// The name of the claim that changed, if it is ours.
fn changed_claim(change: &Change, managed: Managed) -> Vec<Text> {
    let Change::NodeClaim(claim) = change else {
        return Vec::new();
    };
    let ours = claim.latest().filter(|claim| managed.claim(claim));
    ours.map(|claim| claim.metadata.name.clone()).into_iter().collect()
}

/// What upstream calls a reasonable limiter.
fn reasonable() -> Backoff {
    Backoff {
        least: Duration::from_millis(100),
        most: Duration::from_mins(1),
    }
}
