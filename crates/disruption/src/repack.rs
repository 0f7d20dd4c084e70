//! Several nodes into several that are cheaper: the move upstream does not have.
//!
//! Which nodes go together is searched in memory ([`search`]); the best sets are planned in every way there is and
//! rehearsed. What it saves must be worth what it disturbs: a score of a tenth on the policy Balanced's scale, and a
//! twentieth of the price that goes. It gives way to a move of upstream's own that is worth as much.

mod search;

use std::{collections::BTreeSet, sync::Arc};

use api::labels::{CAPACITY_TYPE, CAPACITY_TYPE_ON_DEMAND, CAPACITY_TYPE_SPOT};
use model::{
    instance_type::{Offering, worst_launch_price},
    object::{InstanceTypeName, NodeClaim},
    plan::{Plan, PlannedClaim},
    price::Price,
    requirement::Requirements,
    snapshot::Snapshot,
    vocabulary::Vocabulary,
};
use packing::{Way, cost::Variant};
use scheduler::rehearsal::Rehearsal;

use self::search::Search;
use crate::{
    balanced::Totals,
    candidate::Candidate,
    command::{Command, Replacement, Saving},
    cost::Cost,
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
/// So many of the sets a search found are planned in every way there is, and rehearsed.
const MOST_PLANNED: usize = 3;

/// The set of nodes whose going saves most for what it disturbs, with the nodes that come instead. `rivals` are moves of
/// upstream's own that could be made instead: the search begins from them, too.
pub(crate) fn decide(
    world: &World<'_>,
    stage: &Stage,
    totals: &Totals,
    draft: &mut Draft,
    candidates: Vec<Candidate>,
    rivals: &[Command],
) {
    let purse = draft.purse();
    let offered = candidates.len();
    let open: Vec<Candidate> = candidates
        .into_iter()
        .filter(|candidate| purse.left(&candidate.node_pool) > 0)
        .collect();
    let is_constrained = open.len() < offered;
    if open.is_empty() || is_unsettled(world) || stage.consolidation(world).has_no_pools() {
        return;
    }
    let mut search = Search::new(world, stage, &open, purse);
    let sets = search.sets(rivals);
    draft.work += search.work();
    let found = sets
        .iter()
        .take(MOST_PLANNED)
        .filter_map(|set| repacked(world, stage, totals, set).ok());
    let best = found.max_by_key(|found| found.worth);
    let fleet = Fleet::of(world);
    match best {
        Some(best) if rivals.iter().all(|rival| best.worth > fleet.worth_of(rival)) => {
            draft.commands.push(best.command);
        }
        Some(_) => {}
        None => draft.settle(world, is_constrained || search.is_cut_short()),
    }
}

/// A move that may be made, and what it is worth once kube-scheduler has placed the pods.
pub(crate) struct Repacked {
    pub(crate) command: Command,
    worth: i128,
}

/// While pods wait or move, the fleet is not what it will be.
fn is_unsettled(world: &World<'_>) -> bool {
    let is_moving = world
        .machines
        .iter()
        .any(|machine| machine.member.is_managed() && machine.member.is_leaving() && !machine.reschedulable.is_empty());
    is_moving || world.snapshot.provisionable_pods().next().is_some()
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

    /// What a command is worth if all pods go where it has them.
    fn worth_of(&self, command: &Command) -> i128 {
        let costs = command.candidates.iter().map(|candidate| candidate.reschedule_cost);
        self.worth(command.saving.0, costs.sum())
    }
}

/// The best plan without these nodes, if it is worth it.
pub(crate) fn repacked(
    world: &World<'_>,
    stage: &Stage,
    totals: &Totals,
    candidates: &[Candidate],
) -> Result<Repacked, Rule> {
    // The same set is the same command, whichever ranking it comes from.
    let mut candidates = candidates.to_vec();
    candidates.sort_by(|a, b| a.node.cmp(&b.node));
    let removed: Price = candidates.iter().map(|candidate| candidate.price).sum();
    let (plan, realised) = best_plan(world, stage, &candidates)?;
    let saving = Saving::between(removed, plan.price());
    let cost: Cost = candidates.iter().map(|candidate| candidate.reschedule_cost).sum();
    // kube-scheduler spends the plan: what is left of the saving then must still be worth it.
    let kept = Saving::between(removed, realised);
    let worth = Fleet::of(world).worth(kept.0, cost);
    if worth < 0 || kept.0 <= 0 || kept.0.saturating_mul(2) < saving.0 {
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
        None => Ok(Repacked { command, worth }),
    }
}

/// The plan that comes to least once it is carried out, and what that is. All nodes are up before the first pod moves, and
/// kube-scheduler places pods as it likes: so every plan is rehearsed.
fn best_plan(world: &World<'_>, stage: &Stage, candidates: &[Candidate]) -> Result<(Plan, Price), Rule> {
    let without = without(world, candidates);
    let mut rehearsal = Rehearsal::new(&without);
    let (mut best, mut refused): (Option<(Plan, Price)>, _) = (None, Rule::NotCheaper);
    for way in WAYS {
        let plan = match quick_plan(world, stage, candidates, way) {
            Ok(plan) => plan,
            Err(rule) => {
                refused = rule;
                continue;
            }
        };
        let pending = rehearsal.rehearse(&plan).pending.len();
        let realised = plan.price() + leftovers(&plan, pending);
        if best.as_ref().is_none_or(|(_, known)| realised < *known) {
            best = Some((plan, realised));
        }
    }
    best.ok_or(refused)
}

/// The ways to place pods that are tried.
const WAYS: [Way; 5] = {
    const fn cheap(variant: Variant) -> Way {
        Way::Cheap { variant, passes: 4 }
    }
    [
        cheap(Variant::Mixed),
        cheap(Variant::OneRatio),
        cheap(Variant::SmallNodes),
        cheap(Variant::OneRatioSmallNodes),
        Way::Faithful,
    ]
};

/// What pods that find no room where they were to go will cost: twice what a pod of the plan costs, for they get nodes that
/// were not planned together.
fn leftovers(plan: &Plan, pending: usize) -> Price {
    let pods = plan.claims.iter().map(|claim| claim.pods.len()).sum::<usize>().max(1);
    let share = u128::from(plan.price().picos()) * 2 * pending as u128 / pods as u128;
    Price::from_picos(u64::try_from(share).unwrap_or(u64::MAX))
}

/// With one algorithm.
fn quick_plan(world: &World<'_>, stage: &Stage, candidates: &[Candidate], way: Way) -> Result<Plan, Rule> {
    let rules = Rules::of(world);
    let mut simulator = stage.consolidation(world).simulator();
    let asked = simulator.ask_by(way, &trial::names(candidates), trial::moves(world), |after| {
        trial::outcome(after, rules, Words::Wanted).map_err(Rule::Unschedulable)?;
        Ok(after.plan())
    });
    asked.map_err(|_| Rule::Leaving)?
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

/// The claims with only those types that keep the saving whatever is launched.
fn affordable(world: &World<'_>, plan: &Plan, removed: Price) -> Result<Vec<PlannedClaim>, Rule> {
    let most = u128::from(removed.picos()) * MOST_LEFT_PERCENT / 100;
    let planned = u128::from(plan.price().picos()).max(1);
    if planned > most {
        return Err(Rule::NotCheaper);
    }
    let mut vocabulary = world.offered.vocabulary.clone();
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
    // A spot node that cannot be had is worse than one that is a little dearer.
    let first: BTreeSet<&InstanceTypeName> = claim.options.iter().take(SPOT_FLEXIBILITY).collect();
    if is_spot && first.len() < SPOT_FLEXIBILITY {
        return Err(Rule::SpotFlexibility(first.len()));
    }
    let kept = claim
        .options
        .filtered(|name| (is_spot && first.contains(name)) || is_affordable(name));
    if kept.is_empty() || claim.min_types.is_some_and(|least| kept.len() < least as usize) {
        return Err(Rule::NotCheaper);
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
