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
mod finish;
mod index;
mod intake;
mod ladder;
mod lanes;
mod limits;
pub mod options;
mod portfolio;
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

use model::{
    plan::{Plan, Unplaced},
    snapshot::Snapshot,
};

pub use options::{Options, Packing, ReservedMode};
pub use portfolio::{Contender, Report};
pub use prepared::{Prepared, Simulation, Simulator, UnknownNode};
pub use run::Work;

use crate::{demand::Demand, problem::Problem, run::Run, supply::Supply};

/// The plan for the pods of a snapshot that need a place.
pub fn plan(snapshot: &Snapshot, options: &Options) -> Plan {
    let (problem, ignored) = problem(snapshot, options);
    let mut run = Run::new(&problem);
    let left = run.solve();
    finished(&mut run, &left, ignored)
}

/// The cheapest plan found for the pods of a snapshot that need a place, and how the race for it went.
pub fn cheapest(snapshot: &Snapshot, options: &Options) -> (Plan, Report) {
    let (problem, ignored) = problem(snapshot, options);
    let (mut run, left, report) = portfolio::best(&problem);
    (finished(&mut run, &left, ignored), report)
}

/// What a run reads, and the pods that are not tried at all.
fn problem(snapshot: &Snapshot, options: &Options) -> (Problem, Vec<Unplaced>) {
    let (demand, supply) = (Demand::of(snapshot), Supply::of(snapshot, options));
    let ignored = demand.ignored.clone();
    (Problem::new(snapshot, demand, supply, options), ignored)
}

fn finished(run: &mut Run<'_>, left: &[u32], ignored: Vec<Unplaced>) -> Plan {
    let mut plan = finish::plan(run, left);
    plan.unplaced.extend(ignored);
    plan.unplaced.sort_by_key(|unplaced| unplaced.pod.metadata.key());
    plan
}
