//! Does the faithful pass decide as upstream does? A slice of what `cargo xtask differential` compares at length: random
//! clusters over every scheduling feature, and upstream's own benchmark shapes.
//!
//! Needs Go: the reference is built from upstream's module on first use.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

use std::ops::Range;

use packing_bench::differential::{self, Report};
use packing_bench::given;
use packing_bench::input::Input;
use packing_bench::reference::{Ask, Reference};
use packing_bench::verdict::Verdict;
use workloads::Shape;
use workloads::diverse::Types;
use workloads::performance::Scenario;

/// What differs, as text: nothing when all is well.
fn differences(inputs: impl IntoIterator<Item = Input>) -> String {
    let mut reference = Reference::start().unwrap();
    let rows = inputs
        .into_iter()
        .map(|input| differential::compare(&mut reference, &input, differential::RUNS).unwrap())
        .filter(|row| matches!(row.verdict, Verdict::Different(_)))
        .collect();
    let report = Report { rows };
    let lines: Vec<String> = report.rows.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

fn random_clusters_are_planned_alike(seeds: Range<u64>) {
    let dir = tempfile::tempdir().unwrap();
    let inputs = seeds.map(|seed| differential::random(seed, dir.path()).unwrap());
    assert_eq!(differences(inputs), "");
}

#[test]
fn demand_and_supply_are_what_upstream_starts_from() {
    let mut reference = Reference::start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let ask = Ask {
        log: true,
        ..Ask::runs(1)
    };
    for seed in 0..40 {
        let input = differential::random(seed, dir.path()).unwrap();
        let plans = reference.solve(&input.file, ask).unwrap();
        let found: Vec<String> = plans
            .iter()
            .flat_map(|plan| given::differences(&input.snapshot, plan))
            .collect();
        assert_eq!(found, Vec::<String>::new(), "seed {seed}");
    }
}

#[test]
fn the_first_thirty_random_clusters_are_planned_as_upstream_does() {
    random_clusters_are_planned_alike(0..30);
}

#[test]
fn thirty_more_random_clusters_are_planned_as_upstream_does() {
    random_clusters_are_planned_alike(30..60);
}

#[test]
fn upstreams_benchmark_shapes_are_planned_as_upstream_does() {
    let dir = tempfile::tempdir().unwrap();
    let types = Types::Fake400;
    let shapes = [
        Shape::Diverse { pods: 100, types },
        Shape::Diverse {
            pods: 50,
            types: Types::Assorted,
        },
        Shape::Preferences {
            pods: 100,
            types,
            respected: true,
        },
        Shape::Preferences {
            pods: 100,
            types,
            respected: false,
        },
        Shape::Performance(Scenario::Basic),
        Shape::RegressionSimple,
        Shape::RegressionComplex,
        Shape::Mixed { pods: 200, seed: 1 },
    ];
    let inputs = shapes.map(|shape| Input::generate(&shape.generate(), dir.path()).unwrap());
    assert_eq!(differences(inputs), "");
}
