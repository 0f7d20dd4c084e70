//! What can be launched: the generated types, or those of a file in upstream's format.

use std::{collections::BTreeMap, sync::Arc};

use api::labels::{ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS, ZONE, kwok as labels};
use model::{
    instance_type::InstanceType,
    price::Price,
    quantity::Quantity,
    requirement::{Operator, RequirementSpec},
    resources::{ResourceList, ResourceName},
    snapshot::{CatalogOffering, CatalogType},
    vocabulary::Vocabulary,
};
use serde::Deserialize;

/// The types, in the order that breaks ties.
#[derive(Debug)]
pub struct Offers {
    types: Vec<Arc<CatalogType>>,
    shapes: BTreeMap<Arc<str>, (usize, InstanceType)>,
    vocabulary: Vocabulary,
}

/// A file of instance types that cannot be used. The first words are upstream's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OffersError {
    /// It is not JSON of the right shape.
    #[error(
        "could not parse JSON data: {0}; the file is a list of {{name, architecture, operatingSystems, resources, offerings}}"
    )]
    Unreadable(String),
    /// A price is no amount of money.
    #[error("could not parse JSON data: price {price} of instance type {instance_type} is not an amount of money")]
    Price {
        /// The type.
        instance_type: String,
        /// What was written.
        price: String,
    },
}

/// Pods on a node, unless the file says otherwise.
const DEFAULT_PODS: i64 = 110;

impl Offers {
    /// The 144 types that upstream generates.
    pub fn generated() -> Self {
        Self::of(catalogue::kwok::types())
    }

    /// The types of a file, named by `--instance-types-file-path`.
    pub fn from_json(text: &[u8]) -> Result<Self, OffersError> {
        let written: Vec<Written> =
            serde_json::from_slice(text).map_err(|error| OffersError::Unreadable(error.to_string()))?;
        let types: Result<Vec<_>, _> = written.iter().map(Written::describe).collect();
        Ok(Self::of(types?.into_iter().map(Arc::new).collect()))
    }

    fn of(types: Vec<Arc<CatalogType>>) -> Self {
        let mut vocabulary = Vocabulary::new();
        for key in well_known(&types) {
            vocabulary.add_well_known(&key);
        }
        let shape = |(at, entry): (usize, &Arc<CatalogType>)| {
            let shape = entry.instance_type(&mut vocabulary);
            (Arc::clone(&shape.name), (at, shape))
        };
        // Upstream finds the first of two types that bear one name.
        let shapes = types.iter().enumerate().rev().map(shape).collect();
        Self {
            types,
            shapes,
            vocabulary,
        }
    }

    /// All types.
    pub fn types(&self) -> &[Arc<CatalogType>] {
        &self.types
    }

    /// Label keys that become well-known by them: the provider's own, and every key that tells offerings apart.
    pub fn well_known_labels(&self) -> Vec<String> {
        well_known(&self.types)
    }

    pub(crate) fn get(&self, name: &str) -> Option<(&CatalogType, &InstanceType)> {
        let (at, shape) = self.shapes.get(name)?;
        self.types.get(*at).map(|described| (&**described, shape))
    }

    pub(crate) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }
}

fn well_known(types: &[Arc<CatalogType>]) -> Vec<String> {
    let offerings = types.iter().flat_map(|entry| &entry.offerings);
    let of_offerings = offerings.flat_map(|offering| offering.requirements.iter().map(|it| it.key.as_str()));
    let mut keys: Vec<String> = labels::WELL_KNOWN
        .iter()
        .copied()
        .chain(of_offerings)
        .map(str::to_owned)
        .collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// A type as the file has it. Unknown fields are ignored, as upstream does.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    #[serde(default, alias = "Name")]
    name: String,
    #[serde(default, alias = "Offerings")]
    offerings: Vec<WrittenOffering>,
    #[serde(default, alias = "Architecture")]
    architecture: String,
    #[serde(default, alias = "OperatingSystems")]
    operating_systems: Vec<String>,
    #[serde(default, alias = "Resources")]
    resources: ResourceList,
}

