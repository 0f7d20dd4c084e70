//! Wishes for devices: ResourceClaims and the templates they are made from.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    DeviceSelector, List, Map, Metadata, NodeSelector, Object, Text, Uid, list,
    metadata::{is_unset, is_zero},
};
use crate::{quantity::Quantity, sharing::Sharing};

/// A wish for devices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceClaim {
    /// Who it is.
    pub metadata: Metadata,
    /// The wish.
    pub spec: ResourceClaimSpec,
    /// What was allocated.
    pub status: ResourceClaimStatus,
}

/// What claims are made from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceClaimTemplate {
    /// Who it is.
    pub metadata: Metadata,
    /// The claims to be.
    pub spec: ResourceClaimTemplateSpec,
}

/// A claim to be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceClaimTemplateSpec {
    /// Its labels.
    pub metadata: Metadata,
    /// The wish.
    pub spec: ResourceClaimSpec,
}

/// What a claim asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceClaimSpec {
    /// The devices.
    pub devices: DeviceClaim,
}

/// The devices a claim asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceClaim {
    /// All must be granted.
    pub requests: List<DeviceRequest>,
    /// What the devices must have in common.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub constraints: List<DeviceConstraint>,
}

/// One request: exactly this, or the first of these that can be had.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeviceRequest {
    /// What constraints and containers refer to.
    pub name: Text,
    /// Exactly this; its own name stays empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exactly: Option<DeviceQuery>,
    /// The first of these.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub first_available: List<DeviceQuery>,
}

/// Which devices and how many.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeviceQuery {
    /// Only for alternatives.
    #[serde(skip_serializing_if = "is_unset")]
    pub name: Text,
    /// The class.
    pub device_class_name: Text,
    /// All must hold.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub selectors: List<DeviceSelector>,
    /// `ExactCount` (the default) or `All`.
    #[serde(skip_serializing_if = "is_unset")]
    pub allocation_mode: Text,
    /// How many.
    #[serde(skip_serializing_if = "is_zero")]
    pub count: i64,
    /// For monitoring: does not occupy the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_access: Option<bool>,
    /// Device taints that are accepted.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub tolerations: List<DeviceToleration>,
    /// A part of a device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<CapacityRequirements>,
}

/// The part of a device a request wants.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct CapacityRequirements {
    /// Amounts by capacity name.
    #[serde(with = "list::map", skip_serializing_if = "List::is_empty")]
    pub requests: Map<Quantity>,
}

/// Accepts a device taint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeviceToleration {
    /// The taint's key; empty for any.
    #[serde(skip_serializing_if = "is_unset")]
    pub key: Text,
    /// `Equal` (the default) or `Exists`.
    #[serde(skip_serializing_if = "is_unset")]
    pub operator: Text,
    /// The operand.
    #[serde(skip_serializing_if = "is_unset")]
    pub value: Text,
    /// The taint's effect; empty for any.
    #[serde(skip_serializing_if = "is_unset")]
    pub effect: Text,
    /// For how long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

/// What devices of several requests must have in common.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeviceConstraint {
    /// The requests; all when empty.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub requests: List<Text>,
    /// The attribute that must be equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_attribute: Option<Text>,
    /// The attribute that must differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distinct_attribute: Option<Text>,
}

/// What was allocated to a claim, for whom.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceClaimStatus {
    /// The devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocation: Option<AllocationResult>,
    /// The pods that use them.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub reserved_for: List<Consumer>,
}

/// Devices allocated to a claim.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AllocationResult {
    /// The devices.
    pub devices: DeviceAllocation,
    /// The nodes that can use them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<NodeSelector>,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocation_timestamp: Option<Timestamp>,
}

/// The devices of an allocation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceAllocation {
    /// One entry per device.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub results: List<AllocatedDevice>,
}

/// One allocated device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AllocatedDevice {
    /// `request` or `request/alternative`.
    pub request: Text,
    /// The driver.
    pub driver: Text,
    /// The pool.
    pub pool: Text,
    /// The device.
    pub device: Text,
    /// Does not occupy the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_access: Option<bool>,
    /// Device taints that are accepted.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub tolerations: List<DeviceToleration>,
    /// The share of a device with several claims.
    #[serde(rename = "shareID", skip_serializing_if = "Option::is_none")]
    pub share_id: Option<Uid>,
    /// The part of the device in use.
    #[serde(with = "list::map", skip_serializing_if = "List::is_empty")]
    pub consumed_capacity: Map<Quantity>,
}

/// Who uses a claim.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Consumer {
    /// Its API group; empty for pods.
    #[serde(skip_serializing_if = "is_unset")]
    pub api_group: Text,
    /// Its resource, `pods`.
    pub resource: Text,
    /// Its name.
    pub name: Text,
    /// Its identity.
    pub uid: Uid,
}

impl Object for ResourceClaim {
    const API_VERSION: &'static str = "resource.k8s.io/v1";
    const KIND: &'static str = "ResourceClaim";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn share(&mut self, pool: &mut Sharing) {
        self.metadata.share(pool);
    }
}

impl Object for ResourceClaimTemplate {
    const API_VERSION: &'static str = "resource.k8s.io/v1";
    const KIND: &'static str = "ResourceClaimTemplate";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn share(&mut self, pool: &mut Sharing) {
        self.metadata.share(pool);
    }
}
