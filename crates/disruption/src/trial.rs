//! What if these nodes were gone? Upstream's verdict on the answer: do all pods find a place, and at what price.

use std::{cell::OnceCell, sync::Arc};

use model::{
    object::{InstanceTypeName, NodeName, ObjectKey, Pod, Text},
    price::Price,
    snapshot::{MinValuesPolicy, Snapshot},
};
use packing::{Aftermath, Choices, Packing, Prepared, ReservedMode, TypePrice};

use crate::{
    candidate::Candidate,
    command::{Command, Replacement, Saving},
    method::Method,
    refusal::{MOST_NAMED, Rule, UnschedulablePods},
    world::World,
};

/// How many cheaper types a spot node needs to be replaced by a spot node.
pub(crate) const SPOT_FLEXIBILITY: usize = 15;

/// The cluster, prepared to be asked: once for each way to ask, when it is first asked that way.
#[derive(Default)]
pub(crate) struct Stage {
    consolidation: OnceCell<Prepared>,
    replacement: OnceCell<Prepared>,
}

impl Stage {
    /// Nodes that may not be consolidated yet take no pods.
    pub(crate) fn consolidation(&self, world: &World<'_>) -> &Prepared {
        self.consolidation.get_or_init(|| prepared(world, world.snapshot, true))
    }

    /// Any node takes pods.
    pub(crate) fn replacement(&self, world: &World<'_>) -> &Prepared {
        self.replacement.get_or_init(|| prepared(world, world.snapshot, false))
    }
}

/// A snapshot of a world, which may be another one than its own.
pub(crate) fn prepared(world: &World<'_>, snapshot: &Snapshot, is_consolidation: bool) -> Prepared {
    let options = packing::Options {
        packing: Packing::Faithful,
        reserved: ReservedMode::Fallback,
        is_consolidation,
        is_matching_devices_by_name: world.options.is_matching_devices_by_name,
        ..packing::Options::default()
    };
    world.warm.prepare(snapshot, &options)
}

/// The cluster with one more slot in a reservation, and without falling back to other capacity.
pub(crate) fn prepared_with_slot(world: &World<'_>, reservation: &str) -> Prepared {
    let options = packing::Options {
        packing: Packing::Faithful,
        reserved: ReservedMode::Strict,
        credited_reservations: [(reservation.to_owned(), 1)].into(),
        is_matching_devices_by_name: world.options.is_matching_devices_by_name,
        ..packing::Options::default()
    };
    world.warm.prepare(world.snapshot, &options)
}

/// Whether somebody will read the reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Words {
    Wanted,
    Unwanted,
}

/// The claims that will be launched; the pods that will have no place, if they had one before.
pub(crate) fn outcome(
    after: &mut Aftermath<'_, '_>,
    world: Rules,
    words: Words,
) -> Result<Vec<usize>, UnschedulablePods> {
    let (kept, dropped) = kept_claims(after, world);
    let mut misplaced: Vec<(ObjectKey, Option<usize>, Option<Text>)> = Vec::new();
    for (at, pod) in after.left().enumerate().filter(|(_, pod)| !pod.is_provisionable()) {
        misplaced.push((pod.metadata.key(), Some(at), None));
    }
    for (claim, why) in &dropped {
        let pods = after.pods_of_claim(*claim).filter(|pod| !pod.is_provisionable());
        misplaced.extend(pods.map(|pod| (pod.metadata.key(), None, Some(Text::from(why.as_str())))));
    }
    for (node, pod) in after.on_unready_nodes() {
        if !pod.is_provisionable() {
            misplaced.push((pod.metadata.key(), None, Some(unready(node).into())));
        }
    }
    if misplaced.is_empty() {
        return Ok(kept);
    }
    let count = misplaced.len();
    if words == Words::Unwanted {
        return Err(UnschedulablePods {
            named: Vec::new(),
            count,
        });
    }
    misplaced.sort_by(|a, b| a.0.cmp(&b.0));
    misplaced.truncate(MOST_NAMED);
    let left: Vec<usize> = misplaced.iter().filter_map(|(_, at, _)| *at).collect();
    let mut reasons = after.reasons(&left).into_iter();
    let named = misplaced.into_iter().map(|(key, at, why)| match at {
        Some(_) => (key, reasons.next().map(|unplaced| unplaced.message).unwrap_or_default()),
        None => (key, why.unwrap_or_default()),
    });
    Err(UnschedulablePods {
        named: named.collect(),
        count,
    })
}

