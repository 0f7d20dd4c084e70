//! Kubernetes objects as decisions see them: read straight from API JSON, slim, shared, and written back as valid API JSON.
//!
//! Each type names the fields it keeps; serde skips everything else without building it. What a type drops, its module
//! says. Absent and empty are the same value wherever they are the same to the API.

mod affinity;
mod capacity_buffer;
mod cluster;
pub mod condition;
mod container;
mod demand;
mod device;
mod disruption_budget;
mod given;
mod id;
mod job;
mod list;
mod metadata;
mod node;
mod node_claim;
mod node_overlay;
mod node_pool;
mod pod;
mod pod_spec;
mod resource_claim;
mod selector;
mod storage;
mod taint;
mod workload;

use serde::{Serialize, de::DeserializeOwned};

pub use affinity::{
    Affinity, NodeAffinity, PodAffinity, PodAffinityTerm, PreferredSchedulingTerm, TopologySpreadConstraint,
    WeightedPodAffinityTerm,
};
pub use capacity_buffer::{CapacityBuffer, CapacityBufferSpec, CapacityBufferStatus, LocalObjectRef, ScalableRef};
pub use cluster::{Namespace, NodeClass, NodeClassStatus, Overhead, RuntimeClass};
pub use condition::{BriefCondition, Condition, ConditionStatus};
pub use container::{Container, ContainerClaim, ContainerPort, ContainerStatus, ResourceRequirements};
pub use device::{
    CapacityRange, CapacityRequestPolicy, CelSelector, Counter, CounterConsumption, CounterSet, Device,
    DeviceAttribute, DeviceCapacity, DeviceClass, DeviceClassSpec, DeviceSelector, DeviceTaint, ResourcePool,
    ResourceSlice, ResourceSliceSpec,
};
pub use disruption_budget::{IntOrString, PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus};
pub use given::Given;
pub use id::{
    InstanceTypeName, NodeClaimName, NodeName, NodePoolName, ObjectKey, PodUid, ProviderId, ResourceVersion, Text, Uid,
};
pub use job::{Job, JobSpec};
pub(crate) use list::map;
pub use list::{List, Map};
pub use metadata::{Labels, Metadata, OwnerReference, is_kept_annotation};
pub use node::{Node, NodeInfo, NodeSpec, NodeStatus};
pub use node_claim::{NodeClaim, NodeClaimSpec, NodeClaimStatus, NodeClassReference, Resources};
pub use node_overlay::{NodeOverlay, NodeOverlaySpec, NodeOverlayStatus};
pub use node_pool::{
    Budget, Disruption, NodeClaimTemplate, NodeClaimTemplateSpec, NodePool, NodePoolSpec, NodePoolStatus,
    TemplateMetadata,
};
pub use pod::{Pod, PodPhase, PodResourceClaimStatus, PodStatus, is_kept_condition};
pub use pod_spec::{
    Ephemeral, PodResourceClaim, PodSpec, PodTemplateSpec, SchedulingGate, Taints, Volume, VolumeClaim,
};
pub use resource_claim::{
    AllocatedDevice, AllocationResult, CapacityRequirements, Consumer, DeviceAllocation, DeviceClaim, DeviceConstraint,
    DeviceQuery, DeviceRequest, DeviceToleration, ResourceClaim, ResourceClaimSpec, ResourceClaimStatus,
    ResourceClaimTemplate, ResourceClaimTemplateSpec,
};
pub use selector::{LabelSelector, LabelSelectorRequirement, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
pub use storage::{
    AwsElasticBlockStore, CSINode, CSINodeDriver, CSINodeSpec, ClaimReference, CsiSource, NodePath, PersistentVolume,
    PersistentVolumeClaim, PersistentVolumeClaimSpec, PersistentVolumeClaimStatus, PersistentVolumeSpec, StorageClass,
    TopologySelectorRequirement, TopologySelectorTerm, VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentSpec,
    VolumeAttachmentStatus, VolumeNodeAffinity, VolumeNodeResources,
};
pub use taint::{Taint, Toleration};
pub use workload::{
    DaemonSet, Deployment, PodTemplate, ReplicaSet, ReplicaSetStatus, ReplicationController, ReplicationControllerSpec,
    Service, ServiceSpec, StatefulSet, WorkloadSpec,
};

use crate::sharing::Sharing;

/// The label that says which NodePool a node or claim belongs to.
pub const NODE_POOL_LABEL: &str = "karpenter.sh/nodepool";

/// Reads a kind from API JSON.
///
/// Written out per kind rather than generically, so that a reader is generated once, in the kind's own crate, and not again in
/// every crate that watches it: readers are most of what there is to compile.
pub trait Read: Sized {
    /// The object, whatever else the text says.
    fn read(json: &[u8]) -> serde_json::Result<Self>;
}

/// A kind of object that a snapshot holds.
pub trait Object: Read + Serialize + DeserializeOwned + Clone + PartialEq + 'static {
    /// Group and version it is read and written as.
    const API_VERSION: &'static str;
    /// Its kind.
    const KIND: &'static str;
    /// By what, besides its key, objects of the kind are looked up.
    const GROUPINGS: &'static [Grouping<Self>] = &[];

    /// Who it is.
    fn metadata(&self) -> &Metadata;

    /// Replaces what equal objects have in common by one shared allocation.
    fn share(&mut self, pool: &mut Sharing);

    /// Reads an object at the watch boundary. `apiVersion` and `kind` are not looked at: the watch knows them.
    fn from_json(json: &[u8], pool: &mut Sharing) -> serde_json::Result<Self> {
        let mut object = Self::read(json)?;
        object.share(pool);
        pool.release_when_grown();
        Ok(object)
    }

    /// The object as API JSON, with `apiVersion` and `kind`.
    fn document(&self) -> Document<'_, Self> {
        Document {
            api_version: Self::API_VERSION,
            kind: Self::KIND,
            object: self,
        }
    }
}

/// Names the group an object belongs to, if any.
pub type Grouping<T> = fn(&T) -> Option<&Text>;

/// An object on its way out: itself, headed by what it is.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Document<'a, T> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    object: &'a T,
}
