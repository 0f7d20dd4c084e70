//! A machine as EC2 describes it, and what a NodeClaim learns from it.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use api::{
    annotations,
    aws::{EC2NODECLASS_HASH_VERSION, EC2NodeClass},
    labels,
    labels::aws as aws_labels,
};
use aws_sdk_ec2::types::{
    CapacityReservationPreference, Instance as Described, InstanceLifecycleType, InstanceStateName, InstanceType,
    Placement,
};
use cloud::{Instance, Launched};
use jiff::Timestamp;
use model::{
    object::{Map, Text},
    requirement::Operator,
    resources::ResourceList,
    snapshot::CatalogType,
    vocabulary::Vocabulary,
};

use crate::{
    border::{MachineFacts, PlacementGroupFacts},
    launch::{EFA, Reservation, ReservationKind, tags},
};

/// Labels that only a reserved launch has, whatever its type offers.
pub(crate) const OF_RESERVATIONS: [&str; 3] = [
    aws_labels::CAPACITY_RESERVATION_ID,
    aws_labels::CAPACITY_RESERVATION_TYPE,
    aws_labels::CAPACITY_RESERVATION_INTERRUPTIBLE,
];

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) id: String,
    pub(crate) instance_type: String,
    pub(crate) zone: String,
    pub(crate) image: String,
    pub(crate) subnet: String,
    pub(crate) state: State,
    pub(crate) launched_at: Option<Timestamp>,
    pub(crate) capacity_type: &'static str,
    pub(crate) reservation: Option<Reservation>,
    pub(crate) tenancy: String,
    pub(crate) partition: Option<i32>,
    pub(crate) placement_group: Option<String>,
    pub(crate) security_groups: Vec<String>,
    pub(crate) efa: usize,
    pub(crate) tags: BTreeMap<String, String>,
}

/// How far a machine is in its life, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It runs, or could again.
    There,
    /// It is on its way out.
    ShuttingDown,
    /// It is gone, and only remembered.
    Terminated,
}

impl Machine {
    /// As DescribeInstances has it. `may_reserve` is the gate `ReservedCapacity`.
    pub(crate) fn of(it: &Described, may_reserve: bool) -> Self {
        let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
        let placement = it.placement();
        let state = match it.state().and_then(|state| state.name()) {
            Some(InstanceStateName::ShuttingDown) => State::ShuttingDown,
            Some(InstanceStateName::Terminated) => State::Terminated,
            _ => State::There,
        };
        let is_efa = |kind: &str| kind == "efa" || kind == "efa-only";
        let interfaces = it.network_interfaces().iter();
        let tenancy = placement.and_then(|it| it.tenancy()).map(|it| it.as_str().to_owned());
        let reservation = reservation(it).filter(|_| may_reserve);
        let launched_at = it.launch_time().and_then(|at| Timestamp::new(at.secs(), 0).ok());
        Self {
            id: text(it.instance_id()),
            instance_type: text(it.instance_type().map(InstanceType::as_str)),
            zone: text(placement.and_then(|it| it.availability_zone())),
            image: text(it.image_id()),
            subnet: text(it.subnet_id()),
            state,
            launched_at,
            capacity_type: capacity_type(it, reservation.is_some()),
            reservation,
            tenancy: tenancy
                .filter(|it| !it.is_empty())
                .unwrap_or_else(|| "default".to_owned()),
            partition: placement.and_then(Placement::partition_number).filter(|it| *it != 0),
            placement_group: placement
                .and_then(|it| it.group_id())
                .filter(|it| !it.is_empty())
                .map(str::to_owned),
            security_groups: it
                .security_groups()
                .iter()
                .filter_map(|it| it.group_id())
                .map(str::to_owned)
                .collect(),
            efa: interfaces.filter(|it| it.interface_type().is_some_and(is_efa)).count(),
            tags: it
                .tags()
                .iter()
                .map(|tag| (text(tag.key()), text(tag.value())))
                .collect(),
        }
    }

