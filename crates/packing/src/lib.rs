//! Given a snapshot: which nodes to launch, which pods go where, and what the rest lacks.
#![allow(
    clippy::cast_possible_truncation,
    reason = "positions in the tables of a run fit 32 bits: a cluster has far fewer than four billion of anything"
)]

mod bitmap;
pub mod bound;
mod claims;
pub mod cost;
pub mod demand;
mod device_demand;
pub mod explain;
mod finish;
mod index;
mod intake;
mod ladder;
mod lanes;
mod limits;
pub mod options;
mod prepared;
mod problem;
mod refusal;
mod reserved;
mod rules;
mod run;
mod space;
pub mod supply;
mod tolerance;
mod topology;
mod variant;

use model::{plan::Plan, snapshot::Snapshot};

pub use options::{Options, Packing, ReservedMode};
pub use prepared::{Prepared, Simulation, Simulator, UnknownNode};
pub use run::Work;

use crate::{demand::Demand, problem::Problem, run::Run, supply::Supply};

/// The plan for the pods of a snapshot that need a place.
pub fn plan(snapshot: &Snapshot, options: &Options) -> Plan {
    let (demand, supply) = (Demand::of(snapshot), Supply::of(snapshot, options));
    let ignored = demand.ignored.clone();
    let problem = Problem::new(snapshot, demand, supply, options);
    let mut run = Run::new(&problem);
    let left = run.solve();
    let mut plan = finish::plan(&mut run, &left);
    plan.unplaced.extend(ignored);
    plan.unplaced
        .sort_by(|a, b| a.pod.metadata.key().cmp(&b.pod.metadata.key()));
    plan
}
