//! One pass: what is pending, planned, and acted on.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use model::{
    object::{List, NodeClaim, NodeClaimName, NodePool, ObjectKey, Pod},
    plan::{Plan, RefusalKind, Unplaced},
    snapshot::Snapshot,
};
use packing::{
    Options, Report, Warm,
    demand::{Demand, DemandPod, Origin},
    supply::DroppedPool,
};
use runtime::{Settings, queue::Backoff, settings::Steering};
use state::{Change, State};
use tokio::time::Instant;

use super::{
    act,
    decide::{self, Step},
    foresight::Foresight,
    in_flight, is_managed, listed, nominated, tell, zone,
};
use crate::{
    Cluster, Controller, Next, Problem,
    flight::Taped,
    mutation::{self, Mutation},
    records::{self, RefusedPods, Story},
    steering::hint,
};

/// Plans for pods without a place, and creates what the plan asks for.
#[derive(Debug, Default)]
pub struct Provisioner {
    /// Since when a pass waits for kinds to be listed.
    waiting_since: Mutex<Option<Instant>>,
    /// Counts passes, to tell their series apart.
    passes: AtomicU64,
    /// What the next plan can take over from the last one.
    warm: Arc<Mutex<Warm>>,
}

/// How to plan.
#[derive(Debug, Clone, Default)]
pub(crate) struct Manner {
    pub(crate) options: Options,
    /// How far pods are led to their nodes: whether claims of one plan are marked as such, and pods told.
    pub(crate) steering: Steering,
    /// Whether pods that are about to be made take part in the plan.
    pub(crate) foresight: bool,
}

/// What a pass came to.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Pods that need a place.
    pub(super) pods: Vec<Arc<Pod>>,
    pub(super) plan: Plan,
    pub(super) steps: Vec<Step>,
    /// How the plan came about.
    pub(super) report: Report,
}

/// The one thing the provisioner reconciles.
pub(crate) const CLUSTER: &str = "cluster";
const NAME: &str = "provisioner";

impl Provisioner {
    /// The kinds this pass must wait for.
    fn missing(&self, cluster: &Cluster) -> Vec<state::Kind> {
        let mut since = self.waiting_since.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = since.get_or_insert_with(Instant::now).elapsed();
        let gates = &cluster.settings().decisions.feature_gates;
        let missing = cluster.look(|state| listed::missing(state, gates, waited));
        if missing.is_empty() {
            *since = None;
        }
        missing
    }
}

#[async_trait]
impl Controller for Provisioner {
    type Key = &'static str;

    fn name(&self) -> &'static str {
        NAME
    }

    fn workers(&self, _: &Settings) -> usize {
        1
    }

    fn backoff(&self) -> Backoff {
        Backoff {
            least: Duration::from_millis(100),
            most: Duration::from_secs(10),
        }
    }

    /// Nothing by itself: the batch says when.
    fn concerns(&self, _: &Change, _: &State) -> Vec<&'static str> {
        Vec::new()
    }

    async fn reconcile(&self, cluster: &Cluster, _: &&'static str) -> Result<Next, Problem> {
        if mutation::has(Mutation::IgnoresPods) {
            return Ok(Next::Change);
        }
        let missing = self.missing(cluster);
        if !missing.is_empty() {
            tracing::debug!(kinds = ?missing, "waiting for kinds to be listed");
            return Ok(Next::After(Duration::from_millis(100)));
        }
        let began = Instant::now();
        let depth = QueueDepth::begin(cluster, self.passes.fetch_add(1, Ordering::Relaxed));
        let inputs = cluster.inputs();
        let marked = marked(cluster);
        let whole = cluster.snapshot();
        let left_out = left_out(&whole, cluster);
        let snapshot = planned_on(&going(&whole, &marked), &left_out);
        let mut manner = manner(cluster.settings());
        manner.options.promised = promised(cluster);
        let given = Given {
            marked,
            left_out,
            manner: manner.clone(),
        };
        let warm = Arc::clone(&self.warm);
        let plan = move || {
            pass(
                &snapshot,
                &manner,
                &mut warm.lock().unwrap_or_else(PoisonError::into_inner),
            )
        };
        let outcome = cluster.engine().run(plan).await?;
        let took = began.elapsed();
        depth.end(cluster, &outcome.plan);
        measure(cluster, &outcome, took);
        log(&outcome, took);
        let story = Story::of(cluster, &inputs, &outcome.report, took);
        let ids = if cluster.is_taped() {
            planned_ids(&outcome.steps)
        } else {
            Vec::new()
        };
        if !ids.is_empty() {
            cluster.tape(&whole, &inputs, || Taped::Provisioning {
                given: Box::new(given),
                plan: Box::new(outcome.plan.clone()),
                ids,
            });
        }
        act::all(cluster, outcome.steps, story).await.map(|()| Next::Change)
    }
}

