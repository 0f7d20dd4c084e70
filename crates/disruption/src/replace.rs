//! Nodes that must go whatever they cost, outdated or broken: replaced first where that can be done.

use std::collections::{BTreeMap, BTreeSet};

use api::duration::Duration;
use model::{
    object::{ConditionStatus, NodePoolName, Pod},
    plan::Plan,
    price::Price,
};
use packing::{Prepared, UnknownNode};

use crate::{
    candidate::Candidate,
    command::{Command, Replacement, Saving},
    eligible::by_drift,
    facts::RepairAction,
    guard,
    method::{Method, TerminateFirst},
    refusal::{Rule, UnschedulablePods},
    round::Draft,
    static_pool::{Reservations, StaticPool, reservation_of},
    trial::{self, Rules, Stage, Words},
    world::World,
};

/// The share of a pool's nodes, in percent, that may be broken before repair of that pool stops.
const BREAKER_PERCENT: u64 = 20;

/// The first drifted node whose pods have a place.
pub(crate) fn drift(world: &World<'_>, stage: &Stage, draft: &mut Draft, mut candidates: Vec<Candidate>) {
    by_drift(world, &mut candidates);
    for candidate in candidates {
        if draft.purse().left(&candidate.node_pool) == 0 {
            draft.refuse_budget(world, &candidate);
            continue;
        }
        if let Some(rule) = guard::before_replacing(world, &candidate) {
            draft.refuse(world, &candidate, rule);
            continue;
        }
        let may_go_first = world.gates().terminate_first_drift;
        match replaced(world, stage, Method::Drift, &candidate, may_go_first) {
            Ok(command) => {
                draft.commands.push(command);
                return;
            }
            Err(rule) => draft.refuse(world, &candidate, rule),
        }
    }
}

/// As many drifted nodes of each static pool as its budget and its node limit allow.
pub(crate) fn static_drift(world: &World<'_>, draft: &mut Draft, candidates: Vec<Candidate>) {
    let mut by_pool: BTreeMap<NodePoolName, Vec<Candidate>> = BTreeMap::new();
    for candidate in candidates {
        by_pool.entry(candidate.node_pool.clone()).or_default().push(candidate);
    }
    for (name, mut candidates) in by_pool {
        let Some(pool) = world.pool(&name) else { continue };
        let budget = u64::from(draft.purse().left(&name));
        if budget == 0 {
            for candidate in &candidates {
                draft.refuse_budget(world, candidate);
            }
            continue;
        }
        let pool = StaticPool::of(world, pool);
        if pool.is_overfull() {
            for candidate in &candidates {
                draft.refuse(world, candidate, Rule::ScaleDownFirst);
            }
            continue;
        }
        by_drift(world, &mut candidates);
        let wanted = budget.min(candidates.len() as u64);
        let may_go_first = world.gates().terminate_first_drift;
        if may_go_first && let Reservations::Full(offered) = pool.reservations() {
            let (eligible, rest): (Vec<_>, Vec<_>) = candidates
                .into_iter()
                .partition(|candidate| holds_one_of(world, candidate, &offered));
            let count = eligible.len();
            for (at, candidate) in eligible.into_iter().chain(rest).take(to_usize(wanted)).enumerate() {
                if at < count && pool.refills() {
                    let why = TerminateFirst::NoReservedCapacity;
                    draft
                        .commands
                        .push(going(Method::StaticDrift, candidate, Some(why), Plan::default()));
                } else {
                    draft.refuse(world, &candidate, Rule::ReservationsFull);
                }
            }
            continue;
        }
        let granted = pool.slots(wanted);
        for candidate in candidates
            .into_iter()
            .take(to_usize(if granted == 0 { wanted } else { granted }))
        {
            if granted > 0 {
                draft.commands.push(from_template(Method::StaticDrift, candidate));
            } else if may_go_first && pool.refills() {
                let why = TerminateFirst::StaticAtLimit;
                draft
                    .commands
                    .push(going(Method::StaticDrift, candidate, Some(why), Plan::default()));
            } else {
                draft.refuse(world, &candidate, Rule::StaticAtLimit);
            }
        }
    }
}

