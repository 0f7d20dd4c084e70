//! How much of a node a pod takes: what Kubernetes' scheduler counts for it.
//!
//! The rules are those of `k8s.io/component-helpers`: containers run together, init containers one after the other
//! beside the sidecars started before them, pod-level requests replace the sum, the sandbox's overhead comes on top.
//! During an in-place resize the larger of what is wanted, granted and in force counts.
//! Everything here borrows: a pod maps onto these views without copying.

#[cfg(test)]
mod tests;

use crate::{
    quantity::Quantity,
    resources::{ResourceList, ResourceName},
};

/// What one container asks for and is held to.
#[derive(Clone, Copy, Debug)]
pub struct ContainerResources<'a> {
    /// `resources.requests`
    pub requests: &'a ResourceList,
    /// `resources.limits`
    pub limits: &'a ResourceList,
    /// An init container with `restartPolicy: Always`; it keeps running beside the containers.
    pub is_sidecar: bool,
    /// What the kubelet reports; only when the container's status has `resources`.
    pub status: Option<StatusResources<'a>>,
}

/// What the kubelet reports about a container's requests during and after an in-place resize.
#[derive(Clone, Copy, Debug)]
pub struct StatusResources<'a> {
    /// `status.containerStatuses[].resources.requests`: in force.
    pub requests: &'a ResourceList,
    /// `status.containerStatuses[].allocatedResources`: granted by the node.
    pub allocated: &'a ResourceList,
}

/// Everything about a pod that its resource demand depends on.
#[derive(Clone, Debug)]
pub struct PodResources<'a> {
    /// `spec.containers`
    pub containers: Vec<ContainerResources<'a>>,
    /// `spec.initContainers`, in order, sidecars among them.
    pub init_containers: Vec<ContainerResources<'a>>,
    /// `spec.resources.requests`
    pub pod_level_requests: &'a ResourceList,
    /// `spec.resources.limits`
    pub pod_level_limits: &'a ResourceList,
    /// `spec.overhead`
    pub overhead: &'a ResourceList,
    /// The first `PodResizePending` condition has reason `Infeasible`: what is wanted will never be granted.
    pub is_resize_infeasible: bool,
}

impl PodResources<'_> {
    /// What the pod takes of a node, without the `pods` resource.
    pub fn requests(&self) -> ResourceList {
        let of = |container: &ContainerResources<'_>| self.effective_requests(container);
        let mut requests = aggregate(&self.containers, &self.init_containers, of);
        replace_pod_level(&mut requests, self.pod_level_requests);
        requests.add(self.overhead);
        requests
    }

    /// What the pod is held to. A resource without a limit stays without one, whatever the overhead.
    pub fn limits(&self) -> ResourceList {
        let mut limits = aggregate(&self.containers, &self.init_containers, |container| {
            container.limits.clone()
        });
        replace_pod_level(&mut limits, self.pod_level_limits);
        for (name, quantity) in self.overhead.iter() {
            if let Some(limit) = limits.get(name.as_str()).filter(|limit| !limit.is_zero()) {
                limits.set(name.clone(), limit + quantity);
            }
        }
        limits
    }

    fn effective_requests(&self, container: &ContainerResources<'_>) -> ResourceList {
        let Some(status) = container.status else {
            return container.requests.clone();
        };
        let mut requests = status.requests.clone();
        requests.raise_to(status.allocated);
        if !self.is_resize_infeasible {
            requests.raise_to(container.requests);
        }
        requests
    }
}

/// The sum of several pods' requests, with `pods` counting them.
pub fn total_requests<'a>(requests: impl IntoIterator<Item = &'a ResourceList>) -> ResourceList {
    let (mut total, mut count) = (ResourceList::EMPTY, 0);
    for requests in requests {
        total.add(requests);
        count += 1;
    }
    total.set(ResourceName::Pods, Quantity::from_units(count));
    total
}

/// A container's requests with its limits standing in for the resources it does not request. The API server does this
/// for pods; for pods made up from a DaemonSet's template it is ours to do.
pub fn requests_defaulted_to_limits(requests: &ResourceList, limits: &ResourceList) -> ResourceList {
    limits.overlaid_with(requests)
}

fn aggregate(
    containers: &[ContainerResources<'_>],
    init_containers: &[ContainerResources<'_>],
    of: impl Fn(&ContainerResources<'_>) -> ResourceList,
) -> ResourceList {
    let mut running = ResourceList::EMPTY;
    for container in containers {
        running.add(&of(container));
    }
    let (mut sidecars, mut peak) = (ResourceList::EMPTY, ResourceList::EMPTY);
    for container in init_containers {
        let mut phase = initialising(container, &of);
        if container.is_sidecar {
            running.add(&phase);
        }
        phase.add(&sidecars);
        peak.raise_to(&phase);
        if container.is_sidecar {
            sidecars = phase;
        }
    }
    running.raise_to(&peak);
    running
}

/// The kubelet resizes sidecars but no other init container, so only a sidecar's status counts.
fn initialising(
    container: &ContainerResources<'_>,
    of: impl Fn(&ContainerResources<'_>) -> ResourceList,
) -> ResourceList {
    if container.is_sidecar {
        of(container)
    } else {
        of(&ContainerResources {
            status: None,
            ..*container
        })
    }
}

fn replace_pod_level(resources: &mut ResourceList, pod_level: &ResourceList) {
    for (name, quantity) in pod_level.iter().filter(|(name, _)| is_pod_level(name)) {
        resources.set(name.clone(), quantity);
    }
}

fn is_pod_level(name: &ResourceName) -> bool {
    matches!(name, ResourceName::Cpu | ResourceName::Memory) || name.is_huge_pages()
}
