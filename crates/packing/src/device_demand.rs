//! Which device claims pods bring, when device requests are looked at.

use std::collections::BTreeSet;

use devices::{Allocator, ClaimId, TypeId};
use model::{
    object::Uid,
    requirement::{Requirement, Requirements},
    snapshot::Snapshot,
    vocabulary::{KeyId, Vocabulary},
};

use crate::{
    demand::{DemandPod, Origin},
    index::Index,
    intake::{Intake, PLAIN},
    options::Options,
    supply::{StateNode, Template},
};

/// Everything a run needs to allocate devices.
#[derive(Debug)]
pub(crate) struct DeviceDemand {
    /// The allocator before the first pod.
    pub(crate) allocator: Allocator,
    /// What pods claim, by position in the intake's extras.
    pub(crate) claims: Vec<Result<Vec<ClaimId>, String>>,
    /// Instance types as the allocator numbers them, by position in the index.
    pub(crate) types: Vec<TypeId>,
    /// The types of NodePools, in the order they are offered: upstream searches them in that order, and what it remembers
    /// of one speaks for the next.
    pub(crate) template_types: Vec<Vec<TypeId>>,
    /// The same for claims that have a pod: what passed upstream's filter stands by the daemons it runs. In which order
    /// such groups come is chance there, the order of a map; here the one of the first type is first.
    pub(crate) filtered_types: Vec<Vec<TypeId>>,
    /// The types of nodes.
    pub(crate) node_types: Vec<TypeId>,
    /// What nodes fulfil, with all their labels.
    pub(crate) node_requirements: Vec<Requirements>,
}

impl DeviceDemand {
    /// None when nobody asks for devices, or nobody looks.
    pub(crate) fn new(
        snapshot: &Snapshot,
        options: &Options,
        pods: &[DemandPod],
        intake: &Intake,
        nodes: &[StateNode],
        vocabulary: &mut Vocabulary,
    ) -> Option<Self> {
        let is_asked = intake.extras.iter().any(|extra| extra.has_devices);
        if snapshot.settings().ignore_dra_requests || !is_asked {
            return None;
        }
        let initialized: BTreeSet<_> = nodes
            .iter()
            .filter(|node| node.is_initialized && node.node.is_some())
            .map(|node| node.name.clone())
            .collect();
        let moving: Vec<Uid> = pods
            .iter()
            .filter(|entry| matches!(entry.origin, Origin::Moving(_)))
            .map(|entry| entry.pod.uid().clone())
            .collect();
        let mut allocator = Allocator::new(snapshot, &initialized, moving, vocabulary);
        if options.is_matching_devices_by_name {
            allocator = allocator.matching_by_name();
        }
        let mut claims = vec![Ok(Vec::new()); intake.extras.len()];
        for (entry, pod) in intake.pods.iter().zip(pods) {
            if entry.extra != PLAIN && pod.pod.has_device_claims() {
                claims[entry.extra as usize] = allocator.claims_of(&pod.pod);
            }
        }
        let node_requirements = nodes
            .iter()
            .map(|node| {
                let labels = node.labels.iter().map(|(key, value)| (&**key, &**value));
                let mut requirements = Requirements::from_labels(labels, vocabulary);
                let host = vocabulary.intern_value(KeyId::HOSTNAME, &node.hostname);
                requirements.add(Requirement::one_of(KeyId::HOSTNAME, [host]), vocabulary);
                requirements
            })
            .collect();
        Some(Self {
            allocator,
            claims,
            types: Vec::new(),
            template_types: Vec::new(),
            filtered_types: Vec::new(),
            node_types: Vec::new(),
            node_requirements,
        })
    }

    /// Finds the types of the index, of the NodePools and of the nodes.
    pub(crate) fn number_types(&mut self, index: &Index, nodes: &[StateNode], templates: &[Template]) {
        let number = |name: &str| self.allocator.type_id(name).unwrap_or(TypeId::UNLISTED);
        self.types = index.types.iter().map(|entry| number(&entry.name)).collect();
        let of_pool = |template: &Template| template.types.iter().map(|it| number(&it.name)).collect();
        self.template_types = templates.iter().map(of_pool).collect();
        let by_daemons = |template: &Template| {
            let places = template.daemons.iter().flat_map(|group| &group.types);
            places.map(|at| number(&template.types[*at].name)).collect()
        };
        self.filtered_types = templates.iter().map(by_daemons).collect();
        let of_node = |node: &StateNode| node.offered.as_ref().map_or(TypeId::UNLISTED, |it| number(&it.name));
        self.node_types = nodes.iter().map(of_node).collect();
    }
}
