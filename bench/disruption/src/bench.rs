//! How long does a full evaluation take? Every candidate of single-node consolidation, for both, on the same input.

use std::time::Instant;

use anyhow::{Result, ensure};
use disruption::{Facts, Method, Options, ask};
use serde::Serialize;

use crate::{differential, input::Input, reference};

/// One input, measured.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Nodes of the cluster.
    pub nodes: usize,
    /// Pods on them.
    pub pods: usize,
    /// Candidates that were looked at.
    pub candidates: usize,
    /// What it took us, from the snapshot on, the fastest of some runs.
    pub ours_ms: f64,
    /// What it took upstream, from candidates and budgets on; none when it was not asked.
    pub reference_ms: Option<f64>,
    /// Ours by theirs.
    pub ratio: Option<f64>,
}

/// Measures both on an input.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures")]
#[expect(clippy::cast_precision_loss, reason = "milliseconds for people")]
pub fn measure(input: &Input, runs: u32, threads: usize, with_reference: bool) -> Result<Row> {
    let (facts, now) = (Facts::default(), input.snapshot.taken_at());
    let options = Options {
        threads,
        ..differential::options()
    };
    let mut best = f64::INFINITY;
    let mut pass = None;
    for _ in 0..runs.max(1) {
        let start = Instant::now();
        let found = ask(
            Method::SingleNodeConsolidation,
            &input.snapshot,
            &facts,
            &Options { ..options.clone() },
            now,
        );
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
        pass = Some(found);
    }
    let reference_ms = if with_reference {
        let upstream = reference::consolidate(&input.file)?;
        let single = upstream.methods.iter().find(|method| method.name == "single");
        single.map(|method| method.cost.nanoseconds as f64 / 1e6)
    } else {
        None
    };
    let is_full = pass.as_ref().is_some_and(|pass| pass.commands.is_empty());
    ensure!(is_full, "something was found before every candidate was looked at");
    Ok(Row {
        nodes: input.snapshot.objects().nodes.len(),
        pods: input.snapshot.objects().pods.len(),
        candidates: pass.map_or(0, |pass| pass.evaluated),
        ours_ms: best,
        reference_ms,
        ratio: reference_ms.map(|reference| best / reference),
    })
}