    pub(crate) fn provider_id(&self) -> String {
        format!("aws:///{}/{}", self.zone, self.id)
    }

    fn tag(&self, key: &str) -> Option<&str> {
        self.tags.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Whether it belongs to a cluster, as its tags say.
    pub(crate) fn is_of(&self, cluster: &str) -> bool {
        self.tag(tags::CLUSTER_NAME) == Some(cluster) && self.tags.contains_key(labels::NODEPOOL)
    }

    /// Whether it was launched for a claim. One that upstream launched knows the claim's name at most.
    pub(crate) fn is_for(&self, name: &str, uid: &str) -> bool {
        match (self.tag(tags::NODE_CLAIM_UID), self.tag(tags::NODE_CLAIM)) {
            (Some(of), _) => of == uid,
            (None, Some(of)) => of == name,
            (None, None) => true,
        }
    }

    /// The class it was launched from.
    pub(crate) fn node_class(&self) -> Option<&str> {
        self.tag(aws_labels::NODE_CLASS)
    }

    /// What drift asks.
    pub(crate) fn facts(&self) -> MachineFacts {
        MachineFacts {
            security_groups: self.security_groups.clone(),
            subnet: self.subnet.clone(),
            image: self.image.clone(),
            instance_type: self.instance_type.clone(),
            capacity_reservation: self.reservation.as_ref().map(|it| it.id.clone()),
            placement_group: self.placement_group.clone(),
        }
    }

    /// As the cloud lists it.
    pub(crate) fn instance(&self, launched: Launched) -> Instance {
        Instance {
            provider_id: self.provider_id().as_str().into(),
            claim: self.tag(tags::NODE_CLAIM).map(Into::into),
            claim_uid: self.tag(tags::NODE_CLAIM_UID).map(Into::into),
            launched_at: self.launched_at,
            is_terminating: self.state != State::There,
            launched,
        }
    }
}

fn reservation(it: &Described) -> Option<Reservation> {
    let preference = it
        .capacity_reservation_specification()?
        .capacity_reservation_preference();
    if preference != Some(&CapacityReservationPreference::CapacityReservationsOnly) {
        // It runs in an open reservation by chance, and was paid for as on-demand when it was planned.
        return None;
    }
    let lifecycle = it.instance_lifecycle().map(InstanceLifecycleType::as_str);
    Some(Reservation {
        id: it.capacity_reservation_id()?.to_owned(),
        kind: match lifecycle {
            Some("capacity-block") => ReservationKind::CapacityBlock,
            Some("interruptible-capacity-reservation") => ReservationKind::Interruptible,
            _ => ReservationKind::Default,
        },
    })
}

fn capacity_type(it: &Described, is_reserved: bool) -> &'static str {
    let is_spot = it.spot_instance_request_id().is_some_and(|id| !id.is_empty())
        || it.instance_lifecycle() == Some(&InstanceLifecycleType::Spot);
    if is_spot {
        labels::CAPACITY_TYPE_SPOT
    } else if is_reserved {
        labels::CAPACITY_TYPE_RESERVED
    } else {
        labels::CAPACITY_TYPE_ON_DEMAND
    }
}

/// What is known about where a machine came from. All of it at a launch; at other times what is still there.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub(crate) entry: Option<&'a Type>,
    pub(crate) class: Option<&'a EC2NodeClass>,
    pub(crate) placement_group: Option<&'a PlacementGroupFacts>,
    /// The partition asked for.
    pub(crate) partition: Option<&'a str>,
    /// The bundle is part of the class's hash.
    pub(crate) ca_bundle: Option<&'a str>,
}

/// What a node of a type has and is called, computed once for many machines.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Type {
    labels: Vec<(String, String)>,
    capacity: ResourceList,
    allocatable: ResourceList,
}

