//! One pass: what is pending, planned, and acted on.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use model::{
    object::{NodePool, ObjectKey},
    plan::{Plan, RefusalKind},
    snapshot::Snapshot,
};
use packing::{
    Options,
    demand::{Demand, Origin},
};
use runtime::{Settings, queue::Backoff};
use state::{Change, State};
use tokio::time::Instant;

use super::{
    create::{self, Reason},
    decide::{self, Step},
    in_flight, listed,
    reserve::Reservations,
    tell,
};
use crate::{Cluster, Controller, Next, Problem};

/// Plans for pods without a place, and creates what the plan asks for.
#[derive(Debug)]
pub struct Provisioner {
    reservations: Arc<Reservations>,
    /// Since when a pass waits for kinds to be listed.
    waiting_since: Mutex<Option<Instant>>,
}

/// What a pass came to.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) plan: Plan,
    pub(super) steps: Vec<Step>,
}

/// The one thing the provisioner reconciles.
pub const CLUSTER: &str = "cluster";
const NAME: &str = "provisioner";

impl Provisioner {
    /// With the reservations that everybody who creates claims shares.
    pub fn new(reservations: Arc<Reservations>) -> Self {
        Self {
            reservations,
            waiting_since: Mutex::default(),
        }
    }

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

    async fn act(&self, cluster: &Cluster, steps: Vec<Step>) -> Result<(), Problem> {
        let mut drafts = Vec::new();
        for step in steps {
            match step {
                Step::Refuse(refusal) => {
                    tell::log_refusal(&refusal);
                    if decide::is_told(refusal.kind) {
                        cluster.publish(tell::failed(&refusal));
                    }
                }
                Step::Nominate(nomination) => {
                    for pod in &nomination.pods {
                        let (claim, node) = (nomination.claim.as_deref(), nomination.node.as_deref());
                        cluster.publish(tell::nominated(pod, claim, node));
                    }
                }
                Step::Complain(dropped) => cluster.publish(tell::no_types(&dropped)),
                Step::Skip(problem) => tracing::error!(error = %problem, "skipping nodepool"),
                Step::Create(draft) => drafts.push(*draft),
            }
        }
        let results = create::all(cluster, &self.reservations, drafts, Reason::PROVISIONED).await;
        create::problems(&results).map_or(Ok(()), Err)
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
        let missing = self.missing(cluster);
        if !missing.is_empty() {
            tracing::debug!(kinds = ?missing, "waiting for kinds to be listed");
            return Ok(Next::After(Duration::from_millis(100)));
        }
        let began = Instant::now();
        let snapshot = planned_on(&cluster.snapshot(), cluster);
        let options = Options::default();
        let planned = cluster.engine().run(move || pass(&snapshot, &options)).await?;
        let metrics = cluster.metrics();
        let took = began.elapsed();
        metrics
            .scheduler_scheduling_duration_seconds
            .observe([NAME], took.as_secs_f64());
        let Some(outcome) = planned else {
            return Ok(Next::Change);
        };
        measure(cluster, &outcome.plan);
        log(&outcome, took);
        self.act(cluster, outcome.steps).await.map(|()| Next::Change)
    }
}

/// The snapshot without pools that take no part for reasons the planner does not know.
fn planned_on(snapshot: &Snapshot, cluster: &Cluster) -> Snapshot {
    let classes = cluster.cloud().node_classes();
    let is_managed = |pool: &NodePool| {
        let class = pool.spec.template.spec.node_class_ref.as_ref();
        class.is_some_and(|class| {
            classes
                .iter()
                .any(|kind| *kind.group == *class.group && *kind.kind == *class.kind)
        })
    };
    let offered = &snapshot.catalog().node_pool_instance_types;
    let mut left_out: Vec<ObjectKey> = Vec::new();
    for pool in snapshot.objects().node_pools.iter().filter(|pool| !pool.is_static()) {
        let name = &*pool.metadata.name;
        if !is_managed(pool) {
            left_out.push(pool.metadata.key());
        } else if !pool.is_ready() {
            tracing::error!("NodePool.name" = name, "ignoring nodepool, not ready");
        } else if offered.get(&pool.name()).is_none_or(|types| types.is_empty()) {
            tracing::info!("NodePool.name" = name, "skipping, no resolved instance types found");
            left_out.push(pool.metadata.key());
        }
    }
    if left_out.is_empty() {
        return snapshot.clone();
    }
    snapshot.overlaid(|objects| objects.node_pools = objects.node_pools.without(left_out))
}

/// Plans and decides; none when nobody needs a place.
pub(super) fn pass(snapshot: &Snapshot, options: &Options) -> Option<Outcome> {
    let demand = Demand::of(snapshot);
    if demand.pods.is_empty() && demand.ignored.is_empty() {
        return None;
    }
    let moving = demand
        .pods
        .iter()
        .filter(|entry| matches!(entry.origin, Origin::Moving(_)))
        .count();
    let pending = demand.pods.len() - moving;
    let has_pool = |pool: &NodePool| !pool.is_static() && pool.is_ready() && !pool.metadata.is_deleting();
    if !snapshot.objects().node_pools.iter().any(|pool| has_pool(pool)) {
        tracing::info!("no dynamic nodepools found");
        return None;
    }
    tracing::debug!(
        "pending-pods" = pending,
        "deleting-pods" = moving,
        "computing scheduling decision for provisionable pod(s)"
    );
    let snapshot = in_flight::counted(snapshot);
    let packing::Planned { plan, dropped, .. } = packing::planned(&snapshot, options);
    let steps = decide::steps(&snapshot, &plan, &dropped);
    Some(Outcome { plan, steps })
}

fn measure(cluster: &Cluster, plan: &Plan) {
    let count = |is: fn(RefusalKind) -> bool| {
        let refusals = plan.unplaced.iter().filter(|refusal| is(refusal.kind));
        f64::from(u32::try_from(refusals.count()).unwrap_or(u32::MAX))
    };
    let metrics = cluster.metrics();
    metrics.scheduler_ignored_pods_count.set([], count(decide::is_ignored));
    let is_unschedulable = |kind| !decide::is_ignored(kind) && kind != RefusalKind::Deferred;
    metrics
        .scheduler_unschedulable_pods_count
        .set([NAME], count(is_unschedulable));
}

fn log(outcome: &Outcome, took: Duration) {
    let plan = &outcome.plan;
    let new: usize = plan.claims.iter().map(|claim| claim.pods.len()).sum();
    if new == 0 {
        return;
    }
    let pods = plan.claims.iter().flat_map(|claim| &claim.pods);
    let pods = pods.chain(plan.existing.iter().flat_map(|node| &node.pods));
    tracing::info!(Pods = tell::some_pods(pods), duration = ?took, "found provisionable pod(s)");
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
