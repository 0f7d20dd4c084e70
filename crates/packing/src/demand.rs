//! Which pods need a place, and what each asks of a node beyond its own spec.

pub mod buffer;
mod default_spread;
mod eligible;
#[cfg(test)]
pub(crate) mod fixture;
mod validation;
pub(crate) mod volume;
mod volume_validation;

use std::sync::Arc;

use model::{
    object::{NodeName, Pod},
    plan::Unplaced,
    requirement::RequirementSpec,
    snapshot::Snapshot,
    volume::Volumes,
};

use self::{
    default_spread::DefaultSpread,
    eligible::{moving, residents},
    validation::Validation,
    volume::Storage,
};
use crate::supply::label_rules;

/// The pods of one planning run.
#[derive(Debug, Clone, Default)]
pub struct Demand {
    /// Pods to place: pending ones and buffers' stand-ins first, then those of nodes that go away.
    pub pods: Vec<DemandPod>,
    /// Pods that are not tried at all.
    pub ignored: Vec<Unplaced>,
}

/// One pod to place.
#[derive(Debug, Clone)]
pub struct DemandPod {
    /// The pod, with the cluster's default spread constraints where it has none of its own.
    pub pod: Arc<Pod>,
    /// Why it needs a place.
    pub origin: Origin,
    /// What its volumes ask for; none for the many pods without claims.
    pub volumes: Option<Arc<PodVolumes>>,
}

/// Why a pod needs a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// kube-scheduler found none.
    Pending,
    /// Its node goes away.
    Moving(NodeName),
    /// It has one, and needs another only if its node goes away.
    Resident(NodeName),
    /// It stands for the room a CapacityBuffer keeps.
    Buffer,
}

/// What a pod's volumes ask of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodVolumes {
    /// Where the volumes are or may be: alternatives in order, each a set of requirements on the node. Empty: anywhere.
    pub alternatives: Vec<Vec<RequirementSpec>>,
    /// The alternatives could not be found out: upstream then plans without them and without the pod's topology.
    pub is_unresolved: bool,
    /// What will be attached; an error fails every attempt to place the pod, in these words.
    pub attachments: Result<Volumes, String>,
}

impl Demand {
    /// The pods of a snapshot that need a place. Pending pods are checked first; those of leaving nodes are not, because
    /// they ran already.
    pub fn of(snapshot: &Snapshot) -> Self {
        let storage = Storage(snapshot.objects());
        let mut validation = Validation::new(label_rules(snapshot.catalog()));
        let mut demand = Self::default();
        for pod in snapshot.provisionable_pods() {
            match validation.refusal(pod, storage) {
                Some(refusal) => demand.ignored.push(refusal),
                None => demand.add(pod, Origin::Pending, storage),
            }
        }
        for pod in buffer::pods(snapshot) {
            demand.add(&pod, Origin::Buffer, storage);
        }
        for (node, pod) in moving(snapshot) {
            demand.add(pod, Origin::Moving(node), storage);
        }
        demand.spread(snapshot);
        demand
    }

    /// The pods that need a place, and after them those that would if their node went away.
    pub fn with_residents(snapshot: &Snapshot) -> Self {
        let mut demand = Self::of(snapshot);
        let (known, storage) = (demand.pods.len(), Storage(snapshot.objects()));
        for (node, pod) in residents(snapshot) {
            demand.add(pod, Origin::Resident(node), storage);
        }
        let residents = demand.pods.split_off(known);
        let mut others = Self {
            pods: residents,
            ignored: Vec::new(),
        };
        others.spread(snapshot);
        demand.pods.extend(others.pods);
        demand
    }

    /// Gives pods the cluster's default constraints, but for those whose volumes could not be looked up: upstream has
    /// dropped them by then.
    fn spread(&mut self, snapshot: &Snapshot) {
        let Some(mut defaults) = DefaultSpread::of(snapshot) else {
            return;
        };
        let is_unresolved = |entry: &DemandPod| entry.volumes.as_ref().is_some_and(|volumes| volumes.is_unresolved);
        for entry in self.pods.iter_mut().filter(|entry| !is_unresolved(entry)) {
            if let Some(pod) = defaults.constrained(&entry.pod) {
                entry.pod = Arc::new(pod);
            }
        }
    }

    fn add(&mut self, pod: &Arc<Pod>, origin: Origin, storage: Storage<'_>) {
        self.pods.push(DemandPod {
            pod: Arc::clone(pod),
            origin,
            volumes: storage.volumes_of(pod).map(Arc::new),
        });
    }
}