fn unready(node: &packing::supply::StateNode) -> String {
    let claim = node
        .claim
        .iter()
        .map(|claim| format!("nodeclaim/{}", claim.metadata.name));
    let node = node.node.iter().map(|node| format!("node/{}", node.metadata.name));
    let names: Vec<String> = claim.chain(node).collect();
    format!("would schedule against uninitialized {}", names.join(", "))
}

/// What the verdicts depend on beside the simulation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) is_min_values_strict: bool,
    pub(crate) allows_spot_to_spot: bool,
}

impl Rules {
    pub(crate) fn of(world: &World<'_>) -> Self {
        Self {
            is_min_values_strict: world.snapshot.settings().min_values_policy == MinValuesPolicy::Strict,
            allows_spot_to_spot: world.gates().spot_to_spot_consolidation,
        }
    }
}

/// A claim that loses its `minValues` when only its cheapest types are kept is not launched.
fn kept_claims(after: &mut Aftermath<'_, '_>, rules: Rules) -> (Vec<usize>, Vec<(usize, String)>) {
    let (mut kept, mut dropped) = (Vec::new(), Vec::new());
    for claim in 0..after.claims() {
        if !rules.is_min_values_strict || !after.has_min_values(claim) {
            kept.push(claim);
            continue;
        }
        let choices = after.choices(claim);
        match after.needed_for_min_values(&choices) {
            Ok(_) => kept.push(claim),
            Err(unmet) => {
                let pool = after.pool_of_claim(claim);
                let why = format!(
                    "pod didn’t schedule because NodePool couldn’t meet minValues requirements, validating minValues, \
                     {unmet} (NodePool={pool})"
                );
                dropped.push((claim, why));
            }
        }
    }
    (kept, dropped)
}

/// Nodes that would go together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Removed {
    pub(crate) count: usize,
    pub(crate) price: Price,
    pub(crate) is_all_spot: bool,
}

impl Removed {
    pub(crate) fn of<'c>(candidates: impl IntoIterator<Item = &'c Candidate>) -> Self {
        let mut removed = Self {
            count: 0,
            price: Price::ZERO,
            is_all_spot: true,
        };
        for candidate in candidates {
            removed.count += 1;
            removed.price = removed.price + candidate.price;
            removed.is_all_spot &= *candidate.capacity_type == *api::labels::CAPACITY_TYPE_SPOT;
        }
        removed
    }
}

/// What consolidation may do.
#[derive(Debug, Clone)]
pub(crate) enum Move {
    /// The others take the pods.
    Delete,
    /// One cheaper node comes, of one of these types.
    Replace(Choices),
}

impl Move {
    /// What an hour costs afterwards, as upstream estimates it: by the first type only.
    pub(crate) fn price(&self) -> Price {
        match self {
            Self::Delete => Price::ZERO,
            Self::Replace(choices) => {
                let first = choices.types.first();
                first.and_then(|first| first.cheapest).unwrap_or(Price::ZERO)
            }
        }
    }
}

/// Upstream's rules for consolidating nodes into nothing or into one that is cheaper.
pub(crate) fn consolidation(
    after: &mut Aftermath<'_, '_>,
    removed: Removed,
    rules: Rules,
    words: Words,
) -> Result<Move, Rule> {
    let claims = outcome(after, rules, words).map_err(Rule::Unschedulable)?;
    let claim = match claims.as_slice() {
        [] => return Ok(Move::Delete),
        [claim] => *claim,
        many => return Err(Rule::TooManyReplacements(many.len())),
    };
    let mut choices = after.choices(claim);
    if removed.is_all_spot && choices.admits_spot {
        return spot_to_spot(after, &choices, removed, rules).map(Move::Replace);
    }
    keep_cheaper(after, &mut choices, Some(removed.price))?;
    if choices.admits_spot && choices.admits_on_demand {
        // The prices are spot's: if none can be had, the node must not become a dearer one on demand.
        choices = after.as_spot(&choices);
    }
    Ok(Move::Replace(choices))
}

