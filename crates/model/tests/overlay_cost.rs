//! An overlay costs what it changes, not what the cluster holds. Alone in its binary: the allocator counts every thread.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and may print"
)]

mod cluster;

use std::alloc::System;

use cluster::cluster;
use model::object::NodeName;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

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
