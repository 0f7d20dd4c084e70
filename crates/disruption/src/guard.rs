//! What keeps a fleet from being churned: moves that gain too little, go round in circles, or never come up.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use model::{
    object::{NodeName, NodePool, NodePoolName},
    price::Price,
};

use crate::{
    candidate::Candidate,
    command::Command,
    expected,
    expiry::expires_at,
    facts::{Facts, MachineShape, PastMove},
    method::Method,
    options::Consolidation,
    refusal::Rule,
    world::World,
};

/// The least a replacement must save, in percent of what goes. On a NodePool.
pub const MINIMUM_SAVING_PERCENT: &str = "dovetail.dev/minimum-saving-percent";
/// The least a replacement must save, in dollars a month. On a NodePool.
pub const MINIMUM_SAVING_MONTHLY: &str = "dovetail.dev/minimum-saving-monthly";
/// `"off"` lets a NodePool go round in circles. On a NodePool.
pub const LOOP_GUARD: &str = "dovetail.dev/loop-guard";

/// Hours in a month.
const MONTH: u64 = 730;
/// What a replacement costs before it is of use: for so long both run.
const DOUBLE_RUNNING: SignedDuration = SignedDuration::from_mins(5);
/// What m → n replacement must save, in percent of what goes, unless the pool asks for more.
const REPACK_PERCENT: u64 = 5;

/// Why a consolidation had better not be carried out, if there is a reason.
pub(crate) fn check(world: &World<'_>, command: &Command) -> Option<Rule> {
    if world.options.consolidation == Consolidation::Faithful {
        return None;
    }
    let candidates = &command.candidates;
    if command.replacements.is_empty() {
        return expected::check(world, candidates, 0);
    }
    let failed = candidates
        .iter()
        .find_map(|candidate| before_replacing(world, candidate));
    failed
        .or_else(|| minimum_saving(world, command))
        .or_else(|| moving_cost(world, command))
        .or_else(|| loop_guard(world, command))
        .or_else(|| expected::check(world, candidates, command.replacements.len()))
}

/// Why a node had better not be replaced at all now.
pub(crate) fn before_replacing(world: &World<'_>, candidate: &Candidate) -> Option<Rule> {
    if world.options.consolidation == Consolidation::Faithful {
        return None;
    }
    let failures = world
        .facts
        .failed_replacements
        .get(&candidate.node_pool)
        .copied()
        .unwrap_or(0);
    (failures >= world.options.most_failures).then_some(Rule::FailedReplacements(failures))
}

fn minimum_saving(world: &World<'_>, command: &Command) -> Option<Rule> {
    let removed = u128::from(command.source_price().picos());
    let mut least = Price::ZERO;
    for pool in command.node_pools().into_iter().filter_map(|pool| world.pool(pool)) {
        let own = number(pool, MINIMUM_SAVING_PERCENT).unwrap_or(0);
        let percent = if command.method == Method::Repack {
            own.max(REPACK_PERCENT)
        } else {
            own
        };
        let share = removed * u128::from(percent) / 100;
        let monthly = pool.metadata.annotations.get(MINIMUM_SAVING_MONTHLY);
        let monthly = monthly
            .and_then(|dollars| dollars.parse::<Price>().ok())
            .unwrap_or_default();
        let hourly = Price::from_picos(monthly.picos() / MONTH);
        least = least
            .max(hourly)
            .max(Price::from_picos(u64::try_from(share).unwrap_or(u64::MAX)));
    }
    let saving = command.saving;
    (saving.0 < i128::from(least.picos())).then_some(Rule::MinimumSaving { saving, least })
}

fn number(pool: &NodePool, annotation: &str) -> Option<u64> {
    pool.metadata
        .annotations
        .get(annotation)?
        .trim_end_matches('%')
        .parse()
        .ok()
}

/// A node that will be gone soon anyway is not worth a replacement that does not earn its double running by then.
fn moving_cost(world: &World<'_>, command: &Command) -> Option<Rule> {
    let nodes: BTreeSet<&NodeName> = command.nodes().collect();
    let machines = world.machines.iter().filter(|machine| nodes.contains(&machine.name));
    let mut left = machines.filter_map(|machine| {
        let pool = machine.node_pool().and_then(|pool| world.pool(&pool));
        let end = expires_at(machine.member.claim?, pool.map(AsRef::as_ref))?;
        Some(end.duration_since(world.now).max(SignedDuration::ZERO))
    });
    let left = left.by_ref().max()?;
    let after = i128::from(command.source_price().picos()) - command.saving.0;
    let earned = command.saving.0.saturating_mul(left.as_nanos());
    let spent = after.max(0).saturating_mul(DOUBLE_RUNNING.as_nanos());
    (earned <= spent).then_some(Rule::MovingCost)
}

/// A pool that went from one kind of nodes to another and back for the same pods is not to go on like that.
fn loop_guard(world: &World<'_>, command: &Command) -> Option<Rule> {
    let looping = looping_pools(world.facts);
    let is_guarded = |pool: &&NodePoolName| {
        let annotation = world
            .pool(pool)
            .and_then(|pool| pool.metadata.annotations.get(LOOP_GUARD).cloned());
        looping.contains(*pool) && annotation.is_none_or(|value| *value != *"off")
    };
    let pools = command.node_pools();
    pools.iter().any(is_guarded).then_some(Rule::LoopGuard)
}

/// The NodePools that went from one kind of nodes to another and back for the same pods, as far as anybody remembers.
pub fn looping_pools(facts: &Facts) -> BTreeSet<NodePoolName> {
    let moves = &facts.past_moves;
    let mut looping = BTreeSet::new();
    for (at, first) in moves.iter().enumerate() {
        let later = moves.iter().skip(at + 1);
        if later.into_iter().any(|second| undoes(first, second)) {
            looping.insert(first.pool.clone());
        }
    }
    looping
}

fn undoes(first: &PastMove, second: &PastMove) -> bool {
    let sorted = |shapes: &[MachineShape]| {
        let mut shapes = shapes.to_vec();
        shapes.sort();
        shapes
    };
    first.pool == second.pool
        && first.requests_digest == second.requests_digest
        && !first.removed.is_empty()
        && sorted(&first.removed) == sorted(&second.launched)
        && sorted(&first.launched) == sorted(&second.removed)
}

/// A number for what the pods of some candidates ask for; equal pods, equal number.
pub(crate) fn requests_digest(candidates: &[Candidate]) -> u64 {
    let pods = candidates.iter().flat_map(|candidate| &candidate.reschedulable);
    let mut shapes: Vec<String> = pods
        .map(|pod| format!("{}/{:?}", pod.metadata.namespace, pod.spec.resources().requests()))
        .collect();
    shapes.sort_unstable();
    digest(shapes.iter().flat_map(|shape| shape.bytes()))
}

/// A number for some bytes, the same on every machine.
pub(crate) fn digest(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(FNV_START, |digest, byte| {
        (digest ^ u64::from(byte)).wrapping_mul(FNV_STEP)
    })
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_STEP: u64 = 0x0100_0000_01b3;
