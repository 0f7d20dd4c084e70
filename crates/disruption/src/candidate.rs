//! Which nodes a method may take at all, and what taking each would mean.

use std::sync::Arc;

use api::{
    annotations::DO_NOT_DISRUPT,
    labels::{CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE},
};
use jiff::SignedDuration;
use model::{
    object::{InstanceTypeName, NodeClaimName, NodeName, NodePoolName, Pod, ProviderId, Text},
    price::Price,
};

use crate::{
    cost::Cost,
    facts::Repair,
    method::Class,
    refusal::Rule,
    world::{Machine, World},
};

/// A node that may go.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The node.
    pub node: NodeName,
    /// Its claim.
    pub claim: NodeClaimName,
    /// The machine.
    pub provider_id: ProviderId,
    /// Its pool.
    pub node_pool: NodePoolName,
    /// Its type, whether or not it is still offered; empty when it has no such label.
    pub instance_type: InstanceTypeName,
    /// Its capacity type; empty when it has no such label.
    pub capacity_type: Text,
    /// Its zone; empty when it has no such label.
    pub zone: Text,
    /// What it costs an hour; nothing when nobody knows.
    pub price: Price,
    /// What disturbing its pods costs, and itself.
    pub reschedule_cost: Cost,
    /// What evicting all its pods costs, less the nearer its end is.
    pub disruption_cost: Cost,
    /// The pods that would be made anew elsewhere.
    pub reschedulable: Vec<Arc<Pod>>,
    /// Some pod may not be evicted now; the method goes on regardless.
    pub has_pod_blockers: bool,
    /// All of it is up.
    pub is_initialized: bool,
    /// How long its drain may take at most, where a repair policy says so.
    pub drain_bound: Option<SignedDuration>,
    /// What the repair policies say of it; only for repair.
    pub repair: Option<Repair>,
}

impl Candidate {
    /// Whether nothing on it costs anything to evict.
    pub fn is_empty(&self) -> bool {
        self.reschedule_cost <= Cost::NODE
    }
}

/// A candidate, or the first rule that keeps the machine from being one of this class.
pub(crate) fn candidate(world: &World<'_>, machine: &Machine<'_>, class: Class) -> Result<Candidate, Rule> {
    let is_repair = class == Class::Repair;
    let id = machine.provider_id().ok_or(Rule::Unmanaged)?;
    if world.facts.queued.contains(id) {
        return Err(Rule::InQueue);
    }
    let claim = machine.member.claim.ok_or(Rule::Unmanaged)?;
    if is_repair && machine.member.node_pool().is_none() {
        return Err(Rule::RepairNeedsNodePool);
    }
    match node_rule(world, machine) {
        Some(Rule::NotInitialized | Rule::DoNotDisrupt) if is_repair => {}
        Some(rule) => return Err(rule),
        None => {}
    }
    let label = |key: &str| machine.labels.get(key).cloned().unwrap_or_default();
    let node_pool = NodePoolName::from(label(NODEPOOL));
    if world.pool(&node_pool).is_none() || !world.offered.types.contains_key(&node_pool) {
        return Err(Rule::NodePoolNotFound(node_pool));
    }
    let has_pod_blockers = match &machine.pod_blocker {
        Some(_) if is_repair => true,
        Some(_) if class == Class::Eventual && claim.spec.termination_grace_period.is_some() => true,
        Some(rule) => return Err(rule.clone()),
        None => false,
    };
    Ok(Candidate {
        node: machine.name.clone(),
        claim: claim.name(),
        provider_id: id.clone(),
        node_pool,
        instance_type: InstanceTypeName::from(label(INSTANCE_TYPE)),
        capacity_type: label(CAPACITY_TYPE),
        zone: label(ZONE),
        price: machine.price,
        reschedule_cost: machine.reschedule_cost,
        disruption_cost: machine.disruption_cost(claim, world.gates(), world.now),
        reschedulable: machine.reschedulable.clone(),
        has_pod_blockers,
        is_initialized: machine.member.is_initialized(),
        drain_bound: None,
        repair: None,
    })
}

/// The first rule about the node itself that keeps it.
pub(crate) fn node_rule(world: &World<'_>, machine: &Machine<'_>) -> Option<Rule> {
    let member = machine.member;
    if member.node.is_none() {
        return Some(Rule::NoNode);
    }
    if member.is_rebooting() {
        return Some(Rule::Rebooting);
    }
    if member.is_leaving() {
        return Some(Rule::Leaving);
    }
    if !member.is_initialized() {
        let is_registered = member.is_registered();
        return Some(if is_registered {
            Rule::NotInitialized
        } else {
            Rule::NotRegistered
        });
    }
    if machine
        .provider_id()
        .is_some_and(|id| world.facts.nominated.contains(id))
    {
        return Some(Rule::Nominated);
    }
    let annotations = member.annotations();
    if annotations.get(DO_NOT_DISRUPT).is_some_and(|value| **value == *"true") {
        return Some(Rule::DoNotDisrupt);
    }
    machine.labels.get(NODEPOOL).is_none().then_some(Rule::NoNodePoolLabel)
}
