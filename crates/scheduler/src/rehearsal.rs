//! Where would the pods land if the plan were carried out?
//!
//! kube-scheduler spends a plan, not we: it spreads pods over whatever nodes are there, and the last pods may find no
//! room. The rehearsal launches the plan's claims as they are expected to be, releases them as the plan says, and lets
//! the stand-in schedule: every release wakes all pending pods, in the order of priority, age and identity.
//! It is deterministic: no lots are drawn between equal nodes (the first by name wins), and all nodes are scored.

mod stage;

use std::sync::Arc;

use model::{
    object::{NodeName, ObjectKey, Pod},
    plan::Plan,
    snapshot::Snapshot,
};

use self::stage::Stage;
use crate::{ClassId, NodeId};

/// What became of the pods.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Pods on the node the plan has for them.
    pub as_planned: usize,
    /// Pods on another node.
    pub elsewhere: Vec<Landed>,
    /// Pods of the plan that stay pending, in the order of the queue.
    pub pending: Vec<ObjectKey>,
    /// Claims, by position, whose node got no pod at all.
    pub unused: Vec<usize>,
}

/// A pod on another node than planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landed {
    /// The pod.
    pub pod: ObjectKey,
    /// Its node.
    pub on: Spot,
}

/// A node of a rehearsal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Spot {
    /// A node to be launched, by its claim's position.
    Claim(usize),
    /// A node that is there.
    Node(NodeName),
}

/// A pod that waits for its turn.
#[derive(Debug, Clone)]
struct Waiting {
    pod: Arc<Pod>,
    class: ClassId,
    planned: Option<NodeId>,
    nominated: Option<NodeId>,
}

/// Carries the plan out on the stand-in, released and nominated as the plan says. Pods that the plan leaves unplaced wait
/// with the others: a node with room to spare takes them too.
pub fn rehearse(snapshot: &Snapshot, plan: &Plan) -> Outcome {
    let mut stage = Stage::new(snapshot, plan);
    let mut outcome = Outcome::default();
    for wave in 0..plan.waves().max(1) {
        stage.release(plan, wave);
        stage.schedule(&mut outcome);
    }
    stage.finish(&mut outcome);
    outcome
}
