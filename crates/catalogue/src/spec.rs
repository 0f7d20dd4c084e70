//! The parts every catalogue is made of: conditions on labels, and offerings.

use model::{
    price::Price,
    quantity::Quantity,
    requirement::{Operator, RequirementSpec},
    resources::ResourceList,
    snapshot::CatalogOffering,
};

/// The label has one of the values; with none of them it is absent.
pub(crate) fn one_of(key: &str, values: &[&str]) -> RequirementSpec {
    match values {
        [] => absent(key),
        values => RequirementSpec::new(key, Operator::In, values),
    }
}

/// The label is absent. A well-known label that is not mentioned could still be asked for; one that is absent cannot.
pub(crate) fn absent(key: &str) -> RequirementSpec {
    RequirementSpec::new(key, Operator::DoesNotExist, &[])
}

/// The label has the value, or is absent when there is none.
pub(crate) fn maybe(key: &str, value: &str) -> RequirementSpec {
    if value.is_empty() {
        absent(key)
    } else {
        one_of(key, &[value])
    }
}

/// An offering of unlimited number.
pub(crate) fn offering(requirements: Vec<RequirementSpec>, price: Price, available: bool) -> CatalogOffering {
    CatalogOffering {
        requirements,
        price,
        available,
        reservation_capacity: 0,
        capacity_override: ResourceList::EMPTY,
        overhead_override: None,
    }
}

/// A list of resources without those there are none of.
pub(crate) fn resources<'a>(amounts: impl IntoIterator<Item = (&'a str, Quantity)>) -> ResourceList {
    let there = amounts.into_iter().filter(|(_, amount)| !amount.is_zero());
    there.map(|(name, amount)| (name.into(), amount)).collect()
}

/// Mebibytes.
pub(crate) fn mebibytes(mebibytes: i64) -> Quantity {
    Quantity::from_bytes(mebibytes << 20)
}