impl Type {
    pub(crate) fn of(entry: &CatalogType) -> Self {
        let shape = entry.instance_type(&mut Vocabulary::new());
        let single = entry
            .requirements
            .iter()
            .filter(|it| it.operator == Operator::In && it.values.len() == 1);
        let labels = single
            .filter(|it| !OF_RESERVATIONS.contains(&it.key.as_str()))
            .filter_map(|it| Some((it.key.clone(), it.values.first()?.clone())));
        Self {
            labels: labels.collect(),
            allocatable: shape.allocatable(),
            capacity: shape.capacity,
        }
    }
}

/// What a NodeClaim learns.
pub(crate) fn launched(machine: &Machine, origin: &Origin<'_>) -> Launched {
    let entry = origin.entry.cloned().unwrap_or_default();
    let has = |list: &ResourceList| -> ResourceList {
        let is_there = |name: &str| name != EFA || machine.efa > 0;
        let kept = list
            .iter()
            .filter(|(name, amount)| !amount.is_zero() && is_there(name.as_str()));
        kept.map(|(name, amount)| (name.clone(), amount)).collect()
    };
    Launched {
        provider_id: machine.provider_id().into(),
        image_id: machine.image.as_str().into(),
        capacity: has(&entry.capacity),
        allocatable: has(&entry.allocatable),
        labels: pairs(machine_labels(machine, &entry, origin)),
        annotations: pairs(class_annotations(origin)),
    }
}

fn pairs(map: BTreeMap<String, String>) -> Map<Text> {
    Map::from_pairs(map.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
}

fn machine_labels(machine: &Machine, entry: &Type, origin: &Origin<'_>) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = entry.labels.iter().cloned().collect();
    let mut set = |key: &str, value: &str| all.insert(key.to_owned(), value.to_owned());
    set(labels::INSTANCE_TYPE, &machine.instance_type);
    set(labels::ZONE, &machine.zone);
    set(labels::CAPACITY_TYPE, machine.capacity_type);
    set(aws_labels::INSTANCE_TENANCY, &machine.tenancy);
    let subnets = origin
        .class
        .and_then(|class| class.status.as_ref())
        .map(|status| &status.subnets);
    let here = subnets.into_iter().flatten().find(|subnet| subnet.zone == machine.zone);
    if let Some(zone_id) = here.and_then(|subnet| subnet.zone_id.as_ref()) {
        set(aws_labels::ZONE_ID, zone_id);
    }
    if let Some(Reservation { id, kind }) = &machine.reservation {
        set(aws_labels::CAPACITY_RESERVATION_ID, id);
        let is_block = *kind == ReservationKind::CapacityBlock;
        set(
            aws_labels::CAPACITY_RESERVATION_TYPE,
            if is_block { "capacity-block" } else { "default" },
        );
        let is_interruptible = *kind == ReservationKind::Interruptible;
        set(
            aws_labels::CAPACITY_RESERVATION_INTERRUPTIBLE,
            if is_interruptible { "true" } else { "false" },
        );
    }
    if let Some(group) = origin.placement_group {
        set(aws_labels::PLACEMENT_GROUP_ID, &group.id);
        if group.strategy == "partition" {
            // Empty until the machine says which one it got.
            set(
                aws_labels::PLACEMENT_GROUP_PARTITION,
                origin.partition.unwrap_or_default(),
            );
        }
    }
    if let Some(pool) = machine.tags.get(labels::NODEPOOL) {
        set(labels::NODEPOOL, pool);
    }
    all
}

fn class_annotations(origin: &Origin<'_>) -> BTreeMap<String, String> {
    let Some(class) = origin.class else {
        return BTreeMap::new();
    };
    let profile = class.status.as_ref().and_then(|status| status.instance_profile.clone());
    let entries = [
        (annotations::aws::EC2NODECLASS_HASH, class.hash(origin.ca_bundle)),
        (
            annotations::aws::EC2NODECLASS_HASH_VERSION,
            EC2NODECLASS_HASH_VERSION.to_owned(),
        ),
        (annotations::aws::INSTANCE_PROFILE_NAME, profile.unwrap_or_default()),
    ];
    entries.map(|(key, value)| (key.to_owned(), value)).into()
}