/// An offering as the file has it: in Go's capitals, for upstream gave the fields no names of their own. Whether it is
/// available is not asked: all of them are.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct WrittenOffering {
    #[serde(default, alias = "price")]
    price: f64,
    #[serde(default, alias = "requirements")]
    requirements: Vec<RequirementSpec>,
    #[serde(default, alias = "reservationCapacity")]
    reservation_capacity: u32,
}

impl Written {
    fn describe(&self) -> Result<CatalogType, OffersError> {
        let mut capacity = ResourceList::EMPTY;
        capacity.set(ResourceName::Pods, Quantity::from_units(DEFAULT_PODS));
        let offerings: Result<Vec<_>, _> = self.offerings.iter().map(|it| it.describe(&self.name)).collect();
        Ok(CatalogType {
            name: self.name.as_str().into(),
            requirements: self.requirements(),
            capacity: capacity.overlaid_with(&self.resources),
            overhead: catalogue::kwok::overhead(),
            offerings: offerings?,
            volume_attachment_limits: model::object::List::default(),
            dynamic_resources: model::snapshot::DynamicResources::default(),
        })
    }

    fn requirements(&self) -> Vec<RequirementSpec> {
        let amount = |name| self.resources.get(name).map_or_else(String::new, |it| it.to_string());
        let (cpu, memory) = (amount("cpu"), amount("memory"));
        let one = |key: &str, value: &str| RequirementSpec::new(key, Operator::In, &[value]);
        let some = |key: &str, values: Vec<String>| RequirementSpec {
            values,
            ..RequirementSpec::new(key, Operator::In, &[])
        };
        vec![
            one(INSTANCE_TYPE, &self.name),
            one(ARCH, &self.architecture),
            some(OS, self.operating_systems.clone()),
            some(ZONE, self.values_of_offerings(ZONE)),
            some(CAPACITY_TYPE, self.values_of_offerings(CAPACITY_TYPE)),
            one(labels::INSTANCE_SIZE, size(&self.name).unwrap_or(&cpu)),
            one(labels::INSTANCE_FAMILY, family(&self.name)),
            one(labels::INSTANCE_CPU, &cpu),
            one(labels::INSTANCE_MEMORY, &memory),
        ]
    }

    /// The values of a key over all offerings, each once, in the order they are first seen.
    fn values_of_offerings(&self, key: &str) -> Vec<String> {
        let mut values: Vec<String> = Vec::new();
        for offering in &self.offerings {
            let named = offering.requirements.iter().find(|requirement| requirement.key == key);
            for value in named.into_iter().flat_map(|requirement| &requirement.values) {
                if !values.contains(value) {
                    values.push(value.clone());
                }
            }
        }
        values
    }
}

impl WrittenOffering {
    fn describe(&self, instance_type: &str) -> Result<CatalogOffering, OffersError> {
        let price = Price::from_f64(self.price).ok_or_else(|| OffersError::Price {
            instance_type: instance_type.to_owned(),
            price: self.price.to_string(),
        })?;
        Ok(CatalogOffering {
            requirements: self.requirements.clone(),
            price,
            available: true,
            reservation_capacity: self.reservation_capacity,
            capacity_override: ResourceList::EMPTY,
            overhead_override: None,
        })
    }
}

/// The size in a name of AWS' form, such as `m5.2xlarge`.
fn size(name: &str) -> Option<&str> {
    let (family, size) = name.split_once('.')?;
    let is_word = !family.is_empty() && family.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_named = ["nano", "micro", "small", "medium", "large", "metal"].contains(&size);
    let is_counted = size
        .strip_suffix("xlarge")
        .is_some_and(|count| count.chars().all(|c| c.is_ascii_digit()));
    (is_word && (is_named || is_counted)).then_some(size)
}

/// What comes before the first dot or dash, or else the first letter.
fn family(name: &str) -> &str {
    match name.split_once(['.', '-']) {
        Some((family, _)) => family,
        None => name
            .char_indices()
            .nth(1)
            .map_or(name, |(second, _)| name.split_at(second).0),
    }
}

#[cfg(test)]
mod tests;
