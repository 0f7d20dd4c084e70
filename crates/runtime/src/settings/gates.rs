//! Feature gates: `A=true,B=false`, with Kubernetes' words for what cannot be read.

use model::snapshot::FeatureGates;

use super::{Notice, fault::closest, options::go_bool};

pub(super) const FLAG: &str = "feature-gates";
pub(super) const VARIABLE: &str = "FEATURE_GATES";

/// Gives the switch of a gate.
type Switch = fn(&mut FeatureGates) -> &mut bool;

/// Every gate, in upstream's order.
const GATES: &[(&str, Switch)] = &[
    ("NodeRepair", |gates| &mut gates.node_repair),
    ("ReservedCapacity", |gates| &mut gates.reserved_capacity),
    ("SpotToSpotConsolidation", |gates| &mut gates.spot_to_spot_consolidation),
    ("NodeOverlay", |gates| &mut gates.node_overlay),
    ("StaticCapacity", |gates| &mut gates.static_capacity),
    ("CapacityBuffer", |gates| &mut gates.capacity_buffer),
    ("TerminateFirstDrift", |gates| &mut gates.terminate_first_drift),
    ("TerminateFirstRepair", |gates| &mut gates.terminate_first_repair),
    ("PodDeletionCostManagement", |gates| {
        &mut gates.pod_deletion_cost_management
    }),
];

/// The gates of a text; those it does not name keep their defaults.
pub(super) fn parse(text: &str) -> Result<FeatureGates, String> {
    let mut gates = FeatureGates::default();
    for (name, value) in pairs(text) {
        let value = value.ok_or("malformed pair, expect string=bool")?;
        let on = go_bool(value).ok_or_else(|| {
            format!("invalid value of {name}: {value}, err: strconv.ParseBool: parsing {value:?}: invalid syntax")
        })?;
        if let Some((_, switch)) = GATES.iter().find(|(known, _)| *known == name) {
            *switch(&mut gates) = on;
        }
    }
    Ok(gates)
}

/// Notices about the gates of a text that do not exist.
pub(super) fn unknown(text: &str) -> Vec<Notice> {
    let known = || GATES.iter().map(|(name, _)| *name);
    pairs(text)
        .filter(|(name, _)| known().all(|known| known != *name))
        .map(|(name, _)| Notice::Gate {
            gate: name.to_owned(),
            suggestion: closest(name, known()),
        })
        .collect()
}

fn pairs(text: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    text.split(',').filter(|pair| !pair.is_empty()).map(|pair| {
        pair.split_once('=')
            .map_or((pair, None), |(name, value)| (name.trim(), Some(value.trim())))
    })
}
