//! What holds of the faithful plan whatever the cluster? Asked on random clusters over every scheduling feature.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod explanation;
#[path = "../generated/mod.rs"]
mod generated;
mod order;
mod patch;

use generated::faithful;
use model::snapshot::Snapshot;
use serde_json::Value;

/// The file of a random cluster.
fn file(seed: u64) -> Value {
    serde_json::to_value(workloads::random::random(seed)).unwrap()
}

fn read(file: &Value) -> Snapshot {
    generated::read_json(file.to_string().into_bytes())
}
