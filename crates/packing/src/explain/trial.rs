//! Does the pod have a place in a changed snapshot? A run tells; runs are counted.

use std::sync::Arc;

use model::{
    object::{ObjectKey, Pod},
    plan::{Plan, PlannedClaim},
    snapshot::{Snapshot, Table},
};

use super::{PoolFunnel, Stage, constraint::Constraint, funnel::Funnels};
use crate::{Options, Warm, finish, options::Packing, portfolio, problem::Problem, refusal, run::Run};

/// How many runs the search for one pod's fixes may take.
const MOST_RUNS: usize = 20;
/// How many more without the nodes that are there, which cost little.
const MOST_BARE_RUNS: usize = 60;
/// And how many of the first may be races: within limits, cheaper ways to buy find room where upstream's does not.
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
    bare: Option<Bare>,
    bare_runs: usize,
}

/// What decides about a pod that no node there is takes, even alone, as long as the pod itself stays as it is: what can be
/// launched. A cluster of thousands of nodes need not be looked at again for every change that is tried.
#[derive(Debug)]
struct Bare {
    pod: Arc<Pod>,
    /// The pod, and daemons: what they ask for is taken from those that run.
    pods: Table<Pod>,
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
            bare: None,
            bare_runs: 0,
        }
    }

    /// From now on the nodes that are there count only where a change makes a difference to them: none of them takes the
    /// pod of this snapshot, in which it is alone.
    pub(super) fn set_nodes_aside(&mut self, alone: &Snapshot) {
        let has_defaults = !alone.settings().default_constraints.is_empty();
        let pod = alone.objects().pods.get(&self.key);
        let Some(pod) = pod.filter(|pod| is_plain(pod) && !has_defaults) else {
            return;
        };
        let pods = alone.objects().pods.iter();
        let kept = pods.filter(|it| it.metadata.key() == self.key || it.is_owned_by_daemon_set());
        self.bare = Some(Bare {
            pod: Arc::clone(pod),
            pods: Table::new(kept.cloned().collect()),
        });
    }

    /// A run of a snapshot in which the pod is alone.
    pub(super) fn run_alone(&mut self, snapshot: &Snapshot) -> Verdict {
        match self.run_bare(snapshot) {
            Some(verdict) => verdict,
            None => self.run(snapshot),
        }
    }

    /// The same without nodes, where that says all; without their use a limit leaves more than it really does.
    fn run_bare(&mut self, snapshot: &Snapshot) -> Option<Verdict> {
        let bare = self.bare.as_ref()?;
        let pod = snapshot.objects().pods.get(&self.key)?;
        if !Arc::ptr_eq(pod, &bare.pod) || self.bare_runs == MOST_BARE_RUNS {
            return None;
        }
        self.bare_runs += 1;
        let pods = bare.pods.clone();
        let launching = snapshot.overlaid(|objects| {
            objects.pods = pods;
            objects.nodes = Table::default();
            objects.node_claims = Table::default();
        });
        let is_limited = |stage: &Stage| matches!(stage.constraint, Constraint::Limit { .. });
        match self.solved(&launching) {
            Verdict::Blocked(funnels) => {
                let mut stages = funnels.iter().filter_map(PoolFunnel::blocking_stage);
                let is_final = !stages.any(is_limited);
                is_final.then_some(Verdict::Blocked(funnels))
            }
            Verdict::Placed(plan) => {
                let pool = self.claim(&plan).and_then(|claim| snapshot.node_pool(&claim.node_pool));
                let is_final = pool.is_some_and(|pool| pool.spec.limits.is_empty());
                is_final.then_some(Verdict::Placed(plan))
            }
            Verdict::Spent => None,
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

/// Whether the pod asks for nothing that pods on other nodes decide.
pub(super) fn is_plain(pod: &Pod) -> bool {
    let affinity = pod.spec.affinity.as_ref();
    let has_rules = affinity.is_some_and(|it| it.pod_affinity.is_some() || it.pod_anti_affinity.is_some());
    !has_rules && pod.spec.topology_spread_constraints.is_empty() && pod.spec.resource_claims.is_empty()
}
