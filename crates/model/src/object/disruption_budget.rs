//! A PodDisruptionBudget: how many pods of an application may be missing.

use serde::{Deserialize, Serialize};

use super::{LabelSelector, Metadata, Object, Text};
use crate::sharing::Sharing;

/// A PodDisruptionBudget.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct PodDisruptionBudget {
    /// Who it is.
    pub metadata: Metadata,
    /// What the user wants.
    pub spec: PodDisruptionBudgetSpec,
    /// What the disruption controller computed.
    pub status: PodDisruptionBudgetStatus,
}

/// How many pods may be missing, of which.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodDisruptionBudgetSpec {
    /// At least so many must stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_available: Option<IntOrString>,
    /// At most so many may be missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,
    /// The pods it protects: none without a selector, all of the namespace with an empty one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// `AlwaysAllow` lets pods go that are not ready anyway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unhealthy_pod_eviction_policy: Option<Text>,
}

/// A number or a percentage; `0` and `"0%"` differ to those who read it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum IntOrString {
    /// A count.
    Int(i32),
    /// A percentage, or a count in quotes.
    String(Text),
}

/// What the disruption controller computed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodDisruptionBudgetStatus {
    /// The spec's generation it was computed from.
    pub observed_generation: i64,
    /// How many more pods may go now.
    pub disruptions_allowed: i32,
    /// How many pods are healthy.
    pub current_healthy: i32,
    /// How many must be.
    pub desired_healthy: i32,
    /// How many there should be.
    pub expected_pods: i32,
}

impl Object for PodDisruptionBudget {
    const API_VERSION: &'static str = "policy/v1";
    const KIND: &'static str = "PodDisruptionBudget";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn share(&mut self, pool: &mut Sharing) {
        self.metadata.share(pool);
    }
}
