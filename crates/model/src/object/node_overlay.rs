//! A NodeOverlay: what the user knows better than the cloud's catalogue about prices and capacity.

use serde::{Deserialize, Serialize};

use super::{Condition, List, Metadata, NodeSelectorRequirement, Object, Text};
use crate::{resources::ResourceList, sharing::Sharing};

/// A NodeOverlay, complete.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeOverlay {
    /// Who it is.
    pub metadata: Metadata,
    /// What it changes.
    pub spec: NodeOverlaySpec,
    /// Whether it is in force.
    pub status: NodeOverlayStatus,
}

/// What an overlay changes, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeOverlaySpec {
    /// Which instance types and offerings.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub requirements: List<NodeSelectorRequirement>,
    /// A difference (`+0.1`, `-0.05`) or percentage (`-10%`) on the price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_adjustment: Option<Text>,
    /// The price, instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Text>,
    /// Extended resources the catalogue does not know.
    #[serde(skip_serializing_if = "ResourceList::is_empty")]
    pub capacity: ResourceList,
    /// Higher wins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<i32>,
}

/// Whether an overlay is in force.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeOverlayStatus {
    /// Ready and ValidationSucceeded.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub conditions: List<Condition>,
}

impl Object for NodeOverlay {
    const API_VERSION: &'static str = "karpenter.sh/v1alpha1";
    const KIND: &'static str = "NodeOverlay";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn share(&mut self, pool: &mut Sharing) {
        self.metadata.share(pool);
    }
}
