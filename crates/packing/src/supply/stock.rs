//! What a catalogue comes to before any NodePool looks at it: its types as decisions compute with them.
//!
//! It follows from the catalogue alone, so it can be kept for as long as the catalogue stays.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use model::{
    instance_type::{InstanceType, Offering},
    object::{InstanceTypeName, NodePool, NodePoolName},
    requirement::Requirements,
    resources::ResourceList,
    snapshot::{Catalog, CatalogType, Snapshot, TypeReader},
    vocabulary::Vocabulary,
};
use rustc_hash::FxHashMap;

use super::labels::label_rules;

/// The types of a catalogue: every type once, for all pools that offer it, and what pools have in its place.
#[derive(Debug)]
pub(crate) struct Stock {
    catalog: Arc<Catalog>,
    /// The labels of the types, and no others.
    vocabulary: Vocabulary,
    shared: Vec<Ware>,
    variants: BTreeMap<NodePoolName, BTreeMap<Arc<str>, Ware>>,
}

/// An instance type and its shapes.
#[derive(Debug, Clone)]
pub(crate) struct Ware {
    pub(crate) entry: Arc<InstanceType>,
    pub(crate) shapes: Arc<[Shape]>,
}

/// What pods may use of a type, where some of its offerings can be had.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) allocatable: ResourceList,
    /// Something of it is less than nothing, so nothing fits.
    pub(crate) is_overdrawn: bool,
    /// The available offerings that have it, as positions among the type's.
    pub(crate) offerings: Vec<u32>,
}

impl Stock {
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let catalog = snapshot.shared_catalog();
        let mut vocabulary = Vocabulary::with_rules(label_rules(catalog));
        let mut reader = TypeReader::default();
        let mut read = |entry| Ware::new(Arc::new(reader.read(entry, &mut vocabulary)));
        let shared = catalog.instance_types.iter().map(|entry| read(entry)).collect();
        // Pools of one node class have the very same types: these are read once.
        let mut known: FxHashMap<*const CatalogType, Ware> = FxHashMap::default();
        let mut variants: BTreeMap<NodePoolName, BTreeMap<Arc<str>, Ware>> = BTreeMap::new();
        for (pool, entries) in &catalog.node_pool_variants {
            let wares = entries.iter().map(|entry| {
                let ware = known.entry(Arc::as_ptr(entry)).or_insert_with(|| read(entry));
                (Arc::clone(&ware.entry.name), ware.clone())
            });
            variants.insert(pool.clone(), wares.collect());
        }
        Self {
            variants,
            catalog: Arc::clone(catalog),
            vocabulary,
            shared,
        }
    }

    /// Whether it is what a snapshot's catalogue comes to.
    pub(crate) fn is_of(&self, snapshot: &Snapshot) -> bool {
        Arc::ptr_eq(&self.catalog, snapshot.shared_catalog())
    }

    /// The numbers of the labels of its types, to which a run adds its own.
    pub(crate) fn vocabulary(&self) -> Vocabulary {
        self.vocabulary.clone()
    }

    /// The types that a pool's node class offers, as it describes them, in the catalogue's order.
    pub(super) fn offered(&self, pool: &NodePool) -> Vec<Ware> {
        let pool = pool.name();
        let names = self.catalog.node_pool_instance_types.get(&pool);
        let names: Option<BTreeSet<_>> = names.map(|names| names.iter().map(InstanceTypeName::as_str).collect());
        let variants = self.variants.get(&pool);
        let is_offered = |ware: &&Ware| names.as_ref().is_none_or(|names| names.contains(&*ware.entry.name));
        let own = |ware: &Ware| {
            let variant = variants.and_then(|own| own.get(&ware.entry.name));
            variant.unwrap_or(ware).clone()
        };
        self.shared.iter().filter(is_offered).map(own).collect()
    }
}

impl Ware {
    pub(super) fn new(entry: Arc<InstanceType>) -> Self {
        let shapes = shapes(&entry);
        Self { entry, shapes }
    }
}

/// The shapes of a type: the base first, even if no offering has it.
pub(super) fn shapes(entry: &InstanceType) -> Arc<[Shape]> {
    let shape = |allocatable: ResourceList, offerings| {
        let is_overdrawn = allocatable.iter().any(|(_, quantity)| quantity.is_negative());
        Shape {
            allocatable,
            is_overdrawn,
            offerings,
        }
    };
    let has_one = entry.offerings.iter().all(|offering| !offering.has_own_shape());
    if has_one {
        let available = (0..)
            .zip(&entry.offerings)
            .filter(|(_, offering)| offering.is_available);
        let offerings = available.map(|(at, _)| at).collect();
        return Arc::new([shape(entry.allocatable(), offerings)]);
    }
    let position = |wanted: &Offering| {
        entry
            .offerings
            .iter()
            .position(|offering| std::ptr::eq(offering, wanted))
    };
    let rows = entry.allocatable_rows().into_iter().map(|row| {
        let offerings = row.offerings.into_iter().filter_map(position);
        shape(row.allocatable, offerings.map(|at| at as u32).collect())
    });
    rows.collect()
}

/// Which types can be launched with some requirements; of equal offerings one is looked at.
pub(crate) struct Launchable<'a> {
    requirements: &'a Requirements,
    vocabulary: &'a Vocabulary,
    /// By where the offering's requirements are in memory.
    offerings: FxHashMap<usize, bool>,
}

impl<'a> Launchable<'a> {
    pub(crate) fn new(requirements: &'a Requirements, vocabulary: &'a Vocabulary) -> Self {
        Self {
            requirements,
            vocabulary,
            offerings: FxHashMap::default(),
        }
    }

    /// Whether a node of the type that meets the requirements can be had, with room for a pod that asks for nothing.
    pub(crate) fn admits(&mut self, entry: &InstanceType, shapes: &[Shape]) -> bool {
        let Self {
            requirements,
            vocabulary,
            offerings,
        } = self;
        let mut is_compatible = |at: &u32| {
            let offering = &entry.offerings[*at as usize];
            let known = offerings.entry(offering.requirements.address());
            *known.or_insert_with(|| offering.is_compatible(requirements, vocabulary))
        };
        let mut is_had = |shape: &Shape| !shape.is_overdrawn && shape.offerings.iter().any(&mut is_compatible);
        entry.requirements.intersects(requirements, vocabulary) && shapes.iter().any(&mut is_had)
    }
}
