//! A snapshot costs what changed since the last one, not what the cluster holds. Alone in its binary: the allocator counts
//! every thread.

use std::alloc::System;

use jiff::Timestamp;
use model::{
    object::{Metadata, Node, NodeName, Pod},
    snapshot::{Catalog, Settings},
};
use state::State;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn pod(at: usize, version: usize) -> Pod {
    Pod {
        metadata: Metadata {
            namespace: "ns".into(),
            name: format!("pod-{at:06}").into(),
            resource_version: version.to_string().as_str().into(),
            ..Metadata::default()
        },
        node_name: Some(NodeName::from(format!("node-{:03}", at % 100).as_str())),
        ..Pod::default()
    }
}

fn cluster(pods: usize) -> State {
    let mut state = State::new(Settings::default());
    state.set_catalog(Catalog::default());
    for at in 0..100 {
        let metadata = Metadata {
            name: format!("node-{at:03}").into(),
            ..Metadata::default()
        };
        state.apply(Node {
            metadata,
            ..Node::default()
        });
    }
    for at in 0..pods {
        state.apply(pod(at, 1 + at));
    }
    state
}

/// Bytes and blocks that a second snapshot allocates, after `change`.
fn cost(pods: usize, change: impl FnOnce(&mut State)) -> (usize, usize) {
    let now = Timestamp::UNIX_EPOCH;
    let mut state = cluster(pods);
    let first = state.snapshot(now);
    change(&mut state);
    let region = Region::new(ALLOCATOR);
    let second = state.snapshot(now);
    let cost = region.change();
    assert!(second.objects().pods.shares_base(&first.objects().pods));
    assert!(second.objects().nodes.shares_base(&first.objects().nodes));
    (cost.bytes_allocated, cost.allocations)
}

#[test]
fn snapshot_costs_what_changed_and_not_what_the_cluster_holds() {
    let (small, large) = (2_000, 20_000);
    let unchanged = cost(large, |_| {});
    assert_eq!(unchanged, cost(small, |_| {}), "nothing changed");
    assert!(unchanged.1 <= 4, "{} blocks for a snapshot of nothing new", unchanged.1);
    let one = |state: &mut State| drop(state.apply(pod(7, 1_000_000)));
    assert_eq!(cost(large, one), cost(small, one), "one pod changed");
}
