//! Does the faithful mode take the nodes upstream takes? A slice of what `cargo run --release -p disruption-bench --
//! differential` compares at length: fleets after scale-in and random clusters, up to ties that upstream leaves to chance.
//!
//! Needs Go: the reference is built from upstream's module on first use.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

use disruption_bench::differential::{Row, Verdict, compare};
use disruption_bench::input::Input;

fn rows(seeds: std::ops::Range<u64>) -> Vec<Row> {
    let dir = tempfile::tempdir().unwrap();
    let inputs = seeds.map(|seed| Input::of_seed(seed, dir.path()).unwrap());
    inputs.flat_map(|input| compare(&input).unwrap()).collect()
}

#[test]
fn the_first_clusters_lose_the_nodes_that_upstream_takes() {
    let rows = rows(1..25);
    let different: Vec<String> = rows
        .iter()
        .filter(|row| matches!(row.verdict, Verdict::Different(_)))
        .map(ToString::to_string)
        .collect();
    assert_eq!(different, Vec::<String>::new());
    assert!(
        rows.iter().filter(|row| row.acts).count() > 10,
        "too few of them act to tell"
    );
}