fn to_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn holds_one_of(world: &World<'_>, candidate: &Candidate, offered: &BTreeSet<model::object::Text>) -> bool {
    reservation(world, candidate).is_some_and(|id| offered.contains(&id))
}

fn reservation(world: &World<'_>, candidate: &Candidate) -> Option<model::object::Text> {
    let machine = world.machines.iter().find(|machine| machine.name == candidate.node)?;
    reservation_of(&machine.labels)
}

/// The broken node that has waited longest for what is wrong with it.
pub(crate) fn repair(world: &World<'_>, stage: &Stage, draft: &mut Draft, mut candidates: Vec<Candidate>) {
    let urgency = |candidate: &Candidate| world.facts.repairs.get(&candidate.node).map(|repair| repair.urgency);
    candidates.sort_by(|a, b| {
        let order = urgency(b).cmp(&urgency(a));
        order.then_with(|| (a.disruption_cost, &a.node).cmp(&(b.disruption_cost, &b.node)))
    });
    let tripped = tripped_pools(world);
    for mut candidate in candidates {
        if tripped.contains(&candidate.node_pool) {
            draft.refuse(world, &candidate, Rule::BreakerTripped);
            continue;
        }
        if candidate.is_initialized && draft.purse().left(&candidate.node_pool) == 0 {
            draft.refuse_budget(world, &candidate);
            continue;
        }
        let Some(repair) = world.facts.repairs.get(&candidate.node).cloned() else {
            continue;
        };
        candidate.drain_bound = bounded(world, &candidate, repair.drain_bound);
        let action = repair.action;
        candidate.repair = Some(repair);
        if action == RepairAction::Reboot {
            let mut command = going(Method::Repair, candidate, None, Plan::default());
            (command.is_reboot, command.saving) = (true, Saving::default());
            draft.commands.push(command);
            return;
        }
        let repaired = match world.pool(&candidate.node_pool).filter(|pool| pool.is_static()) {
            Some(pool) => repaired_in_static_pool(world, &StaticPool::of(world, pool), &candidate),
            None => replaced(
                world,
                stage,
                Method::Repair,
                &candidate,
                world.gates().terminate_first_repair,
            ),
        };
        match repaired {
            Ok(command) => {
                draft.commands.push(command);
                return;
            }
            Err(rule) => draft.refuse(world, &candidate, rule),
        }
    }
}

/// The policy's bound of the drain, or the claim's if that is shorter; none when the policy has none.
fn bounded(
    world: &World<'_>,
    candidate: &Candidate,
    bound: Option<jiff::SignedDuration>,
) -> Option<jiff::SignedDuration> {
    let claims = &world.snapshot.objects().node_claims;
    let claim = claims.find("", candidate.claim.as_str());
    let own = claim
        .and_then(|claim| claim.spec.termination_grace_period)
        .map(Duration::to_signed);
    bound.map(|bound| own.map_or(bound, |own| own.min(bound)))
}

fn repaired_in_static_pool(
    world: &World<'_>,
    pool: &StaticPool<'_, '_>,
    candidate: &Candidate,
) -> Result<Command, Rule> {
    if pool.is_overfull() {
        return Err(Rule::ScaleDownFirst);
    }
    let may_go_first = world.gates().terminate_first_repair;
    let mut is_full = false;
    if may_go_first && let Reservations::Full(offered) = pool.reservations() {
        if !holds_one_of(world, candidate, &offered) {
            return Err(Rule::ReservationsFull);
        }
        is_full = true;
    }
    if !is_full && pool.slots(1) > 0 {
        return Ok(from_template(Method::Repair, candidate.clone()));
    }
    let (why, rule) = if is_full {
        (TerminateFirst::NoReservedCapacity, Rule::ReservationsFull)
    } else {
        (TerminateFirst::StaticAtLimit, Rule::StaticAtLimit)
    };
    if may_go_first && pool.refills() {
        Ok(going(Method::Repair, candidate.clone(), Some(why), Plan::default()))
    } else {
        Err(rule)
    }
}

