//! What a pod takes of a node: the views that resource, port and toleration arithmetic work on.

use super::{Container, ContainerStatus, List, Pod, PodSpec};
use crate::{
    host_port::HostPort,
    pod_requests::{ContainerResources, PodResources, StatusResources, requests_defaulted_to_limits},
    resources::ResourceList,
};

static NOTHING: ResourceList = ResourceList::EMPTY;

impl Pod {
    /// Everything the pod's resource demand depends on, in-place resizes included.
    pub fn resources(&self) -> PodResources<'_> {
        let infeasible = self
            .condition("PodResizePending")
            .is_some_and(|pending| *pending.reason == *"Infeasible");
        let status = &self.status;
        self.spec
            .resources_with(&status.container_statuses, &status.init_container_statuses, infeasible)
    }

    /// True when the pod or one of its containers claims devices.
    pub fn has_device_claims(&self) -> bool {
        let claims = |containers: &List<Container>| {
            containers
                .iter()
                .any(|container| !container.resources.claims.is_empty())
        };
        !self.spec.resource_claims.is_empty() || claims(&self.spec.containers) || claims(&self.spec.init_containers)
    }
}

impl PodSpec {
    /// The demand of a pod that does not run yet.
    pub fn resources(&self) -> PodResources<'_> {
        self.resources_with(&[], &[], false)
    }

    /// The spec of a template as the API server writes it on pods: limits stand in for requests that are missing.
    #[must_use]
    pub fn admitted(&self) -> Self {
        let defaulted = |containers: &List<Container>| -> List<Container> {
            let default = |container: &Container| {
                let mut container = container.clone();
                let resources = &mut container.resources;
                resources.requests = requests_defaulted_to_limits(&resources.requests, &resources.limits);
                container
            };
            containers.iter().map(default).collect()
        };
        Self {
            containers: defaulted(&self.containers),
            init_containers: defaulted(&self.init_containers),
            ..self.clone()
        }
    }

    /// The node's ports its containers take; those of init containers do not count.
    pub fn host_ports(&self) -> impl Iterator<Item = HostPort> {
        let ports = self.containers.iter().flat_map(|container| &container.ports);
        ports.map(|port| HostPort::new(&port.host_ip, port.host_port, &port.protocol))
    }

    fn resources_with<'a>(
        &'a self,
        statuses: &'a [ContainerStatus],
        init_statuses: &'a [ContainerStatus],
        is_resize_infeasible: bool,
    ) -> PodResources<'a> {
        let view = |statuses: &'a [ContainerStatus]| move |container: &'a Container| container.view(statuses);
        let pod_level = self.resources.as_ref();
        PodResources {
            containers: self.containers.iter().map(view(statuses)).collect(),
            init_containers: self.init_containers.iter().map(view(init_statuses)).collect(),
            pod_level_requests: pod_level.map_or(&NOTHING, |level| &level.requests),
            pod_level_limits: pod_level.map_or(&NOTHING, |level| &level.limits),
            overhead: &self.overhead,
            is_resize_infeasible,
        }
    }
}

impl Container {
    fn view<'a>(&'a self, statuses: &'a [ContainerStatus]) -> ContainerResources<'a> {
        let status = statuses.iter().find(|status| status.name == self.name);
        ContainerResources {
            requests: &self.resources.requests,
            limits: &self.resources.limits,
            is_sidecar: *self.restart_policy == *"Always",
            status: status.and_then(|status| {
                let resources = status.resources.as_ref()?;
                Some(StatusResources {
                    requests: &resources.requests,
                    allocated: &status.allocated_resources,
                })
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_in_a_resize_takes_the_largest_of_wanted_granted_and_in_force() {
        let pod: Pod = serde_json::from_str(
            r#"{"metadata":{"name":"p"},"spec":{"overhead":{"cpu":"10m"},
                "initContainers":[{"name":"mesh","restartPolicy":"Always","resources":{"requests":{"cpu":"100m"}}}],
                "containers":[{"name":"app","resources":{"requests":{"cpu":"1","memory":"1Gi"}},
                    "ports":[{"containerPort":80,"hostPort":8080,"protocol":"TCP"},{"containerPort":81}]}]},
                "status":{"containerStatuses":[{"name":"app","resources":{"requests":{"cpu":"2","memory":"512Mi"}},
                    "allocatedResources":{"cpu":"1500m","memory":"2Gi"}}]}}"#,
        )
        .unwrap();
        assert_eq!(
            pod.resources().requests().to_string(),
            r#"{"cpu":"2110m","memory":"2Gi"}"#
        );
        assert_eq!(
            pod.spec.host_ports().collect::<Vec<_>>(),
            [HostPort::new("", 8080, "TCP")]
        );
        assert!(!pod.has_device_claims());
    }
}
