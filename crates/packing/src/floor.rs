//! What can no fleet for these pods cost less than, and which part of that is each pod's?

use model::{object::ObjectKey, price::Price, snapshot::Snapshot};

use crate::{
    Options, bound::shared_lower_bound, cost::adapt, demand::Demand, problem::Problem, run::Run, supply::Supply,
};

/// A lower bound on what a fleet costs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Floor {
    /// What no fleet for the pods costs less than.
    pub total: Price,
    /// Each pod's part of it, which adds up to about the total: in proportion to what the proof finds it worth.
    pub parts: Vec<(ObjectKey, Price)>,
}

/// What no fleet for the pods of a snapshot that need a place costs less than. Nothing is planned, so it is quick; a plan's
/// own bound may be a little higher.
pub fn floor(snapshot: &Snapshot, options: &Options) -> Floor {
    let (demand, supply) = (Demand::of(snapshot), Supply::of(snapshot, options));
    let problem = Problem::new(snapshot, demand, supply, options);
    let pods: Vec<u32> = problem.demand().collect();
    let picture = adapt::for_bound(&mut Run::new(&problem), &pods);
    let (total, values) = shared_lower_bound(&picture.problem);
    let of_pods = picture.of_pods(&values);
    let parts = pods.iter().map(|pod| {
        let part = of_pods.get(pod).copied().unwrap_or_default();
        (problem.pods[*pod as usize].pod.metadata.key(), Price::from_picos(part))
    });
    Floor {
        total: Price::from_picos(total),
        parts: parts.collect(),
    }
}
