//! Whether our planner tries the pods that Karpenter tries, and refuses the others in its words.
//!
//! Needs Go: the reference is built from upstream's module on first use.

#![allow(clippy::unwrap_used, reason = "the whole file is a test")]

use std::{
    collections::BTreeMap,
    io::{Cursor, Write},
    process::Command,
};

use model::{dump, plan::Unplaced, snapshot::Snapshot};
use packing::demand::Demand;
use serde_json::Value;

/// How many random clusters are compared, from seed 0 on.
const SEEDS: u64 = 20;

type Refusals = BTreeMap<String, String>;

#[test]
fn random_clusters_have_the_demand_of_the_reference() {
    let seeds = std::env::var("SEEDS").map_or(SEEDS, |seeds| seeds.parse().unwrap());
    for seed in 0..seeds {
        let file = serde_json::to_vec(&workloads::random::random(seed)).unwrap();
        let theirs = reference(&file);
        let ours = Demand::of(&snapshot(&file));
        assert_eq!(refusals(&ours), refusals_of(&theirs), "ignored pods of seed {seed}");
        assert_eq!(ours.pods.len() as u64, theirs["pods"], "pods to place of seed {seed}");
    }
}

fn snapshot(file: &[u8]) -> Snapshot {
    let options = dump::Options {
        mode: dump::Mode::Strict,
        taken_at: jiff::Timestamp::UNIX_EPOCH,
    };
    let source = dump::Source::Stream("random".to_owned(), Box::new(Cursor::new(file.to_vec())));
    dump::read([source], options).unwrap().0
}

fn reference(file: &[u8]) -> Value {
    let mut input = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    input.write_all(file).unwrap();
    let program = rig::reference::program().unwrap();
    let output = Command::new(program).arg("solve").arg(input.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn refusals(demand: &Demand) -> Refusals {
    let entry = |refusal: &Unplaced| (refusal.pod.metadata.key().to_string(), refusal.message.to_string());
    demand.ignored.iter().map(entry).collect()
}

fn refusals_of(plan: &Value) -> Refusals {
    serde_json::from_value(plan["ignored"].clone()).unwrap()
}
