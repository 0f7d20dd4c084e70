//! What selectors can see of a device.

use cel::common::{
    types::{CelBool, CelInt, CelString},
    value::Val,
};
use model::object::{Device, DeviceAttribute, DeviceCapacity, Map, Text};

use super::{
    semver::Version,
    value::{Amount, Domains, Release, Table},
};

/// What selectors can see of a device. Devices with equal profiles match the same expressions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Profile {
    driver: Text,
    attributes: Map<DeviceAttribute>,
    capacity: Map<DeviceCapacity>,
    allows_multiple_allocations: bool,
}

impl Profile {
    pub(crate) fn new(driver: &Text, device: &Device) -> Self {
        Self {
            driver: driver.clone(),
            attributes: device.attributes.clone(),
            capacity: device.capacity.clone(),
            allows_multiple_allocations: device.allow_multiple_allocations.unwrap_or_default(),
        }
    }

    /// The variable `device` of an expression. An attribute of no supported kind makes every expression fail, so that
    /// a pod waits for a better slice instead of landing in the wrong place.
    pub(super) fn value(&self) -> Result<Table, String> {
        let mut attributes = Domains::new();
        for (name, attribute) in &self.attributes {
            let value = scalar(attribute).map_err(|reason| format!("attribute {name}: {reason}"))?;
            self.file(&mut attributes, name, value);
        }
        let mut capacity = Domains::new();
        for (name, amount) in &self.capacity {
            self.file(&mut capacity, name, Box::new(Amount(amount.value)));
        }
        let fields: [(&str, Box<dyn Val>); 4] = [
            ("driver", Box::new(CelString::from(self.driver.to_string()))),
            (
                "allowMultipleAllocations",
                Box::new(CelBool::from(self.allows_multiple_allocations)),
            ),
            ("attributes", Box::new(Table::of_domains(attributes))),
            ("capacity", Box::new(Table::of_domains(capacity))),
        ];
        Ok(Table::new(fields.map(|(name, value)| (name.to_owned(), value))))
    }

    /// Puts a value where its qualified name says; a name without a domain is in the driver's.
    fn file(&self, domains: &mut Domains, name: &str, value: Box<dyn Val>) {
        let (domain, id) = name.split_once('/').unwrap_or((&self.driver, name));
        let values = domains.entry(domain.to_owned()).or_default();
        values.push((id.to_owned(), value));
    }
}

fn scalar(attribute: &DeviceAttribute) -> Result<Box<dyn Val>, String> {
    if let Some(int) = attribute.int {
        return Ok(Box::new(CelInt::from(int)));
    }
    if let Some(bool) = attribute.bool {
        return Ok(Box::new(CelBool::from(bool)));
    }
    if let Some(string) = &attribute.string {
        return Ok(Box::new(CelString::from(string.to_string())));
    }
    let Some(version) = &attribute.version else {
        return Err("unsupported attribute value".to_owned());
    };
    let version = Version::parse(version).ok_or_else(|| format!("parse semantic version: {version:?}"))?;
    Ok(Box::new(Release(version)))
}
