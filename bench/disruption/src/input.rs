//! Which clusters are decided on? Fleets after scale-in and random clusters, as a file for upstream and a snapshot for us.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use jiff::Timestamp;
use model::{
    dump::{self, Mode, Source},
    snapshot::Snapshot,
};
use workloads::{Shape, random};

/// One cluster, for both.
pub struct Input {
    /// What upstream reads.
    pub file: PathBuf,
    /// What we decide on.
    pub snapshot: Snapshot,
}

impl Input {
    /// The cluster of a seed: in turn a fleet of one kind of pods and another, and a random one.
    pub fn of_seed(seed: u64, dir: &Path) -> Result<Self> {
        let workload = match seed % 4 {
            0 => random::random(seed),
            turn => fleet(40 * turn + seed % 37, seed),
        };
        let workload = workload.gate("SpotToSpotConsolidation", !seed.is_multiple_of(3));
        Self::generate(&workload, dir)
    }

    /// Writes a generated workload into a directory and reads it back.
    pub fn generate(workload: &workloads::Snapshot, dir: &Path) -> Result<Self> {
        let file = dir.join(format!("{}.json", workload.name()));
        fs::write(&file, serde_json::to_vec(workload)?).with_context(|| format!("cannot write {}", file.display()))?;
        Self::read(&file)
    }

    /// Reads a snapshot file.
    pub fn read(file: &Path) -> Result<Self> {
        let options = dump::Options {
            mode: Mode::Strict,
            taken_at: Timestamp::UNIX_EPOCH,
        };
        let (snapshot, _) = dump::read([Source::Path(file.to_owned())], options)
            .with_context(|| format!("cannot read {}", file.display()))?;
        Ok(Self {
            file: file.to_owned(),
            snapshot,
        })
    }
}

/// A fleet after scale-in, every second one with things that few have.
fn fleet(pods: u64, seed: u64) -> workloads::Snapshot {
    let mut fleet = Shape::FleetMixed { pods, seed }.generate();
    if seed % 8 >= 4 {
        random::vary(&mut fleet, seed);
    }
    fleet
}
