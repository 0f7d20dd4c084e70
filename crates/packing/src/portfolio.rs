//! Which plan is cheapest? Upstream's own and those the cheaper passes propose, all filled through the same tests.
//!
//! The faithful plan is always in the race, so no plan for the same pods costs more than upstream's would. A proposal
//! counts only if it places every pod the faithful plan places and keeps spot claims as flexible, or places more: a pod
//! that gets a node is worth its price, so the plans that leave the fewest pods over go before all others, dearer or not.
//! Where limits keep pods out to the end, upstream's own way is tried once more with claims that share them.
//! kube-scheduler spends the plan, not we: every plan in the race is rehearsed, and the one that costs least once its
//! leftovers have nodes too is chosen. The race ends when a plan is so near to the lower bound that nothing is left to win,
//! or its work is used up.

mod trial;

use std::sync::{Arc, OnceLock};

use model::{
    object::{NodePool, ObjectKey},
    plan::{Plan, PlannedClaim},
    price::Price,
};
use rustc_hash::FxHashSet;
use scheduler::rehearsal::Rehearsal;

use self::trial::{TRIALS, Trial};
use crate::{
    bound::lower_bound,
    cost::{
        Ground, Portfolio,
        adapt::{self, ClassKey, Picture},
        portfolio_on,
    },
    finish,
    options::{Packing, Steering},
    problem::Problem,
    run::{Run, promised::broken},
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
    /// Steps of all searches, and node scores of all rehearsals.
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
    /// Pods that were promised room on a node that is on its way, and are elsewhere.
    pub broken: usize,
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

impl Contender {
    /// What it comes to, as far as is known.
    fn cost(&self) -> Price {
        self.realised.as_ref().map_or(self.price, |realised| realised.price)
    }
}

impl Report {
    /// The plan that won.
    pub fn winner(&self) -> Option<&Contender> {
        self.contenders.get(self.winner)
    }
}

/// Spot claims should have so many types to choose from.
const FLEXIBLE: usize = 15;
/// Permille above the bound at which a plan is good enough.
const NEAR_BOUND: u128 = 20;
/// Permille of the cheapest within which plans count as equally dear, so that fewer nodes decide: a node costs addresses,
/// daemons and image pulls that no price list shows.
const NEAR_BEST: u128 = 10;
/// How many claims are to share what limits leave, in claims that would be needed without them.
const SHARES: [i64; 4] = [1, 2, 4, 8];
/// Steps after which no further proposal is tried once one is valid.
const STEPS: u64 = 1_000_000;
/// The same, for every pod.
const STEPS_PER_POD: u64 = 1_000;
/// Pods times nodes up to which plans are rehearsed: beyond, a rehearsal would take longer than it saves.
const LARGEST_REHEARSAL: u64 = 200_000_000;

/// The best plan found, and how the race went.
pub(crate) fn best(problem: &Problem) -> (Plan, Report) {
    let mut faithful = Run::new(problem);
    let left = faithful.solve();
    let mut race = Race::new(problem, finish::plan(&mut faithful, &left));
    if problem.options.packing == Packing::Cheapest {
        race.run();
    }
    race.finish()
}

struct Race<'p> {
    problem: &'p Problem,
    /// The plans that may win, by position among the contenders.
    plans: Vec<(usize, Plan)>,
    /// Pods the faithful plan could not place.
    hopeless: FxHashSet<ObjectKey>,
    /// How many pods no limits are to blame for.
    least_unplaced: usize,
    /// So many types every spot claim must have to choose from.
    flexibility: usize,
    /// One for each thread.
    rehearsals: Vec<Rehearsal<'p>>,
    report: Report,
    /// The lower bound for the pods that upstream's plan places, once it is known.
    bound: Option<Price>,
    /// The bound again, found by another thread before its turn: the first way to buy is judged without it.
    bound_ahead: Option<Price>,
    /// Upstream's plan rehearsed ahead of the question whether another one may win.
    ahead: Option<Rehearsed>,
    /// What the first search found pods of each class worth.
    worth: (Vec<ClassKey>, Vec<Vec<f64>>),
}

