//! A pod as decisions see it: under a kilobyte each, because a cluster has a hundred thousand.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    BriefCondition, ConditionStatus, ContainerStatus, Grouping, List, Metadata, NodeName, Object, PodSpec, PodUid,
    Text, container::resource_statuses, list::list_where, metadata::non_empty,
};
use crate::sharing::Sharing;

/// A pod. Everything its replicas have in common is behind one shared allocation each: spec, labels, owners, granted resources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Pod {
    /// Who it is.
    pub metadata: Metadata,
    /// The node it is bound to.
    pub node_name: Option<NodeName>,
    /// What it asks for.
    pub spec: Arc<PodSpec>,
    /// How it fares.
    pub status: PodStatus,
}

/// The part of a pod's status that decisions read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// Where it is in its life.
    #[serde(skip_serializing_if = "PodPhase::is_unset")]
    pub phase: PodPhase,
    /// Only the conditions of [`is_kept_condition`].
    #[serde(deserialize_with = "kept_conditions", skip_serializing_if = "List::is_empty")]
    pub conditions: List<BriefCondition>,
    /// Where it will run once lower-priority pods have left.
    #[serde(deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub nominated_node_name: Option<NodeName>,
    /// When the kubelet took it on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Timestamp>,
    /// Only statuses that speak of resources.
    #[serde(deserialize_with = "resource_statuses", skip_serializing_if = "List::is_empty")]
    pub container_statuses: List<ContainerStatus>,
    /// Only statuses that speak of resources.
    #[serde(deserialize_with = "resource_statuses", skip_serializing_if = "List::is_empty")]
    pub init_container_statuses: List<ContainerStatus>,
    /// Names of the claims made from templates.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub resource_claim_statuses: List<PodResourceClaimStatus>,
}

/// The claim made for one entry of the pod's `resourceClaims`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodResourceClaimStatus {
    /// The entry.
    pub name: Text,
    /// The claim; none when no claim is needed.
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub resource_claim_name: Option<Text>,
}

/// Where a pod is in its life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PodPhase {
    /// Not reported; capacity buffers' stand-in pods have none.
    #[default]
    #[serde(rename = "")]
    Unset,
    /// Not all containers started.
    Pending,
    /// On a node.
    Running,
    /// Ended well.
    Succeeded,
    /// Ended badly.
    Failed,
    /// The node does not answer.
    Unknown,
}

impl PodPhase {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
    fn is_unset(&self) -> bool {
        *self == Self::Unset
    }
}

/// True for the pod conditions something reads:
/// - `PodScheduled`: whether the pod is demand;
/// - `Ready`: whether a disruption budget's unhealthy policy applies;
/// - `PodResizePending`: whether a resize can never happen.
pub fn is_kept_condition(kind: &str) -> bool {
    matches!(kind, "PodScheduled" | "Ready" | "PodResizePending")
}

fn kept_conditions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<List<BriefCondition>, D::Error> {
    list_where(deserializer, |condition: &BriefCondition| {
        is_kept_condition(&condition.kind)
    })
}

impl Pod {
    /// Position in `GROUPINGS`: by the node it is bound to.
    pub const BY_NODE: usize = 0;

    /// The pod's identity.
    pub fn uid(&self) -> &PodUid {
        &self.metadata.uid
    }

    /// The pod's first condition of a type.
    pub fn condition(&self, kind: &str) -> Option<&BriefCondition> {
        self.status.conditions.iter().find(|condition| *condition.kind == *kind)
    }

    /// True when the pod will never run again.
    pub fn is_terminal(&self) -> bool {
        matches!(self.status.phase, PodPhase::Succeeded | PodPhase::Failed)
    }

    /// True when the pod neither ended nor is asked to.
    pub fn is_active(&self) -> bool {
        !self.is_terminal() && !self.metadata.is_deleting()
    }

    /// True when an apps/v1 DaemonSet owns the pod.
    pub fn is_owned_by_daemon_set(&self) -> bool {
        self.metadata.is_owned_by("apps/v1", "DaemonSet")
    }

    /// True when a node owns the pod: a static pod, which nobody can evict.
    pub fn is_owned_by_node(&self) -> bool {
        self.metadata.is_owned_by("v1", "Node")
    }

    /// True when the pod asks for new capacity. All of:
    /// - some `PodScheduled` condition has reason `Unschedulable`, whatever its status;
    /// - it is bound to no node;
    /// - it is nominated to no node, so it does not wait for a preemption;
    /// - neither a DaemonSet nor a Node owns it.
    pub fn is_provisionable(&self) -> bool {
        let unschedulable =
            |condition: &BriefCondition| *condition.kind == *"PodScheduled" && *condition.reason == *"Unschedulable";
        self.status.conditions.iter().any(unschedulable)
            && self.node_name.is_none()
            && self.status.nominated_node_name.is_none()
            && !self.is_owned_by_daemon_set()
            && !self.is_owned_by_node()
    }

    /// True when the pod's `Ready` condition is there and does not hold.
    pub fn is_unready(&self) -> bool {
        self.condition("Ready")
            .is_some_and(|ready| ready.status == ConditionStatus::False)
    }
}

impl Object for Pod {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "Pod";
    const GROUPINGS: &'static [Grouping<Self>] = &[|pod| pod.node_name.as_ref().map(|node| &node.0)];

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn share(&mut self, pool: &mut Sharing) {
        self.metadata.share(pool);
        if let Some(node) = &mut self.node_name {
            pool.text(&mut node.0);
        }
        pool.pod_spec(&mut self.spec);
        pool.brief_conditions(&mut self.status.conditions);
        pool.container_statuses(&mut self.status.container_statuses);
        pool.container_statuses(&mut self.status.init_container_statuses);
    }
}

impl<'de> Deserialize<'de> for Pod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename = "Pod")]
        struct Wire {
            metadata: Metadata,
            #[serde(default)]
            spec: PodSpec,
            #[serde(default)]
            status: PodStatus,
        }
        let Wire {
            metadata,
            mut spec,
            status,
        } = Wire::deserialize(deserializer)?;
        let node_name = spec.node_name.take();
        Ok(Self {
            metadata,
            node_name,
            spec: Arc::new(spec),
            status,
        })
    }
}

impl Serialize for Pod {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Wire<'a> {
            metadata: &'a Metadata,
            spec: BoundSpec<'a>,
            status: &'a PodStatus,
        }
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct BoundSpec<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            node_name: Option<&'a NodeName>,
            #[serde(flatten)]
            spec: &'a PodSpec,
        }
        let spec = BoundSpec {
            node_name: self.node_name.as_ref(),
            spec: &self.spec,
        };
        Wire {
            metadata: &self.metadata,
            spec,
            status: &self.status,
        }
        .serialize(serializer)
    }
}
