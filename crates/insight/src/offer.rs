//! What can be bought, where, and for how much an hour: the offers of a catalogue, or those of them a NodePool allows.

use std::{collections::BTreeMap, sync::Arc};

use api::labels::{ARCH, CAPACITY_TYPE, ZONE, aws, azure};
use model::{
    instance_type::{InstanceType, Offering},
    object::{Labels, NodePool, Text},
    requirement::{Operator, RequirementSpec, Requirements},
    snapshot::{Snapshot, TypeReader},
    vocabulary::Vocabulary,
};
use packing::supply::{Offered, template_requirements};
use serde::Serialize;

use crate::Dollars;

/// One way to have an instance type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Offer {
    /// Which type.
    pub instance_type: String,
    /// Its cores.
    pub vcpu: u64,
    /// Its memory, as the cloud has it where the catalogue says so; nodes see somewhat less.
    pub memory_mib: u64,
    /// Its GPUs, whoever made them.
    pub gpu: u64,
    /// `amd64` or `arm64`; empty where the catalogue does not say.
    pub arch: String,
    /// `spot`, `on-demand` or `reserved`.
    pub capacity_type: String,
    /// Where.
    pub zone: String,
    /// For how much.
    pub usd_h: Dollars,
    /// Whether the cloud is believed to have it.
    pub available: bool,
}

/// The offers whose nodes would have labels that are wanted, the cheapest first; of a NodePool with its overlays, and only
/// what its requirements leave.
pub fn offers(snapshot: &Snapshot, pool: Option<&NodePool>, is_wanted: impl Fn(&Labels) -> bool) -> Vec<Offer> {
    let mut found = match pool {
        Some(pool) => of_pool(snapshot, pool, &is_wanted),
        None => of_catalogue(snapshot, &is_wanted),
    };
    found.sort_by(|a, b| key(a).cmp(&key(b)));
    found
}

fn key(offer: &Offer) -> (Dollars, &str, &str, &str) {
    (offer.usd_h, &offer.instance_type, &offer.capacity_type, &offer.zone)
}

fn of_catalogue(snapshot: &Snapshot, is_wanted: &impl Fn(&Labels) -> bool) -> Vec<Offer> {
    let mut vocabulary = Vocabulary::new();
    let mut reader = TypeReader::default();
    let mut found = Vec::new();
    for entry in &snapshot.catalog().instance_types {
        let it = reader.read(entry, &mut vocabulary);
        found.extend(of_type(&it, it.offerings.iter(), &vocabulary, is_wanted));
    }
    found
}

fn of_pool(snapshot: &Snapshot, pool: &NodePool, is_wanted: &impl Fn(&Labels) -> bool) -> Vec<Offer> {
    let mut offered = Offered::of(snapshot);
    let asked = template_requirements(pool, &mut offered.vocabulary);
    let Offered { vocabulary, types, .. } = offered;
    let types = types.get(&pool.name()).into_iter().flat_map(BTreeMap::values);
    let meets = |requirements: &Requirements| requirements.intersects(&asked, &vocabulary);
    let of_type = |it: &Arc<InstanceType>| {
        let allowed = it.offerings.iter().filter(|offering| meets(&offering.requirements));
        of_type(it, allowed, &vocabulary, is_wanted)
    };
    types.filter(|it| meets(&it.requirements)).flat_map(of_type).collect()
}

fn of_type<'a>(
    it: &InstanceType,
    offerings: impl Iterator<Item = &'a Offering>,
    vocabulary: &Vocabulary,
    is_wanted: &impl Fn(&Labels) -> bool,
) -> Vec<Offer> {
    let of_type = labels(&it.requirements.to_specs(vocabulary));
    let amount = |name: &str| u64::try_from(it.capacity.amount(name).milli_value() / 1000).unwrap_or_default();
    let seen = u64::try_from(it.capacity.amount("memory").value() >> 20).unwrap_or_default();
    let offer = |offering: &Offering| {
        let mut all = of_type.clone();
        all.extend(labels(&offering.requirements.to_specs(vocabulary)));
        let value = |key: &str| all.get(key).cloned().unwrap_or_default();
        let offer = Offer {
            instance_type: it.name.to_string(),
            vcpu: amount("cpu"),
            memory_mib: MEMORY
                .iter()
                .find_map(|label| all.get(*label)?.parse().ok())
                .unwrap_or(seen),
            gpu: GPUS.iter().map(|name| amount(name)).sum(),
            arch: value(ARCH),
            capacity_type: value(CAPACITY_TYPE),
            zone: value(ZONE),
            usd_h: offering.price.into(),
            available: offering.is_launchable(vocabulary),
        };
        let labels: Labels = all
            .into_iter()
            .map(|(key, value)| (Text::from(key), Text::from(value)))
            .collect();
        is_wanted(&labels).then_some(offer)
    };
    offerings.filter_map(offer).collect()
}

/// Labels with what a cloud says of its machine's memory, in MiB.
const MEMORY: [&str; 2] = [aws::INSTANCE_MEMORY, azure::SKU_MEMORY];
const GPUS: [&str; 2] = ["nvidia.com/gpu", "amd.com/gpu"];

/// The labels that requirements fix; of one with several values the first.
fn labels(specs: &[RequirementSpec]) -> BTreeMap<String, String> {
    let fixed = specs.iter().filter(|spec| spec.operator == Operator::In);
    fixed
        .filter_map(|spec| Some((spec.key.clone(), spec.values.first()?.clone())))
        .collect()
}