/// Pools of which so many nodes are broken that replacing them is no repair.
fn tripped_pools(world: &World<'_>) -> BTreeSet<NodePoolName> {
    let mut counts: BTreeMap<NodePoolName, (u64, u64)> = BTreeMap::new();
    for node in world.snapshot.objects().nodes.iter() {
        let Some(pool) = node.node_pool().filter(|pool| !pool.as_str().is_empty()) else {
            continue;
        };
        let is_broken = node
            .status
            .conditions
            .iter()
            .any(|condition| is_repaired_for(world, &condition.kind, condition.status));
        let (all, broken) = counts.entry(pool).or_default();
        *all += 1;
        *broken += u64::from(is_broken);
    }
    let tripped = counts
        .into_iter()
        .filter(|(_, (all, broken))| *broken > (all * BREAKER_PERCENT).div_ceil(100));
    tripped.map(|(pool, _)| pool).collect()
}

fn is_repaired_for(world: &World<'_>, kind: &model::object::Text, status: ConditionStatus) -> bool {
    world.facts.repair_conditions.contains(&(kind.clone(), status))
}

/// The command for one node of a dynamic pool, with as many replacements as its pods need.
fn replaced(
    world: &World<'_>,
    stage: &Stage,
    method: Method,
    candidate: &Candidate,
    may_go_first: bool,
) -> Result<Command, Rule> {
    let prepared = stage.replacement(world);
    if prepared.has_no_pools() {
        return Err(Rule::NoNodePools);
    }
    let stuck = match simulated(world, prepared, method, candidate) {
        Ok(Ok(plan)) => return Ok(with_replacements(method, candidate.clone(), plan)),
        Ok(Err(stuck)) => stuck,
        Err(_) => return Err(Rule::Leaving),
    };
    if let Some(reservation) = reservation(world, candidate).filter(|_| may_go_first) {
        let prepared = trial::prepared_with_slot(world, &reservation);
        if let Ok(Ok(plan)) = simulated(world, &prepared, method, candidate) {
            let why = TerminateFirst::NoReservedCapacity;
            return Ok(going(method, candidate.clone(), Some(why), plan));
        }
    }
    Err(Rule::Unschedulable(stuck))
}

/// Where the pods would go. For a broken node room is made for all its pods, also for those that nobody may evict now.
fn simulated(
    world: &World<'_>,
    prepared: &Prepared,
    method: Method,
    candidate: &Candidate,
) -> Result<Result<Plan, UnschedulablePods>, UnknownNode> {
    let (rules, movable) = (Rules::of(world), trial::moves(world));
    let moves = |pod: &Pod| method == Method::Repair || movable(pod);
    let alone = std::slice::from_ref(&candidate.node);
    prepared.simulator().ask(alone, moves, |after| {
        trial::outcome(after, rules, Words::Wanted)?;
        Ok(after.plan())
    })
}

fn with_replacements(method: Method, candidate: Candidate, plan: Plan) -> Command {
    let (before, after) = (candidate.price, plan.price());
    let replacements = plan
        .claims
        .iter()
        .map(|claim| Replacement::Planned(Box::new(claim.clone())));
    Command {
        method,
        candidates: vec![candidate],
        replacements: replacements.collect(),
        plan,
        terminate_first: None,
        is_reboot: false,
        saving: Saving::between(before, after),
        scores: Vec::new(),
    }
}

fn from_template(method: Method, candidate: Candidate) -> Command {
    let pool = candidate.node_pool.clone();
    let mut command = going(method, candidate, None, Plan::default());
    command.replacements = vec![Replacement::Static(pool)];
    command
}

fn going(method: Method, candidate: Candidate, why: Option<TerminateFirst>, plan: Plan) -> Command {
    let before = candidate.price;
    Command {
        method,
        candidates: vec![candidate],
        replacements: Vec::new(),
        plan,
        terminate_first: why,
        is_reboot: false,
        saving: Saving::between(before, Price::ZERO),
        scores: Vec::new(),
    }
}
