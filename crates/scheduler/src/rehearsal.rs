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
    plan::{Plan, Slot},
    snapshot::Snapshot,
};

use self::stage::{Scene, Stage};
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
    /// Where the plan has it.
    slot: Option<Slot>,
    /// The plan wants it nominated there.
    is_nominated: bool,
    /// The node of its place, once that is there.
    planned: Option<NodeId>,
    nominated: Option<NodeId>,
}

/// Where plans for one snapshot are rehearsed; what they have in common is worked out once.
#[derive(Debug)]
pub struct Rehearsal<'s> {
    snapshot: &'s Snapshot,
    scene: Option<Scene>,
}

impl<'s> Rehearsal<'s> {
    /// For plans on this snapshot.
    pub fn new(snapshot: &'s Snapshot) -> Self {
        Self { snapshot, scene: None }
    }

    /// Carries a plan out on the stand-in, released and nominated as the plan says. Pods that the plan leaves unplaced
    /// wait with the others: a node with room to spare takes them too.
    pub fn rehearse(&mut self, plan: &Plan) -> Outcome {
        let moving = stage::moving(self.snapshot, plan);
        let known = self.scene.take().filter(|scene| scene.is_of(&moving));
        let mut scene = known.unwrap_or_else(|| Scene::new(self.snapshot, moving));
        let mut stage = Stage::new(self.snapshot, plan, &mut scene);
        self.scene = Some(scene);
        let mut outcome = Outcome::default();
        for wave in 0..plan.waves().max(1) {
            stage.release(plan, wave);
            stage.schedule(&mut outcome);
        }
        stage.finish(&mut outcome);
        outcome
    }
}

/// [`Rehearsal::rehearse`] of one plan.
pub fn rehearse(snapshot: &Snapshot, plan: &Plan) -> Outcome {
    Rehearsal::new(snapshot).rehearse(plan)
}
