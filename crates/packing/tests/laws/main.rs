//! What holds of the faithful plan whatever the cluster? Asked on random clusters over every scheduling feature.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod explanation;
mod order;
mod patch;

use std::io::Cursor;

use model::{
    dump::{self, Mode, Source},
    snapshot::Snapshot,
};
use packing::{Options, Packing};
use serde_json::Value;

/// The file of a random cluster.
fn file(seed: u64) -> Value {
    serde_json::to_value(workloads::random::random(seed)).unwrap()
}

fn read(file: &Value) -> Snapshot {
    let source = Source::Stream(
        "random".to_owned(),
        Box::new(Cursor::new(file.to_string().into_bytes())),
    );
    let options = dump::Options {
        mode: Mode::Strict,
        taken_at: jiff::Timestamp::UNIX_EPOCH,
    };
    dump::read([source], options).unwrap().0
}

fn faithful() -> Options {
    Options {
        packing: Packing::Faithful,
        ..Options::default()
    }
}
