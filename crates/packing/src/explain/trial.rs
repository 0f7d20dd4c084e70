//! Does the pod have a place in a changed snapshot? A run tells; runs are counted.

use std::sync::Arc;

use api::labels::CAPACITY_TYPE_RESERVED;
use model::{
    object::{ObjectKey, Pod},
    plan::{Plan, PlannedClaim},
    snapshot::Snapshot,
};

use super::{
    PoolFunnel,
    excerpt::{Cut, Excerpt},
    funnel::Funnels,
};
use crate::{Options, Warm, finish, options::Packing, portfolio, problem::Problem, refusal, run::Run};

/// How many runs the search for one pod's fixes may take.
const MOST_RUNS: usize = 20;
/// How many more of an excerpt of the cluster, which cost little.
const MOST_SMALL_RUNS: usize = 60;
/// And how many may be races: within limits, cheaper ways to buy find room where upstream's does not.
const MOST_RACES: usize = 4;

/// Runs for one pod.
#[derive(Debug)]
pub(super) struct Trial<'a> {
    options: &'a Options,
    key: ObjectKey,
    runs: usize,
    races: usize,
    /// Changes leave the catalogue as it is, so it is read once.
    warm: &'a mut Warm,
    excerpt: Option<&'a Excerpt<'a>>,
    small_runs: usize,
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
    pub(super) fn new(
        problem: &'a Problem,
        key: ObjectKey,
        warm: &'a mut Warm,
        excerpt: Option<&'a Excerpt<'a>>,
    ) -> Self {
        Self {
            options: &problem.options,
            key,
            runs: 0,
            races: 0,
            warm,
            excerpt,
            small_runs: 0,
        }
    }

    /// A run of a snapshot in which the pod is alone.
    pub(super) fn run_alone(&mut self, snapshot: &Snapshot) -> Verdict {
        let cut = self.cut(snapshot, Excerpt::alone);
        self.run_cut(snapshot, cut)
    }

    /// A run of a snapshot with all pods that wait.
    pub(super) fn run_among(&mut self, snapshot: &Snapshot) -> Verdict {
        let cut = self.cut(snapshot, Excerpt::among);
        self.run_cut(snapshot, cut)
    }

    fn cut(
        &self,
        snapshot: &Snapshot,
        cut: impl Fn(&'a Excerpt<'a>, &Snapshot, &Arc<Pod>) -> Option<Cut>,
    ) -> Option<Cut> {
        let excerpt = self.excerpt.filter(|_| self.small_runs < MOST_SMALL_RUNS)?;
        let is_as_it_was = snapshot.settings().default_constraints.is_empty();
        let pod = snapshot.objects().pods.get(&self.key).filter(|_| is_as_it_was)?;
        cut(excerpt, snapshot, pod)
    }

    fn run_cut(&mut self, whole: &Snapshot, cut: Option<Cut>) -> Verdict {
        let Some(cut) = cut else { return self.run(whole) };
        self.small_runs += 1;
        match self.solved(&cut.snapshot) {
            Verdict::Placed(plan) if self.is_reserved(&plan) => self.run(whole),
            Verdict::Blocked(funnels) => Verdict::Blocked(cut.told_whole(funnels)),
            verdict => verdict,
        }
    }

    /// Whether the pod is to run on reserved capacity, of which nodes that were left out may have some.
    fn is_reserved(&self, plan: &Plan) -> bool {
        let launch = self.claim(plan).and_then(|claim| claim.cheapest.as_ref());
        launch.and_then(|launch| launch.capacity_type.as_deref()) == Some(CAPACITY_TYPE_RESERVED)
    }

    pub(super) fn key(&self) -> &ObjectKey {
        &self.key
    }

    pub(super) fn run(&mut self, snapshot: &Snapshot) -> Verdict {
        if self.runs == MOST_RUNS {
            return Verdict::Spent;
        }
        self.runs += 1;
        self.solved(snapshot)
    }

    fn solved(&mut self, snapshot: &Snapshot) -> Verdict {
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
        let cut = self.cut(snapshot, Excerpt::among);
        let snapshot = cut.as_ref().map_or(snapshot, |cut| &cut.snapshot);
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
