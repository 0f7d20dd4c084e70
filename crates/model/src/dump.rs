//! Snapshots from and to files: what `kubectl get -o yaml|json` prints, and our own self-contained file.
//!
//! Everything is read before anything is judged, so one run shows every fault. By default a fault fails the reading;
//! [`Mode::Lenient`] leaves the faulty objects out and reports them.

mod blocks;
mod document;
mod fault;
mod item;
mod list;
mod null;
mod parse;
mod path;
mod source;
pub mod tar;
mod thin;
mod write;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

pub use fault::{Fault, Faults, ObjectLabel, Place};
pub use null::drop_nulls;
pub use source::Source;
pub use write::{write, write_gz};

use crate::{
    object::{Job, NodeClassReference, Object},
    snapshot::Snapshot,
};

/// How to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// What a fault leads to.
    pub mode: Mode,
    /// The decision's time when no snapshot file gives one: `kubectl` does not say when it was run.
    pub taken_at: Timestamp,
}

/// What a fault leads to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// The reading fails, listing all faults.
    #[default]
    Strict,
    /// The faulty objects are left out, and reported.
    Lenient,
}

/// What was read, and what was not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Files and streams read.
    pub sources: usize,
    /// Files of a directory left alone, because their names are not those of dumps.
    pub ignored_files: usize,
    /// Objects read.
    pub objects: usize,
    /// Objects that appeared again under the same kind and key; the last one stays.
    pub repeated: usize,
    /// Objects of kinds no decision reads, counted by apiVersion and kind.
    pub skipped: BTreeMap<(String, String), usize>,
    /// Node classes as they are written: a snapshot keeps of them only what the core decides by.
    pub node_classes: BTreeMap<NodeClassReference, Value>,
    /// Jobs that no API server has seen, by namespace and name: nobody has made their pods.
    pub jobs: BTreeMap<(String, String), Job>,
    /// What was wrong; empty unless the mode is lenient.
    pub faults: Vec<Fault>,
}

impl Report {
    /// Keeps of Jobs those whose pods nobody has made. Of the others no decision reads more than their pods.
    fn jobs(&mut self, jobs: Vec<Job>) {
        let (fresh, seen): (Vec<_>, Vec<_>) = jobs.into_iter().partition(Job::is_fresh);
        let key = |job: &Job| (job.metadata.namespace.to_string(), job.metadata.name.to_string());
        self.jobs = fresh.into_iter().map(|job| (key(&job), job)).collect();
        if !seen.is_empty() {
            self.objects -= seen.len();
            self.skipped
                .insert((Job::API_VERSION.into(), Job::KIND.into()), seen.len());
        }
    }
}

/// Reads dumps and at most one snapshot file into one snapshot. Of two objects with the same kind and key the one read
/// last stays; directories are read in the order of file names.
pub fn read(sources: impl IntoIterator<Item = Source>, options: Options) -> Result<(Snapshot, Report), Faults> {
    let mut reading = parse::Reading::default();
    for source in sources {
        source::open(source, &mut reading);
    }
    reading.finish(options)
}
