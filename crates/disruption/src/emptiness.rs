//! Nodes on which nothing costs anything to evict go, as many as the budgets allow, all at once.

use model::{plan::Plan, price::Price};

use crate::{
    candidate::Candidate,
    command::{Command, Saving},
    eligible::by_savings,
    expected,
    method::Method,
    options::Consolidation,
    round::Draft,
    trial::{self, Rules, Stage, Words},
    world::World,
};

pub(crate) fn decide(world: &World<'_>, stage: &Stage, draft: &mut Draft, mut candidates: Vec<Candidate>) {
    by_savings(&mut candidates);
    let mut purse = draft.purse();
    let (mut going, mut is_constrained) = (Vec::new(), false);
    for candidate in candidates {
        if purse.left(&candidate.node_pool) == 0 {
            is_constrained = true;
            draft.refuse_budget(world, &candidate);
            continue;
        }
        purse.take(&candidate.node_pool);
        going.push(candidate);
    }
    if world.options.consolidation == Consolidation::Cheapest {
        going = those_whose_pods_have_a_place(world, stage, draft, going);
        going = those_nobody_needs_soon(world, draft, going);
    }
    if going.is_empty() {
        draft.settle(world, is_constrained);
        return;
    }
    draft.commands.push(command(going));
}

pub(crate) fn command(candidates: Vec<Candidate>) -> Command {
    let before: Price = candidates.iter().map(|candidate| candidate.price).sum();
    Command {
        method: Method::Emptiness,
        candidates,
        replacements: Vec::new(),
        plan: Plan::default(),
        terminate_first: None,
        is_reboot: false,
        saving: Saving::between(before, Price::ZERO),
        scores: Vec::new(),
    }
}

/// Of nodes that pods which are about to come would miss, as many stay as these need.
fn those_nobody_needs_soon(world: &World<'_>, draft: &mut Draft, going: Vec<Candidate>) -> Vec<Candidate> {
    if expected::check(world, &going, 0).is_none() {
        return going;
    }
    let mut free: Vec<Candidate> = Vec::new();
    for candidate in going {
        free.push(candidate);
        if let Some(rule) = expected::check(world, &free, 0)
            && let Some(kept) = free.pop()
        {
            draft.refuse(world, &kept, rule);
        }
    }
    free
}

/// Pods that cost nothing to evict are still somebody's: a node with such pods goes only if they have another place.
/// Upstream does not look.
fn those_whose_pods_have_a_place(
    world: &World<'_>,
    stage: &Stage,
    draft: &mut Draft,
    going: Vec<Candidate>,
) -> Vec<Candidate> {
    if going.iter().all(|candidate| candidate.reschedulable.is_empty()) {
        return going;
    }
    let (rules, moves) = (Rules::of(world), trial::moves(world));
    let mut simulator = stage.consolidation(world).simulator();
    let names = trial::names(&going);
    let together = simulator.ask(&names, &moves, |after| trial::outcome(after, rules, Words::Unwanted));
    if together.is_ok_and(|outcome| outcome.is_ok_and(|claims| claims.is_empty())) {
        return going;
    }
    let (quiet, busy): (Vec<_>, Vec<_>) = going
        .into_iter()
        .partition(|candidate| candidate.reschedulable.is_empty());
    for candidate in &busy {
        let alone = std::slice::from_ref(&candidate.node);
        let outcome = simulator.ask(alone, &moves, |after| trial::outcome(after, rules, Words::Wanted));
        let rule = match outcome {
            Ok(Err(pods)) => crate::refusal::Rule::Unschedulable(pods),
            Ok(Ok(claims)) if !claims.is_empty() => crate::refusal::Rule::NotCheaper,
            _ => crate::refusal::Rule::Later,
        };
        draft.refuse(world, candidate, rule);
    }
    quiet
}
