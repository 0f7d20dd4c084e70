//! The nodes that stay, with the room they have left.

use std::sync::Arc;

use api::{
    condition::names::nodeclaim::INITIALIZED,
    labels::{HOSTNAME, INSTANCE_TYPE, NODEPOOL},
};
use model::{
    object::{ConditionStatus, Labels, NodeClaim, NodePool, Text},
    quantity::Quantity,
    resources::ResourceList,
    snapshot::Snapshot,
    vocabulary::Vocabulary,
};

use super::{
    StateNode,
    daemon::{Daemons, NodeDaemons},
    member::Member,
    pool::Pools,
    requests::Requests,
    usage::Usage,
};
use crate::Options;

/// Makes state nodes.
#[derive(Debug)]
pub(super) struct NodeFactory<'a> {
    snapshot: &'a Snapshot,
    options: &'a Options,
    pools: &'a Pools,
    daemons: NodeDaemons<'a>,
    requests: Requests,
}

impl<'a> NodeFactory<'a> {
    pub(super) fn new(
        snapshot: &'a Snapshot,
        options: &'a Options,
        pools: &'a Pools,
        daemons: &'a mut Daemons,
        vocabulary: &'a mut Vocabulary,
    ) -> Self {
        Self {
            snapshot,
            options,
            pools,
            daemons: daemons.on_nodes(vocabulary),
            requests: Requests::default(),
        }
    }

    /// The machines that stay, initialised ones first, then by name.
    pub(super) fn nodes(&mut self, staying: &[Member<'_>]) -> Vec<StateNode> {
        let mut nodes: Vec<_> = staying.iter().map(|member| self.node(*member)).collect();
        nodes.sort_by(|a, b| (!a.is_initialized, &a.name).cmp(&(!b.is_initialized, &b.name)));
        nodes
    }

    fn node(&mut self, member: Member<'_>) -> StateNode {
        let (name, labels, taints) = (member.name(), member.labels(), member.taints());
        let usage = member
            .node
            .map(|node| Usage::of(node, self.snapshot, &mut self.requests));
        let mut usage = usage.unwrap_or_default();
        self.expect_volume_limits(&labels, &mut usage);
        let mut to_come = self.daemons.requests(&labels, &taints);
        to_come.subtract_from(&usage.daemon_requests);
        let available = member.allocatable().subtract(&usage.requests);
        StateNode {
            hostname: hostname(&labels).unwrap_or_else(|| name.clone()),
            remaining: available.subtract(&without_debts(&to_come)),
            ports: usage.ports,
            volumes: usage.volumes,
            is_initialized: member.is_initialized(),
            is_under_consolidate_after: self.options.is_consolidation && self.is_too_young(member.claim, &labels),
            node: member.node.map(Arc::clone),
            claim: member.claim.map(Arc::clone),
            name: name.into(),
            labels,
            taints,
        }
    }

    /// Until a driver speaks for itself, the instance type says how many volumes it takes.
    fn expect_volume_limits(&self, labels: &Labels, usage: &mut Usage) {
        let offer = labels.get(NODEPOOL).and_then(|pool| self.pools.get(pool));
        let name = labels.get(INSTANCE_TYPE).filter(|name| !name.is_empty());
        let found = offer
            .zip(name)
            .and_then(|(offer, name)| offer.types.iter().find(|it| it.name == *name));
        for (driver, limit) in found.into_iter().flat_map(|found| &found.volume_limits) {
            usage.volumes.limits.expect(Arc::clone(driver), *limit);
        }
    }

    fn is_too_young(&self, claim: Option<&Arc<NodeClaim>>, labels: &Labels) -> bool {
        let offer = labels.get(NODEPOOL).and_then(|pool| self.pools.get(pool));
        offer
            .zip(claim)
            .is_some_and(|(offer, claim)| is_under_consolidate_after(&offer.pool, claim, self.snapshot))
    }
}

fn hostname(labels: &Labels) -> Option<Text> {
    labels.get(HOSTNAME).filter(|name| !name.is_empty()).cloned()
}

/// Daemons that nobody expected on the node do not make room for others.
fn without_debts(requests: &ResourceList) -> ResourceList {
    requests
        .iter()
        .map(|(name, quantity)| (name.clone(), quantity.max(Quantity::ZERO)))
        .collect()
}

/// Whether pods came or went, or the node was initialised, more recently than the pool's `consolidateAfter`.
fn is_under_consolidate_after(pool: &NodePool, claim: &NodeClaim, snapshot: &Snapshot) -> bool {
    let span = pool.spec.disruption.consolidate_after.as_ref();
    let Some(span) = span.and_then(|span| span.span()).filter(|span| span.as_nanos() != 0) else {
        return false;
    };
    let initialized = claim
        .condition(INITIALIZED)
        .filter(|condition| condition.status == ConditionStatus::True);
    let Some(initialized) = initialized else { return false };
    let since = claim.status.last_pod_event_time.or(initialized.last_transition_time);
    since.is_some_and(|since| snapshot.taken_at().duration_since(since) < span.to_signed())
}
