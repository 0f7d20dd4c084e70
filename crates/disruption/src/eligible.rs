//! Which candidates are a method's own, and the order in which it takes them.

use std::collections::BTreeMap;

use api::{
    condition::names::nodeclaim::{CONSOLIDATABLE, DRIFTED, INITIALIZED},
    labels::{CAPACITY_TYPE, ZONE},
};
use jiff::Timestamp;
use model::object::{ConditionStatus, NodeClaim, NodePool, NodePoolName};

use crate::{
    candidate::Candidate,
    cost::compare_savings,
    method::Method,
    refusal::Rule,
    world::{Machine, World},
};

/// Why a candidate is not the method's.
pub(crate) enum NotMine {
    /// Somebody may want to know.
    Because(Rule),
    /// It is another method's business, or nobody's.
    Elsewhere,
}

/// Whether a candidate is one of the method's own.
pub(crate) fn is_mine(
    world: &World<'_>,
    machine: &Machine<'_>,
    candidate: &Candidate,
    method: Method,
) -> Result<(), NotMine> {
    let Some(pool) = world.pool(&candidate.node_pool) else {
        return Err(NotMine::Elsewhere);
    };
    match method {
        Method::Repair => needs_repair(world, machine, candidate),
        Method::Emptiness => is_empty(world, machine, candidate, pool),
        Method::StaticDrift => is_drifted(machine, pool.is_static()),
        Method::Drift => is_drifted(machine, !pool.is_static()),
        _ => is_consolidatable(world, machine, candidate, pool),
    }
}

fn is_drifted(machine: &Machine<'_>, is_pool_mine: bool) -> Result<(), NotMine> {
    if is_pool_mine && machine.claim_says(DRIFTED) {
        Ok(())
    } else {
        Err(NotMine::Elsewhere)
    }
}

fn is_empty(world: &World<'_>, machine: &Machine<'_>, candidate: &Candidate, pool: &NodePool) -> Result<(), NotMine> {
    if pool.is_static() {
        return Err(NotMine::Elsewhere);
    }
    if is_consolidation_disabled(pool) {
        return Err(NotMine::Because(Rule::ConsolidationDisabled));
    }
    if world
        .facts
        .buffer_pods
        .get(&candidate.provider_id)
        .is_some_and(|count| *count > 0)
    {
        return Err(NotMine::Because(Rule::BufferPods));
    }
    if !candidate.is_empty() {
        return Err(NotMine::Elsewhere);
    }
    has_been_quiet(machine, pool)
}

fn is_consolidatable(
    world: &World<'_>,
    machine: &Machine<'_>,
    candidate: &Candidate,
    pool: &NodePool,
) -> Result<(), NotMine> {
    if pool.is_static() {
        return Err(NotMine::Elsewhere);
    }
    let because = |rule| Err(NotMine::Because(rule));
    let name = &candidate.instance_type;
    if world.instance_type(&candidate.node_pool, name.as_str()).is_none() {
        return because(Rule::UnknownInstanceType(name.clone()));
    }
    for label in [CAPACITY_TYPE, ZONE] {
        if machine.labels.get(label).is_none() {
            return because(Rule::MissingLabel(label));
        }
    }
    if is_consolidation_disabled(pool) {
        return because(Rule::ConsolidationDisabled);
    }
    // Empty nodes are emptiness's, so that the right budget is charged.
    if candidate.is_empty() {
        return Err(NotMine::Elsewhere);
    }
    if *pool.spec.disruption.consolidation_policy == *"WhenEmpty" {
        return because(Rule::OnlyWhenEmpty);
    }
    has_been_quiet(machine, pool)
}

/// The API server writes the default, so a pool without a value is one that nobody asked.
pub(crate) fn is_consolidation_disabled(pool: &NodePool) -> bool {
    let after = pool.spec.disruption.consolidate_after.as_ref();
    after.is_none_or(|after| after.span().is_none())
}

fn has_been_quiet(machine: &Machine<'_>, pool: &NodePool) -> Result<(), NotMine> {
    if machine.claim_says(CONSOLIDATABLE) {
        return Ok(());
    }
    let at = machine.member.claim.and_then(|claim| quiet_at(claim, pool));
    Err(NotMine::Because(Rule::NotYetConsolidatable { at }))
}

/// When a node will have been quiet for as long as its pool asks, if nothing happens.
pub(crate) fn quiet_at(claim: &NodeClaim, pool: &NodePool) -> Option<Timestamp> {
    let after = pool.spec.disruption.consolidate_after.as_ref()?.span()?;
    let initialized = claim.condition(INITIALIZED)?;
    if initialized.status != ConditionStatus::True {
        return None;
    }
    let since = claim.status.last_pod_event_time.or(initialized.last_transition_time)?;
    since.checked_add(after.to_signed()).ok()
}

fn needs_repair(world: &World<'_>, machine: &Machine<'_>, candidate: &Candidate) -> Result<(), NotMine> {
    let Some(repair) = world.facts.repairs.get(&candidate.node) else {
        return Err(NotMine::Elsewhere);
    };
    let annotations = machine.member.annotations();
    let veto = annotations.get(api::annotations::DO_NOT_REPAIR);
    if veto.is_some_and(|value| **value == *"true") {
        return Err(NotMine::Because(Rule::DoNotRepair));
    }
    let claim = machine.member.claim;
    let has_bound = claim.is_some_and(|claim| claim.spec.termination_grace_period.is_some());
    if candidate.has_pod_blockers && repair.drain_bound.is_none() && !has_bound {
        return Err(NotMine::Because(Rule::UnboundedDrain));
    }
    Ok(())
}

/// Those that save most for what they disturb first; of equals the first by name.
pub(crate) fn by_savings(candidates: &mut [Candidate]) {
    let key = |candidate: &Candidate| (candidate.price, candidate.reschedule_cost);
    candidates.sort_by(|a, b| compare_savings(key(b), key(a)).then_with(|| a.node.cmp(&b.node)));
}

/// The first of each pool, then the second of each, and so on.
pub(crate) fn interleaved(candidates: Vec<Candidate>) -> Vec<Candidate> {
    let mut ranks: BTreeMap<NodePoolName, usize> = BTreeMap::new();
    let mut ranked: Vec<(usize, Candidate)> = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        let rank = ranks.entry(candidate.node_pool.clone()).or_default();
        ranked.push((*rank, candidate));
        *rank += 1;
    }
    ranked.sort_by(|a, b| (a.0, &a.1.node_pool).cmp(&(b.0, &b.1.node_pool)));
    ranked.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Those that drifted first come first, but before all of them the nodes on which nothing would have to move.
pub(crate) fn by_drift(world: &World<'_>, candidates: &mut [Candidate]) {
    let since: BTreeMap<_, _> = world
        .machines
        .iter()
        .filter_map(|machine| {
            Some((
                &machine.name,
                machine.member.claim?.condition(DRIFTED)?.last_transition_time,
            ))
        })
        .collect();
    candidates.sort_by(|a, b| {
        let key = |candidate: &Candidate| {
            let since = since.get(&candidate.node).copied().flatten();
            (!candidate.reschedulable.is_empty(), since, candidate.node.clone())
        };
        key(a).cmp(&key(b))
    });
}
