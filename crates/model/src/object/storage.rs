//! What binds pods to zones and limits how many volumes a node takes: claims, volumes, classes, drivers, attachments.

use serde::{Deserialize, Serialize};

use super::{
    Grouping, List, Metadata, NodeName, NodeSelector, Object, Text,
    metadata::{is_false, is_unset, non_empty},
};
use crate::sharing::Sharing;

macro_rules! storage_objects {
    ($($kind:ident, $api_version:literal;)*) => {$(
        impl Object for $kind {
            const API_VERSION: &'static str = $api_version;
            const KIND: &'static str = stringify!($kind);

            fn metadata(&self) -> &Metadata {
                &self.metadata
            }

            fn share(&mut self, pool: &mut Sharing) {
                self.metadata.share(pool);
            }
        }
    )*};
}

storage_objects! {
    PersistentVolumeClaim, "v1";
    PersistentVolume, "v1";
    StorageClass, "storage.k8s.io/v1";
    CSINode, "storage.k8s.io/v1";
}

/// A wish for storage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct PersistentVolumeClaim {
    /// Who it is.
    pub metadata: Metadata,
    /// The wish.
    pub spec: PersistentVolumeClaimSpec,
    /// Whether it came true.
    pub status: PersistentVolumeClaimStatus,
}

/// What a claim asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PersistentVolumeClaimSpec {
    /// The class; an empty name is not the same as none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<Text>,
    /// The volume it is bound to.
    #[serde(skip_serializing_if = "is_unset")]
    pub volume_name: Text,
}

/// Whether a claim is bound.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct PersistentVolumeClaimStatus {
    /// `Pending`, `Bound` or `Lost`.
    #[serde(skip_serializing_if = "is_unset")]
    pub phase: Text,
}

/// A piece of storage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct PersistentVolume {
    /// Who it is.
    pub metadata: Metadata,
    /// Where it is and who attaches it.
    pub spec: PersistentVolumeSpec,
}

/// Where a volume is and who attaches it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PersistentVolumeSpec {
    /// The class it was made from.
    #[serde(skip_serializing_if = "is_unset")]
    pub storage_class_name: Text,
    /// The claim it is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim_ref: Option<ClaimReference>,
    /// The nodes that can reach it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_affinity: Option<VolumeNodeAffinity>,
    /// Attached by a CSI driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub csi: Option<CsiSource>,
    /// Attached by the in-tree EBS code, which counts as its CSI successor.
    #[serde(rename = "awsElasticBlockStore", skip_serializing_if = "Option::is_none")]
    pub aws_elastic_block_store: Option<AwsElasticBlockStore>,
    /// A disk of one node; such volumes do not pin a pod to its host name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<NodePath>,
    /// A directory of one node; likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_path: Option<NodePath>,
}

/// Names the claim a volume is bound to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ClaimReference {
    /// Its namespace.
    #[serde(skip_serializing_if = "is_unset")]
    pub namespace: Text,
    /// Its name.
    #[serde(skip_serializing_if = "is_unset")]
    pub name: Text,
}

/// The nodes that can reach a volume.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeNodeAffinity {
    /// Must hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<NodeSelector>,
}

/// A volume of a CSI driver.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CsiSource {
    /// The driver.
    pub driver: Text,
    /// The driver's name for the volume.
    pub volume_handle: Text,
}

/// A volume of the in-tree EBS code.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct AwsElasticBlockStore {
    /// The cloud's name for the volume.
    #[serde(rename = "volumeID")]
    pub volume_id: Text,
}

/// A path on a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct NodePath {
    /// The path.
    pub path: Text,
}

/// How storage is made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageClass {
    /// Who it is.
    pub metadata: Metadata,
    /// Who makes it.
    pub provisioner: Text,
    /// `Immediate` or `WaitForFirstConsumer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_binding_mode: Option<Text>,
    /// Where it may be made; alternatives.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub allowed_topologies: List<TopologySelectorTerm>,
}

/// One alternative of where storage may be made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopologySelectorTerm {
    /// All must hold.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub match_label_expressions: List<TopologySelectorRequirement>,
}

/// A label with its allowed values.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TopologySelectorRequirement {
    /// The label.
    pub key: Text,
    /// The values.
    #[serde(default)]
    pub values: List<Text>,
}

/// What the CSI drivers of a node can do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct CSINode {
    /// Who it is: the node's name.
    pub metadata: Metadata,
    /// The drivers.
    pub spec: CSINodeSpec,
}

/// The drivers of a node. Always written, because the API requires it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct CSINodeSpec {
    /// The drivers.
    pub drivers: List<CSINodeDriver>,
}

/// One driver of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CSINodeDriver {
    /// The driver.
    pub name: Text,
    /// The driver's name for the node.
    #[serde(rename = "nodeID")]
    pub node_id: Text,
    /// Node labels the driver's topology is expressed in.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub topology_keys: List<Text>,
    /// How many volumes; absent means published and unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocatable: Option<VolumeNodeResources>,
}

/// How many volumes of a driver a node takes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeNodeResources {
    /// The count; absent means unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<i32>,
}

/// A volume on its way to or from a node: termination waits for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeAttachment {
    /// Who it is.
    pub metadata: Metadata,
    /// What is attached where.
    pub spec: VolumeAttachmentSpec,
    /// Whether it is.
    pub status: VolumeAttachmentStatus,
}

/// What is attached where.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeAttachmentSpec {
    /// The driver.
    pub attacher: Text,
    /// The node.
    #[serde(deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub node_name: Option<NodeName>,
    /// The volume.
    pub source: VolumeAttachmentSource,
}

/// The volume of an attachment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeAttachmentSource {
    /// The PersistentVolume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent_volume_name: Option<Text>,
}

/// Whether a volume is attached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeAttachmentStatus {
    /// It is.
    #[serde(skip_serializing_if = "is_false")]
    pub attached: bool,
}

impl VolumeAttachment {
    /// Position in `GROUPINGS`: by the node.
    pub const BY_NODE: usize = 0;
}

impl Object for VolumeAttachment {
    const API_VERSION: &'static str = "storage.k8s.io/v1";
    const KIND: &'static str = "VolumeAttachment";
    const GROUPINGS: &'static [Grouping<Self>] = &[|attachment| attachment.spec.node_name.as_ref().map(|node| &node.0)];

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn share(&mut self, pool: &mut Sharing) {
        self.metadata.share(pool);
    }
}
