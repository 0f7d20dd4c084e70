//! What an `AKSNodeClass` resolved to, and the conditions its readiness follows from.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::{condition::Condition, image_requirement::NodeSelectorRequirement, open_enum::open_enum};

/// What the class resolved to.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AKSNodeClassStatus {
    /// Node images to choose from, the preferred first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<NodeImage>,
    /// The Kubernetes version of new nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<String>,
    /// Observed aspects of the class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Whether new nodes run the local DNS cache. Once on under mode Preferred, it stays on.
    #[serde(rename = "localDNSState", skip_serializing_if = "Option::is_none")]
    pub local_dns_state: Option<LocalDnsState>,
}

/// A node image.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
pub struct NodeImage {
    /// The image's id in its gallery.
    pub id: String,
    /// What an instance type must have to boot it.
    pub requirements: Vec<NodeSelectorRequirement>,
}

open_enum! {
    /// The decision on the local DNS cache.
    LocalDnsState {
        /// On.
        Enabled = "Enabled",
        /// Off.
        Disabled = "Disabled",
    }
}
