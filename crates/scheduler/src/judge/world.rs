//! The nodes that are there or on their way, as they will be once they have started.

use std::{collections::BTreeMap, sync::Arc};

use model::{
    object::{ConditionStatus, Labels, Node, NodeClaim, NodePoolName, Pod, Taint, Text},
    quantity::Quantity,
    resources::{ResourceList, ResourceName},
    snapshot::Snapshot,
};

use crate::node::{SchedNode, attached, volume_limits};

/// A node, a claim, or both.
#[derive(Debug, Clone)]
pub(crate) struct StateNode {
    pub(super) name: Text,
    pub(super) node: Option<Arc<Node>>,
    pub(super) claim: Option<Arc<NodeClaim>>,
    pub(super) pool: Option<NodePoolName>,
    pub(super) is_leaving: bool,
}

/// All nodes by name; a claim whose node has not registered under the claim's name.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub(super) nodes: BTreeMap<Text, StateNode>,
}

impl World {
    pub(crate) fn new(snapshot: &Snapshot) -> Self {
        let mut nodes = BTreeMap::new();
        for node in snapshot.objects().nodes.iter() {
            let state = StateNode::of_node(snapshot, node);
            nodes.insert(state.name.clone(), state);
        }
        for claim in snapshot.objects().node_claims.iter() {
            if snapshot.node_of_claim(claim).is_none() {
                let state = StateNode::of_claim(claim);
                nodes.insert(state.name.clone(), state);
            }
        }
        Self { nodes }
    }
}

impl StateNode {
    fn of_node(snapshot: &Snapshot, node: &Arc<Node>) -> Self {
        let claim = snapshot.claim_of_node(node).cloned();
        let is_leaving = match &claim {
            Some(claim) => is_leaving(claim),
            None => node.metadata.is_deleting(),
        };
        let pool = node
            .node_pool()
            .or_else(|| claim.as_ref().and_then(|claim| claim.node_pool()));
        let mut state = Self {
            name: node.metadata.name.clone(),
            node: Some(Arc::clone(node)),
            claim,
            pool,
            is_leaving,
        };
        if !state.is_registered()
            && let Some(claim) = &state.claim
        {
            state.name = claim.metadata.name.clone();
        }
        state
    }

    fn of_claim(claim: &Arc<NodeClaim>) -> Self {
        Self {
            name: claim.metadata.name.clone(),
            node: None,
            pool: claim.node_pool(),
            is_leaving: is_leaving(claim),
            claim: Some(Arc::clone(claim)),
        }
    }

    fn has_label(&self, key: &str) -> bool {
        let labels = self.node.as_ref().map(|node| &node.metadata.labels);
        labels
            .and_then(|labels| labels.get(key))
            .is_some_and(|value| **value == *"true")
    }

    /// A node that nobody claims counts as registered and initialised.
    fn is_registered(&self) -> bool {
        self.claim.is_none() || self.has_label("karpenter.sh/registered")
    }

    fn is_initialized(&self) -> bool {
        self.claim.is_none() || self.has_label("karpenter.sh/initialized")
    }

    /// The name of the Node object, under which pods are bound.
    pub(super) fn node_name(&self) -> Option<&Text> {
        self.node.as_ref().map(|node| &node.metadata.name)
    }

    /// Pods bound to it that have not ended.
    pub(super) fn pods<'a>(&'a self, snapshot: &'a Snapshot) -> impl Iterator<Item = &'a Arc<Pod>> {
        let bound = self.node.iter().flat_map(|node| {
            let name = node.name();
            snapshot.pods_on_node(&name).collect::<Vec<_>>()
        });
        bound.filter(|pod| !pod.is_terminal())
    }

    /// Everything the machine has, as limits count it.
    pub(super) fn capacity(&self) -> ResourceList {
        self.resources(|node| &node.status.capacity, |claim| &claim.status.capacity)
    }

    /// The node as the scheduler will see it.
    pub(super) fn sched_node(&self, snapshot: &Snapshot) -> SchedNode {
        let node_name = self.node_name().unwrap_or(&self.name);
        SchedNode {
            name: self.name.clone(),
            labels: self.labels(),
            taints: self.taints().into(),
            allocatable: self.resources(|node| &node.status.allocatable, |claim| &claim.status.allocatable),
            is_unschedulable: self.node.as_ref().is_some_and(|node| node.spec.unschedulable),
            volume_limits: volume_limits(snapshot, node_name),
            attached: attached(snapshot, node_name),
        }
    }

    fn labels(&self) -> Labels {
        let of_node = self.node.as_ref().map(|node| &node.metadata.labels);
        let of_claim = self.claim.as_ref().map(|claim| &claim.metadata.labels);
        let labels = if self.is_registered() {
            of_node.or(of_claim)
        } else {
            of_claim.or(of_node)
        };
        let mut pairs: Vec<_> = labels.map_or_else(Vec::new, |labels| labels.to_vec());
        let hostname: Text = "kubernetes.io/hostname".into();
        if !pairs.iter().any(|(key, _)| *key == hostname) {
            pairs.push((hostname, self.name.clone()));
        }
        Labels::from_pairs(pairs)
    }

    /// Taints that stay: until a node has initialised, those that come and go with its start do not count.
    fn taints(&self) -> Vec<Taint> {
        let of_node = self
            .node
            .as_ref()
            .filter(|_| self.is_registered())
            .map(|node| &node.spec.taints);
        let of_claim = self.claim.as_ref().map(|claim| &claim.spec.taints);
        let taints = of_node.or(of_claim).map_or(&[][..], |taints| taints);
        if self.is_initialized() && !self.is_rebooting() {
            return taints.to_vec();
        }
        taints.iter().filter(|taint| !self.is_passing(taint)).cloned().collect()
    }

    fn is_rebooting(&self) -> bool {
        let condition = self.node.as_ref().and_then(|node| node.condition("Rebooting"));
        self.claim.is_some() && condition.is_some_and(|it| it.status == ConditionStatus::True)
    }

    fn is_passing(&self, taint: &Taint) -> bool {
        let startup = self.claim.as_ref().map_or(&[][..], |claim| &claim.spec.startup_taints);
        taint.view().is_known_ephemeral()
            || (&*taint.key, &*taint.effect) == ("karpenter.sh/rebooting", "NoSchedule")
            || startup.iter().any(|passing| passing.view().matches(taint.view()))
    }

    /// What the node reports, and what the claim promises where the node reports nothing yet.
    fn resources(
        &self,
        of_node: fn(&Node) -> &ResourceList,
        of_claim: fn(&NodeClaim) -> &ResourceList,
    ) -> ResourceList {
        let empty = ResourceList::EMPTY;
        let reported = self.node.as_deref().map_or(&empty, of_node);
        if self.is_initialized() {
            return reported.clone();
        }
        let promised = self.claim.as_deref().map_or(&empty, of_claim);
        let known = reported.iter().filter(|(_, quantity)| !quantity.is_zero());
        let known = known.map(|(name, quantity)| (name.clone(), quantity)).collect();
        promised.overlaid_with(&known)
    }
}

fn is_leaving(claim: &NodeClaim) -> bool {
    let terminating = claim.condition("InstanceTerminating");
    claim.metadata.is_deleting() || terminating.is_some_and(|it| it.status == ConditionStatus::True)
}

/// What limits count for a node: its capacity and itself.
pub(super) fn with_node(mut capacity: ResourceList) -> ResourceList {
    capacity.set(ResourceName::Nodes, Quantity::from_units(1));
    capacity
}
