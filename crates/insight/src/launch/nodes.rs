//! The nodes of a plan: those to launch, and those that exist and get pods.

use api::labels::{CAPACITY_TYPE, INSTANCE_TYPE, ZONE};
use model::{
    object::{Labels, Pod},
    plan::{Plan, PlannedClaim, PlannedNode},
    price::Price,
    resources::ResourceList,
    snapshot::Snapshot,
    vocabulary::Vocabulary,
};
use serde::{Deserialize, Serialize};

use crate::usd;

/// A node to launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewNode {
    /// Counted from 1.
    pub number: usize,
    /// Whose template it is made from.
    pub node_pool: String,
    /// The cheapest launch; absent when nothing can be launched at once.
    pub instance_type: Option<String>,
    /// Its zone.
    pub zone: Option<String>,
    /// Its kind of capacity.
    pub capacity_type: Option<String>,
    /// What it costs an hour.
    #[serde(with = "usd::maybe")]
    pub usd_h: Option<Price>,
    /// How many instance types would do, the cheapest included.
    pub instance_types: usize,
    /// How full it will be.
    pub room: Room,
    /// In the order they were placed.
    pub pods: Vec<String>,
}

/// What is asked of a node, DaemonSets included, and what it has for pods.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Room {
    /// Millicores asked for.
    pub cpu_m_requested: u64,
    /// Millicores there.
    pub cpu_m_allocatable: u64,
    /// MiB asked for.
    pub memory_mib_requested: u64,
    /// MiB there.
    pub memory_mib_allocatable: u64,
}

/// A node that exists, or is on its way, and gets pods.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExistingNode {
    /// Its name.
    pub name: String,
    /// Its pool.
    pub node_pool: Option<String>,
    /// Its type.
    pub instance_type: Option<String>,
    /// Its zone.
    pub zone: Option<String>,
    /// Its kind of capacity.
    pub capacity_type: Option<String>,
    /// False for a claim whose node has not registered.
    pub is_registered: bool,
    /// How full it is.
    pub before: Room,
    /// How full it will be.
    pub after: Room,
    /// The pods it gets.
    pub pods: Vec<String>,
}

impl Room {
    fn new(requested: &ResourceList, allocatable: &ResourceList) -> Self {
        let cpu = |list: &ResourceList| u64::try_from(list.amount("cpu").milli_value()).unwrap_or_default();
        let memory = |list: &ResourceList| u64::try_from(list.amount("memory").value() >> 20).unwrap_or_default();
        Self {
            cpu_m_requested: cpu(requested),
            cpu_m_allocatable: cpu(allocatable),
            memory_mib_requested: memory(requested),
            memory_mib_allocatable: memory(allocatable),
        }
    }
}

impl Room {
    /// Requested and allocatable millicores.
    pub fn cpu(&self) -> (u64, u64) {
        (self.cpu_m_requested, self.cpu_m_allocatable)
    }

    /// Requested and allocatable MiB.
    pub fn memory(&self) -> (u64, u64) {
        (self.memory_mib_requested, self.memory_mib_allocatable)
    }

    /// Counts another node's in.
    pub fn add(&mut self, other: &Self) {
        self.cpu_m_requested += other.cpu_m_requested;
        self.cpu_m_allocatable += other.cpu_m_allocatable;
        self.memory_mib_requested += other.memory_mib_requested;
        self.memory_mib_allocatable += other.memory_mib_allocatable;
    }
}

pub(super) fn new(plan: &Plan, snapshot: &Snapshot) -> Vec<NewNode> {
    let mut vocabulary = Vocabulary::default();
    let claims = plan.claims.iter().enumerate();
    claims
        .map(|(at, claim)| new_node(at + 1, claim, snapshot, &mut vocabulary))
        .collect()
}

fn new_node(number: usize, claim: &PlannedClaim, snapshot: &Snapshot, vocabulary: &mut Vocabulary) -> NewNode {
    let launch = claim.cheapest.as_ref();
    let entry = launch.and_then(|launch| snapshot.catalog().get_of_pool(&claim.node_pool, &launch.instance_type));
    let allocatable = entry.map(|entry| entry.instance_type(vocabulary).allocatable());
    NewNode {
        number,
        node_pool: claim.node_pool.to_string(),
        instance_type: launch.map(|launch| launch.instance_type.to_string()),
        zone: launch.and_then(|launch| launch.zone.as_ref()).map(ToString::to_string),
        capacity_type: launch
            .and_then(|launch| launch.capacity_type.as_ref())
            .map(ToString::to_string),
        usd_h: launch.map(|launch| launch.price),
        instance_types: claim.options.len(),
        room: Room::new(&claim.requests, &allocatable.unwrap_or_default()),
        pods: names(&claim.pods),
    }
}

pub(super) fn existing(plan: &Plan, snapshot: &Snapshot) -> Vec<ExistingNode> {
    let with_pods = plan.existing.iter().filter(|node| !node.pods.is_empty());
    with_pods.map(|node| existing_node(node, snapshot)).collect()
}

fn existing_node(planned: &PlannedNode, snapshot: &Snapshot) -> ExistingNode {
    let node = snapshot.node(&planned.name);
    let claim = snapshot.objects().node_claims.find("", planned.name.as_str());
    let none = Labels::default();
    let labels = match (node, claim) {
        (Some(node), _) => &node.metadata.labels,
        (None, Some(claim)) => &claim.metadata.labels,
        (None, None) => &none,
    };
    let allocatable = match (node, claim) {
        (Some(node), _) => node.status.allocatable.clone(),
        (None, Some(claim)) => claim.status.allocatable.clone(),
        (None, None) => ResourceList::default(),
    };
    let bound = snapshot.pods_on_node(&planned.name).filter(|pod| !pod.is_terminal());
    let before = total(bound.map(AsRef::as_ref));
    let mut after = before.clone();
    after.add(&total(planned.pods.iter().map(AsRef::as_ref)));
    let label = |key: &str| labels.get(key).map(ToString::to_string);
    ExistingNode {
        name: planned.name.to_string(),
        node_pool: label(api::labels::NODEPOOL),
        instance_type: label(INSTANCE_TYPE),
        zone: label(ZONE),
        capacity_type: label(CAPACITY_TYPE),
        is_registered: node.is_some(),
        before: Room::new(&before, &allocatable),
        after: Room::new(&after, &allocatable),
        pods: names(&planned.pods),
    }
}

fn total<'a>(pods: impl Iterator<Item = &'a Pod>) -> ResourceList {
    let mut total = ResourceList::default();
    for pod in pods {
        total.add(&pod.resources().requests());
    }
    total
}

pub(super) fn names(pods: &[std::sync::Arc<Pod>]) -> Vec<String> {
    pods.iter().map(|pod| pod.metadata.key().to_string()).collect()
}
