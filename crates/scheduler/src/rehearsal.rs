//! Where would the pods land if the plan were carried out?
//!
//! kube-scheduler spends a plan, not we: it spreads pods over whatever nodes are there, and the last pods may find no
//! room. The rehearsal launches the plan's claims as they are expected to be, releases them as the steering says, and lets
//! the stand-in schedule: every release wakes all pending pods, in the order of priority, age and identity.
//! It is deterministic: no lots are drawn between equal nodes (the first by name wins), and all nodes are scored.

mod stage;

use std::{collections::BTreeMap, sync::Arc};

use model::{
    object::{NodeName, ObjectKey, Pod},
    plan::Plan,
    snapshot::Snapshot,
};

use self::stage::Stage;
use crate::{ClassId, NodeId};

/// How the plan's nodes are released and which pods are told where to go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Steering {
    /// When each claim's node is released.
    pub release: Release,
    /// Pods that are nominated to a claim's node before it is released, by the claim's position.
    pub nominations: BTreeMap<ObjectKey, usize>,
}

/// When the nodes are released.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Release {
    /// All at once.
    #[default]
    Together,
    /// Those on demand once every pod has been tried on the others: pods that can go elsewhere do not take their room.
    OnDemandLast,
    /// Claims by position, group by group; claims that are not named come with the last group.
    Waves(Vec<Vec<usize>>),
}

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

/// Carries the plan out on the stand-in. Pods that the plan leaves unplaced wait with the others: a node with room to spare
/// takes them too.
pub fn rehearse(snapshot: &Snapshot, plan: &Plan, steering: &Steering) -> Outcome {
    let mut stage = Stage::new(snapshot, plan);
    let mut outcome = Outcome::default();
    for wave in waves(plan, &steering.release) {
        stage.release(&wave, steering);
        stage.schedule(&mut outcome);
    }
    stage.finish(&mut outcome);
    outcome
}

fn waves(plan: &Plan, release: &Release) -> Vec<Vec<usize>> {
    let all = 0..plan.claims.len();
    match release {
        Release::Together => vec![all.collect()],
        Release::OnDemandLast => {
            let (last, first) = all.partition(|at| is_on_demand(plan, *at));
            vec![first, last]
        }
        Release::Waves(waves) => {
            let mut waves = waves.clone();
            let rest: Vec<usize> = all
                .filter(|at| !waves.iter().flatten().any(|named| named == at))
                .collect();
            match waves.last_mut() {
                Some(last) => last.extend(rest),
                None => waves.push(rest),
            }
            waves
        }
    }
}

fn is_on_demand(plan: &Plan, at: usize) -> bool {
    let cheapest = plan.claims.get(at).and_then(|claim| claim.cheapest.as_ref());
    cheapest.is_some_and(|launch| launch.capacity_type.as_deref() == Some("on-demand"))
}