pub(crate) fn manner(settings: &Settings) -> Manner {
    let packing = match settings.packing {
        runtime::settings::Packing::Cheapest => packing::Packing::Cheapest,
        runtime::settings::Packing::Faithful => packing::Packing::Faithful,
    };
    let steering = match settings.steering {
        Steering::Off => packing::Steering::Off,
        Steering::Release => packing::Steering::Release,
        Steering::Nominate => packing::Steering::Nominate,
        Steering::Pin => packing::Steering::Pin,
    };
    Manner {
        options: Options {
            packing,
            steering,
            ..Options::default()
        },
        steering: settings.steering,
        foresight: settings.looks_ahead(),
    }
}

/// What the controller knows beside the snapshot it plans on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Given {
    /// Claims that go, whether or not the API server knows.
    pub(crate) marked: Vec<NodeClaimName>,
    /// Pools that take no part.
    pub(crate) left_out: Vec<ObjectKey>,
    /// How to plan.
    pub(crate) manner: Manner,
}

/// The plan that a snapshot and what is known beside it lead to, once more, and the decisions that follow.
pub(crate) fn again(whole: &Snapshot, given: &Given) -> (Plan, Vec<ledger::Id>) {
    let snapshot = planned_on(&going(whole, &given.marked), &given.left_out);
    let outcome = pass(&snapshot, &given.manner, &mut Warm::default());
    let ids = planned_ids(&outcome.steps);
    (outcome.plan, ids)
}

