//! What users know better than the catalogue: NodeOverlays judged.
//!
//! Every plan applies the overlays itself, to the snapshot it works on. Here the same evaluation is written where users
//! look: on the overlays. There is nothing to swap or to wait for: what a condition says and what a plan does cannot differ
//! by more than the time between two snapshots.

use std::{sync::Arc, time::Duration};

use api::condition::names::nodeoverlay::{CONFLICT, RUNTIME_VALIDATION, TYPES, VALIDATION_SUCCEEDED};
use async_trait::async_trait;
use jiff::Timestamp;
use model::{
    object::{NodeClass, NodeOverlay, ObjectKey},
    snapshot::Snapshot,
};
use packing::supply::{OverlayVerdict, overlay_verdicts};
use runtime::{Settings, queue::Backoff};
use state::{Change, Kind, State};

use crate::{Cluster, Controller, Next, Problem, conditions, patch::Lock, provisioning::is_managed};

const RESYNC: Duration = Duration::from_hours(6);
const UNLISTED: Duration = Duration::from_secs(1);
/// One reconcile judges all overlays: each may contradict any other.
const ALL: &str = "nodeoverlays";

/// Judges overlays.
#[derive(Debug, Default)]
pub struct NodeOverlays;

#[async_trait]
impl Controller for NodeOverlays {
    type Key = &'static str;

    fn name(&self) -> &'static str {
        "nodeoverlay.controller"
    }

    fn workers(&self, _: &Settings) -> usize {
        1
    }

    fn backoff(&self) -> Backoff {
        Backoff {
            least: Duration::from_millis(100),
            most: Duration::from_mins(1),
        }
    }

    fn concerns(&self, change: &Change, _: &State) -> Vec<&'static str> {
        let concerns = match change {
            Change::NodeOverlay(overlay) => overlay.changes_generation(),
            Change::NodePool(pool) => pool.changes_generation(),
            Change::NodeClass(class) => {
                let generation = |class: &Option<Arc<NodeClass>>| class.as_ref().map(|it| it.metadata.generation);
                generation(&class.before) != generation(&class.after)
            }
            _ => false,
        };
        if concerns { vec![ALL] } else { Vec::new() }
    }

    async fn reconcile(&self, cluster: &Cluster, _: &&'static str) -> Result<Next, Problem> {
        if !cluster.look(|state| state.is_listed(Kind::NodeOverlay) && state.is_listed(Kind::NodePool)) {
            return Ok(Next::After(UNLISTED));
        }
        let (snapshot, is_complete) = resolved(&cluster.snapshot(), cluster);
        let now = cluster.now();
        let judged = cluster.engine().run(move || judged(&snapshot, now)).await?;
        for (before, after) in judged {
            match cluster.update_status(&*before, &after, Lock::Version).await {
                Err(error) if error.is_conflict() || error.is_not_found() => return Ok(Next::Again),
                result => drop(result?),
            }
        }
        cluster.note(State::mark_unconsolidated);
        Ok(if is_complete { Next::After(RESYNC) } else { Next::Again })
    }
}

/// The snapshot without pools of which the cloud has not said what they offer, and whether there are none such.
fn resolved(snapshot: &Snapshot, cluster: &Cluster) -> (Snapshot, bool) {
    let offered = &snapshot.catalog().node_pool_instance_types;
    let pools = snapshot.objects().node_pools.iter();
    let unknown = pools.filter(|pool| !offered.contains_key(&pool.name()));
    let (managed, foreign): (Vec<_>, Vec<_>) = unknown.partition(|pool| is_managed(pool, cluster));
    let left_out: Vec<ObjectKey> = managed.iter().chain(&foreign).map(|pool| pool.metadata.key()).collect();
    let rest = snapshot.overlaid(|objects| objects.node_pools = objects.node_pools.without(left_out));
    (rest, managed.is_empty())
}

/// All overlays as they are and as they should be.
fn judged(snapshot: &Snapshot, now: Timestamp) -> Vec<(Arc<NodeOverlay>, NodeOverlay)> {
    let verdicts = overlay_verdicts(snapshot);
    let overlays = snapshot.objects().node_overlays.iter();
    overlays
        .filter_map(|overlay| {
            let verdict = verdicts.get(&overlay.metadata.name)?;
            Some((Arc::clone(overlay), with_verdict(overlay, verdict, now)))
        })
        .collect()
}

fn with_verdict(overlay: &NodeOverlay, verdict: &OverlayVerdict, now: Timestamp) -> NodeOverlay {
    let mut judged = overlay.clone();
    let conditions = &mut judged.status.conditions;
    conditions::change(TYPES, &overlay.metadata, conditions, now, |set| {
        match verdict {
            OverlayVerdict::Accepted => set.set_true(VALIDATION_SUCCEEDED),
            OverlayVerdict::Invalid(why) => set.set_false(VALIDATION_SUCCEEDED, RUNTIME_VALIDATION, why),
            OverlayVerdict::Conflict => set.set_false(VALIDATION_SUCCEEDED, CONFLICT, "conflict with another overlay"),
        };
    });
    judged
}
