//! Is the node in the zone that the labels of a bound volume name?

use std::sync::Arc;

use model::object::PersistentVolume;

use super::node_affinity::NodeLabels;

/// The labels, old and new, with the name the node may have instead.
const LABELS: [(&str, &str); 4] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "topology.kubernetes.io/region",
    ),
    ("topology.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("topology.kubernetes.io/region", "topology.kubernetes.io/region"),
];

/// Separates the zones of a volume that is in several.
const SEPARATOR: &str = "__";

/// Whether the node is where the volumes are. A node without any zone label passes: a cluster of one zone has none.
pub fn admits<'a>(volumes: impl IntoIterator<Item = &'a Arc<PersistentVolume>>, labels: &dyn NodeLabels) -> bool {
    let has_zone = LABELS.iter().any(|(key, _)| labels.label(key).is_some());
    !has_zone || volumes.into_iter().all(|volume| reaches(volume, labels))
}

fn reaches(volume: &PersistentVolume, labels: &dyn NodeLabels) -> bool {
    LABELS.iter().all(|(key, current)| {
        let Some(zones) = volume.metadata.labels.get(key) else {
            return true;
        };
        let zone = labels.label(key).or_else(|| labels.label(current));
        zone.is_some_and(|zone| zones.split(SEPARATOR).any(|listed| listed.trim() == zone))
    })
}
