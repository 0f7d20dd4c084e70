//! `--commitments FILE`: what was bought in advance, read and laid over the prices.

use std::{fs, path::Path};

use insight::{
    View,
    commitment::{Commitments, Coverage},
};
use model::snapshot::Snapshot;

use super::rebuilt;
use crate::{
    failure::Failure,
    terminal::{Amount, counted},
};

/// The snapshot with what a launch costs beside the commitments, what they cover, and what is to be told about that.
pub(super) fn applied(file: &Path, snapshot: &Snapshot) -> Result<(Snapshot, Coverage, Vec<String>), Failure> {
    let commitments = read(file)?;
    let coverage = commitments.cover(&View::of(snapshot));
    let catalog = commitments.marginal(snapshot.catalog(), &coverage);
    let mut told = vec![format!(
        "{} of {}: {} covered, at the committed rate",
        counted(coverage.commitments.len(), "commitment"),
        file.display(),
        counted(coverage.machines.len(), "node"),
    )];
    for used in &coverage.commitments {
        let unused = used.unused_usd_h();
        if unused.0 > 0 {
            told.push(format!(
                "{} is not used up, {} of {} is paid for nothing: machines it covers count as free until it is",
                used.name,
                unused.an_hour(),
                used.committed_usd_h.an_hour()
            ));
        }
    }
    let snapshot = rebuilt(snapshot, snapshot.title().clone(), Some(catalog));
    Ok((snapshot, coverage, told))
}

fn read(file: &Path) -> Result<Commitments, Failure> {
    let name = file.display();
    let next = "docs/commitments.md has the format and an example";
    let wrong = |why: String| Failure::new(format!("cannot read the commitments {name}"), why, next);
    let text = fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    let commitments: Commitments = serde_saphyr::from_str(&text).map_err(|error| {
        let problem = error.without_snippet().to_string();
        wrong(problem.lines().next().unwrap_or_default().to_owned())
    })?;
    let faults = commitments.faults();
    if faults.is_empty() {
        return Ok(commitments);
    }
    Err(wrong(faults.join("\n        ")))
}
