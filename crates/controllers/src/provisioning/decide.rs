//! What follows from a plan: which claims to create, which nodes to nominate, what to tell whom.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use model::{
    object::{Node, NodeClaim, NodePool, Pod, Text},
    plan::{Plan, PlannedClaim, PlannedNode, RefusalKind, Unplaced},
    resources::ResourceList,
    snapshot::Snapshot,
};
use packing::supply::DroppedPool;

use super::{
    claim::{self, Draft, Unhashable},
    in_flight::Forecast,
};

/// One thing to do. Each stands alone: whatever a crash leaves undone, the next pass finds again.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A pod has no place.
    Refuse(Unplaced),
    /// Pods have a place on a machine that is there or on its way.
    Nominate(Nomination),
    /// Nothing of a pool can be launched.
    Complain(NoTypes),
    /// A pool's claims cannot be made.
    Skip(Unhashable),
    /// A claim is to be made.
    Create(Box<Draft>),
}

/// A machine that gets pods.
#[derive(Debug, Clone, PartialEq)]
pub struct Nomination {
    /// Its node, once registered.
    pub node: Option<Arc<Node>>,
    /// Its claim, if it is ours.
    pub claim: Option<Arc<NodeClaim>>,
    /// The pods, buffers' stand-ins left out.
    pub pods: Vec<Arc<Pod>>,
}

/// A pool of which no instance type is left.
#[derive(Debug, Clone, PartialEq)]
pub struct NoTypes {
    /// The pool.
    pub pool: Arc<NodePool>,
    /// `minValues` is the reason.
    pub is_min_values: bool,
}

/// Whether a pod only stands for the room of a CapacityBuffer.
pub fn is_stand_in(pod: &Pod) -> bool {
    let mark = pod.metadata.annotations.get(api::annotations::CAPACITY_BUFFER_FAKE_POD);
    mark.is_some_and(|mark| **mark == *"true")
}

/// What follows from a plan. `snapshot` is what it was planned on.
pub fn steps(snapshot: &Snapshot, plan: &Plan, dropped: &[DroppedPool]) -> Vec<Step> {
    let complaints = dropped.iter().filter_map(|dropped| complaint(snapshot, dropped));
    let refusals = plan.unplaced.iter().cloned().map(Step::Refuse);
    let nominations = plan.existing.iter().filter_map(|node| nomination(snapshot, node));
    let mut steps: Vec<_> = complaints.map(Step::Complain).collect();
    steps.extend(refusals);
    steps.extend(nominations.map(Step::Nominate));
    steps.extend(creations(snapshot, &plan.claims));
    steps
}

fn complaint(snapshot: &Snapshot, dropped: &DroppedPool) -> Option<NoTypes> {
    let pool = snapshot.objects().node_pools.find("", &dropped.pool)?;
    Some(NoTypes {
        pool: Arc::clone(pool),
        is_min_values: dropped.is_min_values,
    })
}

fn nomination(snapshot: &Snapshot, planned: &PlannedNode) -> Option<Nomination> {
    let pods: Vec<_> = planned.pods.iter().filter(|pod| !is_stand_in(pod)).cloned().collect();
    if pods.is_empty() {
        return None;
    }
    let node = snapshot.node(&planned.name);
    let claim = match node {
        Some(node) => snapshot.claim_of_node(node),
        None => snapshot.objects().node_claims.find("", planned.name.as_str()),
    };
    let node = node.or_else(|| claim.and_then(|claim| snapshot.node_of_claim(claim)));
    Some(Nomination {
        node: node.cloned(),
        claim: claim.cloned(),
        pods,
    })
}

fn creations(snapshot: &Snapshot, planned: &[PlannedClaim]) -> Vec<Step> {
    let mut hashes: BTreeMap<Text, Result<String, Unhashable>> = BTreeMap::new();
    let mut taken: BTreeSet<Text> = BTreeSet::new();
    let mut forecast = Forecast::new(snapshot.catalog());
    let mut steps = Vec::new();
    for planned in planned {
        let Some(pool) = snapshot.node_pool(&planned.node_pool) else {
            continue;
        };
        let hash = hashes.entry(pool.metadata.name.clone()).or_insert_with(|| {
            let hash = claim::hash(pool);
            if let Err(problem) = &hash {
                steps.push(Step::Skip(problem.clone()));
            }
            hash
        });
        let Ok(hash) = hash else { continue };
        let mut draft = Draft::planned(pool, hash, planned, ResourceList::default());
        if !pool.spec.limits.is_empty() {
            draft.most = forecast.outlook(&draft.claim).most.clone();
        }
        let known = &snapshot.objects().node_claims;
        draft.name_it(|name| taken.contains(name) || known.find("", name).is_some());
        taken.insert(draft.claim.metadata.name.clone());
        steps.push(Step::Create(Box::new(draft)));
    }
    steps
}

/// Whether people should hear of a refusal.
pub fn is_told(kind: RefusalKind) -> bool {
    !matches!(kind, RefusalKind::OptedOut | RefusalKind::Deferred)
}

/// Whether a pod was not even tried.
pub fn is_ignored(kind: RefusalKind) -> bool {
    matches!(kind, RefusalKind::OptedOut | RefusalKind::Invalid)
}
