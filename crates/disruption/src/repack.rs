//! Several nodes into several that are cheaper: the move upstream does not have, tried when its own moves find nothing.
//!
//! Nodes are ranked by what they cost beyond what their pods are worth; growing prefixes of the rankings are taken away
//! in thought. What is left of the disturbance must be worth it: a score of a tenth on the policy Balanced's scale, and a
//! twentieth of the price that goes.

use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};

use api::labels::{CAPACITY_TYPE, CAPACITY_TYPE_ON_DEMAND, CAPACITY_TYPE_SPOT};
use model::{
    instance_type::{InstanceType, Offering, worst_launch_price},
    object::{InstanceTypeName, NodeClaim, NodeName, NodePoolName},
    plan::{Plan, PlannedClaim},
    price::Price,
    quantity::Quantity,
    requirement::Requirements,
    resources::ResourceList,
    snapshot::Snapshot,
    vocabulary::Vocabulary,
};
use packing::Packing;

use crate::{
    balanced::Totals,
    candidate::Candidate,
    command::{Command, Replacement, Saving},
    cost::Cost,
    eligible::quiet_at,
    guard,
    method::Method,
    refusal::Rule,
    round::Draft,
    trial::{self, Rules, SPOT_FLEXIBILITY, Stage, Words},
    world::World,
};

/// The score of a move must be at least one in so many.
const LEAST_SCORE: i128 = 10;
/// What is left after a move costs at most so many percent of what went.
const MOST_LEFT_PERCENT: u128 = 95;
/// How many nodes go together at most.
const MOST_TOGETHER: usize = 100;
/// So many sets, the best by a quick look, are planned with every algorithm there is.
const MOST_PLANNED: usize = 4;

/// The set of nodes whose going saves most for what it disturbs, with the nodes that come instead.
pub(crate) fn decide(world: &World<'_>, stage: &Stage, totals: &Totals, draft: &mut Draft, candidates: Vec<Candidate>) {
    let mut purse = draft.purse();
    let offered = candidates.len();
    let open: Vec<Candidate> = candidates
        .into_iter()
        .filter(|candidate| purse.left(&candidate.node_pool) > 0)
        .collect();
    let is_constrained = open.len() < offered;
    if open.is_empty() || is_unsettled(world) || stage.consolidation(world.snapshot).has_no_pools() {
        return;
    }
    let mut best: Option<Command> = None;
    for set in promising(world, stage, draft, &open) {
        let mut spent = purse.clone();
        if !set.iter().all(|candidate| spent.take(&candidate.node_pool)) {
            continue;
        }
        if let Ok(command) = repacked(world, stage, totals, &set)
            && best.as_ref().is_none_or(|best| is_better(world, &command, best))
        {
            best = Some(command);
        }
    }
    purse = draft.purse();
    match best {
        Some(command)
            if command
                .candidates
                .iter()
                .all(|candidate| purse.take(&candidate.node_pool)) =>
        {
            draft.commands.push(command);
        }
        _ => draft.settle(world, is_constrained),
    }
}

/// While pods wait or nodes go, the fleet is not what it will be.
fn is_unsettled(world: &World<'_>) -> bool {
    let is_leaving = world
        .machines
        .iter()
        .any(|machine| machine.member.is_managed() && machine.member.is_leaving());
    is_leaving || world.snapshot.provisionable_pods().next().is_some()
}

/// What the whole fleet costs, and what there is to disturb.
struct Fleet {
    price: i128,
    cost: i128,
}

impl Fleet {
    fn of(world: &World<'_>) -> Self {
        let ours = world.machines.iter().filter(|machine| machine.member.is_managed());
        let mut fleet = Self { price: 0, cost: 0 };
        for machine in ours {
            fleet.price += i128::from(machine.price.picos());
            fleet.cost += i128::from(machine.tracked_cost(world.gates()).units());
        }
        fleet
    }

    /// What a move is worth: its saving less what its disturbance would have to save at least.
    fn worth(&self, saving: i128, cost: Cost) -> i128 {
        let least = i128::from(cost.units()).saturating_mul(self.price) / self.cost.max(1) / LEAST_SCORE;
        saving - least
    }
}

fn is_better(world: &World<'_>, command: &Command, than: &Command) -> bool {
    let fleet = Fleet::of(world);
    let worth = |command: &Command| {
        let cost = command
            .candidates
            .iter()
            .map(|candidate| candidate.reschedule_cost)
            .sum();
        fleet.worth(command.saving.0, cost)
    };
    worth(command) > worth(than)
}

