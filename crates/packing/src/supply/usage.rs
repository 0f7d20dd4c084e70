//! What of a node is taken already: by which pods, ports and volumes.

use model::{
    host_port::HostPortUsage,
    object::{CSINode, Node, ObjectKey},
    resources::ResourceList,
    snapshot::Snapshot,
    volume::VolumeUsage,
};

use super::requests::Requests;
use crate::demand::volume::Storage;

/// What of a node is taken.
#[derive(Debug, Default)]
pub(super) struct Usage {
    /// By all pods.
    pub(super) requests: ResourceList,
    /// By the pods of DaemonSets.
    pub(super) daemon_requests: ResourceList,
    pub(super) ports: HostPortUsage<ObjectKey>,
    pub(super) volumes: VolumeUsage<ObjectKey>,
}

impl Usage {
    /// What the pods bound to the node take, those that ended excepted, and how many volumes its drivers admit.
    pub(super) fn of(node: &Node, snapshot: &Snapshot, requests: &mut Requests) -> Self {
        let mut usage = Self::default();
        let name = node.name();
        for pod in snapshot.pods_on_node(&name).filter(|pod| !pod.is_terminal()) {
            let taken = requests.of(pod);
            usage.requests.add(taken);
            if pod.is_owned_by_daemon_set() {
                usage.daemon_requests.add(taken);
            }
            let ports: Vec<_> = pod.spec.host_ports().collect();
            if !ports.is_empty() {
                usage.ports.add(pod.metadata.key(), ports);
            }
            if !pod.spec.volumes.is_empty() {
                let volumes = Storage(snapshot.objects()).attachments(pod);
                usage.volumes.add(pod.metadata.key(), volumes.unwrap_or_default());
            }
        }
        if let Some(published) = snapshot.objects().csi_nodes.find("", name.as_str()) {
            usage.publish(published);
        }
        usage
    }

    /// A driver that names no count takes any number.
    fn publish(&mut self, published: &CSINode) {
        for driver in &published.spec.drivers {
            let count = driver.allocatable.as_ref().and_then(|allocatable| allocatable.count);
            let limit = count.map(|count| usize::try_from(count).unwrap_or(0));
            self.volumes.limits.publish(driver.name.clone(), limit);
        }
    }
}
