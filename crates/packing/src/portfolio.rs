//! Which plan is cheapest? Upstream's own and those the cheaper passes propose, all filled through the same tests.
//!
//! The faithful plan is always in the race, so no plan costs more than upstream's would. A proposal counts only if it
//! places every pod the faithful plan places and keeps spot claims as flexible. kube-scheduler spends the plan, not we:
//! the plans that are left are rehearsed, and the one that costs least once its leftovers have nodes too is chosen.

use model::{
    object::ObjectKey,
    plan::{Plan, PlannedClaim},
    price::Price,
};
use rustc_hash::FxHashSet;
use scheduler::rehearsal::rehearse;

use crate::{
    bound::lower_bound,
    cost::{
        Portfolio, Settings,
        adapt::{self, ClassKey, Picture},
        portfolio,
    },
    finish::{self, ClaimSummary},
    options::{Packing, Steering},
    problem::Problem,
    run::Run,
};

/// What every contender came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The faithful plan first, then the proposals.
    pub contenders: Vec<Contender>,
    /// Position of the one that won.
    pub winner: usize,
    /// What no plan for the placed pods costs less than.
    pub lower_bound: Price,
    /// Steps of all searches.
    pub steps: u64,
}

/// One plan in the race.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contender {
    /// Which pass.
    pub name: &'static str,
    /// What its nodes cost an hour.
    pub price: Price,
    /// Nodes to launch.
    pub claims: usize,
    /// Pods without a place.
    pub unplaced: usize,
    /// Instance types its claims may become, summed up.
    pub options: usize,
    /// It places what the faithful plan places, and is as flexible.
    pub is_valid: bool,
    /// What it came to in the rehearsal; none when it was not rehearsed.
    pub realised: Option<Realised>,
}

/// What a plan comes to when kube-scheduler places the pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Realised {
    /// In how many waves its nodes are released for that.
    pub waves: u32,
    /// Pods that landed where the plan has them.
    pub as_planned: usize,
    /// Pods that found no room any more.
    pub pending: usize,
    /// The plan and the nodes those pods need then.
    pub price: Price,
}

impl Report {
    /// The plan that won.
    pub fn winner(&self) -> Option<&Contender> {
        self.contenders.get(self.winner)
    }
}

/// Spot claims should have so many types to choose from.
const FLEXIBLE: usize = 15;
/// What a node counts as dearer than it is where few nodes are sought: two cents an hour.
const SURCHARGE: u64 = 20_000_000_000;

/// Pods times nodes up to which plans are rehearsed: beyond, a rehearsal would take longer than it saves.
const LARGEST_REHEARSAL: usize = 40_000_000;

/// The best plan found, and how the race went.
pub(crate) fn best(problem: &Problem) -> (Plan, Report) {
    let mut faithful = Run::new(problem);
    let left = faithful.solve();
    let mut race = Race::new(faithful, left);
    if problem.options.packing == Packing::Cheapest {
        race.enter_proposals(problem);
    }
    race.finish(problem)
}

struct Race<'p> {
    /// The runs that may win, with the pods they left over, by position among the contenders.
    entries: Vec<(usize, Run<'p>, Vec<u32>)>,
    /// Pods the faithful plan could not place.
    hopeless: FxHashSet<u32>,
    /// So many types every spot claim must have to choose from.
    flexibility: usize,
    report: Report,
    /// The classes of the picture the passes worked on.
    keys: Vec<ClassKey>,
    /// What pods of these were found to be worth, pass by pass.
    values: Vec<Vec<f64>>,
}

impl<'p> Race<'p> {
    fn new(mut faithful: Run<'p>, left: Vec<u32>) -> Self {
        let claims = finish::summaries(&mut faithful);
        let hopeless = unplaced(&faithful, &claims, &left);
        let flexibility = claims.iter().map(|claim| claim.options).fold(FLEXIBLE, usize::min);
        let contender = contender("faithful", &claims, hopeless.len(), true);
        Self {
            entries: vec![(0, faithful, left)],
            hopeless,
            flexibility,
            report: Report {
                contenders: vec![contender],
                ..Report::default()
            },
            keys: Vec::new(),
            values: Vec::new(),
        }
    }