/// The sets that look best after a quick look: all pods have a place, upstream's way, and that is cheaper; and the
/// longest prefixes whatever they look like, because a better plan may need room to work with.
fn promising(world: &World<'_>, stage: &Stage, draft: &mut Draft, candidates: &[Candidate]) -> Vec<Vec<Candidate>> {
    let (fleet, rules, moves) = (Fleet::of(world), Rules::of(world), trial::moves(world));
    let mut simulator = stage.consolidation(world.snapshot).simulator();
    let mut looked: Vec<(i128, Vec<Candidate>)> = Vec::new();
    let mut longest: Vec<Vec<Candidate>> = Vec::new();
    for ranking in rankings(world, candidates) {
        for length in lengths(ranking.len()) {
            let Some(set) = ranking.get(..length) else { continue };
            let work: usize = set.iter().map(|candidate| candidate.reschedulable.len()).sum();
            draft.work += work as u64;
            if draft.work > world.options.work {
                break;
            }
            let removed: Price = set.iter().map(|candidate| candidate.price).sum();
            let after = simulator.ask(&trial::names(set), &moves, |after| {
                trial::outcome(after, rules, Words::Unwanted).ok()?;
                Some(after.plan().price())
            });
            if let Ok(Some(after)) = after {
                let cost = set.iter().map(|candidate| candidate.reschedule_cost).sum();
                looked.push((fleet.worth(Saving::between(removed, after).0, cost), set.to_vec()));
            }
        }
        longest.push(ranking.into_iter().take(MOST_TOGETHER).collect());
    }
    looked.sort_by_key(|(worth, set)| (std::cmp::Reverse(*worth), set.len()));
    let mut sets: Vec<Vec<Candidate>> = Vec::new();
    for set in looked.into_iter().map(|(_, set)| set).take(MOST_PLANNED).chain(longest) {
        if !sets.iter().any(|known| is_same_set(known, &set)) {
            sets.push(set);
        }
    }
    sets
}

fn is_same_set(a: &[Candidate], b: &[Candidate]) -> bool {
    let sorted = |set: &[Candidate]| {
        let mut names = trial::names(set);
        names.sort();
        names
    };
    a.len() == b.len() && sorted(a) == sorted(b)
}

/// One by one up to six, then by a quarter more each time.
fn lengths(most: usize) -> Vec<usize> {
    let most = most.min(MOST_TOGETHER);
    let mut lengths = Vec::new();
    let mut length = 1;
    while length < most {
        lengths.push(length);
        length += (length / 4).max(1);
    }
    lengths.push(most);
    lengths
}

/// By waste, by waste for what is disturbed, by the share of the price that is waste.
fn rankings(world: &World<'_>, candidates: &[Candidate]) -> Vec<Vec<Candidate>> {
    let rates = Rates::of(world);
    let waste: BTreeMap<&NodeName, i128> = candidates
        .iter()
        .map(|candidate| (&candidate.node, rates.waste(candidate)))
        .collect();
    let of = |candidate: &Candidate| waste.get(&candidate.node).copied().unwrap_or(0);
    let by = |order: &dyn Fn(&Candidate, &Candidate) -> Ordering| {
        let mut ranking = candidates.to_vec();
        ranking.sort_by(|a, b| order(b, a).then_with(|| a.node.cmp(&b.node)));
        ranking
    };
    let fraction = |a: (i128, i128), b: (i128, i128)| a.0.saturating_mul(b.1).cmp(&b.0.saturating_mul(a.1));
    vec![
        by(&|a, b| of(a).cmp(&of(b))),
        by(&|a, b| {
            let cost = |candidate: &Candidate| i128::from(candidate.reschedule_cost.units());
            fraction((of(a), cost(a)), (of(b), cost(b)))
        }),
        by(&|a, b| {
            let price = |candidate: &Candidate| i128::from(candidate.price.picos()).max(1);
            fraction((of(a), price(a)), (of(b), price(b)))
        }),
    ]
}

/// The lowest price at which each pool sells a unit of a resource: no node hosts pods for less.
struct Rates {
    /// Price and amount, by pool and resource.
    pools: BTreeMap<NodePoolName, BTreeMap<Arc<str>, (u128, u128)>>,
}

/// The resources that machines are paid for.
const PAID: [&str; 2] = ["cpu", "memory"];

