//! Does the pod have a place in a changed snapshot? A run tells; runs are counted.

use model::{
    object::ObjectKey,
    plan::{Plan, PlannedClaim},
    snapshot::Snapshot,
};

use super::{PoolFunnel, funnel::Funnels};
use crate::{Options, demand::Demand, finish, problem::Problem, refusal, run::Run, supply::Supply};

/// How many runs the search for one pod's fixes may take.
const MOST_RUNS: usize = 20;

/// Runs for one pod.
#[derive(Debug)]
pub(super) struct Trial<'a> {
    options: &'a Options,
    key: ObjectKey,
    runs: usize,
}

/// What a run said.
#[derive(Debug)]
pub(super) enum Verdict {
    /// The pod has a place in this plan.
    Placed(Plan),
    /// It has none, and this is how far it comes.
    Blocked(Vec<PoolFunnel>),
    /// No run is left.
    Spent,
}

impl<'a> Trial<'a> {
    pub(super) fn new(options: &'a Options, key: ObjectKey) -> Self {
        Self { options, key, runs: 0 }
    }

    pub(super) fn key(&self) -> &ObjectKey {
        &self.key
    }

    pub(super) fn run(&mut self, snapshot: &Snapshot) -> Verdict {
        if self.runs == MOST_RUNS {
            return Verdict::Spent;
        }
        self.runs += 1;
        let (demand, supply) = (Demand::of(snapshot), Supply::of(snapshot, self.options));
        let problem = Problem::new(snapshot, demand, supply, self.options);
        let Some(pod) = problem.pods.iter().position(|it| it.pod.metadata.key() == self.key) else {
            return Verdict::Blocked(Vec::new());
        };
        let mut run = Run::new(&problem);
        let left = run.solve();
        let plan = finish::plan(&mut run, &left);
        let is_unplaced = plan.unplaced.iter().any(|it| it.pod.metadata.key() == self.key);
        if !is_unplaced {
            return Verdict::Placed(plan);
        }
        let pod = pod as u32;
        let refused = refusal::refused(&mut run, pod, problem.intake.pods[pod as usize]);
        Verdict::Blocked(Funnels::new(&mut run, pod, &refused).all())
    }

    /// The node a plan launches for the pod, if it is a new one.
    pub(super) fn claim<'p>(&self, plan: &'p Plan) -> Option<&'p PlannedClaim> {
        let mut claims = plan.claims.iter();
        claims.find(|claim| claim.pods.iter().any(|pod| pod.metadata.key() == self.key))
    }
}
