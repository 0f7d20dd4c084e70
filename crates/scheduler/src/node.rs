//! A node as the scheduler sees it.

use std::sync::Arc;

use model::{
    host_port::HostPort,
    object::{Labels, Node, Taints, Text},
    resources::ResourceList,
    snapshot::Snapshot,
};

use crate::{
    amounts::{CPU, Dictionary, MEMORY},
    class::{ClassId, PodClass},
    plugin::{
        node_resources_fit::Room,
        node_volume_limits::{Attached, Limits},
    },
};

/// A node that pods can be bound to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SchedNode {
    /// Its name.
    pub name: Text,
    /// Its labels.
    pub labels: Labels,
    /// Its taints.
    pub taints: Taints,
    /// What pods may use of it.
    pub allocatable: ResourceList,
    /// Cordoned.
    pub is_unschedulable: bool,
    /// How many volumes of each driver it attaches.
    pub volume_limits: Limits,
    /// Volumes attached without a pod that would say so.
    pub attached: Attached,
}

impl SchedNode {
    /// A node of a snapshot, with what its CSINode and its attachments say.
    pub fn of(snapshot: &Snapshot, node: &Node) -> Self {
        Self {
            name: node.metadata.name.clone(),
            labels: node.metadata.labels.clone(),
            taints: node.spec.taints.clone(),
            allocatable: node.status.allocatable.clone(),
            is_unschedulable: node.spec.unschedulable,
            volume_limits: volume_limits(snapshot, &node.metadata.name),
            attached: attached(snapshot, &node.metadata.name),
        }
    }
}

/// What a node's CSINode says.
pub(crate) fn volume_limits(snapshot: &Snapshot, node: &str) -> Limits {
    let published = snapshot.objects().csi_nodes.find("", node);
    let drivers = published.map_or(&[][..], |it| &it.spec.drivers);
    let limit = |driver: &model::object::CSINodeDriver| {
        let count = driver.allocatable.as_ref()?.count?;
        Some((driver.name.clone(), usize::try_from(count).unwrap_or(0)))
    };
    drivers.iter().filter_map(limit).collect()
}

/// What is attached to a node.
pub(crate) fn attached(snapshot: &Snapshot, node: &str) -> Attached {
    let attachments = snapshot.objects().volume_attachments.iter();
    let here = attachments.filter(|it| it.spec.node_name.as_ref().is_some_and(|name| name.as_str() == node));
    let volume = |it: &Arc<model::object::VolumeAttachment>| {
        let name = it.spec.source.persistent_volume_name.as_ref()?;
        let volume = snapshot.objects().persistent_volumes.find("", name)?;
        Some((
            it.spec.attacher.clone(),
            volume.spec.csi.as_ref()?.volume_handle.clone(),
        ))
    };
    here.filter_map(volume).collect()
}

/// A node and what runs on it.
#[derive(Debug, Clone)]
pub(crate) struct NodeState {
    pub(crate) node: SchedNode,
    allocatable: Vec<i64>,
    allowed_pods: i64,
    requested: Vec<i64>,
    non_zero: [i64; 2],
    pub(crate) pods: Vec<ClassId>,
    pub(crate) ports: Vec<HostPort>,
    pub(crate) attached: Attached,
    /// Room kept for pods that are nominated here, by their priority.
    reserved: Vec<Reservation>,
}

#[derive(Debug, Clone)]
struct Reservation {
    class: ClassId,
    priority: i32,
    requests: Arc<[(usize, i64)]>,
}

impl NodeState {
    pub(crate) fn new(node: SchedNode, dictionary: &mut Dictionary) -> Self {
        let allocatable = dictionary.dense(&node.allocatable);
        Self {
            requested: vec![0; allocatable.len()],
            allowed_pods: node.allocatable.amount("pods").value(),
            allocatable,
            non_zero: [0; 2],
            pods: Vec::new(),
            ports: Vec::new(),
            attached: node.attached.clone(),
            reserved: Vec::new(),
            node,
        }
    }

    /// Processors and memory: all there is, what is asked for, and what counts for scores.
    pub(crate) fn shares(&self) -> ([i64; 2], [i64; 2], [i64; 2]) {
        let pair = |amounts: &[i64]| [CPU, MEMORY].map(|at| amounts.get(at).copied().unwrap_or(0));
        (pair(&self.allocatable), pair(&self.requested), self.non_zero)
    }

    pub(crate) fn room(&self) -> Room<'_> {
        Room {
            allocatable: &self.allocatable,
            requested: &self.requested,
            allowed_pods: self.allowed_pods,
            pods: i64::try_from(self.pods.len()).unwrap_or(i64::MAX),
        }
    }

    /// What would be taken if every pod nominated here with at least this priority came.
    pub(crate) fn requested_with_nominated(&self, priority: i32) -> Option<(Vec<i64>, i64)> {
        if self.reserved.is_empty() {
            return None;
        }
        let mut requested = self.requested.clone();
        let mut pods = 0;
        for nominated in self.reserved.iter().filter(|it| it.priority >= priority) {
            add(&mut requested, &nominated.requests, 1);
            pods += 1;
        }
        (pods > 0).then_some((requested, pods))
    }

    pub(crate) fn bind(&mut self, id: ClassId, class: &PodClass) {
        add(&mut self.requested, &class.requests, 1);
        self.non_zero[0] += class.non_zero[0];
        self.non_zero[1] += class.non_zero[1];
        self.ports.extend(class.ports.iter().cloned());
        if let Ok(volumes) = &class.volumes {
            self.attached.extend(volumes.attachments.iter().cloned());
        }
        self.pods.push(id);
    }

    pub(crate) fn nominate(&mut self, id: ClassId, class: &PodClass) {
        self.reserved.push(Reservation {
            class: id,
            priority: class.priority,
            requests: class.requests.as_slice().into(),
        });
    }

    pub(crate) fn withdraw(&mut self, id: ClassId) {
        if let Some(at) = self.reserved.iter().position(|nominated| nominated.class == id) {
            self.reserved.remove(at);
        }
    }
}

fn add(amounts: &mut Vec<i64>, more: &[(usize, i64)], sign: i64) {
    for (at, amount) in more {
        if amounts.len() <= *at {
            amounts.resize(at + 1, 0);
        }
        if let Some(place) = amounts.get_mut(*at) {
            *place += sign * amount;
        }
    }
}
