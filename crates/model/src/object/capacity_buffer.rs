//! A CapacityBuffer: room kept free for pods that do not exist yet.

use serde::{Deserialize, Serialize};

use super::{Condition, List, Metadata, Object, Text, condition, metadata::is_unset};
use crate::{resources::ResourceList, sharing::Sharing};

/// A CapacityBuffer, complete.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct CapacityBuffer {
    /// Who it is.
    pub metadata: Metadata,
    /// How much room, for what.
    pub spec: CapacityBufferSpec,
    /// How much that came to.
    pub status: CapacityBufferStatus,
}

/// How much room is kept, for what.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CapacityBufferSpec {
    /// Who fills the buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning_strategy: Option<Text>,
    /// The pod's shape, from a PodTemplate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_template_ref: Option<LocalObjectRef>,
    /// The pod's shape, from a workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scalable_ref: Option<ScalableRef>,
    /// So many pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// So much of the workload's replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percentage: Option<i32>,
    /// As many pods as fit in this.
    #[serde(skip_serializing_if = "ResourceList::is_empty")]
    pub limits: ResourceList,
}

/// Names an object in the same namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct LocalObjectRef {
    /// Its name.
    pub name: Text,
}

/// Names a workload in the same namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScalableRef {
    /// Its API group.
    #[serde(skip_serializing_if = "is_unset")]
    pub api_group: Text,
    /// Its kind.
    pub kind: Text,
    /// Its name.
    pub name: Text,
}

/// How much a buffer came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CapacityBufferStatus {
    /// The PodTemplate in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_template_ref: Option<LocalObjectRef>,
    /// So many pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The PodTemplate's generation in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_template_generation: Option<i64>,
    /// ReadyForProvisioning and Provisioning.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub conditions: List<Condition>,
    /// Who fills the buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning_strategy: Option<Text>,
}

impl CapacityBuffer {
    /// True when the buffer is resolved and may ask for nodes.
    pub fn is_ready_for_provisioning(&self) -> bool {
        condition::holds(&self.status.conditions, "ReadyForProvisioning")
    }
}

impl Object for CapacityBuffer {
    const API_VERSION: &'static str = "autoscaling.x-k8s.io/v1beta1";
    const KIND: &'static str = "CapacityBuffer";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn share(&mut self, pool: &mut Sharing) {
        self.metadata.share(pool);
    }
}
