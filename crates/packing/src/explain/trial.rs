//! Does the pod have a place in a changed snapshot? A run tells; runs are counted.

use model::{
    object::ObjectKey,
    plan::{Plan, PlannedClaim},
    snapshot::Snapshot,
};

use super::{PoolFunnel, funnel::Funnels};
use crate::{Options, Warm, finish, options::Packing, portfolio, problem::Problem, refusal, run::Run};

/// How many runs the search for one pod's fixes may take.
const MOST_RUNS: usize = 20;
/// And how many of them may be races: within limits, cheaper ways to buy find room where upstream's does not.
const MOST_RACES: usize = 4;

/// Runs for one pod.
#[derive(Debug)]
pub(super) struct Trial<'a> {
    options: &'a Options,
    key: ObjectKey,
    runs: usize,
    races: usize,
    /// Changes leave the catalogue as it is, so it is read once.
    warm: Warm,
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
        Self {
            options,
            key,
            runs: 0,
            races: 0,
            warm: Warm::default(),
        }
    }

    pub(super) fn key(&self) -> &ObjectKey {
        &self.key
    }

    pub(super) fn run(&mut self, snapshot: &Snapshot) -> Verdict {
        if self.runs == MOST_RUNS {
            return Verdict::Spent;
        }
        self.runs += 1;
        let problem = self.warm.problem_of(snapshot, self.options);
        let Some(pod) = problem.pods.iter().position(|it| it.pod.metadata.key() == self.key) else {
            return Verdict::Blocked(Vec::new());
        };
        let mut run = Run::new(&problem);
        let left = run.solve();
        let plan = finish::plan(&mut run, &left);
        if self.is_placed(&plan) {
            return Verdict::Placed(plan);
        }
        if let Some(plan) = self.race(&problem) {
            return Verdict::Placed(plan);
        }
        let pod = pod as u32;
        let refused = refusal::refused(&mut run, pod, problem.intake.pods[pod as usize]);
        Verdict::Blocked(Funnels::new(&mut run, pod, &refused).all())
    }

    /// The plan that wins the race, whether it places the pod or not.
    pub(super) fn cheapest(&mut self, snapshot: &Snapshot) -> Option<Plan> {
        if self.options.packing != Packing::Cheapest || self.races == MOST_RACES {
            return None;
        }
        self.races += 1;
        let problem = self.warm.problem_of(snapshot, self.options);
        Some(portfolio::best(&problem).0)
    }

    /// A plan of ours that places the pod within limits where upstream's does not.
    fn race(&mut self, problem: &Problem) -> Option<Plan> {
        let mut pools = problem.snapshot.objects().node_pools.iter();
        let is_limited = pools.any(|pool| !pool.spec.limits.is_empty());
        if self.options.packing != Packing::Cheapest
            || !is_limited
            || problem.pods.len() < 2
            || self.races == MOST_RACES
        {
            return None;
        }
        self.races += 1;
        let (plan, _) = portfolio::best(problem);
        self.is_placed(&plan).then_some(plan)
    }

    fn is_placed(&self, plan: &Plan) -> bool {
        plan.unplaced.iter().all(|it| it.pod.metadata.key() != self.key)
    }

    /// The node a plan launches for the pod, if it is a new one.
    pub(super) fn claim<'p>(&self, plan: &'p Plan) -> Option<&'p PlannedClaim> {
        let mut claims = plan.claims.iter();
        claims.find(|claim| claim.pods.iter().any(|pod| pod.metadata.key() == self.key))
    }
}
