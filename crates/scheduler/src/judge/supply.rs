//! What the cloud may launch: the catalogue's types with what their nodes have in room and labels.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    instance_type::InstanceType,
    object::{InstanceTypeName, NodePoolName, Text},
    requirement::Requirements,
    resources::ResourceList,
    snapshot::Snapshot,
    vocabulary::Vocabulary,
};

use crate::amounts::Dictionary;

/// The catalogue, prepared.
#[derive(Debug)]
pub(super) struct Supply {
    pub(super) vocabulary: Vocabulary,
    pub(super) dictionary: Dictionary,
    pub(super) types: Vec<Type>,
    by_name: BTreeMap<InstanceTypeName, usize>,
    /// What pools have instead of the type of that name.
    variants: BTreeMap<(NodePoolName, InstanceTypeName), usize>,
    of_pool: BTreeMap<NodePoolName, BTreeSet<InstanceTypeName>>,
}

/// An instance type.
#[derive(Debug)]
pub(super) struct Type {
    pub(super) name: InstanceTypeName,
    pub(super) shape: InstanceType,
    pub(super) labels: Promised,
    pub(super) offerings: Vec<OfferingView>,
}

/// What is launched when an offering is taken.
#[derive(Debug)]
pub(super) struct OfferingView {
    pub(super) labels: Promised,
    pub(super) allocatable: Vec<i64>,
    pub(super) resources: ResourceList,
    pub(super) allowed_pods: i64,
}

/// Labels that requirements promise: the only value, or several of which one will be true.
#[derive(Debug, Default)]
pub(super) struct Promised {
    pub(super) known: BTreeMap<Text, Text>,
    pub(super) open: BTreeMap<Text, Vec<Text>>,
}

impl Supply {
    pub(super) fn new(snapshot: &Snapshot) -> Self {
        Self::of(snapshot, |_| true)
    }

    /// Only some of the types: preparing hundreds takes longer than most questions about a few.
    pub(super) fn of(snapshot: &Snapshot, is_wanted: impl Fn(&InstanceTypeName) -> bool) -> Self {
        let catalog = snapshot.catalog();
        let (mut vocabulary, mut dictionary) = (Vocabulary::new(), Dictionary::default());
        for key in &catalog.well_known_labels {
            vocabulary.add_well_known(key);
        }
        let shared = catalog.instance_types.iter().filter(|it| is_wanted(&it.name));
        let own = catalog.node_pool_variants.iter();
        let own = own.flat_map(|(pool, own)| own.iter().map(move |it| (pool, it)));
        let own = own.filter(|(_, it)| is_wanted(&it.name));
        let by_name: BTreeMap<_, _> = shared.clone().map(|it| it.name.clone()).zip(0..).collect();
        let variants = own.clone().map(|(pool, it)| (pool.clone(), it.name.clone()));
        let variants = variants.zip(shared.clone().count()..).collect();
        let built: Vec<_> = shared
            .chain(own.map(|(_, it)| it))
            .map(|entry| (entry.name.clone(), entry.instance_type(&mut vocabulary)))
            .collect();
        let types: Vec<_> = built
            .into_iter()
            .map(|(name, it)| Type::new(name, it, &vocabulary, &mut dictionary))
            .collect();
        let listed = catalog.node_pool_instance_types.iter();
        let of_pool = listed
            .map(|(pool, names)| {
                let names = names.iter().filter(|name| is_wanted(name));
                (pool.clone(), names.cloned().collect())
            })
            .collect();
        Self {
            vocabulary,
            dictionary,
            types,
            by_name,
            variants,
            of_pool,
        }
    }

    /// The type of a name, as a pool's node class describes it.
    pub(super) fn position(&self, pool: &NodePoolName, name: &InstanceTypeName) -> Option<usize> {
        let own = self.variants.get(&(pool.clone(), name.clone()));
        own.or_else(|| self.by_name.get(name)).copied()
    }

    /// Whether a pool's node class offers the type.
    pub(super) fn is_offered(&self, pool: &NodePoolName, name: &InstanceTypeName) -> bool {
        self.of_pool.get(pool).is_none_or(|names| names.contains(name))
    }
}

impl Type {
    fn new(name: InstanceTypeName, shape: InstanceType, vocabulary: &Vocabulary, dictionary: &mut Dictionary) -> Self {
        let rows = shape.allocatable_rows();
        let offerings = shape.offerings.iter().map(|offering| {
            let row = rows
                .iter()
                .find(|row| row.offerings.iter().any(|it| std::ptr::eq(*it, offering)));
            let allocatable = row.map_or(ResourceList::EMPTY, |row| row.allocatable.clone());
            OfferingView {
                labels: Promised::of(&offering.requirements, vocabulary),
                allowed_pods: allocatable.amount("pods").value(),
                allocatable: dictionary.dense(&allocatable),
                resources: allocatable,
            }
        });
        let (offerings, labels) = (offerings.collect(), Promised::of(&shape.requirements, vocabulary));
        Self {
            name,
            shape,
            labels,
            offerings,
        }
    }
}

impl Promised {
    pub(super) fn of(requirements: &Requirements, vocabulary: &Vocabulary) -> Self {
        let mut promised = Self::default();
        for requirement in requirements.iter().filter(|it| !it.is_complement()) {
            let key: Text = vocabulary.key_name(requirement.key()).into();
            let mut values: Vec<Text> = requirement
                .values()
                .map(|value| vocabulary.value_name(requirement.key(), value).into())
                .collect();
            values.sort();
            match &values[..] {
                [] => {}
                [value] => drop(promised.known.insert(key, value.clone())),
                _ => drop(promised.open.insert(key, values)),
            }
        }
        promised
    }
}
