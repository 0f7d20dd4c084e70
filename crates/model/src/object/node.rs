//! A node as decisions see it. Images, addresses, volumes in use and most of `nodeInfo` are dropped.

use serde::{Deserialize, Serialize};

use super::{
    BriefCondition, Grouping, List, Metadata, NodeName, NodePoolName, Object, ProviderId, Taints, Text,
    metadata::{is_false, is_unset, non_empty},
};
use crate::{resources::ResourceList, sharing::Sharing};

/// A node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Node {
    /// Who it is.
    pub metadata: Metadata,
    /// What it should be.
    pub spec: NodeSpec,
    /// What the kubelet reports.
    pub status: NodeStatus,
}

/// The part of a node's spec that decisions read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSpec {
    /// The instance behind it.
    #[serde(
        rename = "providerID",
        deserialize_with = "non_empty",
        skip_serializing_if = "Option::is_none"
    )]
    pub provider_id: Option<ProviderId>,
    /// What keeps pods off.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub taints: Taints,
    /// Cordoned.
    #[serde(skip_serializing_if = "is_false")]
    pub unschedulable: bool,
}

/// The part of a node's status that decisions read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeStatus {
    /// All the machine has.
    #[serde(skip_serializing_if = "ResourceList::is_empty")]
    pub capacity: ResourceList,
    /// What is left for pods.
    #[serde(skip_serializing_if = "ResourceList::is_empty")]
    pub allocatable: ResourceList,
    /// All conditions, in order: repair policies match on any of them.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub conditions: List<BriefCondition>,
    /// What tells one boot from the next.
    #[serde(skip_serializing_if = "NodeInfo::is_empty")]
    pub node_info: NodeInfo,
}

/// The part of `nodeInfo` that is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeInfo {
    /// Changes with every boot.
    #[serde(rename = "bootID", skip_serializing_if = "is_unset")]
    pub boot_id: Text,
    /// For reports and version skew.
    #[serde(skip_serializing_if = "is_unset")]
    pub kubelet_version: Text,
}

impl NodeInfo {
    fn is_empty(&self) -> bool {
        self.boot_id.is_empty() && self.kubelet_version.is_empty()
    }
}

impl Node {
    /// Position in `GROUPINGS`: by pool.
    pub const BY_POOL: usize = 0;
    /// Position in `GROUPINGS`: by instance.
    pub const BY_PROVIDER_ID: usize = 1;

    /// The node's name.
    pub fn name(&self) -> NodeName {
        NodeName(self.metadata.name.clone())
    }

    /// The pool named by the label `karpenter.sh/nodepool`.
    pub fn node_pool(&self) -> Option<NodePoolName> {
        self.metadata
            .labels
            .get(super::NODE_POOL_LABEL)
            .cloned()
            .map(NodePoolName)
    }

    /// The node's condition of a type.
    pub fn condition(&self, kind: &str) -> Option<&BriefCondition> {
        self.status.conditions.iter().find(|condition| *condition.kind == *kind)
    }
}

impl Object for Node {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "Node";
    const GROUPINGS: &'static [Grouping<Self>] = &[
        |node| node.metadata.labels.get(super::NODE_POOL_LABEL),
        |node| node.spec.provider_id.as_ref().map(|id| &id.0),
    ];

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn share(&mut self, pool: &mut Sharing) {
        self.metadata.share(pool);
        pool.brief_conditions(&mut self.status.conditions);
        pool.text(&mut self.status.node_info.kubelet_version);
    }
}