    fn enter_proposals(&mut self, problem: &'p Problem) {
        let (mut run, left) = with_nodes_filled(problem);
        if left.is_empty() {
            return;
        }
        let picture = adapt::for_passes(&mut run, &left);
        let mut ready = Some((run, left));
        for (name, settings) in settings() {
            // Flexibility costs something, so it is asked for only when nothing else was flexible enough.
            if settings.stand_ins > 0 && self.report.contenders[1..].iter().any(|proposal| proposal.is_valid) {
                continue;
            }
            let found = portfolio(&picture.problem, &settings);
            self.report.steps += found.steps;
            let (run, left) = ready.take().unwrap_or_else(|| with_nodes_filled(problem));
            self.enter(name, run, &left, &picture, &found);
            if self.values.is_empty() {
                self.values = found.values;
            }
        }
        self.keys = picture.keys;
    }

    fn enter(&mut self, name: &'static str, mut run: Run<'p>, left: &[u32], picture: &Picture, found: &Portfolio) {
        let Some(candidate) = found.candidates.first() else {
            return;
        };
        let (guides, order) = picture.guides(&candidate.packed);
        let refused: FxHashSet<u32> = run.fill(&guides, &order).into_iter().collect();
        let guided: FxHashSet<u32> = order.iter().map(|(_, pod)| *pod).collect();
        let is_left = |pod: &&u32| refused.contains(*pod) || !guided.contains(*pod);
        let left = run.drain(left.iter().filter(is_left).copied().collect());
        let claims = finish::summaries(&mut run);
        let unplaced = unplaced(&run, &claims, &left);
        let is_valid = unplaced.is_subset(&self.hopeless) && is_flexible(&claims, self.flexibility);
        let contender = contender(name, &claims, unplaced.len(), is_valid);
        // Never dearer than upstream's own plan, whatever a rehearsal says.
        if is_valid && rank(&contender) < rank(&self.report.contenders[0]) {
            self.entries.push((self.report.contenders.len(), run, left));
        }
        self.report.contenders.push(contender);
    }

    fn finish(mut self, problem: &'p Problem) -> (Plan, Report) {
        let mut plans: Vec<(usize, Plan)> = Vec::with_capacity(self.entries.len());
        for (at, run, left) in &mut self.entries {
            let mut plan = finish::plan(run, left);
            steer(&mut plan, problem.options.steering);
            plans.push((*at, plan));
        }
        if plans.len() > 1 && is_rehearsable(problem, &plans) {
            for (at, plan) in &plans {
                self.report.contenders[*at].realised = Some(rehearsed(problem, plan));
            }
        }
        let realised = |at: usize| {
            let contender = &self.report.contenders[at];
            let price = contender
                .realised
                .as_ref()
                .map_or(contender.price, |realised| realised.price);
            (price, rank(contender))
        };
        let winner = (0..plans.len())
            .min_by_key(|entry| realised(plans[*entry].0))
            .unwrap_or_default();
        let (at, plan) = plans.swap_remove(winner);
        self.report.winner = at;
        self.report.lower_bound = self.bound(problem, winner);
        (plan, self.report)
    }

    /// What no plan for the pods the winner placed costs less than.
    fn bound(&mut self, problem: &'p Problem, winner: usize) -> Price {
        let (_, run, left) = &mut self.entries[winner];
        let claims = finish::summaries(run);
        let unplaced = unplaced(run, &claims, left);
        let placed: Vec<u32> = problem.demand().filter(|pod| !unplaced.contains(pod)).collect();
        let picture = adapt::for_bound(&mut Run::new(problem), &placed);
        let starts = starts(&picture, &self.keys, &self.values);
        Price::from_picos(lower_bound(&picture.problem, &starts))
    }
}

fn is_rehearsable(problem: &Problem, plans: &[(usize, Plan)]) -> bool {
    let nodes = plans.iter().map(|(_, plan)| plan.claims.len()).max().unwrap_or(0) + problem.nodes.len();
    problem.pods.len().saturating_mul(nodes) <= LARGEST_REHEARSAL
}

