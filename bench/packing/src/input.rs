//! Which inputs are compared? A generated workload as a file for upstream and as a snapshot for us.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use model::dump::{self, Mode, Source};
use model::snapshot::Snapshot;

/// One workload, for both.
pub struct Input {
    /// The workload's name.
    pub name: String,
    /// What upstream reads.
    pub file: PathBuf,
    /// What we plan for.
    pub snapshot: Snapshot,
}

impl Input {
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
            taken_at: jiff::Timestamp::UNIX_EPOCH,
        };
        let (snapshot, _) = dump::read([Source::Path(file.to_owned())], options)
            .with_context(|| format!("cannot read {}", file.display()))?;
        Ok(Self {
            name: snapshot.title().name.clone(),
            file: file.to_owned(),
            snapshot,
        })
    }
}
