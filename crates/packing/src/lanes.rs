//! Which place in a vector belongs to which resource, and in what unit: resource arithmetic on plain integers.
//!
//! Only resources that some pod or daemon asks for have a lane. CPU is counted in nano-cores, bytes in bytes, everything
//! else in thousandths. What does not divide is rounded against the pod (asked for up, offered down), so a plan never
//! relies on a fraction of a byte; amounts beyond 2^61 count as 2^61.

use model::{
    quantity::Quantity,
    resources::{ResourceList, ResourceName},
};

const LARGEST: i128 = 1 << 61;

/// The resources of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lanes {
    names: Vec<ResourceName>,
}

impl Default for Lanes {
    fn default() -> Self {
        Self {
            names: vec![ResourceName::Cpu, ResourceName::Memory, ResourceName::Pods],
        }
    }
}

impl Lanes {
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn names(&self) -> &[ResourceName] {
        &self.names
    }

    /// Gives every resource of the list a lane.
    pub(crate) fn cover(&mut self, list: &ResourceList) {
        for (name, _) in list.iter() {
            if !self.names.contains(name) {
                self.names.push(name.clone());
            }
        }
    }

    /// What is asked for, rounded up.
    pub(crate) fn asked(&self, list: &ResourceList) -> Vec<i64> {
        let amount = |name| list.get_named(name).unwrap_or(Quantity::ZERO);
        self.names.iter().map(|name| asked(name, amount(name))).collect()
    }

    /// What is offered, rounded down, at the end of a table.
    pub(crate) fn offered_into(&self, list: &ResourceList, row: &mut Vec<i64>) {
        let amount = |name| list.get_named(name).unwrap_or(Quantity::ZERO);
        row.extend(self.names.iter().map(|name| offered(name, amount(name))));
    }
}

pub(crate) fn asked(name: &ResourceName, quantity: Quantity) -> i64 {
    -scaled(-quantity.nanos(), unit(name))
}

pub(crate) fn offered(name: &ResourceName, quantity: Quantity) -> i64 {
    scaled(quantity.nanos(), unit(name))
}

/// A lane's amount in nano-units.
pub(crate) fn nanos(name: &ResourceName, amount: i64) -> i128 {
    i128::from(amount) * unit(name)
}

fn scaled(nanos: i128, unit: i128) -> i64 {
    i64::try_from(nanos.div_euclid(unit).clamp(-LARGEST, LARGEST)).unwrap_or(i64::MAX)
}

/// Nano-units in one unit of the lane.
fn unit(name: &ResourceName) -> i128 {
    match name {
        ResourceName::Cpu => 1,
        ResourceName::Memory | ResourceName::EphemeralStorage => 1_000_000_000,
        _ if name.is_huge_pages() => 1_000_000_000,
        _ => 1_000_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_rounded_against_the_pod() {
        let half_a_byte: Quantity = "500m".parse().unwrap();
        let memory = ResourceName::Memory;
        assert_eq!((asked(&memory, half_a_byte), offered(&memory, half_a_byte)), (1, 0));
        let nano: Quantity = "1n".parse().unwrap();
        assert_eq!(
            (asked(&ResourceName::Cpu, nano), offered(&ResourceName::Cpu, nano)),
            (1, 1)
        );
    }

    #[test]
    fn the_largest_limit_of_the_benchmark_has_a_number_of_its_own() {
        let limit: Quantity = "10000000Gi".parse().unwrap();
        assert_eq!(offered(&ResourceName::Memory, limit), 10_000_000 << 30);
    }
}
