//! What the cloud offers, as the snapshot file spells it: instance types, their offerings and prices.
//!
//! An unknown field is an error: a misspelt limit or price must not pass for none.

use std::{collections::BTreeMap, sync::Arc};

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::{
    instance_type::{InstanceType, Offering, Overhead},
    object::{InstanceTypeName, List, Map, NodePoolName, ResourceSliceSpec, Text},
    price::Price,
    requirement::{AlikeReader, RequirementSpec, Requirements},
    resources::ResourceList,
    vocabulary::Vocabulary,
};

/// The cloud's offers. The order of the types is kept: it breaks ties.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalog {
    /// All instance types, each name once.
    pub instance_types: Vec<Arc<CatalogType>>,
    /// Which types a pool's node class offers; a pool that is not listed gets all.
    pub node_pool_instance_types: BTreeMap<NodePoolName, List<InstanceTypeName>>,
    /// Types that a pool's node class describes in its own way, such as with other kubelet settings: the pool has these
    /// instead of the shared ones of their name. Sorted by name.
    pub node_pool_variants: BTreeMap<NodePoolName, Vec<Arc<CatalogType>>>,
    /// Label keys the cloud adds to the well-known set.
    pub well_known_labels: List<Text>,
}

impl Catalog {
    /// The type of a name.
    pub fn get(&self, name: &InstanceTypeName) -> Option<&Arc<CatalogType>> {
        self.instance_types.iter().find(|entry| entry.name == *name)
    }

    /// The type of a name as a pool's node class describes it.
    pub fn get_of_pool(&self, pool: &NodePoolName, name: &InstanceTypeName) -> Option<&Arc<CatalogType>> {
        let variants = self.node_pool_variants.get(pool);
        variants.and_then(|own| named(own, name)).or_else(|| self.get(name))
    }

    /// The types a pool may use, as its node class describes them, in the catalogue's order.
    pub fn of_pool<'a>(&'a self, pool: &NodePoolName) -> impl Iterator<Item = &'a Arc<CatalogType>> {
        let offered = self.node_pool_instance_types.get(pool);
        let variants = self.node_pool_variants.get(pool);
        self.instance_types
            .iter()
            .filter(move |entry| offered.is_none_or(|names| names.contains(&entry.name)))
            .map(move |entry| variants.and_then(|own| named(own, &entry.name)).unwrap_or(entry))
    }
}

/// The type of a name, of types sorted by name.
fn named<'a>(sorted: &'a [Arc<CatalogType>], name: &InstanceTypeName) -> Option<&'a Arc<CatalogType>> {
    let at = sorted.binary_search_by(|entry| entry.name.cmp(name)).ok()?;
    sorted.get(at)
}

/// An instance type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CatalogType {
    /// Its name.
    pub name: InstanceTypeName,
    /// Labels its nodes can have.
    #[serde(default)]
    pub requirements: Vec<RequirementSpec>,
    /// All the machine has.
    #[serde(default)]
    pub capacity: ResourceList,
    /// What is not for pods.
    #[serde(default)]
    pub overhead: CatalogOverhead,
    /// Where and at what price it can be had.
    #[serde(default)]
    pub offerings: Vec<CatalogOffering>,
    /// How many volumes of each CSI driver it takes.
    #[serde(default, with = "crate::object::map", skip_serializing_if = "List::is_empty")]
    pub volume_attachment_limits: Map<u32>,
    /// Devices it comes with.
    #[serde(default, skip_serializing_if = "DynamicResources::is_empty")]
    pub dynamic_resources: DynamicResources,
}

impl CatalogType {
    /// The type as decisions compute with it, its labels entered in the vocabulary.
    pub fn instance_type(&self, vocabulary: &mut Vocabulary) -> InstanceType {
        TypeReader::default().read(self, vocabulary)
    }
}

/// Reads instance types. Most of their offerings differ in price only, so equal requirements are read once and shared.
#[derive(Debug, Default)]
pub struct TypeReader<'a> {
    labels: AlikeReader<'a>,
    known: FxHashMap<&'a [RequirementSpec], Requirements>,
    /// The offerings of the type before: types tend to be had in the same places.
    last: Vec<(&'a [RequirementSpec], Requirements)>,
}

