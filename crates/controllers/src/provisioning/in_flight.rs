//! Claims that have not been launched yet, as the planner should see them: room that is on its way.
//!
//! Upstream plans nothing at all while any claim waits for its launch. We go on, and count such a claim as the machine it
//! will most likely become: the cheapest type it admits, with at least the room that every type it admits has. So its
//! pods find their place on it again, and no second machine is launched for them. Of its pool's limits it takes the most
//! it may become. A claim that is not launched within the launch timeout is about to be given up, and counts no longer.

use std::{collections::HashMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use model::{
    instance_type::{InstanceType, Offering},
    object::{List, Map, NodeClaim, NodePoolName, NodeSelectorRequirement, ProviderId, Text},
    price::Price,
    requirement::{Requirement, RequirementSpec, Requirements},
    resources::ResourceList,
    snapshot::{Catalog, Snapshot},
    vocabulary::Vocabulary,
};

/// After this long without a launch a claim is given up.
pub(crate) const LAUNCH_TIMEOUT: Duration = Duration::from_mins(5);

/// The snapshot with claims in flight counted as machines.
pub(crate) fn counted(snapshot: &Snapshot) -> Snapshot {
    let now = snapshot.taken_at();
    let claims = snapshot.objects().node_claims.iter();
    let waiting: Vec<_> = claims.filter(|claim| is_in_flight(claim, now)).collect();
    if waiting.is_empty() {
        return snapshot.clone();
    }
    let mut forecast = Forecast::new(snapshot.catalog());
    let stand_ins: Vec<_> = waiting
        .into_iter()
        .map(|claim| Arc::new(forecast.stand_in(claim)))
        .collect();
    snapshot.overlaid(|objects| objects.node_claims = objects.node_claims.with(stand_ins))
}

/// Whether a claim waits for its launch and may still get it.
pub(crate) fn is_in_flight(claim: &NodeClaim, now: Timestamp) -> bool {
    let age = claim
        .metadata
        .creation_timestamp
        .map(|created| now.duration_since(created));
    let is_young = age.is_none_or(|age| age.unsigned_abs() < LAUNCH_TIMEOUT || age.is_negative());
    claim.status.provider_id.is_none() && !claim.metadata.is_deleting() && is_young
}

/// What claims will become.
#[derive(Debug)]
pub(crate) struct Forecast<'a> {
    catalog: &'a Catalog,
    vocabulary: Vocabulary,
    types: HashMap<Text, InstanceType>,
    known: HashMap<(NodePoolName, List<NodeSelectorRequirement>), Outlook>,
}

/// What claims with the same requirements will become.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Outlook {
    /// Labels of the cheapest launch.
    labels: Vec<(Text, Text)>,
    /// What pods may use of it.
    allocatable: ResourceList,
    /// The most of each resource a launch may come to.
    pub most: ResourceList,
}

impl<'a> Forecast<'a> {
    /// By a catalogue.
    pub(crate) fn new(catalog: &'a Catalog) -> Self {
        let mut vocabulary = Vocabulary::new();
        for label in &catalog.well_known_labels {
            vocabulary.add_well_known(label);
        }
        Self {
            catalog,
            vocabulary,
            types: HashMap::new(),
            known: HashMap::new(),
        }
    }

    /// What a claim will become.
    pub(crate) fn outlook(&mut self, claim: &NodeClaim) -> &Outlook {
        let pool = claim.node_pool().unwrap_or_else(|| "".into());
        let key = (pool, claim.spec.requirements.clone());
        if !self.known.contains_key(&key) {
            let outlook = self.look(&key.0, &key.1);
            self.known.insert(key.clone(), outlook);
        }
        self.known.entry(key).or_default()
    }

    /// A claim with a machine that is expected.
    fn stand_in(&mut self, claim: &NodeClaim) -> NodeClaim {
        let outlook = self.outlook(claim);
        let mut stand_in = claim.clone();
        let labels = outlook.labels.iter().chain(&claim.metadata.labels).cloned();
        stand_in.metadata.labels = Map::from_pairs(labels.collect());
        let requests = &claim.spec.resources.requests;
        stand_in.status.allocatable = outlook.allocatable.clone();
        stand_in.status.allocatable.raise_to(requests);
        stand_in.status.capacity = outlook.most.clone();
        stand_in.status.capacity.raise_to(requests);
        let id = format!("in-flight:///{}", claim.metadata.name);
        stand_in.status.provider_id = Some(ProviderId::from(id.as_str()));
        stand_in
    }

    fn look(&mut self, pool: &NodePoolName, requirements: &List<NodeSelectorRequirement>) -> Outlook {
        let specs: Vec<RequirementSpec> = requirements.iter().filter_map(::disruption::requirement_spec).collect();
        let requirements = Requirements::from_specs(&specs, &mut self.vocabulary);
        for entry in self.catalog.of_pool(pool) {
            if !self.types.contains_key(entry.name.as_str()) {
                let read = entry.instance_type(&mut self.vocabulary);
                self.types.insert(Arc::clone(&read.name), read);
            }
        }
        let offered = self.catalog.of_pool(pool);
        let offered = offered.filter_map(|entry| self.types.get(entry.name.as_str()));
        outlook(offered, &requirements, &self.vocabulary)
    }
}

fn outlook<'t>(
    offered: impl Iterator<Item = &'t InstanceType>,
    requirements: &Requirements,
    vocabulary: &Vocabulary,
) -> Outlook {
    let mut outlook = Outlook::default();
    let mut cheapest: Option<(Price, &InstanceType, &Offering)> = None;
    for instance_type in offered {
        if !requirements.intersects(&instance_type.requirements, vocabulary) {
            continue;
        }
        let fitting = instance_type
            .offerings
            .iter()
            .filter(|offering| offering.is_launchable(vocabulary) && offering.is_compatible(requirements, vocabulary));
        let Some(offering) = fitting.min_by_key(|offering| offering.price) else {
            continue;
        };
        outlook.most.raise_to(&instance_type.capacity);
        if cheapest.is_none_or(|(price, ..)| offering.price < price) {
            cheapest = Some((offering.price, instance_type, offering));
        }
    }
    if let Some((_, instance_type, offering)) = cheapest {
        outlook.allocatable = instance_type.allocatable();
        let of_type = instance_type.requirements.iter();
        let labels = of_type.chain(offering.requirements.iter());
        outlook.labels = labels
            .filter_map(|requirement| label(requirement, vocabulary))
            .collect();
    }
    outlook
}

/// The label a requirement comes to, if there is but one value.
fn label(requirement: &Requirement, vocabulary: &Vocabulary) -> Option<(Text, Text)> {
    let mut values = requirement.values();
    let value = values.next().filter(|_| !requirement.is_complement())?;
    values.next().is_none().then(|| {
        let key = requirement.key();
        (
            vocabulary.key_name(key).into(),
            vocabulary.value_name(key, value).into(),
        )
    })
}
