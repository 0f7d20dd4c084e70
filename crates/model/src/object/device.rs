//! Devices as drivers publish them: ResourceSlices and DeviceClasses of dynamic resource allocation.
//!
//! Driver configuration is dropped: it is handed to the driver and never decides where a pod fits.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    List, Map, Metadata, NodeName, NodeSelector, Object, Text, list,
    metadata::{is_unset, non_empty},
};
use crate::{quantity::Quantity, sharing::Sharing};

/// Some of a driver's devices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceSlice {
    /// Who it is; a slice owned by a Node is local to it.
    pub metadata: Metadata,
    /// The devices.
    pub spec: ResourceSliceSpec,
}

/// The devices of a slice and where they can be used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceSliceSpec {
    /// Who publishes it.
    pub driver: Text,
    /// The pool it is part of.
    pub pool: ResourcePool,
    /// Only on this node.
    #[serde(deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub node_name: Option<NodeName>,
    /// On these nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<NodeSelector>,
    /// On all nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all_nodes: Option<bool>,
    /// The devices.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub devices: List<Device>,
    /// Each device says where it can be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_device_node_selection: Option<bool>,
    /// What partitions of a device draw from.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub shared_counters: List<CounterSet>,
}

/// The pool a slice is part of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourcePool {
    /// Its name.
    pub name: Text,
    /// Only the newest counts.
    pub generation: i64,
    /// How many slices make it complete.
    pub resource_slice_count: i64,
}

/// One device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Device {
    /// Unique in its pool.
    pub name: Text,
    /// What selectors and constraints look at.
    #[serde(with = "list::map", skip_serializing_if = "List::is_empty")]
    pub attributes: Map<DeviceAttribute>,
    /// How much it has.
    #[serde(with = "list::map", skip_serializing_if = "List::is_empty")]
    pub capacity: Map<DeviceCapacity>,
    /// What it draws from shared counters.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub consumes_counters: List<CounterConsumption>,
    /// Only on this node.
    #[serde(deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub node_name: Option<NodeName>,
    /// On these nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<NodeSelector>,
    /// On all nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all_nodes: Option<bool>,
    /// What keeps claims off.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub taints: List<DeviceTaint>,
    /// An allocation ties the claim to the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binds_to_node: Option<bool>,
    /// What must hold before a pod binds.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub binding_conditions: List<Text>,
    /// What makes binding fail.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub binding_failure_conditions: List<Text>,
    /// Several claims may share it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_multiple_allocations: Option<bool>,
}

/// One property of a device; exactly one field is set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeviceAttribute {
    /// A number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub int: Option<i64>,
    /// A truth value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bool: Option<bool>,
    /// A text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub string: Option<Text>,
    /// A semantic version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Text>,
    /// Several numbers.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub ints: List<i64>,
    /// Several truth values.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub bools: List<bool>,
    /// Several texts.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub strings: List<Text>,
    /// Several semantic versions.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub versions: List<Text>,
}

/// How much of something a device has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeviceCapacity {
    /// The amount.
    pub value: Quantity,
    /// How claims may ask for a part of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_policy: Option<CapacityRequestPolicy>,
}

/// How claims may ask for a part of a device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CapacityRequestPolicy {
    /// When a claim does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Quantity>,
    /// Only these amounts.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub valid_values: List<Quantity>,
    /// Any amount within these bounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_range: Option<CapacityRange>,
}

/// The bounds of a capacity request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct CapacityRange {
    /// The least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Quantity>,
    /// The most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Quantity>,
    /// Amounts are rounded up to a multiple of this above the least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<Quantity>,
}

/// Named counters that partitions draw from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct CounterSet {
    /// Its name.
    pub name: Text,
    /// What there is.
    #[serde(with = "list::map", skip_serializing_if = "List::is_empty")]
    pub counters: Map<Counter>,
}

/// What a device draws from a [`CounterSet`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CounterConsumption {
    /// The set.
    pub counter_set: Text,
    /// How much.
    #[serde(with = "list::map", skip_serializing_if = "List::is_empty")]
    pub counters: Map<Counter>,
}

/// One counter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Counter {
    /// The amount.
    pub value: Quantity,
}

/// Keeps claims off a device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeviceTaint {
    /// What it is about.
    pub key: Text,
    /// Compared by `Equal` tolerations.
    #[serde(skip_serializing_if = "is_unset")]
    pub value: Text,
    /// `NoSchedule`, `NoExecute` or `None`.
    pub effect: Text,
    /// When it was put on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_added: Option<Timestamp>,
}

/// A kind of device that claims ask for by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceClass {
    /// Who it is.
    pub metadata: Metadata,
    /// Which devices it means.
    pub spec: DeviceClassSpec,
}

/// Which devices a class means.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeviceClassSpec {
    /// All must hold.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub selectors: List<DeviceSelector>,
    /// The extended resource that stands for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extended_resource_name: Option<Text>,
}

/// A condition on a device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceSelector {
    /// In the Common Expression Language.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cel: Option<CelSelector>,
}

/// An expression that is true of the devices meant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CelSelector {
    /// The expression.
    pub expression: Text,
}

impl Object for ResourceSlice {
    const API_VERSION: &'static str = "resource.k8s.io/v1";
    const KIND: &'static str = "ResourceSlice";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn share(&mut self, pool: &mut Sharing) {
        self.metadata.share(pool);
    }
}

impl Object for DeviceClass {
    const API_VERSION: &'static str = "resource.k8s.io/v1";
    const KIND: &'static str = "DeviceClass";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn share(&mut self, pool: &mut Sharing) {
        self.metadata.share(pool);
    }
}
