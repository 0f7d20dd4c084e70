//! Generated clusters as the planner sees them.
#![allow(dead_code, reason = "no test needs all of it")]

use std::io::Cursor;

use jiff::Timestamp;
use model::{
    dump::{self, Mode, Source},
    snapshot::Snapshot,
};
use packing::{Options, Packing};

/// The snapshot of a generated cluster.
pub(crate) fn read(workload: &workloads::Snapshot) -> Snapshot {
    read_json(serde_json::to_vec(workload).unwrap())
}

/// The snapshot of a file's text.
pub(crate) fn read_json(json: Vec<u8>) -> Snapshot {
    let source = Source::Stream("generated".to_owned(), Box::new(Cursor::new(json)));
    let options = dump::Options {
        mode: Mode::Strict,
        taken_at: Timestamp::UNIX_EPOCH,
    };
    dump::read([source], options).unwrap().0
}

/// Upstream's algorithm alone.
pub(crate) fn faithful() -> Options {
    Options {
        packing: Packing::Faithful,
        ..Options::default()
    }
}