/// The decisions that follow from a plan: claims to make, and pods without a place.
fn planned_ids(steps: &[Step]) -> Vec<ledger::Id> {
    let mut refused = RefusedPods::default();
    let ids = steps.iter().filter_map(|step| match step {
        Step::Create(draft) => Some(records::id_of_claim(&draft.claim.metadata.name)),
        Step::Refuse(refusal) if decide::is_told(refusal) => Some(refused.add(refusal)),
        _ => None,
    });
    let mut ids: Vec<_> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Where earlier plans have pods that still wait.
fn promised(cluster: &Cluster) -> BTreeMap<ObjectKey, NodeClaimName> {
    cluster.look(|state| {
        let waits = |pod: &ObjectKey| state.get::<Pod>(pod).is_some_and(|pod| pod.node_name.is_none());
        let promises = state.promises().filter(|(pod, _)| waits(pod));
        promises.map(|(pod, claim)| (pod.clone(), claim.clone())).collect()
    })
}

/// Claims that are marked for deletion, in memory only.
fn marked(cluster: &Cluster) -> Vec<NodeClaimName> {
    cluster.look(|state| state.marked_for_deletion().collect())
}

/// The snapshot in which claims that are marked for deletion go already: their nodes take no pods, and theirs need a place.
fn going(snapshot: &Snapshot, marked: &[NodeClaimName]) -> Snapshot {
    let now = snapshot.taken_at();
    let claims = marked.iter().filter_map(|name| {
        let claim = snapshot.objects().node_claims.find("", name.as_str())?;
        if claim.metadata.is_deleting() {
            return None;
        }
        let mut claim = NodeClaim::clone(claim);
        claim.metadata.deletion_timestamp = Some(now);
        Some(Arc::new(claim))
    });
    let claims: Vec<_> = claims.collect();
    if claims.is_empty() {
        return snapshot.clone();
    }
    snapshot.overlaid(|objects| objects.node_claims = objects.node_claims.with(claims))
}

/// Pools that take no part for reasons the planner does not know.
fn left_out(snapshot: &Snapshot, cluster: &Cluster) -> Vec<ObjectKey> {
    let offered = &snapshot.catalog().node_pool_instance_types;
    let mut left_out: Vec<ObjectKey> = Vec::new();
    for pool in snapshot.objects().node_pools.iter().filter(|pool| !pool.is_static()) {
        let name = &*pool.metadata.name;
        if !is_managed(pool, cluster) {
            left_out.push(pool.metadata.key());
        } else if !pool.is_ready() {
            tracing::error!("NodePool.name" = name, "ignoring nodepool, not ready");
        } else if offered.get(&pool.name()).is_none_or(List::is_empty) {
            tracing::info!("NodePool.name" = name, "skipping, no resolved instance types found");
            left_out.push(pool.metadata.key());
        }
    }
    left_out
}

/// The snapshot without these pools.
fn planned_on(snapshot: &Snapshot, left_out: &[ObjectKey]) -> Snapshot {
    if mutation::has(Mutation::IgnoresLimits) {
        return without_limits(snapshot);
    }
    if left_out.is_empty() {
        return snapshot.clone();
    }
    let left_out = left_out.iter().cloned();
    snapshot.overlaid(|objects| objects.node_pools = objects.node_pools.without(left_out))
}

/// The snapshot in which pools have no limits.
fn without_limits(snapshot: &Snapshot) -> Snapshot {
    let pools = snapshot.objects().node_pools.iter().map(|pool| {
        let mut pool = NodePool::clone(pool);
        pool.spec.limits = model::resources::ResourceList::default();
        Arc::new(pool)
    });
    let pools: Vec<_> = pools.collect();
    snapshot.overlaid(|objects| objects.node_pools = objects.node_pools.with(pools))
}

/// Plans and decides.
pub(crate) fn pass(snapshot: &Snapshot, manner: &Manner, warm: &mut Warm) -> Outcome {
    let snapshot = &nominated::counted(snapshot);
    let Demand { pods, ignored } = Demand::of(snapshot);
    let is_moving = |entry: &&DemandPod| matches!(entry.origin, Origin::Moving(_));
    let moving = pods.iter().filter(is_moving).count();
    let pods: Vec<_> = pods.into_iter().map(|entry| entry.pod).collect();
    let takes_part = |pool: &NodePool| !pool.is_static() && pool.is_ready() && !pool.metadata.is_deleting();
    let has_pools = snapshot.objects().node_pools.iter().any(|pool| takes_part(pool));
    if pods.is_empty() || !has_pools {
        return idle(snapshot, pods, ignored);
    }
    tracing::debug!(
        "pending-pods" = pods.len() - moving,
        "deleting-pods" = moving,
        "computing scheduling decision for provisionable pod(s)"
    );
    let snapshot = if mutation::has(Mutation::ForgetsInFlight) {
        snapshot.overlaid(|objects| objects.node_claims = model::snapshot::Table::default())
    } else {
        in_flight::counted(snapshot)
    };
    let (plan, dropped, report) = planned(&snapshot, manner, warm);
    let mut steps = decide::steps(&snapshot, &plan, &dropped, manner.steering != Steering::Off);
    if mutation::has(Mutation::SaysNothing) {
        steps.retain(|step| !matches!(step, Step::Refuse(_)));
    }
    if manner.steering >= Steering::Nominate {
        let hints = hint::worthwhile(&snapshot, &plan);
        steps.extend((!hints.is_empty()).then_some(Step::Hint(hints)));
    }
    Outcome {
        pods,
        plan,
        steps,
        report,
    }
}

/// The plan for all pods, with those in mind that are about to be made.
fn planned(snapshot: &Snapshot, manner: &Manner, warm: &mut Warm) -> (Plan, Vec<DroppedPool>, Report) {
    let foresight = manner.foresight.then(|| Foresight::of(snapshot));
    if let Some(foresight) = foresight.filter(|foresight| !foresight.is_empty()) {
        let planned = warm.planned(&foresight.counted(snapshot), &manner.options);
        if let Some(plan) = foresight.left_out(&planned.plan) {
            return (plan, planned.dropped, planned.report);
        }
    }
    let planned = warm.planned(snapshot, &manner.options);
    (planned.plan, planned.dropped, planned.report)
}

/// A pass without a plan: nobody needs a place, or there is nothing to launch from.
fn idle(snapshot: &Snapshot, pods: Vec<Arc<Pod>>, ignored: Vec<Unplaced>) -> Outcome {
    if !pods.is_empty() {
        tracing::info!("no dynamic nodepools found");
    }
    let plan = Plan {
        unplaced: ignored,
        ..Plan::default()
    };
    let mut steps = decide::steps(snapshot, &plan, &[], false);
    steps.extend(pods.into_iter().map(Step::Postpone));
    Outcome {
        plan,
        steps,
        ..Outcome::default()
    }
}

/// The gauges of a pass under way.
struct QueueDepth {
    id: String,
}

impl QueueDepth {
    fn begin(cluster: &Cluster, number: u64) -> Self {
        let (id, metrics) = (number.to_string(), cluster.metrics());
        let pending = cluster.look(|state| {
            let pods = state.all::<Pod>().iter();
            pods.filter(|pod| pod.is_provisionable()).count()
        });
        metrics
            .scheduler_queue_depth
            .retain(|[controller, _]| **controller != *NAME);
        metrics.scheduler_queue_depth.set([NAME, &id], gauge(pending));
        metrics.scheduler_unfinished_work_seconds.set([NAME, &id], 0.0);
        Self { id }
    }

    fn end(self, cluster: &Cluster, plan: &Plan) {
        let metrics = cluster.metrics();
        metrics
            .scheduler_queue_depth
            .set([NAME, &self.id], gauge(plan.unplaced.len()));
        metrics.scheduler_unfinished_work_seconds.remove([NAME, &self.id]);
    }
}

fn gauge(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

fn measure(cluster: &Cluster, outcome: &Outcome, took: Duration) {
    let count = |is: fn(RefusalKind) -> bool| {
        let refusals = outcome.plan.unplaced.iter().filter(|refusal| is(refusal.kind));
        gauge(refusals.count())
    };
    let is_unschedulable = |kind| !decide::is_ignored(kind) && kind != RefusalKind::Deferred;
    let metrics = cluster.metrics();
    metrics
        .scheduler_scheduling_duration_seconds
        .observe([NAME], took.as_secs_f64());
    metrics.scheduler_ignored_pods_count.set([], count(decide::is_ignored));
    metrics
        .scheduler_unschedulable_pods_count
        .set([NAME], count(is_unschedulable));
    let zones = zone::counts(&outcome.pods);
    metrics
        .scheduler_pending_pods_by_effective_zone_count
        .retain(|[controller, _]| **controller != *NAME);
    for (zone, pods) in zones {
        metrics
            .scheduler_pending_pods_by_effective_zone_count
            .set([NAME, &zone], f64::from(pods));
    }
}

fn log(outcome: &Outcome, took: Duration) {
    let plan = &outcome.plan;
    let deferred = plan.unplaced.iter().filter(|it| it.kind == RefusalKind::Deferred);
    let deferred: Vec<_> = deferred.map(|it| &it.pod).collect();
    if !deferred.is_empty() {
        tracing::debug!(
            Pods = tell::some_pods(deferred),
            "deferring scheduling decision for provisionable pod(s) to future simulation due to limited reserved offering capacity"
        );
    }
    let new: usize = plan.claims.iter().map(|claim| claim.pods.len()).sum();
    if new == 0 {
        return;
    }
    tracing::info!(Pods = tell::some_pods(&outcome.pods), duration = ?took, "found provisionable pod(s)");
    tracing::info!(
        nodeclaims = plan.claims.len(),
        pods = new,
        "computed new nodeclaim(s) to fit pod(s)"
    );
    let existing: usize = plan.existing.iter().map(|node| node.pods.len()).sum();
    if existing > 0 {
        tracing::info!(
            nodes = plan.existing.len(),
            pods = existing,
            "computed unready node(s) will fit pod(s)"
        );
    }
}
