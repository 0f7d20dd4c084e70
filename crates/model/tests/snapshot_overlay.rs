//! An overlay answers like a snapshot taken without the nodes.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and may print"
)]

mod cluster;

use std::sync::Arc;

use cluster::{PODS_PER_NODE, cluster};
use model::object::{Metadata, NodePool, NodePoolName, Object, ObjectKey, Pod};

fn names<'a, T: Object>(objects: impl Iterator<Item = &'a Arc<T>>) -> Vec<String> {
    objects.map(|object| object.metadata().name.to_string()).collect()
}

#[test]
fn lookups_find_pods_by_node_nodes_by_pool_and_claims_by_instance() {
    let snapshot = cluster(4);
    let node = snapshot.node(&"node-00001".into()).unwrap();
    let claim = snapshot.claim_of_node(node).unwrap();
    assert_eq!(
        names(snapshot.nodes_of_pool(&"odd".into())),
        ["node-00001", "node-00003"]
    );
    assert_eq!(
        names(snapshot.claims_of_pool(&"even".into())),
        ["claim-00000", "claim-00002"]
    );
    assert_eq!(*claim.metadata.name, *"claim-00001");
    assert!(Arc::ptr_eq(snapshot.node_of_claim(claim).unwrap(), node));
    let expected: Vec<_> = (0..PODS_PER_NODE).map(|at| format!("pod-{:06}", at * 4 + 1)).collect();
    assert_eq!(names(snapshot.pods_on_node(&"node-00001".into())), expected);
    assert_eq!(names(snapshot.pods_on_node(&"nowhere".into())), Vec::<String>::new());
}

#[test]
fn without_nodes_takes_their_claims_along_and_leaves_their_pods() {
    let snapshot = cluster(4);
    let less = snapshot.without_nodes(&["node-00001".into(), "unknown".into()]);
    assert_eq!(
        names(less.objects().nodes.iter()),
        ["node-00000", "node-00002", "node-00003"]
    );
    assert_eq!(
        names(less.objects().node_claims.iter()),
        ["claim-00000", "claim-00002", "claim-00003"]
    );
    assert_eq!(less.pods_on_node(&"node-00001".into()).count(), PODS_PER_NODE);
    assert_eq!(names(less.nodes_of_pool(&"odd".into())), ["node-00003"]);
    assert_eq!(snapshot, cluster(4), "the snapshot below is as it was");
}

#[test]
fn overlays_stack() {
    let snapshot = cluster(2);
    let pool = NodePool {
        metadata: Metadata {
            name: "extra".into(),
            ..Metadata::default()
        },
        ..NodePool::default()
    };
    let moved = Pod {
        node_name: Some("node-00001".into()),
        ..Pod::clone(snapshot.objects().pods.find("team", "pod-000000").unwrap())
    };
    let overlay = snapshot
        .with_node_pool(pool)
        .with_pods([Arc::new(moved)])
        .without_pods([ObjectKey::new("team", "pod-000001")])
        .without_nodes(&["node-00000".into()]);
    assert!(overlay.node_pool(&NodePoolName::from("extra")).is_some());
    assert_eq!(overlay.objects().pods.len(), 2 * PODS_PER_NODE - 1);
    let on_second = names(overlay.pods_on_node(&"node-00001".into()));
    assert_eq!(
        (on_second.first().unwrap().as_str(), on_second.len()),
        ("pod-000000", PODS_PER_NODE)
    );
    assert_eq!(overlay.pods_on_node(&"node-00000".into()).count(), PODS_PER_NODE - 1);
}
