//! The NodeClaim a plan asks for, complete: what the pool's template says and what the plan narrowed down.

use std::sync::Arc;

use api::{
    annotations::{LAUNCH_ATTEMPT, NODEPOOL_HASH, NODEPOOL_HASH_VERSION},
    finalizers,
    karpenter::NODEPOOL_HASH_VERSION as HASH_VERSION,
    labels::{INSTANCE_TYPE, NODEPOOL, node_class_key},
};
use ledger::Id;
use model::{
    bitset::BitSet,
    object::{
        List, Map, Metadata, NodeClaim, NodeClaimSpec, NodePool, NodeSelectorRequirement, Object, OwnerReference, Pod,
        Resources, Text,
    },
    plan::{Launch, PlannedClaim, TypeOptions},
    requirement::{Requirement, RequirementSpec, Requirements},
    resources::ResourceList,
    snapshot::Catalog,
    vocabulary::{KeyId, Vocabulary},
};
use serde_json::Value;

use super::name::NameSeed;
use crate::records::Story;

/// A claim to be created.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Draft {
    /// Whose it is.
    pub pool: Arc<NodePool>,
    /// The claim, named.
    pub claim: NodeClaim,
    /// What it is named from, should the name be taken.
    pub seed: NameSeed,
    /// The pods it is for; a static pool's claims are for none.
    pub pods: Vec<Arc<Pod>>,
    /// The most its node may take of the pool's limits.
    pub most: ResourceList,
    /// What of the limits is given back once it is up, because it replaces something.
    pub freed: ResourceList,
    /// Why it is made.
    pub why: Why,
}

/// Why a claim is made, for the record.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Why {
    /// The decision it is a part of; none when it is one by itself.
    pub decision: Option<Id>,
    /// What the plan expects to be launched.
    pub launch: Option<Launch>,
    /// What else may be.
    pub options: TypeOptions,
    /// How the plan came about.
    pub story: Option<Arc<Story>>,
}

/// A pool that the API's own types cannot read, so that its drift hash cannot be told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("NodePool \"{pool}\" cannot be hashed: {cause}; no NodeClaims are made from it until it is mended")]
pub(crate) struct Unhashable {
    pool: Text,
    cause: String,
}

impl Draft {
    /// The claim for a planned node.
    pub(crate) fn planned(pool: &Arc<NodePool>, hash: &str, planned: &PlannedClaim, most: ResourceList) -> Self {
        let mut uids: Vec<_> = planned.pods.iter().map(|pod| pod.uid().clone()).collect();
        uids.sort_unstable();
        let seed = NameSeed::of([&pool.metadata.uid].into_iter().chain(&uids));
        let mut claim = of_template(pool, hash);
        claim.metadata.labels = planned.labels.clone();
        claim.metadata.annotations = merged(&claim.metadata.annotations, &planned.annotations);
        claim.spec.requirements = requirements(planned);
        claim.spec.resources = Resources {
            requests: planned.requests.clone(),
        };
        Self {
            pool: Arc::clone(pool),
            claim,
            seed,
            pods: planned.pods.clone(),
            most,
            freed: ResourceList::default(),
            why: Why {
                launch: planned.cheapest.clone(),
                options: planned.options.clone(),
                ..Why::default()
            },
        }
    }

    /// A claim of a static pool, named by its ordinal: any type of the pool will do, and it is for no pods in particular.
    pub(crate) fn of_static(pool: &Arc<NodePool>, hash: &str, ordinal: u32, catalog: &Catalog) -> Self {
        let seed = NameSeed::of([pool.metadata.uid.to_string(), ordinal.to_string()]);
        let mut claim = of_template(pool, hash);
        let mut vocabulary = Vocabulary::new();
        for label in &catalog.well_known_labels {
            vocabulary.add_well_known(label);
        }
        let specs: Vec<_> = claim
            .spec
            .requirements
            .iter()
            .filter_map(::disruption::requirement_spec)
            .collect();
        let mut requirements = Requirements::from_specs(&specs, &mut vocabulary);
        let labels = claim.metadata.labels.iter();
        let labels = Requirements::from_labels(labels.map(|(key, value)| (&**key, &**value)), &mut vocabulary);
        requirements.add_all(&labels, &vocabulary);
        claim.spec.requirements = requirements.to_specs(&vocabulary).iter().map(written).collect();
        claim.metadata.labels = merged(&claim.metadata.labels, &custom_labels(&requirements, &vocabulary));
        claim.metadata.name = seed.name(&pool.metadata.name, 0).into();
        Self {
            pool: Arc::clone(pool),
            claim,
            seed,
            pods: Vec::new(),
            most: ResourceList::default(),
            freed: ResourceList::default(),
            why: Why::default(),
        }
    }

    /// Takes the first name of the seed that is free.
    pub(crate) fn name_it(&mut self, is_taken: impl Fn(&str) -> bool) {
        let pool = &self.pool.metadata.name;
        let mut names = (0..).map(|attempt| self.seed.name(pool, attempt));
        if let Some(name) = names.find(|name| !is_taken(name)) {
            self.claim.metadata.name = name.into();
        }
    }

    /// Adds an annotation.
    pub(crate) fn annotate(&mut self, key: &str, value: &str) {
        let annotations = &mut self.claim.metadata.annotations;
        *annotations = merged(annotations, &Map::from_pairs(vec![(key.into(), value.into())]));
    }

    /// The instance types it names, sorted.
    pub(crate) fn types(&self) -> impl Iterator<Item = &Text> {
        let mut requirements = self.claim.spec.requirements.iter();
        let types = requirements.find(|requirement| *requirement.key == *INSTANCE_TYPE);
        types.into_iter().flat_map(|types| &types.values)
    }

