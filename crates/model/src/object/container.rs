//! What a container asks of its node: resources, host ports and devices. Images, commands, environment, mounts and
//! probes are dropped.

use serde::{Deserialize, Deserializer, Serialize};

use super::{List, Text, list::list_where, metadata::is_unset};
use crate::resources::ResourceList;

/// A container or init container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    /// Links the container to its status.
    pub name: Text,
    /// What it asks for and is held to.
    #[serde(skip_serializing_if = "ResourceRequirements::is_empty")]
    pub resources: ResourceRequirements,
    /// Only the ports that occupy one of the node's.
    #[serde(deserialize_with = "host_ports", skip_serializing_if = "List::is_empty")]
    pub ports: List<ContainerPort>,
    /// `Always` makes an init container a sidecar.
    #[serde(skip_serializing_if = "is_unset")]
    pub restart_policy: Text,
}

/// Requests, limits and device claims.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceRequirements {
    /// What is set aside.
    #[serde(skip_serializing_if = "ResourceList::is_empty")]
    pub requests: ResourceList,
    /// What must not be exceeded; templates without requests ask for these.
    #[serde(skip_serializing_if = "ResourceList::is_empty")]
    pub limits: ResourceList,
    /// Entries of the pod's `resourceClaims` that the container uses.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub claims: List<ContainerClaim>,
}

impl ResourceRequirements {
    /// True when nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.limits.is_empty() && self.claims.is_empty()
    }
}

/// A device claim used by a container.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerClaim {
    /// The entry of the pod's `resourceClaims`.
    pub name: Text,
    /// One request of the claim; all of them when empty.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub request: Text,
}

/// A port of the node that a container occupies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerPort {
    /// The container's own port, which the API requires.
    pub container_port: i32,
    /// The node's port; ports without one are dropped.
    pub host_port: i32,
    /// The address it is taken on; empty for all.
    #[serde(rename = "hostIP", skip_serializing_if = "is_unset")]
    pub host_ip: Text,
    /// `TCP`, `UDP` or `SCTP`; compared as written.
    #[serde(skip_serializing_if = "is_unset")]
    pub protocol: Text,
}

/// What the kubelet reports for a container during and after an in-place resize.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    /// The container.
    pub name: Text,
    /// What is in force; only when this is set does a status count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// What the node granted.
    #[serde(skip_serializing_if = "ResourceList::is_empty")]
    pub allocated_resources: ResourceList,
}

fn host_ports<'de, D: Deserializer<'de>>(deserializer: D) -> Result<List<ContainerPort>, D::Error> {
    list_where(deserializer, |port: &ContainerPort| port.host_port != 0)
}

/// Reads container statuses and drops those that say nothing about resources.
pub(super) fn resource_statuses<'de, D: Deserializer<'de>>(d: D) -> Result<List<ContainerStatus>, D::Error> {
    list_where(d, |status: &ContainerStatus| {
        status.resources.is_some() || !status.allocated_resources.is_empty()
    })
}
