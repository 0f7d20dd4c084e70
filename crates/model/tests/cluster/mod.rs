//! A cluster of any size, for tests of snapshots.

use std::sync::Arc;

use model::{
    object::{Labels, Metadata, Node, NodeClaim, NodeName, Pod, ProviderId},
    snapshot::{Catalog, Objects, Settings, Snapshot, Table, Title},
};

pub(crate) const PODS_PER_NODE: usize = 10;

fn metadata(namespace: &str, name: &str, pool: &str) -> Metadata {
    let labels = Labels::from_pairs(vec![("karpenter.sh/nodepool".into(), pool.into())]);
    Metadata {
        namespace: namespace.into(),
        name: name.into(),
        labels,
        ..Metadata::default()
    }
}

/// Nodes of two pools in turn, each with a claim and ten pods.
pub(crate) fn cluster(nodes: usize) -> Snapshot {
    let pool = |at: usize| if at.is_multiple_of(2) { "even" } else { "odd" };
    let id = |at: usize| Some(ProviderId::from(format!("sim://{at:05}").as_str()));
    let node = |at| {
        let mut node = Node {
            metadata: metadata("", &format!("node-{at:05}"), pool(at)),
            ..Node::default()
        };
        node.spec.provider_id = id(at);
        Arc::new(node)
    };
    let claim = |at| {
        let mut claim = NodeClaim {
            metadata: metadata("", &format!("claim-{at:05}"), pool(at)),
            ..NodeClaim::default()
        };
        claim.status.provider_id = id(at);
        Arc::new(claim)
    };
    let pod = |at| {
        let node_name = Some(NodeName::from(format!("node-{:05}", at % nodes).as_str()));
        Arc::new(Pod {
            metadata: metadata("team", &format!("pod-{at:06}"), ""),
            node_name,
            ..Pod::default()
        })
    };
    let objects = Objects {
        nodes: Table::new((0..nodes).map(node).collect()),
        node_claims: Table::new((0..nodes).map(claim).collect()),
        pods: Table::new((0..nodes * PODS_PER_NODE).map(pod).collect()),
        ..Objects::default()
    };
    let title = Title {
        name: "cluster".into(),
        taken_at: jiff::Timestamp::UNIX_EPOCH,
        origin: String::new(),
    };
    Snapshot::new(title, Settings::default(), objects, Catalog::default())
}
