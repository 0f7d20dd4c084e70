//! Pods that are nominated for a node, as the planner should see them: their room there is taken.
//!
//! kube-scheduler keeps it from pods of no higher priority, so a plan that counts on it would be wrong. Such pods ask for
//! nothing themselves until their nomination is gone.

use std::sync::Arc;

use model::{object::Pod, snapshot::Snapshot};

/// The snapshot with nominated pods where they are nominated.
pub(crate) fn counted(snapshot: &Snapshot) -> Snapshot {
    let expected = |pod: &Arc<Pod>| {
        let node = pod.status.nominated_node_name.as_ref();
        let node = node.filter(|_| pod.node_name.is_none() && pod.is_active())?;
        snapshot.node(node)?;
        let mut there = Pod::clone(pod);
        there.node_name = Some(node.clone());
        Some(Arc::new(there))
    };
    let expected: Vec<_> = snapshot.objects().pods.iter().filter_map(expected).collect();
    if expected.is_empty() {
        return snapshot.clone();
    }
    snapshot.overlaid(|objects| objects.pods = objects.pods.with(expected))
}
