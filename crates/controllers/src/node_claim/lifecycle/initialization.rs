//! Initialising: the node is what was asked for, and may be counted on. There is no time limit.

use std::{collections::BTreeMap, sync::Arc};

use api::{annotations, condition::names::nodeclaim, labels};
use model::object::{ConditionStatus, Node, NodeClaim, ResourceSlice, condition};

use super::{Lifecycle, Pass, Step, pass, registration::labelled, step::Answer};
use crate::{
    Cluster, Problem,
    node_claim::ownership::{Joined, is_ready},
};

/// What is still missing, as the Initialized condition says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Blocked {
    reason: &'static str,
    message: String,
}

impl Blocked {
    fn new(reason: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { reason, message }
    }
}

/// What keeps a registered node from being initialised, the first of:
/// - the node is not Ready;
/// - it has a startup taint of the claim;
/// - it has a taint that passes by itself;
/// - it does not offer a resource that was asked for;
/// - a driver that the pods need has not published all devices of a pool (`slices` are the node's; none when devices
///   are ignored).
fn judge(claim: &NodeClaim, node: &Node, slices: Option<&[Arc<ResourceSlice>]>) -> Option<Blocked> {
    if !is_ready(node) {
        return Some(Blocked::new(nodeclaim::NODE_NOT_READY, "Node status is NotReady"));
    }
    startup_taint(claim, node)
        .or_else(|| ephemeral_taint(node))
        .or_else(|| missing_resource(claim, node))
        .or_else(|| slices.and_then(|slices| unpublished_driver(claim, slices)))
}

fn startup_taint(claim: &NodeClaim, node: &Node) -> Option<Blocked> {
    let same = |startup: &model::object::Taint| {
        node.spec
            .taints
            .iter()
            .find(|taint| taint.view().matches(startup.view()))
    };
    let taint = claim.spec.startup_taints.iter().find_map(same)?;
    let message = format!("StartupTaint \"{}\" still exists", taint.view());
    Some(Blocked::new(nodeclaim::STARTUP_TAINTS_EXIST, message))
}

fn ephemeral_taint(node: &Node) -> Option<Blocked> {
    let taint = node
        .spec
        .taints
        .iter()
        .find(|taint| taint.view().is_known_ephemeral())?;
    let message = format!("KnownEphemeralTaint \"{}\" still exists", taint.view());
    Some(Blocked::new(nodeclaim::KNOWN_EPHEMERAL_TAINTS_EXIST, message))
}

/// Extended resources are zero until their device plugin has registered them.
fn missing_resource(claim: &NodeClaim, node: &Node) -> Option<Blocked> {
    let missing = |name: &str| node.status.allocatable.amount(name).is_zero();
    let mut requests = claim.spec.resources.requests.iter();
    let (name, _) = requests.find(|(name, quantity)| !quantity.is_zero() && missing(name.as_str()))?;
    let message = format!("Resource \"{name}\" was requested but not registered");
    Some(Blocked::new(nodeclaim::RESOURCE_NOT_REGISTERED, message))
}

fn unpublished_driver(claim: &NodeClaim, slices: &[Arc<ResourceSlice>]) -> Option<Blocked> {
    let drivers = claim.metadata.annotations.get(annotations::REQUESTED_DRA_DRIVERS)?;
    let drivers = drivers.split(',').map(str::trim).filter(|driver| !driver.is_empty());
    let published = drivers_with_complete_pool(slices);
    let driver = drivers.into_iter().find(|driver| !published.contains(driver))?;
    let message = format!("DRA driver \"{driver}\" has not published a complete resource pool");
    Some(Blocked::new(nodeclaim::DRA_DRIVER_POOLS_NOT_PUBLISHED, message))
}