/// What a plan comes to when kube-scheduler places the pods, and the pods it leaves over get nodes of their own.
fn rehearsed(problem: &Problem, plan: &Plan) -> Realised {
    let outcome = rehearse(&problem.snapshot, plan);
    let pending: FxHashSet<ObjectKey> = outcome.pending.iter().cloned().collect();
    let is_pending = |pod: &u32| pending.contains(&problem.pods[*pod as usize].pod.metadata.key());
    let mut price = plan.price();
    if !pending.is_empty() {
        let mut run = Run::new(problem);
        run.drain(problem.demand().filter(is_pending).collect());
        price = price + finish::summaries(&mut run).iter().map(|claim| claim.price).sum();
    }
    Realised {
        waves: plan.waves(),
        as_planned: outcome.as_planned,
        pending: pending.len(),
        price,
    }
}

/// Says how the plan is to be carried out. Nodes on demand come last where there are others: pods that can go elsewhere
/// then do not take their room.
fn steer(plan: &mut Plan, steering: Steering) {
    if steering == Steering::Off {
        return;
    }
    let on_demand = plan.claims.iter().filter(|claim| is_on_demand(claim)).count();
    let has_both = on_demand > 0 && on_demand < plan.claims.len();
    for claim in &mut plan.claims {
        claim.wave = u32::from(has_both && is_on_demand(claim));
        if matches!(steering, Steering::Nominate | Steering::Pin) {
            claim.nominated = (0..).zip(&claim.pods).map(|(at, _)| at).collect();
        }
    }
}

fn is_on_demand(claim: &PlannedClaim) -> bool {
    let launch = claim.cheapest.as_ref();
    launch.is_some_and(|launch| launch.capacity_type.as_deref() == Some(api::labels::CAPACITY_TYPE_ON_DEMAND))
}

/// What counts between valid plans: money, then fewer pods left over, then fewer nodes, then more types to choose from.
fn rank(contender: &Contender) -> (Price, usize, usize, std::cmp::Reverse<usize>) {
    (
        contender.price,
        contender.unplaced,
        contender.claims,
        std::cmp::Reverse(contender.options),
    )
}

fn settings() -> [(&'static str, Settings); 3] {
    let plain = Settings::default();
    let few = Settings {
        node_surcharge: SURCHARGE,
        ..Settings::default()
    };
    let flexible = Settings {
        stand_ins: FLEXIBLE,
        ..Settings::default()
    };
    [
        ("cheap", plain),
        ("cheap, few nodes", few),
        ("cheap, flexible", flexible),
    ]
}

/// A run whose existing nodes are filled, and the pods that still need a place.
fn with_nodes_filled(problem: &Problem) -> (Run<'_>, Vec<u32>) {
    let mut run = Run::new(problem);
    let left = run.place_on_nodes(problem.demand());
    (run, left)
}

fn contender(name: &'static str, claims: &[ClaimSummary], unplaced: usize, is_valid: bool) -> Contender {
    let kept = || claims.iter().filter(|claim| claim.is_kept);
    Contender {
        name,
        price: kept().map(|claim| claim.price).sum(),
        claims: kept().count(),
        unplaced,
        options: kept().map(|claim| claim.options).sum(),
        is_valid,
        realised: None,
    }
}

/// Whether spot claims have at least so many types to choose from.
fn is_flexible(claims: &[ClaimSummary], wanted: usize) -> bool {
    claims.iter().all(|claim| !claim.is_spot || claim.options >= wanted)
}

/// Pods left over and those of claims that are given up.
fn unplaced(run: &Run<'_>, claims: &[ClaimSummary], left: &[u32]) -> FxHashSet<u32> {
    let lost = claims.iter().zip(&run.claims.pods).filter(|(claim, _)| !claim.is_kept);
    left.iter().chain(lost.flat_map(|(_, pods)| pods)).copied().collect()
}

/// What the passes learnt, for the classes of another picture.
fn starts(picture: &Picture, keys: &[ClassKey], found: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let places: std::collections::BTreeMap<&ClassKey, usize> = keys.iter().zip(0..).collect();
    let values = |values: &Vec<f64>| {
        let value = |key: &ClassKey| places.get(key).map_or(0.0, |at| values[*at]);
        picture.keys.iter().map(value).collect()
    };
    found.iter().map(values).collect()
}
