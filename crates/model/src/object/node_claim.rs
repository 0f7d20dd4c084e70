//! A NodeClaim: one machine asked for, launched, or on its way out.

use api::duration::{Duration, NillableDuration};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    Condition, Grouping, List, Metadata, NodeClaimName, NodeName, NodePoolName, NodeSelectorRequirement, Object,
    ProviderId, Taints, Text, condition,
    metadata::{is_unset, non_empty, with_all_annotations},
};
use crate::{resources::ResourceList, sharing::Sharing};

/// A NodeClaim.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeClaim {
    /// Who it is, with all annotations: registration hands them to the node.
    #[serde(deserialize_with = "with_all_annotations")]
    pub metadata: Metadata,
    /// What was asked for.
    pub spec: NodeClaimSpec,
    /// What became of it.
    pub status: NodeClaimStatus,
}

/// What a NodeClaim asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeClaimSpec {
    /// Taints of the node.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub taints: Taints,
    /// Taints that something removes before the node counts as initialised.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub startup_taints: Taints,
    /// Conditions on the instance. Always written, because the API requires it.
    pub requirements: List<NodeSelectorRequirement>,
    /// What the pods it was made for need.
    #[serde(skip_serializing_if = "Resources::is_empty")]
    pub resources: Resources,
    /// How the machine is set up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_class_ref: Option<NodeClassReference>,
    /// The longest a drain may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination_grace_period: Option<Duration>,
    /// The longest the node may live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expire_after: Option<NillableDuration>,
}

/// The resources of a [`NodeClaimSpec`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// The least the node must offer.
    #[serde(skip_serializing_if = "ResourceList::is_empty")]
    pub requests: ResourceList,
}

impl Resources {
    fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }
}

/// Names a node class of any provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeClassReference {
    /// Its API group.
    pub group: Text,
    /// Its kind.
    pub kind: Text,
    /// Its name.
    pub name: Text,
}

/// What became of a NodeClaim.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeClaimStatus {
    /// The node that registered for it.
    #[serde(deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub node_name: Option<NodeName>,
    /// The instance that was launched for it.
    #[serde(
        rename = "providerID",
        deserialize_with = "non_empty",
        skip_serializing_if = "Option::is_none"
    )]
    pub provider_id: Option<ProviderId>,
    /// The image it booted from.
    #[serde(rename = "imageID", skip_serializing_if = "is_unset")]
    pub image_id: Text,
    /// What the machine should have, before the kubelet says.
    #[serde(skip_serializing_if = "ResourceList::is_empty")]
    pub capacity: ResourceList,
    /// What should be left for pods, before the kubelet says.
    #[serde(skip_serializing_if = "ResourceList::is_empty")]
    pub allocatable: ResourceList,
    /// Launched, Registered, Initialized, Consolidatable, Drifted and the rest.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub conditions: List<Condition>,
    /// When a pod last came or went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_pod_event_time: Option<Timestamp>,
}

impl NodeClaim {
    /// Position in `GROUPINGS`: by pool.
    pub const BY_POOL: usize = 0;
    /// Position in `GROUPINGS`: by instance.
    pub const BY_PROVIDER_ID: usize = 1;
    /// Position in `GROUPINGS`: by the plan it was made in.
    pub const BY_PLAN: usize = 2;

    /// The claim's name.
    pub fn name(&self) -> NodeClaimName {
        NodeClaimName(self.metadata.name.clone())
    }

    /// The pool named by the label `karpenter.sh/nodepool`.
    pub fn node_pool(&self) -> Option<NodePoolName> {
        self.metadata
            .labels
            .get(super::NODE_POOL_LABEL)
            .cloned()
            .map(NodePoolName)
    }

    /// The claim's condition of a type.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        condition::find(&self.status.conditions, kind)
    }
}

impl Object for NodeClaim {
    const API_VERSION: &'static str = "karpenter.sh/v1";
    const KIND: &'static str = "NodeClaim";
    const GROUPINGS: &'static [Grouping<Self>] = &[
        |claim| claim.metadata.labels.get(super::NODE_POOL_LABEL),
        |claim| claim.status.provider_id.as_ref().map(|id| &id.0),
        |claim| claim.metadata.annotations.get(api::annotations::PLAN),
    ];

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn share(&mut self, pool: &mut Sharing) {
        self.metadata.share(pool);
        pool.requirements(&mut self.spec.requirements);
        pool.text(&mut self.status.image_id);
        if let Some(node) = &mut self.status.node_name {
            pool.text(&mut node.0);
        }
    }
}
