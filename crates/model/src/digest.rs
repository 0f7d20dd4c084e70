//! A number for what was looked at: equal inputs, equal number, on every machine and in every version of the compiler.
//!
//! No hash of the standard library promises that. It is not for secrets: whoever wants two inputs of one number finds them.

use crate::{
    object::{Metadata, ResourceVersion},
    requirement::RequirementSpec,
    resources::ResourceList,
    snapshot::{Catalog, CatalogType, Settings},
};

/// A number that grows out of texts and numbers, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest(u64);

const SEED: u64 = 0x5851_f42d_4c95_7f2d;
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Default for Digest {
    fn default() -> Self {
        Self(SEED)
    }
}

impl Digest {
    /// Takes in a number.
    pub fn number(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number ^ SEED) * u128::from(FACTOR);
        let [low, high] = [product, product >> 64].map(|half| u64::try_from(half & u128::from(u64::MAX)).unwrap_or(0));
        // The state takes part once more, so that a product of zero forgets nothing.
        self.0 = low ^ high ^ self.0.rotate_left(23);
    }

    /// Takes in a text and its length, so that `ab`, `c` is not `a`, `bc`.
    pub fn text(&mut self, text: &str) {
        let (words, rest) = text.as_bytes().as_chunks::<8>();
        for word in words {
            self.number(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        self.number(u64::from_le_bytes(last));
        self.number(text.len() as u64);
    }

    /// The number.
    pub fn finish(self) -> u64 {
        let mut number = self.0;
        number ^= number >> 33;
        number = number.wrapping_mul(0xff51_afd7_ed55_8ccd);
        number ^= number >> 33;
        number = number.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        number ^ (number >> 33)
    }
}

/// The number of texts, in their order.
pub fn of_texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> u64 {
    let mut digest = Digest::default();
    for text in texts {
        digest.text(text);
    }
    digest.finish()
}

/// The number of one version of an object: who it is, and the server's version of it. Nothing inside is read.
pub fn of_version(metadata: &Metadata) -> u64 {
    let mut digest = Digest::default();
    if let Some(uid) = metadata.uid.number() {
        for half in [uid, uid >> 64] {
            digest.number(u64::try_from(half & u128::from(u64::MAX)).unwrap_or(0));
        }
    } else {
        digest.text(&metadata.uid.to_string());
        digest.text(&metadata.namespace);
        digest.text(&metadata.name);
    }
    match &metadata.resource_version {
        ResourceVersion::Number(version) => digest.number(*version),
        ResourceVersion::Opaque(version) => digest.text(version),
    }
    digest.finish()
}

/// The number of a catalogue: what every type is, where it can be had and at what price.
pub fn of_catalog(catalog: &Catalog) -> u64 {
    let mut digest = Digest::default();
    for entry in &catalog.instance_types {
        add_type(&mut digest, entry);
    }
    for (pool, names) in &catalog.node_pool_instance_types {
        digest.text(pool.as_str());
        digest.number(names.len() as u64);
        for name in names {
            digest.text(name.as_str());
        }
    }
    for (pool, variants) in &catalog.node_pool_variants {
        digest.text(pool.as_str());
        for entry in variants {
            add_type(&mut digest, entry);
        }
    }
    digest.finish()
}

/// The number of the options that change a decision.
pub fn of_settings(settings: &Settings) -> u64 {
    of_texts([format!("{settings:?}").as_str()])
}

fn add_type(digest: &mut Digest, entry: &CatalogType) {
    digest.text(entry.name.as_str());
    add_requirements(digest, &entry.requirements);
    add_resources(digest, &entry.capacity);
    let overhead = &entry.overhead;
    for part in [
        &overhead.kube_reserved,
        &overhead.system_reserved,
        &overhead.eviction_threshold,
    ] {
        add_resources(digest, part);
    }
    digest.number(entry.offerings.len() as u64);
    for offering in &entry.offerings {
        add_requirements(digest, &offering.requirements);
        digest.number(offering.price.picos());
        digest.number(u64::from(offering.available));
        digest.number(u64::from(offering.reservation_capacity));
        add_resources(digest, &offering.capacity_override);
    }
}

fn add_requirements(digest: &mut Digest, requirements: &[RequirementSpec]) {
    digest.number(requirements.len() as u64);
    for requirement in requirements {
        digest.text(&requirement.key);
        digest.text(requirement.operator.as_str());
        digest.number(requirement.values.len() as u64);
        for value in &requirement.values {
            digest.text(value);
        }
    }
}

fn add_resources(digest: &mut Digest, resources: &ResourceList) {
    digest.number(resources.len() as u64);
    for (name, quantity) in resources.iter() {
        digest.text(name.as_str());
        let nanos = quantity.nanos();
        for half in [nanos, nanos >> 64] {
            digest.number(u64::try_from(half & i128::from(u64::MAX)).unwrap_or(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_number_of_a_text_is_the_same_for_ever() {
        // Ids of decisions are made of it: another number would make strangers of records that were written before.
        assert_eq!(format!("{:016x}", of_texts(["delete", "general-x7k2p"])), KNOWN);
    }

    const KNOWN: &str = "e18f25752e48fc4b";

    #[test]
    fn where_one_text_ends_counts() {
        let numbers: BTreeSet<u64> = [
            vec!["ab", "c"],
            vec!["a", "bc"],
            vec!["abc"],
            vec!["abc", ""],
            vec!["c", "ab"],
            vec!["ab\0", "c"],
        ]
        .into_iter()
        .map(of_texts)
        .collect();
        assert_eq!(numbers.len(), 6);
    }

    #[test]
    fn a_hundred_thousand_names_have_as_many_numbers_of_48_bits() {
        let number = |at: u32| of_texts(["launch", &format!("general-{at:05x}")]) >> 16;
        let numbers: BTreeSet<u64> = (0..100_000).map(number).collect();
        assert_eq!(numbers.len(), 100_000);
    }

    #[test]
    fn another_version_of_an_object_is_another_number() {
        let version = |uid: &str, version: &str| {
            of_version(&Metadata {
                name: "a".into(),
                uid: uid.into(),
                resource_version: version.into(),
                ..Metadata::default()
            })
        };
        let uid = "0b5e7c41-aa90-42f3-8c59-681c9413edfd";
        let numbers: BTreeSet<u64> = [
            version(uid, "7"),
            version(uid, "8"),
            version("0b5e7c41-aa90-42f3-8c59-681c9413edfe", "7"),
            version("odd", "7"),
            version("", ""),
        ]
        .into();
        assert_eq!(numbers.len(), 5);
    }
}
