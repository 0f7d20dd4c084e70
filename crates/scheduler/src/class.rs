//! Which pods are the same to the scheduler?
//!
//! Replicas differ in name and age only, so what is computed for one holds for all. A class is everything the plugins read of a
//! pod; what a part of it decides is kept by the cluster for all classes that share the part.

use std::sync::Arc;

use model::{
    host_port::HostPort,
    object::{ContainerStatus, Labels, List, Pod, PodSpec, Text, TopologySpreadConstraint},
    snapshot::Snapshot,
};

use rustc_hash::FxHashMap;

use crate::{
    amounts::{self, Dictionary},
    plugin::{
        Plugin,
        volume_binding::{self, PodVolumes},
    },
};

/// A class of pods within one [`Cluster`](crate::Cluster).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(u32);

impl ClassId {
    pub(crate) fn new(at: usize) -> Self {
        Self(u32::try_from(at).unwrap_or(u32::MAX))
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What tells one class from another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ClassKey {
    namespace: Text,
    labels: Labels,
    spec: Arc<PodSpec>,
    is_deleting: bool,
    /// Only for pods with volumes: the claims of ephemeral ones are named after the pod.
    name: Option<Text>,
    statuses: [List<ContainerStatus>; 2],
    /// Default constraints are deduced from the owner.
    controller: Option<model::object::Uid>,
}

impl ClassKey {
    pub(crate) fn of(pod: &Pod) -> Self {
        Self {
            namespace: pod.metadata.namespace.clone(),
            labels: pod.metadata.labels.clone(),
            spec: Arc::clone(&pod.spec),
            is_deleting: pod.metadata.is_deleting(),
            name: (!pod.spec.volumes.is_empty()).then(|| pod.metadata.name.clone()),
            statuses: [
                pod.status.container_statuses.clone(),
                pod.status.init_container_statuses.clone(),
            ],
            controller: pod.metadata.controller().map(|owner| owner.uid.clone()),
        }
    }
}

/// Classes by key; looked up only, never walked.
pub(crate) type Index = FxHashMap<ClassKey, ClassId>;

/// Everything the plugins read of a pod.
#[derive(Debug, Clone)]
pub(crate) struct PodClass {
    pub(crate) pod: Arc<Pod>,
    pub(crate) priority: i32,
    pub(crate) requests: Vec<(usize, i64)>,
    /// Processors and memory as asked for.
    pub(crate) asked: [i64; 2],
    /// Processors and memory as scores count them.
    pub(crate) non_zero: [i64; 2],
    pub(crate) ports: Vec<HostPort>,
    /// Its volumes, or why no node can have it.
    pub(crate) volumes: Result<PodVolumes, String>,
    /// Spread constraints: its own, or the cluster's.
    pub(crate) constraints: Vec<TopologySpreadConstraint>,
    /// Soft constraints count on nodes that lack some of their labels: only the scheduler's built-in ones do.
    pub(crate) is_system_spread: bool,
    /// Which pods nodes alone are the same to, by the cluster's count.
    pub(crate) alone: usize,
    /// Which pods are of the same size, by the cluster's count.
    pub(crate) shape: usize,
}

/// What never changes between a class and a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Static {
    pub(crate) refused: Option<Plugin>,
    pub(crate) intolerable: i64,
    pub(crate) preference: i64,
}

impl PodClass {
    pub(crate) fn new(snapshot: &Snapshot, pod: &Arc<Pod>, dictionary: &mut Dictionary) -> Self {
        let requests = pod.resources().requests();
        let volumes = if pod.spec.volumes.is_empty() {
            Ok(PodVolumes::default())
        } else {
            volume_binding::resolve(snapshot, pod)
        };
        Self {
            pod: Arc::clone(pod),
            priority: pod.spec.priority.unwrap_or(0),
            asked: [requests.amount("cpu").milli_value(), requests.amount("memory").value()],
            requests: dictionary.sparse(&requests),
            non_zero: amounts::non_zero(pod),
            ports: pod.spec.host_ports().collect(),
            volumes,
            constraints: pod.spec.topology_spread_constraints.to_vec(),
            is_system_spread: false,
            alone: 0,
            shape: 0,
        }
    }
}
