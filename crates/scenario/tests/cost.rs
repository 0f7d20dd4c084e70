//! What records cost: allocations of a story in which 500 pods get their nodes, with and without.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "the whole target is a test")]

use std::{alloc::System, time::Duration};

use catalogue::Source;
use cloud_sim::Rules;
use runtime::Settings;
use scenario::{Life, Scenario, Setup, World, furnish, on_virtual_time};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::time::Instant;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const STORY: &str = "
name: five-hundred
lasts: 10m
pools:
- {name: general, capacity: [on-demand]}
workloads:
- {name: web, replicas: 500, cpu: \"1\", memory: 1Gi}
";

/// Allocations and their bytes, from the first pod to the last node.
fn allocated(decision_records: bool) -> (usize, usize) {
    let scenario = Scenario::read("cost.yaml", STORY).unwrap();
    let setup = Setup {
        source: Source::Kwok,
        rules: Rules::default(),
        settings: Settings {
            decision_records,
            ..Settings::default()
        },
        start: "2026-11-16T03:00:00Z".parse().unwrap(),
        is_checked: false,
    };
    on_virtual_time(async {
        let world = World::new(&setup).unwrap();
        let region = Region::new(ALLOCATOR);
        furnish(&scenario, &world).unwrap();
        let mut process = Life::begin(&world);
        process.until(&world, Instant::now() + Duration::from_mins(5)).await;
        let nodes = world.server.list("Node").len();
        assert!(nodes > 1, "{nodes}");
        let change = region.change();
        (change.allocations, change.bytes_allocated)
    })
    .unwrap()
}

#[test]
fn records_cost_less_than_a_hundredth_of_what_is_allocated_anyway() {
    // The first run fills what all runs share.
    allocated(false);
    let (without, with) = (allocated(false), allocated(true));
    println!("without records {without:?}, with {with:?}");
    let more = with.0.saturating_sub(without.0);
    assert!(more * 100 < without.0, "{more} more than {}", without.0);
}
