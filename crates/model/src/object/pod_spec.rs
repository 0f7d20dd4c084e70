//! What a pod asks for, shared by all replicas of a workload.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use super::{
    Affinity, Container, Labels, List, Metadata, NodeName, ResourceRequirements, Taint, Text, Toleration,
    TopologySpreadConstraint, list,
    list::list_where,
    metadata::{is_unset, non_empty},
};
use crate::{resources::ResourceList, sharing::Sharing};

/// The part of a pod's spec that scheduling, disruption and eviction read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// Only in templates; a pod's own node is [`Pod::node_name`](super::Pod), so that replicas can share their spec.
    #[serde(deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub(super) node_name: Option<NodeName>,
    /// Who binds the pod.
    #[serde(skip_serializing_if = "is_unset")]
    pub scheduler_name: Text,
    /// Node labels that must have exactly these values.
    #[serde(with = "list::map", skip_serializing_if = "List::is_empty")]
    pub node_selector: Labels,
    /// Conditions on nodes and other pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Arc<Affinity>>,
    /// Taints the pod accepts.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub tolerations: List<Toleration>,
    /// Evenness over domains.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub topology_spread_constraints: List<TopologySpreadConstraint>,
    /// Run side by side. Always written, because the API requires it.
    pub containers: List<Container>,
    /// Run before, or beside when they restart always.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub init_containers: List<Container>,
    /// What the sandbox costs, from the runtime class.
    #[serde(skip_serializing_if = "ResourceList::is_empty")]
    pub overhead: ResourceList,
    /// Pod-level requests, which replace the sum over containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// The sandbox; its overhead is already in `overhead` except in templates.
    #[serde(skip_serializing_if = "is_unset")]
    pub runtime_class_name: Text,
    /// Only volumes behind a claim.
    #[serde(deserialize_with = "claimed_volumes", skip_serializing_if = "List::is_empty")]
    pub volumes: List<Volume>,
    /// Devices.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub resource_claims: List<PodResourceClaim>,
    /// Resolved priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Where the priority comes from; critical pods are drained last.
    #[serde(skip_serializing_if = "is_unset")]
    pub priority_class_name: Text,
    /// `Never` or `PreemptLowerPriority`.
    #[serde(skip_serializing_if = "is_unset")]
    pub preemption_policy: Text,
    /// Seconds between the request to stop and the kill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination_grace_period_seconds: Option<i64>,
    /// What still holds the pod back from scheduling.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub scheduling_gates: List<SchedulingGate>,
}

/// A reason not to schedule yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SchedulingGate {
    /// Its name.
    pub name: Text,
}

/// A volume behind a PersistentVolumeClaim; all other volumes are dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Volume {
    /// The volume's name in the pod.
    pub name: Text,
    /// A claim by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim: Option<VolumeClaim>,
    /// A claim made for this pod, named `<pod>-<volume>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ephemeral: Option<Ephemeral>,
}

/// A reference to a PersistentVolumeClaim in the pod's namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeClaim {
    /// Its name.
    pub claim_name: Text,
}

/// Marks a generic ephemeral volume. Its template is dropped: decisions read the claim that was made from it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ephemeral {}

impl Volume {
    /// The name of the claim behind the volume, for a pod of this name.
    pub fn claim_name(&self, pod_name: &str) -> Option<Text> {
        match (&self.persistent_volume_claim, &self.ephemeral) {
            (Some(claim), _) => Some(claim.claim_name.clone()),
            (None, Some(_)) => Some(format!("{pod_name}-{}", self.name).into()),
            (None, None) => None,
        }
    }
}

/// A device claim of a pod, by name or made from a template.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodResourceClaim {
    /// What containers refer to.
    pub name: Text,
    /// A ResourceClaim.
    #[serde(deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub resource_claim_name: Option<Text>,
    /// A ResourceClaimTemplate; the made claim's name is in the pod's status.
    #[serde(deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub resource_claim_template_name: Option<Text>,
}

/// A pod to be: labels and spec, in workloads and PodTemplates.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodTemplateSpec {
    /// Labels and annotations of the pods.
    pub metadata: Metadata,
    /// Their spec.
    pub spec: Arc<PodSpec>,
}

impl PodTemplateSpec {
    pub(super) fn share(&mut self, pool: &mut Sharing) {
        self.metadata.share(pool);
        pool.pod_spec(&mut self.spec);
    }
}

/// The taints of a node side: on Nodes, NodeClaims and NodePools.
pub type Taints = List<Taint>;

fn claimed_volumes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<List<Volume>, D::Error> {
    list_where(deserializer, |volume: &Volume| {
        volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some()
    })
}
