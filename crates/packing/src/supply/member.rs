//! Which nodes and claims belong together, and which of the two speaks for the machine while it starts.

use std::{collections::BTreeMap, sync::Arc};

use api::{
    condition::names::nodeclaim::{INSTANCE_TERMINATING, REBOOTING},
    labels::{INITIALIZED, INSTANCE_TYPE, NODEPOOL, REGISTERED},
    taints,
};
use model::{
    object::{ConditionStatus, Labels, Metadata, Node, NodeClaim, Taint, Text},
    quantity::Quantity,
    resources::{ResourceList, ResourceName},
    snapshot::Snapshot,
    taint::TaintView,
};

use crate::demand::volume::Storage;

const REBOOT_FENCE: TaintView<'static> = TaintView {
    key: taints::REBOOTING,
    value: "",
    effect: "NoSchedule",
};

/// A machine of the cluster: its node, its claim, or both.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Member<'a> {
    pub(crate) node: Option<&'a Arc<Node>>,
    pub(crate) claim: Option<&'a Arc<NodeClaim>>,
}

/// The machines of a snapshot: claims that were launched and nodes, joined by provider ID.
pub(crate) fn members(snapshot: &Snapshot) -> Vec<Member<'_>> {
    let mut members = BTreeMap::<&str, Member<'_>>::new();
    for claim in snapshot.objects().node_claims.iter() {
        if let Some(id) = &claim.status.provider_id {
            members.entry(id.as_str()).or_default().claim = Some(claim);
        }
    }
    for node in snapshot.objects().nodes.iter() {
        if let Some(id) = provider_id(node).filter(|_| is_usage_known(node, snapshot)) {
            members.entry(id).or_default().node = Some(node);
        }
    }
    members.into_values().collect()
}

/// A node of ours counts once it has its provider ID and, before it is initialised, its instance type; others always do.
fn provider_id(node: &Node) -> Option<&str> {
    let labels = &node.metadata.labels;
    let is_set = |key| labels.get(key).is_some_and(|value: &Text| !value.is_empty());
    let is_ours = is_set(NODEPOOL);
    if is_ours && !is_set(INSTANCE_TYPE) && !is_set(INITIALIZED) {
        return None;
    }
    match &node.spec.provider_id {
        Some(id) => Some(id.as_str()),
        None => (!is_ours).then_some(&node.metadata.name),
    }
}

/// Upstream does not take a node up while the volumes of a pod on it cannot be resolved.
fn is_usage_known(node: &Node, snapshot: &Snapshot) -> bool {
    let storage = Storage(snapshot.objects());
    let name = node.name();
    let mut with_volumes = snapshot
        .pods_on_node(&name)
        .filter(|pod| !pod.spec.volumes.is_empty() && !pod.is_terminal());
    with_volumes.all(|pod| storage.attachments(pod).is_ok())
}

impl<'a> Member<'a> {
    /// The node's name, or the claim's until the node has registered.
    pub(crate) fn name(self) -> Text {
        self.metadata()
            .map(|metadata| metadata.name.clone())
            .unwrap_or_default()
    }

    /// The labels pods see.
    pub(crate) fn labels(self) -> Labels {
        self.metadata()
            .map(|metadata| metadata.labels.clone())
            .unwrap_or_default()
    }

    /// Whether all parts of the machine are up; a node of somebody else's always is.
    pub(crate) fn is_initialized(self) -> bool {
        self.claim.is_none() || self.node_says(INITIALIZED)
    }

    /// Whether the machine goes away: its claim is being deleted or terminated, or the node of nobody's claim is.
    pub(crate) fn is_leaving(self) -> bool {
        match (self.claim, self.node) {
            (Some(claim), _) => claim.metadata.is_deleting() || holds(claim, INSTANCE_TERMINATING),
            (None, node) => node.is_some_and(|node| node.metadata.is_deleting()),
        }
    }

    /// The taints pods must tolerate. While a machine of ours starts or reboots, those that will pass do not count.
    pub(crate) fn taints(self) -> Vec<Taint> {
        let taints = match (self.registered_node(), self.claim) {
            (Some(node), _) => &node.spec.taints[..],
            (None, claim) => claim.map_or(&[][..], |claim| &claim.spec.taints),
        };
        let starting = self
            .claim
            .filter(|claim| !self.is_initialized() || holds(claim, REBOOTING));
        let passes = |taint: &Taint| starting.is_some_and(|claim| is_passing(taint.view(), claim));
        taints.iter().filter(|taint| !passes(taint)).cloned().collect()
    }

    /// All the machine has, itself included.
    pub(crate) fn capacity(self) -> ResourceList {
        let mut capacity = self.reported(|node| &node.status.capacity, |claim| &claim.status.capacity);
        capacity.set(ResourceName::Nodes, Quantity::from_units(1));
        capacity
    }

    /// What of it is for pods.
    pub(crate) fn allocatable(self) -> ResourceList {
        self.reported(|node| &node.status.allocatable, |claim| &claim.status.allocatable)
    }

    /// What the node reports; until it is initialised, what the claim expects stands for zeros and gaps.
    fn reported(
        self,
        of_node: impl Fn(&'a Node) -> &'a ResourceList,
        of_claim: impl Fn(&'a NodeClaim) -> &'a ResourceList,
    ) -> ResourceList {
        let mut reported = self.node.map(|node| of_node(node)).cloned().unwrap_or_default();
        let expected = self.claim.filter(|_| !self.is_initialized());
        for (name, quantity) in expected
            .map(|claim| of_claim(claim))
            .into_iter()
            .flat_map(ResourceList::iter)
        {
            if reported.amount(name.as_str()).is_zero() {
                reported.set(name.clone(), quantity);
            }
        }
        reported
    }

    /// The claim speaks for the machine until the node has registered.
    fn metadata(self) -> Option<&'a Metadata> {
        let claim = self.claim.map(|claim| &claim.metadata);
        self.registered_node().map(|node| &node.metadata).or(claim)
    }

    fn registered_node(self) -> Option<&'a Arc<Node>> {
        self.node.filter(|_| self.claim.is_none() || self.node_says(REGISTERED))
    }

    fn node_says(self, label: &str) -> bool {
        let value = self.node.and_then(|node| node.metadata.labels.get(label));
        value.is_some_and(|value| **value == *"true")
    }
}

fn holds(claim: &NodeClaim, condition: &str) -> bool {
    let condition = claim.condition(condition);
    condition.is_some_and(|condition| condition.status == ConditionStatus::True)
}

fn is_passing(taint: TaintView<'_>, claim: &NodeClaim) -> bool {
    let mut startup = claim.spec.startup_taints.iter();
    taint.is_known_ephemeral() || taint.matches(REBOOT_FENCE) || startup.any(|startup| startup.view().matches(taint))
}
