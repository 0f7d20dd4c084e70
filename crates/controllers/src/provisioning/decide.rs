//! What follows from a plan: which claims to create, which nodes to nominate, what to tell whom.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::labels::NODEPOOL;
use model::{
    object::{Node, NodeClaim, NodePool, NodePoolName, ObjectKey, Pod, ProviderId, Text},
    plan::{Plan, PlannedClaim, PlannedNode, RefusalKind, Unplaced},
    resources::ResourceList,
    snapshot::Snapshot,
};
use packing::supply::DroppedPool;

use super::{
    buffer::{self, Verdict, is_stand_in},
    claim::{self, Draft, Unhashable},
    in_flight::Forecast,
    name::NameSeed,
};

/// One thing to do. Each stands alone: whatever a crash leaves undone, the next pass finds again.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// Nothing of a pool can be launched.
    Complain(NoTypes),
    /// A pod has no place.
    Refuse(Unplaced),
    /// A pod was not planned for, because there is no pool at all.
    Postpone(Arc<Pod>),
    /// Pods have a place on a machine that is there or on its way.
    Nominate(Nomination),
    /// What the plan says of a buffer is to be written.
    Judge(Verdict),
    /// The plan put stand-ins of buffers on these machines.
    CountStandIns(BTreeMap<ProviderId, usize>),
    /// A pool's claims cannot be made.
    Skip(Unhashable),
    /// A claim is to be made.
    Create(Box<Draft>),
    /// Pods of these claims are to be told where they are meant to run, before their nodes open.
    Hint(BTreeSet<ObjectKey>),
}

/// A machine that gets pods.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Nomination {
    /// Its provider ID, or its node's name.
    pub machine: Text,
    /// Its node, if there is one.
    pub node: Option<Arc<Node>>,
    /// Its claim, if it is ours.
    pub claim: Option<Arc<NodeClaim>>,
    /// Its pool, if it is ours.
    pub pool: Option<NodePoolName>,
    /// The pods, buffers' stand-ins left out.
    pub pods: Vec<Arc<Pod>>,
}

/// A pool of which no instance type is left.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NoTypes {
    /// The pool.
    pub pool: Arc<NodePool>,
    /// `minValues` is the reason.
    pub is_min_values: bool,
}

/// What follows from a plan. `snapshot` is what it was planned on; `is_steered` marks the claims of one plan, so that
/// their nodes can be released together.
pub(crate) fn steps(snapshot: &Snapshot, plan: &Plan, dropped: &[DroppedPool], is_steered: bool) -> Vec<Step> {
    let complaints = dropped.iter().filter_map(|dropped| complaint(snapshot, dropped));
    let mut steps: Vec<_> = complaints.map(Step::Complain).collect();
    steps.extend(plan.unplaced.iter().cloned().map(Step::Refuse));
    steps.extend(nominations(snapshot, plan).into_iter().map(Step::Nominate));
    steps.extend(of_buffers(snapshot, plan));
    steps.extend(creations(snapshot, &plan.claims, is_steered));
    steps
}

fn of_buffers(snapshot: &Snapshot, plan: &Plan) -> Vec<Step> {
    if !snapshot.settings().feature_gates.capacity_buffer {
        return Vec::new();
    }
    let verdicts = buffer::verdicts(snapshot, plan).into_iter().map(Step::Judge);
    verdicts
        .chain([Step::CountStandIns(buffer::counts(snapshot, plan))])
        .collect()
}

fn complaint(snapshot: &Snapshot, dropped: &DroppedPool) -> Option<NoTypes> {
    let pool = snapshot.objects().node_pools.find("", &dropped.pool)?;
    Some(NoTypes {
        pool: Arc::clone(pool),
        is_min_values: dropped.is_min_values,
    })
}

/// The machines of a plan that are there, or on their way, and get pods.
pub(crate) fn nominations(snapshot: &Snapshot, plan: &Plan) -> Vec<Nomination> {
    let nominations = plan.existing.iter().filter_map(|node| nomination(snapshot, node));
    nominations.collect()
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
    let node = node.or_else(|| snapshot.node_of_claim(claim?));
    let labels = node
        .map(|node| &node.metadata.labels)
        .or(claim.map(|claim| &claim.metadata.labels));
    let id = claim
        .and_then(|claim| claim.status.provider_id.as_ref())
        .or_else(|| node?.spec.provider_id.as_ref());
    Some(Nomination {
        machine: id.map_or_else(|| planned.name.as_str().into(), |id| id.as_str().into()),
        node: node.cloned(),
        claim: claim.cloned(),
        pool: labels
            .and_then(|labels| labels.get(NODEPOOL))
            .cloned()
            .map(NodePoolName::from),
        pods,
    })
}

fn creations(snapshot: &Snapshot, planned: &[PlannedClaim], is_steered: bool) -> Vec<Step> {
    let (skipped, drafts) = drafted(snapshot, planned, is_steered);
    let skipped = skipped.into_iter().map(Step::Skip);
    skipped
        .chain(drafts.into_iter().map(|draft| Step::Create(Box::new(draft))))
        .collect()
}

/// The claims a plan asks for, all or none of them: a command brings all its replacements.
pub(crate) fn drafts(
    snapshot: &Snapshot,
    planned: &[PlannedClaim],
    is_steered: bool,
) -> Result<Vec<Draft>, Unhashable> {
    let (mut skipped, drafts) = drafted(snapshot, planned, is_steered);
    skipped.pop().map_or(Ok(drafts), Err)
}

fn drafted(snapshot: &Snapshot, planned: &[PlannedClaim], is_steered: bool) -> (Vec<Unhashable>, Vec<Draft>) {
    let mut hashes: BTreeMap<Text, Result<String, Unhashable>> = BTreeMap::new();
    let mut taken: BTreeSet<Text> = BTreeSet::new();
    let mut forecast = Forecast::new(snapshot.catalog());
    let (mut skipped, mut drafts) = (Vec::new(), Vec::new());
    for planned in planned {
        let Some(pool) = snapshot.node_pool(&planned.node_pool) else {
            continue;
        };
        let hash = hashes.entry(pool.metadata.name.clone()).or_insert_with(|| {
            let hash = claim::hash(pool);
            skipped.extend(hash.as_ref().err().cloned());
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
        drafts.push((draft, planned));
    }
    if is_steered && drafts.len() > 1 {
        steer(&mut drafts);
    }
    (skipped, drafts.into_iter().map(|(draft, _)| draft).collect())
}

/// Marks claims as made together, and those that the plan wants to come after the others.
fn steer(drafts: &mut [(Draft, &PlannedClaim)]) {
    let plan = NameSeed::of(drafts.iter().map(|(draft, _)| &*draft.claim.metadata.name)).name("plan", 0);
    for (draft, planned) in drafts {
        draft.annotate(api::annotations::PLAN, &plan);
        if planned.wave > 0 {
            draft.annotate(api::annotations::RELEASE, "last");
        }
    }
}

/// Whether people should hear of a refusal. Of stand-ins nobody does: their buffer's condition says it.
pub(crate) fn is_told(refusal: &Unplaced) -> bool {
    !matches!(refusal.kind, RefusalKind::OptedOut | RefusalKind::Deferred) && !is_stand_in(&refusal.pod)
}

/// Whether a pod was not even tried.
pub(crate) fn is_ignored(kind: RefusalKind) -> bool {
    matches!(kind, RefusalKind::OptedOut | RefusalKind::Invalid)
}