/// A pool is complete when there are as many slices of its newest generation as these slices say.
fn drivers_with_complete_pool(slices: &[Arc<ResourceSlice>]) -> Vec<&str> {
    let mut pools: BTreeMap<(&str, &str), (i64, i64, i64)> = BTreeMap::new();
    for slice in slices {
        let (driver, pool) = (&slice.spec.driver, &slice.spec.pool);
        let newest = pools
            .entry((driver, &pool.name))
            .or_insert((pool.generation, pool.resource_slice_count, 0));
        if pool.generation > newest.0 {
            *newest = (pool.generation, pool.resource_slice_count, 0);
        }
        if pool.generation == newest.0 {
            newest.2 += 1;
        }
    }
    let complete = pools.iter().filter(|(_, (_, count, seen))| *count > 0 && seen == count);
    complete.map(|((driver, _), _)| *driver).collect()
}

/// Whether a slice is local to a node.
fn is_local(slice: &ResourceSlice, node: &Node) -> bool {
    let is_owner = |owner: &model::object::OwnerReference| *owner.kind == *"Node" && owner.name == node.metadata.name;
    slice.spec.node_name.as_ref().is_some_and(|name| *name == node.name())
        || slice.metadata.owner_references.iter().any(is_owner)
}

/// What keeps the claim's node, as it is or is about to be, from being initialised.
pub(super) fn blocked(cluster: &Cluster, claim: &NodeClaim, node: &Node) -> Option<Blocked> {
    let is_asked = !cluster.settings().decisions.ignore_dra_requests
        && claim
            .metadata
            .annotations
            .get(annotations::REQUESTED_DRA_DRIVERS)
            .is_some();
    let slices: Option<Vec<Arc<ResourceSlice>>> = is_asked.then(|| {
        cluster.look(|state| {
            let slices = state.all::<ResourceSlice>().iter();
            slices.filter(|slice| is_local(slice, node)).cloned().collect()
        })
    });
    judge(claim, node, slices.as_deref())
}

/// Whether initialisation is to be looked at: it is open, the node is registered, and no reboot is under way, during
/// which the node of before could pass for the one that comes back.
fn is_due(claim: &NodeClaim) -> bool {
    let holds = |kind: &str| condition::holds(&claim.status.conditions, kind);
    !holds(nodeclaim::REBOOTING) && holds(nodeclaim::REGISTERED)
}

impl Lifecycle {
    pub(super) async fn initialize(&self, cluster: &Cluster, pass: &mut Pass) {
        let initialized = pass.draft.condition(nodeclaim::INITIALIZED);
        if initialized.is_some_and(|condition| condition.status != ConditionStatus::Unknown) {
            return pass::restamp(&mut pass.draft, nodeclaim::INITIALIZED, pass.now);
        }
        if pass.is_over() || !is_due(&pass.draft) {
            return;
        }
        let Some(node) = cluster.look(|state| Joined::of(&pass.draft, state)).one() else {
            let missing = Blocked::new(nodeclaim::NODE_NOT_FOUND, "Node not registered with cluster");
            return missing.show(pass);
        };
        match blocked(cluster, &pass.draft, &node) {
            Some(blocked) => blocked.show(pass),
            None => self.mark_initialized(cluster, pass, node).await,
        }
    }

    async fn mark_initialized(&self, cluster: &Cluster, pass: &mut Pass, node: Arc<Node>) {
        let allocatable = node.status.allocatable.clone();
        let after = labelled(Node::clone(&node), labels::INITIALIZED);
        match Step::MarkInitialized(node, Box::new(after)).take(cluster).await {
            Ok(Answer::Gone) => return pass.fail(Problem::Other("patching node, it is gone".to_owned())),
            // Also a patch that names no version is refused so, by a server that lost too many races for the object.
            // Taken for done, the node would never be marked, and never be disrupted.
            Ok(Answer::Conflict) => return pass.again(),
            Ok(_) => {}
            Err(problem) => return pass.fail(problem),
        }
        tracing::info!("NodeClaim.name" = %pass.draft.metadata.name, %allocatable, "initialized nodeclaim");
        pass.set(|set| {
            set.set_true(nodeclaim::INITIALIZED);
        });
    }
}

impl Blocked {
    fn show(self, pass: &mut Pass) {
        pass.set(|set| {
            set.set_unknown_with_reason(nodeclaim::INITIALIZED, self.reason, &self.message);
        });
    }
}

#[cfg(test)]
mod tests;
