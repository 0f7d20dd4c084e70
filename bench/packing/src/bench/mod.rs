//! How fast, how frugal and how cheap are both planners? They take turns in one run, on the same files.

pub mod measure;
pub mod plot;
pub mod row;
pub mod simulation;
pub mod steps;

use anyhow::Result;
use packing::{Options, Packing, Warm};
use workloads::Shape;
use workloads::diverse::Types;
use workloads::performance::Scenario;

use crate::input::Input;
use crate::reference::{self, Ask, Reference};
use measure::{Timing, memory, time};
use row::{Row, Side};

/// Goroutines of the reference: what its own benchmark uses.
const WORKERS: u32 = 5;

/// How to measure.
#[derive(Debug, Clone, Copy)]
pub struct Bench {
    /// Turns of each planner.
    pub rounds: u32,
    /// Which passes of ours take part.
    pub packing: Packing,
    /// Whether the reference takes its turns.
    pub is_compared: bool,
    /// Threads of ours.
    pub threads: usize,
}

/// The shapes the figures are about. `large` adds those the reference needs minutes for.
pub fn shapes(large: bool) -> Vec<Shape> {
    let types = Types::Fake400;
    let sizes: &[u64] = if large {
        &[500, 1000, 2000, 5000, 10_000, 20_000]
    } else {
        &[500, 1000, 2000, 5000]
    };
    let mut shapes: Vec<Shape> = sizes.iter().map(|&pods| Shape::Diverse { pods, types }).collect();
    shapes.extend([true, false].map(|respected| Shape::Preferences {
        pods: 4000,
        types,
        respected,
    }));
    shapes.extend(Scenario::ALL.map(Shape::Performance));
    shapes.extend([
        Shape::Mixed { pods: 500, seed: 1 },
        Shape::RegressionSimple,
        Shape::RegressionComplex,
    ]);
    shapes
}

/// Nodes and pods of the cluster that simulations are asked about.
pub const CLUSTER: (u64, u64) = (5000, 100_000);

/// The sizes over which our own work may not grow faster than the pods.
pub const GROWTH: [u64; 5] = [5000, 10_000, 20_000, 50_000, 100_000];

impl Bench {
    /// Lets both plan an input in turn.
    pub fn run(self, input: &Input) -> Result<Row> {
        let options = Options {
            packing: self.packing,
            threads: self.threads,
            ..Options::default()
        };
        let (mut samples, mut warm_samples) = (Vec::new(), Vec::new());
        let mut warm = Warm::default();
        let mut theirs: Vec<reference::Plan> = Vec::new();
        for _ in 0..self.rounds {
            samples.push(time(|| packing::plan(&input.snapshot, &options)));
            if self.packing == Packing::Faithful {
                warm_samples.push(time(|| warm.plan(&input.snapshot, &options)));
            }
            if self.is_compared {
                theirs.extend(reference_turn(input)?);
                samples.push(time(|| packing::plan(&input.snapshot, &options)));
            }
        }
        // Beside all passes the catalogue does not show.
        let warm_samples = if warm_samples.is_empty() {
            &samples
        } else {
            &warm_samples
        };
        let warm_ms = Timing::median(warm_samples);
        let packing::Planned { plan, report, .. } = packing::planned(&input.snapshot, &options);
        let ours = Side {
            ms: Timing::median(&samples),
            claims: plan.claims.len(),
            unplaced: plan.unplaced.len(),
            usd_h: dollars(plan.price()),
            memory: memory(&input.file, self.packing)?,
        };
        let reference = theirs
            .iter()
            .min_by_key(|plan| plan.solve.nanoseconds)
            .map(Side::reference);
        Ok(Row {
            input: input.name.clone(),
            pods: plan.placed() + plan.unplaced.len(),
            packing: self.packing,
            ours,
            warm_ms,
            reference_construct_ms: theirs.iter().map(|plan| plan.construct.ms()).reduce(f64::min),
            reference,
            lower_bound_usd_h: Some(dollars(report.lower_bound)),
        })
    }
}

/// One turn of the reference, in a process of its own so that no earlier input weighs on its collector.
fn reference_turn(input: &Input) -> Result<Vec<reference::Plan>> {
    let ask = Ask {
        workers: WORKERS,
        ..Ask::runs(1)
    };
    Reference::start()?.solve(&input.file, ask)
}

#[allow(clippy::cast_precision_loss, reason = "printed to four digits")]
fn dollars(price: model::price::Price) -> f64 {
    price.picos() as f64 / 1e12
}