impl Rates {
    fn of(world: &World<'_>) -> Self {
        let pools = world.types.iter().map(|(pool, types)| {
            let mut rates: BTreeMap<Arc<str>, (u128, u128)> = BTreeMap::new();
            for it in types.values() {
                lower(&mut rates, it);
            }
            (pool.clone(), rates)
        });
        Self { pools: pools.collect() }
    }

    /// What a node costs beyond what its pods are worth.
    fn waste(&self, candidate: &Candidate) -> i128 {
        let mut requests = ResourceList::default();
        for pod in &candidate.reschedulable {
            requests.add(&pod.spec.resources().requests());
        }
        let rates = self.pools.get(&candidate.node_pool);
        let worth = PAID.iter().filter_map(|name| {
            let (price, amount) = rates?.get(*name)?;
            Some(amount_of(requests.amount(name)) * price / (*amount).max(1))
        });
        let worth = i128::try_from(worth.max().unwrap_or(0)).unwrap_or(i128::MAX);
        i128::from(candidate.price.picos()) - worth
    }
}

fn lower(rates: &mut BTreeMap<Arc<str>, (u128, u128)>, it: &InstanceType) {
    let available = it.offerings.iter().filter(|offering| offering.is_available);
    let Some(price) = available.map(|offering| u128::from(offering.price.picos())).min() else {
        return;
    };
    let allocatable = it.allocatable();
    for name in PAID {
        let amount = amount_of(allocatable.amount(name));
        let rate = rates.entry(name.into()).or_insert((price, amount));
        if price * rate.1 < rate.0 * amount {
            *rate = (price, amount);
        }
    }
}

/// In units small enough to tell pods apart and large enough not to overflow.
fn amount_of(quantity: Quantity) -> u128 {
    u128::try_from(quantity.milli_value().max(0)).unwrap_or(0)
}

/// The best plan without these nodes, if it is worth it.
pub(crate) fn repacked(
    world: &World<'_>,
    stage: &Stage,
    totals: &Totals,
    candidates: &[Candidate],
) -> Result<Command, Rule> {
    // The same set is the same command, whichever ranking it comes from.
    let mut candidates = candidates.to_vec();
    candidates.sort_by(|a, b| a.node.cmp(&b.node));
    let removed: Price = candidates.iter().map(|candidate| candidate.price).sum();
    let quick = quick_plan(world, stage, &candidates);
    let thorough = thorough_plan(world, &candidates);
    let plan = match (quick, thorough) {
        (Ok(quick), Some(thorough)) if quick.price() <= thorough.price() => quick,
        (_, Some(thorough)) => thorough,
        (quick, None) => quick?,
    };
    let saving = Saving::between(removed, plan.price());
    let cost: Cost = candidates.iter().map(|candidate| candidate.reschedule_cost).sum();
    if Fleet::of(world).worth(saving.0, cost) < 0 || saving.0 <= 0 {
        return Err(Rule::NotCheaper);
    }
    let claims = affordable(world, &plan, removed)?;
    let scores = totals.scores(&candidates.iter().collect::<Vec<_>>(), saving);
    if scores.iter().any(|score| !score.is_approved) {
        return Err(Rule::Balanced(scores));
    }
    let command = Command {
        method: Method::Repack,
        candidates,
        replacements: claims
            .iter()
            .map(|claim| Replacement::Planned(Box::new(claim.clone())))
            .collect(),
        plan: Plan { claims, ..plan },
        terminate_first: None,
        is_reboot: false,
        saving,
        scores,
    };
    match guard::check(world, &command) {
        Some(rule) => Err(rule),
        None => Ok(command),
    }
}

/// Upstream's way.
fn quick_plan(world: &World<'_>, stage: &Stage, candidates: &[Candidate]) -> Result<Plan, Rule> {
    let rules = Rules::of(world);
    let mut simulator = stage.consolidation(world.snapshot).simulator();
    let asked = simulator.ask(&trial::names(candidates), trial::moves(world), |after| {
        trial::outcome(after, rules, Words::Wanted).map_err(Rule::Unschedulable)?;
        Ok(after.plan())
    });
    asked.map_err(|_| Rule::Leaving)?
}

