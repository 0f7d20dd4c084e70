//! Which feature gates a cluster's controller has, as far as its objects betray it: neither a dump nor the API server tells.

use model::{
    object::{ConditionStatus, NodeOverlay, Text},
    snapshot::{Settings, Snapshot},
    words::counted,
};

/// The snapshot with the gates that are on as far as anybody can see, and what was assumed of those that matter here. One
/// that says what its settings are has those.
pub(super) fn assumed(snapshot: Snapshot) -> (Snapshot, Vec<String>) {
    let (overlays, buffers) = (
        &snapshot.objects().node_overlays,
        snapshot.objects().capacity_buffers.len(),
    );
    if *snapshot.settings() != Settings::default() || (overlays.is_empty() && buffers == 0) {
        return (snapshot, Vec::new());
    }
    let mut told = Vec::new();
    // Nobody else writes conditions of overlays, and the controller does so only behind the gate.
    let judged: Vec<&Text> = overlays
        .iter()
        .filter(|it| is_ready(it))
        .map(|it| &it.metadata.name)
        .collect();
    if let [first, ..] = judged[..] {
        told.push(format!("feature gate NodeOverlay is on: NodeOverlay {first} is Ready"));
    } else if !overlays.is_empty() {
        let count = counted(overlays.len(), "NodeOverlay");
        told.push(format!(
            "feature gate NodeOverlay is off, as it is unless asked for: {count} not counted"
        ));
    }
    if buffers > 0 {
        let count = counted(buffers, "CapacityBuffer");
        told.push(format!(
            "feature gate CapacityBuffer is off, as it is unless asked for: {count} not counted"
        ));
    }
    let is_on = !judged.is_empty();
    if !is_on {
        return (snapshot, told);
    }
    let mut settings = snapshot.settings().clone();
    settings.feature_gates.node_overlay = true;
    let (title, objects) = (snapshot.title().clone(), snapshot.objects().clone());
    let catalog = snapshot.shared_catalog().clone();
    (Snapshot::sharing(title, settings.into(), objects, catalog), told)
}

fn is_ready(overlay: &NodeOverlay) -> bool {
    let mut conditions = overlay.status.conditions.iter();
    conditions.any(|it| *it.kind == *"Ready" && it.status == ConditionStatus::True)
}