fn spot_to_spot(
    after: &mut Aftermath<'_, '_>,
    choices: &Choices,
    removed: Removed,
    rules: Rules,
) -> Result<Choices, Rule> {
    if !rules.allows_spot_to_spot {
        return Err(Rule::SpotToSpotDisabled);
    }
    let mut choices = after.as_spot(choices);
    choices.types.retain(|priced| priced.is_available);
    keep_cheaper(after, &mut choices, Some(removed.price))?;
    if removed.count > 1 {
        return Ok(choices);
    }
    let found = choices.types.len();
    if found < SPOT_FLEXIBILITY {
        return Err(Rule::SpotFlexibility(found));
    }
    // Only the cheapest go to launch: the node that comes is then among them, and is not replaced again at once.
    let mut most = SPOT_FLEXIBILITY;
    if choices.has_min_values {
        most = most.max(after.needed_for_min_values(&choices).unwrap_or(0));
    }
    choices.types.truncate(most);
    Ok(choices)
}

/// Keeps the types that cost less at worst, if they still meet `minValues` and are any.
fn keep_cheaper(after: &Aftermath<'_, '_>, choices: &mut Choices, below: Option<Price>) -> Result<(), Rule> {
    let is_cheaper = |priced: &TypePrice| {
        priced
            .worst
            .is_some_and(|worst| below.is_none_or(|below| worst < below))
    };
    choices.types.retain(is_cheaper);
    after
        .needed_for_min_values(choices)
        .map_err(|unmet| Rule::MinValues(unmet.to_string()))?;
    if choices.types.is_empty() {
        return Err(Rule::NotCheaper);
    }
    Ok(())
}

/// What a node of a type may cost at most to replace several nodes among which there is one of that type: less than that
/// one, or it had better stay. By type; a type whose price nobody knows is 0.
pub(crate) type SameTypePrices = std::collections::BTreeMap<InstanceTypeName, Price>;

/// Several nodes are not replaced by one of a type that one of them has, unless it is cheaper than that one.
pub(crate) fn without_same_type(
    after: &mut Aftermath<'_, '_>,
    choices: &mut Choices,
    same: &SameTypePrices,
) -> Result<(), Rule> {
    let names = after.names(choices);
    let below = names
        .filter_map(|name| same.get(&InstanceTypeName::from(Arc::clone(name))))
        .min();
    keep_cheaper(after, choices, below.copied())
}

/// The command of a simulation whose outcome was found acceptable.
pub(crate) fn command(
    after: &mut Aftermath<'_, '_>,
    method: Method,
    candidates: Vec<Candidate>,
    found: &Move,
) -> Command {
    let mut plan = after.plan();
    let before: Price = candidates.iter().map(|candidate| candidate.price).sum();
    let mut replacements = Vec::new();
    if let Move::Replace(choices) = found {
        let claim = after.claim(choices);
        replacements.push(Replacement::Planned(Box::new(claim.clone())));
        plan.claims = vec![claim];
    }
    Command {
        method,
        candidates,
        replacements,
        plan,
        terminate_first: None,
        is_reboot: false,
        saving: Saving::between(before, found.price()),
        scores: Vec::new(),
    }
}

/// The names of some candidates.
pub(crate) fn names<'c>(candidates: impl IntoIterator<Item = &'c Candidate>) -> Vec<NodeName> {
    candidates.into_iter().map(|candidate| candidate.node.clone()).collect()
}

/// Whether a pod of a removed node moves.
pub(crate) fn moves(world: &World<'_>) -> impl Fn(&Pod) -> bool + Sync + use<> {
    let immovable = world.immovable.clone();
    move |pod| immovable.is_empty() || !immovable.contains(&pod.metadata.key())
}