impl<'a> TypeReader<'a> {
    /// The type as decisions compute with it, its labels entered in the vocabulary.
    pub fn read(&mut self, entry: &'a CatalogType, vocabulary: &mut Vocabulary) -> InstanceType {
        let limit = |(driver, limit): &(Text, u32)| (driver.clone(), usize::try_from(*limit).unwrap_or(usize::MAX));
        InstanceType {
            name: entry.name.0.clone(),
            requirements: self.labels.read(&entry.requirements, vocabulary),
            offerings: (0..)
                .zip(&entry.offerings)
                .map(|(at, offering)| offering.offering(self.requirements(at, &offering.requirements, vocabulary)))
                .collect(),
            capacity: entry.capacity.clone(),
            overhead: entry.overhead.overhead(),
            volume_limits: entry.volume_attachment_limits.iter().map(limit).collect(),
            is_capacity_overlaid: false,
        }
    }

    /// The requirements of the offering at a position.
    fn requirements(&mut self, at: usize, specs: &'a [RequirementSpec], vocabulary: &mut Vocabulary) -> Requirements {
        if let Some((_, known)) = self.last.get(at).filter(|(last, _)| *last == specs) {
            return known.clone();
        }
        let read = self.known.entry(specs);
        let read = read
            .or_insert_with(|| Requirements::from_specs(specs, vocabulary))
            .clone();
        match self.last.get_mut(at) {
            Some(last) => *last = (specs, read.clone()),
            None => self.last.push((specs, read.clone())),
        }
        read
    }
}

/// What of a machine is not for pods.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct CatalogOverhead {
    /// For the kubelet and the container runtime.
    pub kube_reserved: ResourceList,
    /// For the operating system.
    pub system_reserved: ResourceList,
    /// Kept free.
    pub eviction_threshold: ResourceList,
}

impl CatalogOverhead {
    fn overhead(&self) -> Overhead {
        Overhead {
            kube_reserved: self.kube_reserved.clone(),
            system_reserved: self.system_reserved.clone(),
            eviction_threshold: self.eviction_threshold.clone(),
        }
    }
}

/// One way to have an instance type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CatalogOffering {
    /// Zone, capacity type and the like.
    #[serde(default)]
    pub requirements: Vec<RequirementSpec>,
    /// USD per hour.
    pub price: Price,
    /// Whether it can be had now.
    #[serde(default)]
    pub available: bool,
    /// Instances left in the reservation; only for capacity type `reserved`.
    #[serde(default)]
    pub reservation_capacity: u32,
    /// Capacity that differs from the type's.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub capacity_override: ResourceList,
    /// Overhead that differs from the type's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead_override: Option<CatalogOverhead>,
}

impl CatalogOffering {
    fn offering(&self, requirements: Requirements) -> Offering {
        Offering {
            requirements,
            price: self.price,
            is_available: self.available,
            reservation_capacity: self.reservation_capacity,
            capacity_override: self.capacity_override.clone(),
            overhead_override: self.overhead_override.as_ref().map(CatalogOverhead::overhead),
            is_price_overlaid: false,
        }
    }
}

/// Devices an instance type comes with, before a driver has published them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct DynamicResources {
    /// The slices the drivers are expected to publish; only driver, pool name, devices and counters are read.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub resource_slice_templates: List<ResourceSliceSpec>,
    /// Devices that will turn out to share an attribute's value.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub attribute_bindings: List<AttributeBinding>,
}

impl DynamicResources {
    fn is_empty(&self) -> bool {
        self.resource_slice_templates.is_empty() && self.attribute_bindings.is_empty()
    }
}

/// Devices that will turn out to share an attribute's value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttributeBinding {
    /// The attribute.
    pub attribute: Text,
    /// The devices.
    pub devices: List<DeviceId>,
}

/// Names a device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceId {
    /// Its driver.
    pub driver: Text,
    /// Its pool.
    pub pool: Text,
    /// Its name.
    pub device: Text,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_field_of_an_instance_type_is_an_error() {
        let cases = [
            (
                r#"{ "name": "a", "volumeAtachmentLimits": {} }"#,
                "volumeAtachmentLimits",
            ),
            (r#"{ "name": "a", "overhead": { "kubeReserve": {} } }"#, "kubeReserve"),
            (
                r#"{ "name": "a", "offerings": [{ "price": "1", "avail": true }] }"#,
                "avail",
            ),
        ];
        for (json, field) in cases {
            let error = serde_json::from_str::<CatalogType>(json).unwrap_err().to_string();
            assert!(error.contains(&format!("unknown field `{field}`")), "{error}");
        }
    }
}
