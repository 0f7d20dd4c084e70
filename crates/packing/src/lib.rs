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
mod floor;
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
mod warm;

use model::{
    plan::{Plan, Unplaced},
    snapshot::Snapshot,
};

pub use floor::{Floor, floor};
pub use options::{Options, Packing, ReservedMode, Steering};
pub use portfolio::{Contender, Realised, Report};
pub use prepared::{Aftermath, Choices, Prepared, Simulation, Simulator, TypePrice, UnknownNode, Way, Worth};
pub use run::Work;
pub use run::replay::{Disagreement, Place, Step};
pub use warm::{Step as PlanStep, Warm};

use crate::{
    demand::Demand,
    problem::Problem,
    run::Run,
    supply::{DroppedPool, Supply},
};

/// The plan for the pods of a snapshot that need a place.
pub fn plan(snapshot: &Snapshot, options: &Options) -> Plan {
    Warm::default().plan(snapshot, options)
}

/// A plan, and how it came about.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// Who was in the race, what they cost, and what no plan costs less than.
    pub report: Report,
    /// NodePools of which no instance type is left.
    pub dropped: Vec<DroppedPool>,
}

/// The plan for the pods of a snapshot that need a place, with the plans it was chosen from and a lower bound.
pub fn planned(snapshot: &Snapshot, options: &Options) -> Planned {
    Warm::default().planned(snapshot, options)
}

fn with_ignored(mut plan: Plan, ignored: Vec<Unplaced>) -> Plan {
    plan.unplaced.extend(ignored);
    plan.unplaced.sort_by_key(|unplaced| unplaced.pod.metadata.key());
    plan
}

/// Whether each of upstream's decisions could have been ours; the first that could not.
pub fn replay(snapshot: &Snapshot, options: &Options, steps: &[Step]) -> Result<(), Disagreement> {
    let (demand, supply) = (Demand::of(snapshot), Supply::of(snapshot, options));
    let problem = Problem::new(snapshot, demand, supply, options);
    Run::new(&problem).replay(steps)
}
