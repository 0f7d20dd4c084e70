//! How much does placing pods take, counted? The same on every machine, so it can be asserted.
#![allow(clippy::unwrap_used, reason = "a test")]

mod generated;

use std::alloc::System;

use generated::{faithful, read};
use packing::{PlanStep, Warm, Work};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use workloads::{Shape, diverse::Types};

#[global_allocator]
static COUNTING: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

struct Counted {
    work: Work,
    claims: usize,
    unplaced: usize,
    /// Allocations while pods were placed.
    allocations: usize,
}

fn count(workload: &workloads::Snapshot) -> Counted {
    let allocations = || {
        let stats = COUNTING.stats();
        stats.allocations + stats.reallocations
    };
    let (mut before, mut solving) = (0, 0);
    let (plan, work) = Warm::default().faithful(&read(workload), &faithful(), |step| match step {
        PlanStep::Run => before = allocations(),
        PlanStep::Solve => solving = allocations() - before,
        _ => {}
    });
    Counted {
        work,
        claims: plan.claims.len(),
        unplaced: plan.unplaced.len(),
        allocations: solving,
    }
}

/// One test, because the allocations of all threads are counted together.
#[test]
fn work_and_allocations_stay_in_proportion() {
    diverse_pods_take_one_probe_and_one_word_each_however_many_there_are();
    pods_that_prefer_to_be_alone_take_no_words();
    most_probes_allocate_nothing();
}

fn diverse_pods_take_one_probe_and_one_word_each_however_many_there_are() {
    for pods in [500, 2000, 8000, 20_000] {
        let types = Types::Fake400;
        let mut workload = Shape::Diverse { pods, types }.generate();
        workload.raise_limits();
        let counted = count(&workload);
        assert_eq!(counted.unplaced, 0);
        let Work {
            probes,
            words,
            attempts,
            ..
        } = counted.work;
        assert!(probes * 100 <= pods * 105, "{pods} pods: {probes} probes");
        assert!(words <= pods * 2, "{pods} pods: {words} words");
        assert!(attempts * 100 <= pods * 105, "{pods} pods: {attempts} attempts");
        // A claim's pods, and tables that double.
        let most = counted.claims * 4 + 1500;
        assert!(
            counted.allocations <= most,
            "{pods} pods: {} allocations",
            counted.allocations
        );
    }
}

fn pods_that_prefer_to_be_alone_take_no_words() {
    let types = Types::Fake400;
    let respected = true;
    let counted = count(
        &Shape::Preferences {
            pods: 1000,
            types,
            respected,
        }
        .generate(),
    );
    assert_eq!((counted.claims, counted.work.words), (1000, 0));
    assert!(counted.work.probes <= 2000, "{:?}", counted.work);
}

fn most_probes_allocate_nothing() {
    let types = Types::Fake400;
    let respected = false;
    let counted = count(
        &Shape::Preferences {
            pods: 4000,
            types,
            respected,
        }
        .generate(),
    );
    assert!(counted.work.probes >= 4000, "{:?}", counted.work);
    // What there is comes from claims, states and tables that double.
    let (allocations, probes) = (counted.allocations as u64, counted.work.probes);
    assert!(allocations * 5 < probes, "{allocations} allocations in {probes} probes");
}