    /// The claim as it is sent.
    pub(crate) fn document(&self) -> Value {
        let mut document = serde_json::to_value(self.claim.document()).unwrap_or_default();
        if let Value::Object(fields) = &mut document {
            fields.remove("status");
        }
        document
    }

    /// Whether a claim is the one this draft would make.
    pub(crate) fn is_made(&self, claim: &NodeClaim) -> bool {
        let owners = &claim.metadata.owner_references;
        let (theirs, ours) = (&claim.spec, &self.claim.spec);
        !claim.metadata.is_deleting()
            && (&theirs.requirements, &theirs.resources) == (&ours.requirements, &ours.resources)
            && owners.iter().any(|owner| owner.uid == self.pool.metadata.uid)
    }
}

/// The pool's drift hash, computed afresh: the annotation on the pool may be of yesterday.
pub(crate) fn hash(pool: &NodePool) -> Result<String, Unhashable> {
    let metadata = serde_json::json!({ "name": pool.metadata.name });
    let spec = serde_json::to_value(&pool.spec);
    let read = spec.and_then(|spec| serde_json::from_value(serde_json::json!({ "metadata": metadata, "spec": spec })));
    read.map(|pool: api::karpenter::NodePool| pool.hash())
        .map_err(|error| Unhashable {
            pool: pool.metadata.name.clone(),
            cause: error.to_string(),
        })
}

/// What every claim of a pool has: labels, annotations, owner and the template's spec, with the pool's requirements. What
/// must be on record before its launch is there from the beginning: our finalizer, and the number of the attempt.
pub(crate) fn of_template(pool: &NodePool, hash: &str) -> NodeClaim {
    let template = &pool.spec.template;
    let stamps = Map::from_pairs(vec![
        (NODEPOOL_HASH.into(), hash.into()),
        (NODEPOOL_HASH_VERSION.into(), HASH_VERSION.into()),
        (LAUNCH_ATTEMPT.into(), "1".into()),
    ]);
    let owner = OwnerReference {
        api_version: NodePool::API_VERSION.into(),
        kind: NodePool::KIND.into(),
        name: pool.metadata.name.clone(),
        uid: pool.metadata.uid.clone(),
        controller: None,
        block_owner_deletion: Some(true),
    };
    let metadata = Metadata {
        labels: merged(&template.metadata.labels, &own_labels(pool)),
        annotations: merged(&template.metadata.annotations, &stamps),
        owner_references: vec![owner].into(),
        finalizers: vec![finalizers::TERMINATION.into()].into(),
        ..Metadata::default()
    };
    let spec = NodeClaimSpec {
        taints: (*template.spec.taints).clone(),
        startup_taints: (*template.spec.startup_taints).clone(),
        requirements: template.spec.requirements.clone(),
        resources: Resources::default(),
        node_class_ref: template.spec.node_class_ref.clone(),
        termination_grace_period: template.spec.termination_grace_period,
        expire_after: template.spec.expire_after.clone(),
    };
    NodeClaim {
        metadata,
        spec,
        ..NodeClaim::default()
    }
}

/// The pool and its node class.
fn own_labels(pool: &NodePool) -> Map<Text> {
    let mut labels = vec![(NODEPOOL.into(), pool.metadata.name.clone())];
    if let Some(class) = &pool.spec.template.spec.node_class_ref {
        labels.push((node_class_key(&class.group, &class.kind).into(), class.name.clone()));
    }
    Map::from_pairs(labels)
}

/// A value for each key of the requirements that no cloud decides.
fn custom_labels(requirements: &Requirements, vocabulary: &Vocabulary) -> Map<Text> {
    let keys = requirements.iter().map(Requirement::key);
    let left_out = keys
        .filter(|key| vocabulary.is_well_known(*key))
        .chain([KeyId::HOSTNAME]);
    let left_out: BitSet = left_out.map(KeyId::bit).collect();
    let labels = requirements.labels(&left_out, vocabulary, 0).into_iter();
    let labels = labels.filter(|(_, value)| !value.is_empty());
    Map::from_pairs(labels.map(|(key, value)| (key.into(), value.into())).collect())
}

/// Both; the second wins.
fn merged(one: &Map<Text>, two: &Map<Text>) -> Map<Text> {
    Map::from_pairs(one.iter().chain(two).cloned().collect())
}

/// The plan's constraints and, sorted, the types it leaves open.
fn requirements(planned: &PlannedClaim) -> List<NodeSelectorRequirement> {
    let mut names: Vec<Text> = planned.options.iter().map(|name| name.as_str().into()).collect();
    names.sort_unstable();
    let types = NodeSelectorRequirement {
        key: INSTANCE_TYPE.into(),
        operator: "In".into(),
        values: names.into(),
        min_values: planned.min_types.and_then(|least| i32::try_from(least).ok()),
    };
    let mut all: Vec<_> = planned.constraints.iter().map(written).chain([types]).collect();
    all.sort_by(|a, b| a.key.cmp(&b.key));
    all.into()
}

/// A requirement as the API has it.
pub(crate) fn written(spec: &RequirementSpec) -> NodeSelectorRequirement {
    NodeSelectorRequirement {
        key: spec.key.as_str().into(),
        operator: spec.operator.as_str().into(),
        values: spec.values.iter().map(|value| value.as_str().into()).collect(),
        min_values: spec.min_values.and_then(|least| i32::try_from(least).ok()),
    }
}
