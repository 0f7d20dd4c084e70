//! What pods take of a node, computed once for all replicas of a workload.

use std::sync::Arc;

use model::{
    object::{Pod, PodSpec},
    quantity::Quantity,
    resources::{ResourceList, ResourceName},
};
use rustc_hash::FxHashMap;

/// Requests of pods, remembered by spec.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// By the address of the spec, which lives as long as the snapshot.
    by_spec: FxHashMap<*const PodSpec, ResourceList>,
    last: ResourceList,
}

impl Requests {
    /// What the pod takes, itself included. Only the kubelet's reports make replicas differ.
    pub(super) fn of(&mut self, pod: &Pod) -> &ResourceList {
        let status = &pod.status;
        if status.container_statuses.is_empty() && status.init_container_statuses.is_empty() {
            let spec = Arc::as_ptr(&pod.spec);
            self.by_spec.entry(spec).or_insert_with(|| requests_of(pod))
        } else {
            self.last = requests_of(pod);
            &self.last
        }
    }
}

/// What the pod takes, itself included.
pub(crate) fn requests_of(pod: &Pod) -> ResourceList {
    let mut requests = pod.resources().requests();
    requests.set(ResourceName::Pods, Quantity::from_units(1));
    requests
}
