//! An overlay answers like a snapshot taken without the nodes, and costs what it changes, not what the cluster holds.

use std::{alloc::System, sync::Arc};

use model::{
    object::{Labels, Metadata, Node, NodeClaim, NodeName, NodePool, NodePoolName, Object, ObjectKey, Pod, ProviderId},
    snapshot::{Catalog, Objects, Settings, Snapshot, Table, Title},
};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const PODS_PER_NODE: usize = 10;

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
fn cluster(nodes: usize) -> Snapshot {
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
        metadata: metadata("", "extra", ""),
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

#[test]
fn taking_a_node_away_costs_the_same_in_a_large_cluster_as_in_a_small_one() {
    let cost = |nodes: usize| {
        let snapshot = cluster(nodes);
        let gone: [NodeName; 1] = ["node-00001".into()];
        // Indexes are built on first use and shared by all overlays.
        let warm = snapshot.without_nodes(&gone);
        let region = Region::new(ALLOCATOR);
        let overlay = snapshot.without_nodes(&gone);
        let bytes = region.change().bytes_allocated;
        assert!(overlay.objects().nodes.shares_base(&snapshot.objects().nodes));
        assert!(overlay.objects().pods.shares_base(&warm.objects().pods));
        bytes
    };
    assert_eq!(cost(2_000), cost(200));
}
