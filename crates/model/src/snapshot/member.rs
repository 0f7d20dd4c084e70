//! A machine: its node, its claim, or both, and which of the two speaks for it while it starts.

use std::sync::Arc;

use api::{
    condition::names::nodeclaim::{INSTANCE_TERMINATING, REBOOTING},
    labels::{INITIALIZED, INSTANCE_TYPE, NODEPOOL, REGISTERED},
    taints,
};

use crate::{
    object::{ConditionStatus, Labels, Metadata, Node, NodeClaim, Taint, Text},
    quantity::Quantity,
    resources::{ResourceList, ResourceName},
    taint::TaintView,
};

const REBOOT_FENCE: TaintView<'static> = TaintView {
    key: taints::REBOOTING,
    value: "",
    effect: "NoSchedule",
};

/// Holds a node for as long as its pods are bound by us.
const PIN_FENCE: TaintView<'static> = TaintView {
    key: taints::PINNING,
    value: "",
    effect: "NoSchedule",
};

/// A machine of the cluster: its node, its claim, or both.
#[derive(Debug, Clone, Copy, Default)]
pub struct Member<'a> {
    /// The node, once there is one.
    pub node: Option<&'a Arc<Node>>,
    /// The claim it was launched for; none when nobody of ours did.
    pub claim: Option<&'a Arc<NodeClaim>>,
}

/// What a node is joined with its claim by: its provider ID, or the name of a node of somebody else's that has none.
///
/// A node of ours counts once it has its provider ID and, before it is initialised, its instance type; others always do.
pub fn machine_of_node(node: &Node) -> Option<&Text> {
    let labels = &node.metadata.labels;
    let is_set = |key| labels.get(key).is_some_and(|value: &Text| !value.is_empty());
    let is_ours = is_set(NODEPOOL);
    if is_ours && !is_set(INSTANCE_TYPE) && !is_set(INITIALIZED) {
        return None;
    }
    match &node.spec.provider_id {
        Some(id) => Some(&id.0),
        None => (!is_ours).then_some(&node.metadata.name),
    }
}

/// What a claim is joined with its node by: its provider ID, once it was launched.
pub fn machine_of_claim(claim: &NodeClaim) -> Option<&Text> {
    claim.status.provider_id.as_ref().map(|id| &id.0)
}

impl<'a> Member<'a> {
    /// The node's name, or the claim's until the node has registered.
    pub fn name(self) -> Text {
        self.metadata()
            .map(|metadata| metadata.name.clone())
            .unwrap_or_default()
    }

    /// The labels pods see.
    pub fn labels(self) -> Labels {
        self.metadata()
            .map(|metadata| metadata.labels.clone())
            .unwrap_or_default()
    }

    /// The annotations that count.
    pub fn annotations(self) -> Labels {
        self.metadata()
            .map(|metadata| metadata.annotations.clone())
            .unwrap_or_default()
    }

    /// The pool it belongs to, if any.
    pub fn node_pool(self) -> Option<&'a Text> {
        let labels = self.metadata().map(|metadata| &metadata.labels)?;
        labels.get(NODEPOOL).filter(|pool| !pool.is_empty())
    }

    /// Whether it was launched for a claim.
    pub fn is_managed(self) -> bool {
        self.claim.is_some()
    }

    /// Whether the node has joined under its claim's name; a node of somebody else's always has.
    pub fn is_registered(self) -> bool {
        self.claim.is_none() || self.node_says(REGISTERED)
    }

    /// Whether all parts of the machine are up; a node of somebody else's always is.
    pub fn is_initialized(self) -> bool {
        self.claim.is_none() || self.node_says(INITIALIZED)
    }

    /// Whether the machine goes away: its claim is being deleted or terminated, or the node of nobody's claim is.
    pub fn is_leaving(self) -> bool {
        match (self.claim, self.node) {
            (Some(claim), _) => claim.metadata.is_deleting() || holds(claim, INSTANCE_TERMINATING),
            (None, node) => node.is_some_and(|node| node.metadata.is_deleting()),
        }
    }

    /// Whether a reboot was decided on and has not ended.
    pub fn is_rebooting(self) -> bool {
        self.claim.is_some_and(|claim| holds(claim, REBOOTING))
    }

    /// The taints pods must tolerate. While a machine of ours starts or reboots, those that will pass do not count.
    pub fn taints(self) -> Vec<Taint> {
        let taints = match (self.registered_node(), self.claim) {
            (Some(node), _) => &node.spec.taints[..],
            (None, claim) => claim.map_or(&[][..], |claim| &claim.spec.taints),
        };
        let starting = self.claim.filter(|_| !self.is_initialized() || self.is_rebooting());
        let passes = |taint: &Taint| starting.is_some_and(|claim| is_passing(taint.view(), claim));
        taints.iter().filter(|taint| !passes(taint)).cloned().collect()
    }

    /// All the machine has, itself included.
    pub fn capacity(self) -> ResourceList {
        let mut capacity = self.reported(|node| &node.status.capacity, |claim| &claim.status.capacity);
        capacity.set(ResourceName::Nodes, Quantity::from_units(1));
        capacity
    }

    /// What of it is for pods.
    pub fn allocatable(self) -> ResourceList {
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
        self.node.filter(|_| self.is_registered())
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
    let is_ours = taint.matches(REBOOT_FENCE) || taint.matches(PIN_FENCE);
    taint.is_known_ephemeral() || is_ours || startup.any(|startup| startup.view().matches(taint))
}
