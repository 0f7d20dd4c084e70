//! Which nodes a method may take at all, and what taking each would mean.

use std::sync::Arc;

use jiff::SignedDuration;
use model::{
    object::{InstanceTypeName, NodeClaimName, NodeName, NodePoolName, Pod, ProviderId, Text},
    price::Price,
};

use crate::{cost::Cost, facts::Repair};

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