/// With every algorithm there is; none when it leaves a pod without a place, or relies on nodes it must not rely on.
fn thorough_plan(world: &World<'_>, candidates: &[Candidate]) -> Option<Plan> {
    let options = packing::Options {
        packing: Packing::Cheapest,
        is_consolidation: true,
        ..packing::Options::default()
    };
    let plan = packing::plan(&without(world, candidates), &options);
    let is_sound = plan.unplaced.is_empty() && plan.existing.iter().all(|node| is_settled(world, &node.name));
    is_sound.then_some(plan)
}

/// The snapshot in which these nodes go.
fn without(world: &World<'_>, candidates: &[Candidate]) -> Snapshot {
    let claims = &world.snapshot.objects().node_claims;
    let going = candidates
        .iter()
        .filter_map(|candidate| claims.find("", candidate.claim.as_str()));
    let going: Vec<Arc<NodeClaim>> = going
        .map(|claim| {
            let mut going = NodeClaim::clone(claim);
            going.metadata.deletion_timestamp = Some(world.now);
            Arc::new(going)
        })
        .collect();
    world
        .snapshot
        .overlaid(|objects| objects.node_claims = objects.node_claims.with(going))
}

/// Whether a node is up, and has been quiet for long enough to take pods of others.
fn is_settled(world: &World<'_>, node: &NodeName) -> bool {
    let at = world.machines.binary_search_by(|machine| machine.name.cmp(node));
    let Some(machine) = at.ok().and_then(|at| world.machines.get(at)) else {
        return false;
    };
    let pool = machine.node_pool().and_then(|pool| world.pool(&pool));
    let quiet = machine
        .member
        .claim
        .zip(pool)
        .and_then(|(claim, pool)| quiet_at(claim, pool));
    machine.member.is_initialized() && quiet.is_none_or(|quiet| quiet <= world.now)
}

/// The claims with only those types that keep the saving whatever is launched.
fn affordable(world: &World<'_>, plan: &Plan, removed: Price) -> Result<Vec<PlannedClaim>, Rule> {
    let most = u128::from(removed.picos()) * MOST_LEFT_PERCENT / 100;
    let planned = u128::from(plan.price().picos()).max(1);
    if planned > most {
        return Err(Rule::NotCheaper);
    }
    let mut vocabulary = world.vocabulary.clone();
    let claims = plan.claims.iter().map(|claim| {
        let cheapest = claim.cheapest.as_ref().ok_or(Rule::NotCheaper)?;
        // What may be spent beyond the plan is shared out by price.
        let limit = u128::from(cheapest.price.picos()) * most / planned;
        let limit = Price::from_picos(u64::try_from(limit).unwrap_or(u64::MAX));
        narrowed(world, claim, limit, &mut vocabulary)
    });
    claims.collect()
}

fn narrowed(
    world: &World<'_>,
    claim: &PlannedClaim,
    limit: Price,
    vocabulary: &mut Vocabulary,
) -> Result<PlannedClaim, Rule> {
    let is_spot = claim
        .cheapest
        .as_ref()
        .is_some_and(|launch| launch.capacity_type.as_deref() == Some(CAPACITY_TYPE_SPOT));
    let mut narrowed = claim.clone();
    if is_spot {
        narrowed.constraints = pinned_to_spot(claim);
    }
    let requirements = Requirements::from_specs(narrowed.constraints.iter(), vocabulary);
    let vocabulary = &*vocabulary;
    let is_affordable = |name: &InstanceTypeName| {
        let it = world.instance_type(&claim.node_pool, name.as_str());
        let launchable = it
            .into_iter()
            .flat_map(|it| it.offerings.iter())
            .filter(|it: &&Offering| it.is_launchable(vocabulary));
        worst_launch_price(launchable, &requirements, vocabulary).is_some_and(|worst| worst <= limit)
    };
    let kept = claim.options.filtered(is_affordable);
    if kept.is_empty() || claim.min_types.is_some_and(|least| kept.len() < least as usize) {
        return Err(Rule::NotCheaper);
    }
    if is_spot && kept.len() < SPOT_FLEXIBILITY {
        return Err(Rule::SpotFlexibility(kept.len()));
    }
    narrowed.options = kept;
    Ok(narrowed)
}

/// The price is spot's: if none can be had, the node must not become a dearer one on demand.
fn pinned_to_spot(claim: &PlannedClaim) -> Arc<[model::requirement::RequirementSpec]> {
    let pinned = claim.constraints.iter().cloned().map(|mut spec| {
        if spec.key == CAPACITY_TYPE {
            spec.values.retain(|value| value != CAPACITY_TYPE_ON_DEMAND);
        }
        spec
    });
    pinned.collect()
}