/// A plan with its steering settled, what it comes to, and the steps that took.
type Rehearsed = (Plan, Option<Realised>, u64);

/// What came of one trial.
struct Attempt {
    /// None when the search proposed nothing.
    proposal: Option<Proposal>,
    /// What a pod of each class was worth, pass by pass.
    values: Vec<Vec<f64>>,
    /// Steps of its search.
    steps: u64,
}

/// A plan that one way of buying came to.
struct Proposal {
    contender: Contender,
    plan: Plan,
    /// It may win.
    is_entered: bool,
    /// Steps of its rehearsal.
    steps: u64,
}

impl<'p> Race<'p> {
    fn new(problem: &'p Problem, mut faithful: Plan) -> Self {
        let options = faithful.claims.iter().map(|claim| claim.options.len());
        let flexibility = options.fold(FLEXIBLE, usize::min);
        steer(&mut faithful, problem.options.steering);
        let threads = 0..problem.options.threads.max(1);
        let hopeless = unplaced(&faithful);
        Self {
            least_unplaced: hopeless.len(),
            hopeless,
            flexibility,
            rehearsals: threads.map(|_| Rehearsal::new(&problem.snapshot)).collect(),
            report: Report {
                contenders: vec![contender(problem, "faithful", &faithful, true)],
                ..Report::default()
            },
            plans: vec![(0, faithful)],
            bound: None,
            bound_ahead: None,
            ahead: None,
            worth: Default::default(),
            problem,
        }
    }

    fn run(&mut self) {
        let problem = self.problem;
        // A plan that buys nothing cannot be beaten, but by one that keeps more promises.
        let buys_nothing = self.report.contenders[0].claims == 0;
        if buys_nothing && self.report.contenders[0].broken == 0 {
            return;
        }
        let (mut run, left) = with_nodes_filled(problem);
        if left.is_empty() {
            return self.propose("keeping promises", finish::plan(&mut run, &left));
        }
        if buys_nothing {
            return;
        }
        let claims = self.claims_wanted();
        let picture = adapt::for_passes(&mut run, &left);
        let ground = Ground::new(&picture.problem);
        let mut ready = Some((run, left));
        let mut trials = TRIALS.iter();
        while !self.is_over() {
            let wanted: Vec<&Trial> = trials
                .by_ref()
                .filter(|trial| self.is_wanted(trial))
                .take(self.at_once())
                .collect();
            if wanted.is_empty() {
                break;
            }
            let attempts = self.attempts(&wanted, &picture, &ground, ready.take());
            for (trial, attempt) in wanted.into_iter().zip(attempts) {
                // Some were tried ahead of their turn: what came before them decides whether they count.
                if !self.is_over() && self.is_wanted(trial) {
                    self.judge(attempt, &picture);
                }
            }
        }
        self.share_limits(&claims);
    }

    /// How many ways are tried at once. In the first round a thread is kept for the bound and for upstream's own plan, which
    /// most races need, where a second way is often tried for nothing.
    fn at_once(&self) -> usize {
        let threads = self.rehearsals.len();
        if self.bound.is_none() {
            (threads - 1).max(1)
        } else {
            threads
        }
    }

    /// How many claims of each template would be needed if there were no limits; asked only where they keep pods out.
    fn claims_wanted(&mut self) -> Vec<i64> {
        let is_limited = |pool: &Arc<NodePool>| !pool.spec.limits.is_empty();
        let mut pools = self.problem.snapshot.objects().node_pools.iter();
        if self.hopeless.is_empty() || !pools.any(is_limited) {
            return Vec::new();
        }
        let (mut run, left) = with_nodes_filled(self.problem);
        let (claims, unplaced) = run.without_limits(left.into());
        self.least_unplaced = unplaced.min(self.hopeless.len());
        claims
    }

