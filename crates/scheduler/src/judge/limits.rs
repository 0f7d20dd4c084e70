//! Are the limits of the NodePools kept, the way upstream counts?
//!
//! Upstream subtracts for each claim the most that any of the instance types it began with could have. A plan shows the types that
//! are left, so what is subtracted here is never more: a plan that fails this check breaks the limits for sure.

use std::collections::BTreeMap;

use model::{
    object::{NodePoolName, Text},
    plan::{Plan, PlannedClaim},
    quantity::Quantity,
    resources::ResourceList,
    snapshot::Snapshot,
};

use super::{
    Place, Rule, Verdict,
    supply::Supply,
    world::{World, with_node},
};

pub(super) fn check(snapshot: &Snapshot, world: &World, supply: &Supply, plan: &Plan, verdict: &mut Verdict) {
    let pools = snapshot.objects().node_pools.iter();
    let mut remaining: BTreeMap<NodePoolName, ResourceList> =
        pools.map(|pool| (pool.name(), pool.spec.limits.clone())).collect();
    for node in world.nodes.values().filter(|node| !node.is_leaving) {
        if let Some(left) = node.pool.as_ref().and_then(|pool| remaining.get_mut(pool)) {
            *left = left.subtract(&with_node(node.capacity()));
        }
    }
    for (at, claim) in plan.claims.iter().enumerate() {
        let Some(left) = remaining.get_mut(&claim.node_pool) else {
            continue;
        };
        if let Some(detail) = exceeded(left, claim, supply) {
            verdict.violate(Rule::Limits, None, Some(&Place::Claim(at)), detail);
        }
        *left = left.subtract(&largest(claim, supply));
    }
}

fn exceeded(left: &ResourceList, claim: &PlannedClaim, supply: &Supply) -> Option<String> {
    if left.get("nodes").is_some_and(|nodes| nodes <= Quantity::ZERO) {
        return Some("the NodePool may have no more nodes".to_owned());
    }
    let over = |capacity: &ResourceList| -> Option<Text> {
        let found = left.iter().find(|(name, left)| capacity.amount(name.as_str()) > *left);
        found.map(|(name, _)| name.as_str().into())
    };
    capacities(claim, supply).find_map(|(kind, capacity)| {
        let resource = over(capacity)?;
        Some(format!("a {kind} has more {resource} than the NodePool's limits leave"))
    })
}

fn largest(claim: &PlannedClaim, supply: &Supply) -> ResourceList {
    let mut largest = ResourceList::EMPTY;
    for (_, capacity) in capacities(claim, supply) {
        largest.raise_to(capacity);
    }
    largest
}

fn capacities<'a>(claim: &'a PlannedClaim, supply: &'a Supply) -> impl Iterator<Item = (&'a str, &'a ResourceList)> {
    let kinds = claim
        .options
        .iter()
        .filter_map(|name| supply.types.get(supply.position(&claim.node_pool, name)?));
    kinds.map(|kind| (kind.name.as_str(), &kind.shape.capacity))
}
