//! Nodes: their hydration, drain and end.

pub mod drain;
pub(crate) mod events;
pub mod eviction;
pub mod health;
pub mod hydration;
pub mod lease;
pub mod reboot;
pub mod termination;

use std::sync::Arc;

use api::{finalizers, labels};
use cloud::NodeClassKind;
use model::object::{Node, NodeClaim};
use state::State;

use crate::Cluster;

pub use eviction::Evictions;
pub use health::Health;
pub use hydration::Hydration;
pub use lease::LeaseCollection;
pub use reboot::Reboot;
pub use termination::Termination;

/// Runs everything that ends nodes, until the future is dropped.
pub fn run(cluster: &Arc<Cluster>) -> impl Future<Output = ()> + Send + use<> {
    let kinds = cluster.cloud().node_classes();
    let evictions = Arc::new(Evictions::new(cluster.settings()));
    let evict = Evictions::run(&evictions, cluster);
    let (_, reboot) = crate::run(Arc::new(Reboot::new(Arc::clone(&evictions))), Arc::clone(cluster));
    let (_, terminate) = crate::run(Arc::new(Termination::new(kinds, evictions)), Arc::clone(cluster));
    let (_, hydrate) = crate::run(Arc::new(Hydration::new(kinds)), Arc::clone(cluster));
    let (_, collect) = crate::run(Arc::new(LeaseCollection), Arc::clone(cluster));
    async {
        tokio::join!(evict, terminate, hydrate, reboot, collect);
    }
}

/// True when the node carries the label of one of the provider's node classes.
fn is_managed(node: &Node, kinds: &[NodeClassKind]) -> bool {
    let has = |kind: &NodeClassKind| {
        let label = labels::node_class_key(kind.group, kind.kind);
        node.metadata.labels.get(&label).is_some()
    };
    kinds.iter().any(has)
}

/// True when the node is on its way out and ours to end.
fn is_leaving(node: &Node, kinds: &[NodeClassKind]) -> bool {
    let ours = node
        .metadata
        .finalizers
        .iter()
        .any(|name| **name == *finalizers::TERMINATION);
    node.metadata.is_deleting() && ours && is_managed(node, kinds)
}

/// The claim behind a node. None when several say so: then none of them is the truth.
fn claim_of<'a>(state: &'a State, node: &Node) -> Option<&'a Arc<NodeClaim>> {
    let id = node.spec.provider_id.as_ref()?;
    let mut claims = state.claims_of_provider_id(id.as_str());
    claims.next().filter(|_| claims.next().is_none())
}