    /// Upstream's own way, with claims that leave each other room within the limits, smaller and smaller.
    fn share_limits(&mut self, claims: &[i64]) {
        for times in SHARES {
            if !self.may_place_more() {
                return;
            }
            let (mut run, left) = with_nodes_filled(self.problem);
            let parts: Vec<i64> = claims.iter().map(|claims| claims * times).collect();
            let left = run.drain_sparingly(left.into(), &parts);
            self.propose("sharing limits", finish::plan(&mut run, &left));
        }
    }

    /// Lets a plan into the race that no search proposed.
    fn propose(&mut self, name: &'static str, plan: Plan) {
        let mut proposal = self.proposal(name, plan);
        if proposal.is_entered {
            let mut rehearsals = std::mem::take(&mut self.rehearsals);
            (proposal.contender.realised, proposal.steps) = self.rehearsed(&mut proposal.plan, &mut rehearsals[0]);
            self.rehearsals = rehearsals;
        }
        self.enter(proposal);
    }

    /// Tries some at once, each on a thread of its own. What comes of it does not depend on how many.
    fn attempts(
        &mut self,
        trials: &[&Trial],
        picture: &Picture,
        ground: &Ground<'_>,
        ready: Option<(Run<'p>, Vec<u32>)>,
    ) -> Vec<Attempt> {
        let mut rehearsals = std::mem::take(&mut self.rehearsals);
        let (race, found) = (&*self, OnceLock::new());
        let needs_bound = race.bound.is_none() && rehearsals.len() > 1;
        let (used, spare) = rehearsals.split_at_mut(trials.len());
        let (first, rest) = used.split_at_mut(1);
        let (attempts, bound, ahead) = std::thread::scope(|scope| {
            let spare = spare.first_mut().filter(|_| needs_bound);
            let ahead = spare.map(|rehearsal| scope.spawn(|| race.rehearsed_upstream(rehearsal)));
            let search = |trial: &Trial| portfolio_on(ground, &trial.settings());
            let others: Vec<_> = trials[1..]
                .iter()
                .zip(rest)
                .map(|(trial, rehearsal)| {
                    scope.spawn(move || {
                        let filled = with_nodes_filled(race.problem);
                        race.attempt(trial, &search(trial), picture, filled, rehearsal)
                    })
                })
                .collect();
            let found = found.get_or_init(|| search(trials[0]));
            let bound = needs_bound.then(|| scope.spawn(|| race.lower_bound(&picture.keys, &found.values)));
            let filled = ready.unwrap_or_else(|| with_nodes_filled(race.problem));
            let own = race.attempt(trials[0], found, picture, filled, &mut first[0]);
            let attempts = std::iter::once(own).chain(others.into_iter().map(joined));
            (attempts.collect(), bound.map(joined), ahead.map(joined))
        });
        self.bound_ahead = self.bound_ahead.or(bound);
        self.ahead = self.ahead.take().or(ahead);
        self.rehearsals = rehearsals;
        attempts
    }

    /// One way to buy, filled through the same tests as every plan, and rehearsed if it may win.
    fn attempt(
        &self,
        trial: &Trial,
        found: &Portfolio,
        picture: &Picture,
        (mut run, left): (Run<'p>, Vec<u32>),
        rehearsal: &mut Rehearsal<'p>,
    ) -> Attempt {
        let proposal = filled(&mut run, &left, picture, found).map(|left| {
            let mut proposal = self.proposal(trial.name, finish::plan(&mut run, &left));
            if proposal.is_entered {
                (proposal.contender.realised, proposal.steps) = self.rehearsed(&mut proposal.plan, rehearsal);
            }
            proposal
        });
        Attempt {
            proposal,
            values: found.values.clone(),
            steps: found.steps,
        }
    }

    /// A plan, and whether it may win: never if it is dearer than upstream's own for the same pods, whatever a rehearsal
    /// says, nor twice.
    fn proposal(&self, name: &'static str, mut plan: Plan) -> Proposal {
        steer(&mut plan, self.problem.options.steering);
        let left = unplaced(&plan);
        // A pod that gets a node is worth more than types to choose from: within limits, a choice has to be paid for.
        let is_valid = left.is_subset(&self.hopeless)
            && (left.len() < self.hopeless.len() || is_flexible(&plan, self.flexibility));
        let contender = contender(self.problem, name, &plan, is_valid);
        let is_better = rank(&contender) < rank(&self.report.contenders[0]);
        Proposal {
            is_entered: is_valid && is_better && !self.is_known(&contender),
            contender,
            plan,
            steps: 0,
        }
    }

    /// Whether a contender looks just like it.
    fn is_known(&self, contender: &Contender) -> bool {
        let look = |it: &Contender| (it.is_valid, it.price, it.unplaced, it.broken, it.claims, it.options);
        let mut others = self.report.contenders.iter();
        others.any(|other| look(other) == look(contender))
    }

    /// Lets an attempt into the race.
    fn judge(&mut self, attempt: Attempt, picture: &Picture) {
        if self.bound.is_none() {
            let ahead = self.bound_ahead;
            self.bound = Some(ahead.unwrap_or_else(|| self.lower_bound(&picture.keys, &attempt.values)));
        }
        if self.worth.0.is_empty() && !self.hopeless.is_empty() {
            self.worth = (picture.keys.clone(), attempt.values.clone());
        }
        self.report.steps += attempt.steps;
        if let Some(proposal) = attempt.proposal {
            self.enter(proposal);
        }
    }

    fn enter(&mut self, mut proposal: Proposal) {
        // Tried at once with its twin, it does not know of it.
        if self.is_known(&proposal.contender) {
            (proposal.is_entered, proposal.contender.realised) = (false, None);
        }
        self.report.contenders.push(proposal.contender);
        if proposal.is_entered {
            self.report.steps += proposal.steps;
            self.plans.push((self.report.contenders.len() - 1, proposal.plan));
            self.rehearse_faithful();
        }
    }

    /// Rehearses upstream's plan once there is another: one plan alone is chosen without.
    fn rehearse_faithful(&mut self) {
        if self.report.contenders[0].realised.is_some() {
            return;
        }
        let mut rehearsals = std::mem::take(&mut self.rehearsals);
        let ahead = self.ahead.take();
        let (plan, realised, steps) = ahead.unwrap_or_else(|| self.rehearsed_upstream(&mut rehearsals[0]));
        self.rehearsals = rehearsals;
        self.report.contenders[0].realised = realised;
        self.report.steps += steps;
        self.plans[0].1 = plan;
    }

    /// Upstream's plan, which is the first of all.
    fn rehearsed_upstream(&self, rehearsal: &mut Rehearsal<'_>) -> Rehearsed {
        let mut plan = self.plans[0].1.clone();
        let (realised, steps) = self.rehearsed(&mut plan, rehearsal);
        (plan, realised, steps)
    }

    /// What a plan comes to, and the steps that took; none when it binds its pods itself, or is too large to try.
    fn rehearsed(&self, plan: &mut Plan, rehearsal: &mut Rehearsal<'_>) -> (Option<Realised>, u64) {
        let size = (plan.claims.len() + self.problem.nodes.len()) as u64 * self.problem.pods.len() as u64;
        if self.problem.options.steering == Steering::Pin || size > LARGEST_REHEARSAL {
            return (None, 0);
        }
        (Some(realised(self.problem, plan, rehearsal)), size / SCORES_PER_STEP)
    }

    /// Whether nothing is left to win, or no work is left to win it with.
    fn is_over(&self) -> bool {
        let most = STEPS + STEPS_PER_POD * self.problem.pods.len() as u64;
        let is_near = |bound: Price| permille(self.best_price(), 1000) <= permille(bound, 1000 + NEAR_BOUND);
        (self.has_proposal() && self.report.steps > most) || (self.bound.is_some_and(is_near) && !self.may_place_more())
    }

    /// Whether another way to buy may find room for pods that are left over: limits are there to be shared better.
    fn may_place_more(&self) -> bool {
        self.fewest_unplaced() > self.least_unplaced
    }

    /// Flexibility costs something, so it is asked for only when what it is to mend was not flexible enough.
    fn is_wanted(&self, trial: &Trial) -> bool {
        let mut proposals = self.report.contenders[1..].iter().filter(|proposal| proposal.is_valid);
        !trial.is_flexible || proposals.all(|proposal| trial.mends.is_some_and(|mended| proposal.name != mended))
    }

    /// Whether any proposal is valid so far.
    fn has_proposal(&self) -> bool {
        self.report.contenders[1..].iter().any(|proposal| proposal.is_valid)
    }

    /// Pods that the plan which places most leaves over.
    fn fewest_unplaced(&self) -> usize {
        let unplaced = self.plans.iter().map(|(at, _)| self.report.contenders[*at].unplaced);
        unplaced.min().unwrap_or_default()
    }

    /// What the best plan so far comes to: the cheapest of those that place most.
    fn best_price(&self) -> Price {
        let fewest = self.fewest_unplaced();
        let plans = self.plans.iter().map(|(at, _)| &self.report.contenders[*at]);
        let prices = plans.filter(|it| it.unplaced == fewest).map(Contender::cost);
        prices.min().unwrap_or(Price::ZERO)
    }

    fn finish(mut self) -> (Plan, Report) {
        let fewest = self.fewest_unplaced();
        self.plans.retain(|(_, plan)| plan.unplaced.len() == fewest);
        let cost = |entry: &(usize, Plan)| self.report.contenders[entry.0].cost();
        let best = self.best_price();
        let is_near = |entry: &(usize, Plan)| permille(cost(entry), 1000) <= permille(best, 1000 + NEAR_BEST);
        let near = self.plans.iter().enumerate().filter(|(_, entry)| is_near(entry));
        let winner = near.min_by_key(|(_, entry)| {
            let it = &self.report.contenders[entry.0];
            (it.claims, it.cost(), rank(it))
        });
        let winner = winner.map(|(at, _)| at).unwrap_or_default();
        let (at, plan) = self.plans.swap_remove(winner);
        self.report.winner = at;
        self.report.lower_bound = match self.bound {
            Some(bound) if fewest == self.hopeless.len() => bound,
            _ => self.bound_of(&plan),
        };
        (plan, self.report)
    }

    /// What no plan for the pods of this one costs less than: it may place pods that upstream's leaves over.
    fn bound_of(&mut self, plan: &Plan) -> Price {
        self.hopeless = unplaced(plan);
        let (keys, values) = std::mem::take(&mut self.worth);
        self.lower_bound(&keys, &values)
    }

    /// What no plan for the pods that can be placed costs less than, going by what passes found classes of pods worth.
    fn lower_bound(&self, keys: &[ClassKey], values: &[Vec<f64>]) -> Price {
        let problem = self.problem;
        let is_placed = |pod: &u32| {
            let pod = &problem.pods[*pod as usize].pod;
            self.hopeless.is_empty() || !self.hopeless.contains(&pod.metadata.key())
        };
        let placed: Vec<u32> = problem.demand().filter(is_placed).collect();
        let picture = adapt::for_bound(&mut Run::new(problem), &placed);
        let starts = starts(&picture, keys, values);
        Price::from_picos(lower_bound(&picture.problem, &starts))
    }
}

/// What a thread came to; its panic is ours.
fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Places pods as the best proposal has them, and what it leaves over as upstream would; returns those without a place.
/// None when nothing is proposed.
pub(crate) fn filled(run: &mut Run<'_>, left: &[u32], picture: &Picture, found: &Portfolio) -> Option<Vec<u32>> {
    let candidate = found.candidates.first()?;
    let (guides, order) = picture.guides(&candidate.packed);
    let refused: FxHashSet<u32> = run.fill(&guides, &order).into_iter().collect();
    let guided: FxHashSet<u32> = order.iter().map(|(_, pod)| *pod).collect();
    let is_left = |pod: &&u32| refused.contains(*pod) || !guided.contains(*pod);
    Some(run.drain(left.iter().filter(is_left).copied().collect()))
}

/// Scores that a rehearsal looks at in the time of one step.
const SCORES_PER_STEP: u64 = 4;

/// So many thousandths of a price, in a thousandth of its unit.
fn permille(price: Price, parts: u128) -> u128 {
    u128::from(price.picos()) * parts
}

/// What a plan comes to when kube-scheduler places the pods, and the pods it leaves over get nodes of their own. Of
/// nominating all pods and none, the better is kept.
fn realised(problem: &Problem, plan: &mut Plan, rehearsal: &mut Rehearsal<'_>) -> Realised {
    let nominating = tried(problem, plan, rehearsal);
    if problem.options.steering != Steering::Nominate || nominating.pending == 0 {
        return nominating;
    }
    let nominated: Vec<Vec<u32>> = plan
        .claims
        .iter_mut()
        .map(|claim| std::mem::take(&mut claim.nominated))
        .collect();
    let plain = tried(problem, plan, rehearsal);
    if plain.price < nominating.price {
        return plain;
    }
    for (claim, nominated) in plan.claims.iter_mut().zip(nominated) {
        claim.nominated = nominated;
    }
    nominating
}

fn tried(problem: &Problem, plan: &Plan, rehearsal: &mut Rehearsal<'_>) -> Realised {
    let outcome = rehearsal.rehearse(plan);
    let pending: FxHashSet<ObjectKey> = outcome.pending.iter().cloned().collect();
    let is_pending = |pod: &u32| pending.contains(&problem.pods[*pod as usize].pod.metadata.key());
    let mut price = plan.price();
    if !pending.is_empty() {
        let mut run = Run::new(problem);
        let left = run.drain(problem.demand().filter(is_pending).collect());
        price = price + finish::plan(&mut run, &left).price();
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
    capacity_type(claim) == Some(api::labels::CAPACITY_TYPE_ON_DEMAND)
}

fn capacity_type(claim: &PlannedClaim) -> Option<&str> {
    claim.cheapest.as_ref()?.capacity_type.as_deref()
}

/// What counts between valid plans: fewer pods left over, then money, then fewer nodes, then promises kept, then more types
/// to choose from.
fn rank(contender: &Contender) -> (usize, Price, usize, usize, std::cmp::Reverse<usize>) {
    (
        contender.unplaced,
        contender.price,
        contender.claims,
        contender.broken,
        std::cmp::Reverse(contender.options),
    )
}

/// A run whose existing nodes are filled, by pods that were promised room there first, and the pods that still need a
/// place.
fn with_nodes_filled(problem: &Problem) -> (Run<'_>, Vec<u32>) {
    let mut run = Run::new(problem);
    let rest = run.place_as_promised(problem.demand());
    let left = run.place_on_nodes(rest);
    (run, left)
}

fn contender(problem: &Problem, name: &'static str, plan: &Plan, is_valid: bool) -> Contender {
    Contender {
        name,
        price: plan.price(),
        claims: plan.claims.len(),
        unplaced: plan.unplaced.len(),
        broken: broken(problem, plan),
        options: plan.claims.iter().map(|claim| claim.options.len()).sum(),
        is_valid,
        realised: None,
    }
}

/// Whether spot claims have at least so many types to choose from.
fn is_flexible(plan: &Plan, wanted: usize) -> bool {
    let is_spot = |claim: &PlannedClaim| capacity_type(claim) == Some(api::labels::CAPACITY_TYPE_SPOT);
    let mut claims = plan.claims.iter();
    claims.all(|claim| !is_spot(claim) || claim.options.len() >= wanted)
}

fn unplaced(plan: &Plan) -> FxHashSet<ObjectKey> {
    plan.unplaced.iter().map(|it| it.pod.metadata.key()).collect()
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
