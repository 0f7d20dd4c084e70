//! Cluster-wide facts that other objects refer to: namespaces, runtime classes, node classes.

use serde::{Deserialize, Serialize};

use super::{Condition, ConditionStatus, List, Metadata, NodeClassReference, Object, Text, condition};
use crate::{resources::ResourceList, sharing::Sharing};

/// A namespace; only its labels matter, to the namespace selectors of affinity terms.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Namespace {
    /// Who it is.
    pub metadata: Metadata,
}

/// A sandbox and what it costs; pods get the cost from admission, templates do not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct RuntimeClass {
    /// Who it is.
    pub metadata: Metadata,
    /// The sandbox.
    pub handler: Text,
    /// What it costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overhead: Option<Overhead>,
}

/// What a sandbox costs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Overhead {
    /// Per pod.
    #[serde(skip_serializing_if = "ResourceList::is_empty")]
    pub pod_fixed: ResourceList,
}

/// A node class of any provider, down to what the core asks of it: which one, and is it ready. Its spec is the
/// provider's own business.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeClass {
    /// Group and version; a node class says itself what it is.
    pub api_version: Text,
    /// Kind.
    pub kind: Text,
    /// Who it is.
    pub metadata: Metadata,
    /// How it fares.
    pub status: NodeClassStatus,
}

/// How a node class fares.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeClassStatus {
    /// Ready and what it derives from.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub conditions: List<Condition>,
}

impl NodeClass {
    /// The reference NodePools use for it.
    pub fn reference(&self) -> NodeClassReference {
        let group = self.api_version.split_once('/').map_or("", |(group, _)| group);
        NodeClassReference {
            group: group.into(),
            kind: self.kind.clone(),
            name: self.metadata.name.clone(),
        }
    }

    /// The status of its `Ready` condition; unknown without one.
    pub fn ready(&self) -> ConditionStatus {
        condition::find(&self.status.conditions, "Ready").map_or(ConditionStatus::Unknown, |ready| ready.status)
    }

    pub(crate) fn share(&mut self, pool: &mut Sharing) {
        self.metadata.share(pool);
    }
}

impl Object for Namespace {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "Namespace";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn share(&mut self, pool: &mut Sharing) {
        self.metadata.share(pool);
    }
}

impl Object for RuntimeClass {
    const API_VERSION: &'static str = "node.k8s.io/v1";
    const KIND: &'static str = "RuntimeClass";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn share(&mut self, pool: &mut Sharing) {
        self.metadata.share(pool);
    }
}
