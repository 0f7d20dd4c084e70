//! Which instance types a NodePool's requirements leave, by the catalogue of its cloud.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::labels::{ARCH, INSTANCE_TYPE};
use catalogue::{NodeClass, Source};
use model::{
    instance_type::InstanceType,
    object::{NodePool, NodePoolName, NodeSelectorRequirement},
    requirement::{Operator, Requirement, RequirementSpec, Requirements},
    snapshot::{Catalog, TypeReader},
    vocabulary::{KeyId, ValueId, Vocabulary},
};

/// What a cloud sells, and the numbers of its labels.
#[derive(Debug)]
pub(crate) struct Supply {
    pub(crate) vocabulary: Vocabulary,
    pub(crate) types: Vec<InstanceType>,
    /// The same, in their order, as node classes make them for NodePools.
    variants: BTreeMap<NodePoolName, Vec<InstanceType>>,
    /// The same as the planner reads it.
    pub(crate) catalog: Arc<Catalog>,
}

impl Supply {
    /// The catalogue of a cloud in a region; none if it is broken, which is somebody else's message.
    pub(crate) fn load<'p>(
        source: Source,
        region: Option<&str>,
        zones: &[String],
        pools: impl Iterator<Item = (&'p NodePool, Option<NodeClass>)> + Clone,
    ) -> Option<Self> {
        let mut loaded = catalogue::load(source, region, zones).ok()?;
        if source == Source::Aws && pools.clone().any(|(pool, _)| catalogue::asks_for_windows(pool)) {
            loaded = loaded.with_windows();
        }
        let loaded = loaded.of_classes(pools).ok()?;
        let mut vocabulary = Vocabulary::new();
        for label in &loaded.catalog.well_known_labels {
            vocabulary.add_well_known(label);
        }
        let mut reader = TypeReader::default();
        let types = loaded.catalog.instance_types.iter();
        let types = types.map(|entry| reader.read(entry, &mut vocabulary)).collect();
        let mut variants = BTreeMap::new();
        for pool in loaded.catalog.node_pool_variants.keys() {
            let own = loaded.catalog.of_pool(pool);
            let own: Vec<_> = own.map(|entry| reader.read(entry, &mut vocabulary)).collect();
            variants.insert(pool.clone(), own);
        }
        Some(Self {
            vocabulary,
            types,
            variants,
            catalog: Arc::new(loaded.catalog),
        })
    }

    /// The types as a NodePool's node class makes them.
    pub(crate) fn of_pool(&self, pool: &NodePool) -> &[InstanceType] {
        self.variants.get(&pool.name()).unwrap_or(&self.types)
    }

    /// The types of a NodePool of which a node that meets the requirements can be had.
    pub(crate) fn left<'a, 'r>(
        &'a self,
        pool: &NodePool,
        requirements: &'r Requirements,
        vocabulary: &'r Vocabulary,
    ) -> impl Iterator<Item = &'a InstanceType> + use<'a, 'r> {
        self.of_pool(pool)
            .iter()
            .filter(move |entry| admits(entry, requirements, vocabulary))
    }
}

/// Whether a node of a type that meets the requirements can be had.
pub(crate) fn admits(entry: &InstanceType, requirements: &Requirements, vocabulary: &Vocabulary) -> bool {
    entry.requirements.intersects(requirements, vocabulary) && entry.is_available_for(requirements, vocabulary)
}

/// A NodePool's requirements as the algebra reads them.
pub(crate) fn specs(requirements: &[NodeSelectorRequirement]) -> Vec<RequirementSpec> {
    requirements.iter().map(spec).collect()
}

/// One condition as the algebra reads it; what is no operator admits any value, as upstream has it.
pub(crate) fn spec(requirement: &NodeSelectorRequirement) -> RequirementSpec {
    let values: Vec<_> = requirement.values.iter().map(AsRef::as_ref).collect();
    RequirementSpec {
        min_values: requirement.min_values.and_then(|count| u32::try_from(count).ok()),
        ..RequirementSpec::new(
            &requirement.key,
            requirement.operator.parse().unwrap_or(Operator::Exists),
            &values,
        )
    }
}

/// Which labels a type can have of a key.
pub(crate) fn values<'a>(entry: &InstanceType, key: &str, vocabulary: &'a Vocabulary) -> Vec<&'a str> {
    let Some(key) = vocabulary.key(key) else {
        return Vec::new();
    };
    let requirement = entry
        .requirements
        .get(key)
        .filter(|requirement| !requirement.is_complement());
    let values = requirement.into_iter().flat_map(Requirement::values);
    values.map(|value| vocabulary.value_name(key, value)).collect()
}

/// The one label a type has of a key.
pub(crate) fn value<'a>(entry: &InstanceType, key: &str, vocabulary: &'a Vocabulary) -> Option<&'a str> {
    match values(entry, key, vocabulary)[..] {
        [value] => Some(value),
        _ => None,
    }
}

/// Whether requirements allow a kind of capacity.
pub(crate) fn allows(requirements: &Requirements, kind: ValueId, vocabulary: &Vocabulary) -> bool {
    let capacity = requirements.get(KeyId::CAPACITY_TYPE);
    capacity.is_none_or(|capacity| capacity.admits(kind, vocabulary))
}

/// Where the pool's condition on a key stands in its list.
pub(crate) fn position(pool: &NodePool, key: &str) -> Option<usize> {
    let requirements = &pool.spec.template.spec.requirements;
    requirements.iter().position(|requirement| *requirement.key == *key)
}

/// Whether the pool names machines one by one: whoever does that has chosen them.
pub(crate) fn names_machines(pool: &NodePool) -> bool {
    let listed = [
        INSTANCE_TYPE,
        api::labels::aws::INSTANCE_FAMILY,
        api::labels::azure::SKU_NAME,
        api::labels::azure::SKU_SERIES,
    ];
    let requirements = pool.spec.template.spec.requirements.iter();
    let mut positive = requirements.filter(|requirement| *requirement.operator == *"In");
    positive.any(|requirement| listed.contains(&&*requirement.key))
}

/// Architectures the requirements allow among types.
pub(crate) fn architectures<'a>(
    types: impl Iterator<Item = &'a InstanceType>,
    vocabulary: &'a Vocabulary,
) -> BTreeSet<&'a str> {
    types.filter_map(|entry| value(entry, ARCH, vocabulary)).collect()
}
