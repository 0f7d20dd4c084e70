//! Is enough known to plan? Only what a plan reads has to be listed, once; what cannot be listed is waited for a while.

use std::time::Duration;

use model::snapshot::FeatureGates;
use state::{Kind, State};

/// Without these a plan would launch what is not needed.
const NEEDED: [Kind; 5] = [Kind::Pod, Kind::Node, Kind::NodeClaim, Kind::NodePool, Kind::DaemonSet];

/// Without these a plan is right for most pods. A cluster may lack the kind, or the right to read it.
const WANTED: [Kind; 7] = [
    Kind::Namespace,
    Kind::PodDisruptionBudget,
    Kind::PersistentVolumeClaim,
    Kind::PersistentVolume,
    Kind::StorageClass,
    Kind::CSINode,
    Kind::VolumeAttachment,
];

/// How long a kind that is only wanted holds up the first plan.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The kinds that have not been listed and are worth waiting for.
pub(crate) fn missing(state: &State, gates: &FeatureGates, waited: Duration) -> Vec<Kind> {
    let mut kinds = NEEDED.to_vec();
    if waited < PATIENCE {
        kinds.extend(WANTED);
        kinds.extend(gates.node_overlay.then_some(Kind::NodeOverlay));
        kinds.extend(gates.capacity_buffer.then_some(Kind::CapacityBuffer));
    }
    kinds.retain(|kind| !state.is_listed(*kind));
    kinds
}
