//! Which claims and pools are ours to care for, and which nodes belong to a claim.

use std::sync::Arc;

use cloud::{CloudProvider, NodeClassKind};
use model::object::{ConditionStatus, Node, NodeClaim, NodeClassReference, NodePool};
use state::{State, Transition};

/// The kinds of node classes that the cloud launches from. What refers to another kind belongs to somebody else.
#[derive(Debug, Clone, Copy)]
pub struct Managed(&'static [NodeClassKind]);

impl Managed {
    /// These kinds.
    pub fn of(kinds: &'static [NodeClassKind]) -> Self {
        Self(kinds)
    }

    /// What a cloud launches from.
    pub fn by(cloud: &dyn CloudProvider) -> Self {
        Self::of(cloud.node_classes())
    }

    /// Whether a claim is ours.
    pub fn claim(self, claim: &NodeClaim) -> bool {
        self.class(claim.spec.node_class_ref.as_ref())
    }

    /// Whether a pool is ours.
    pub fn pool(self, pool: &NodePool) -> bool {
        self.class(pool.spec.template.spec.node_class_ref.as_ref())
    }

    fn class(self, reference: Option<&NodeClassReference>) -> bool {
        reference.is_some_and(|class| {
            let known = |kind: &NodeClassKind| *kind.group == *class.group && *kind.kind == *class.kind;
            self.0.iter().any(known)
        })
    }
}

/// The nodes with a claim's provider ID. There should be at most one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Joined {
    /// None has come.
    None,
    /// As it should be.
    One(Arc<Node>),
    /// Something is wrong.
    Several,
}

impl Joined {
    /// The nodes of a claim. A claim that was not launched has none.
    pub(crate) fn of(claim: &NodeClaim, state: &State) -> Self {
        let nodes = nodes_of(claim, state);
        match nodes.as_slice() {
            [] => Self::None,
            [one] => Self::One(Arc::clone(one)),
            _ => Self::Several,
        }
    }

    /// The node, if it is the only one.
    pub(crate) fn one(self) -> Option<Arc<Node>> {
        match self {
            Self::One(node) => Some(node),
            Self::None | Self::Several => None,
        }
    }
}

/// All nodes with a claim's provider ID.
pub(crate) fn nodes_of(claim: &NodeClaim, state: &State) -> Vec<Arc<Node>> {
    let id = claim.status.provider_id.as_ref();
    id.map(|id| state.nodes_of_provider_id(id.as_str()).cloned().collect())
        .unwrap_or_default()
}

/// The claims whose node changed.
pub(crate) fn claims_of_node(change: &Transition<Node>, state: &State) -> Vec<Arc<NodeClaim>> {
    let id = |node: &Option<Arc<Node>>| node.as_ref().and_then(|node| node.spec.provider_id.clone());
    let (before, after) = (id(&change.before), id(&change.after));
    let left = before.filter(|id| Some(id) != after.as_ref());
    let ids = left.into_iter().chain(after);
    ids.flat_map(|id| state.claims_of_provider_id(id.as_str()).cloned().collect::<Vec<_>>())
        .collect()
}

/// Whether the kubelet says that the node is well.
pub(crate) fn is_ready(node: &Node) -> bool {
    node.condition("Ready")
        .is_some_and(|ready| ready.status == ConditionStatus::True)
}
