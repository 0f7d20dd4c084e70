//! The options that change a decision, with upstream's names, values and defaults.

use serde::{Deserialize, Serialize};

use crate::object::{List, TopologySpreadConstraint};

/// The options that change a decision. An unknown one is an error: a misspelt option must not pass for its default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Settings {
    /// `--preference-policy`
    pub preference_policy: PreferencePolicy,
    /// `--min-values-policy`
    pub min_values_policy: MinValuesPolicy,
    /// `--ignore-dra-requests`
    #[serde(rename = "ignoreDRARequests")]
    pub ignore_dra_requests: bool,
    /// `--feature-gates`
    pub feature_gates: FeatureGates,
    /// `podTopologySpread.defaultConstraints` of `--scheduler-config`
    pub default_constraints: List<TopologySpreadConstraint>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            preference_policy: PreferencePolicy::default(),
            min_values_policy: MinValuesPolicy::default(),
            ignore_dra_requests: true,
            feature_gates: FeatureGates::default(),
            default_constraints: List::default(),
        }
    }
}

/// What preferences count for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PreferencePolicy {
    /// They are required until they cannot be met.
    #[default]
    Respect,
    /// They count for nothing.
    Ignore,
}

/// What happens when too few instance types are left for `minValues`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MinValuesPolicy {
    /// The pod is not placed.
    #[default]
    Strict,
    /// The minimum is lowered.
    BestEffort,
}

/// Features that can be switched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "one switch each, as upstream has them")]
pub struct FeatureGates {
    /// Unhealthy nodes are replaced.
    pub node_repair: bool,
    /// Capacity reservations are used.
    pub reserved_capacity: bool,
    /// Spot nodes are replaced by cheaper spot nodes.
    pub spot_to_spot_consolidation: bool,
    /// NodeOverlays apply.
    pub node_overlay: bool,
    /// Static NodePools apply.
    pub static_capacity: bool,
    /// CapacityBuffers apply.
    pub capacity_buffer: bool,
    /// Drifted nodes may go before their replacement comes.
    pub terminate_first_drift: bool,
    /// Unhealthy nodes may go before their replacement comes.
    pub terminate_first_repair: bool,
    /// Pods' deletion cost is written.
    pub pod_deletion_cost_management: bool,
}

impl Default for FeatureGates {
    fn default() -> Self {
        Self {
            node_repair: false,
            reserved_capacity: true,
            spot_to_spot_consolidation: false,
            node_overlay: false,
            static_capacity: false,
            capacity_buffer: false,
            terminate_first_drift: false,
            terminate_first_repair: false,
            pod_deletion_cost_management: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_settings_are_upstreams_defaults() {
        let expected = concat!(
            r#"{"preferencePolicy":"Respect","minValuesPolicy":"Strict","ignoreDRARequests":true,"featureGates":{"#,
            r#""NodeRepair":false,"ReservedCapacity":true,"SpotToSpotConsolidation":false,"NodeOverlay":false,"#,
            r#""StaticCapacity":false,"CapacityBuffer":false,"TerminateFirstDrift":false,"TerminateFirstRepair":false,"#,
            r#""PodDeletionCostManagement":false},"defaultConstraints":[]}"#
        );
        let settings: Settings = serde_json::from_str("{}").unwrap();
        assert_eq!(serde_json::to_string(&settings).unwrap(), expected);
    }

    #[test]
    fn a_misspelt_setting_is_an_error() {
        for json in [
            r#"{"preferencePolice":"Ignore"}"#,
            r#"{"featureGates":{"NodeOverlays":true}}"#,
        ] {
            assert!(serde_json::from_str::<Settings>(json).is_err(), "{json}");
        }
    }
}
