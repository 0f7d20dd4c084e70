//! What a preference costs: WL05 soft-rule-cost. The planner places the workload's pods twice, once without the wish.

use std::sync::Arc;

use model::{
    object::{BriefCondition, Condition, ConditionStatus, List, Metadata, NodePool, OwnerReference, Pod},
    plan::Plan,
    price::Price,
    snapshot::{Objects, PreferencePolicy, Settings, Snapshot, Table, Title},
    words::counted,
};

use crate::{
    finding::Found,
    world::{Workload, World},
};

/// So many replicas show what a wish costs; more of them only take longer.
const MOST: i64 = 20;
/// Hours of a month, as clouds' calculators count it.
const HOURS_OF_A_MONTH: u64 = 730;
const PICOS: u64 = 1_000_000_000_000;

pub(crate) fn soft_rule_cost(world: &World) -> Vec<Found> {
    let workloads = world.workloads.iter();
    let asked = workloads.filter(|workload| !workload.is_fragment() && workload.kind != "DaemonSet");
    asked.filter_map(|workload| cost(world, workload)).collect()
}

fn cost(world: &World, workload: &Workload) -> Option<Found> {
    let (path, wish) = wish(workload)?;
    let replicas = usize::try_from(workload.replicas.unwrap_or(1).clamp(0, MOST)).ok()?;
    let met = placed(world, workload, replicas, PreferencePolicy::Respect)?;
    let ignored = placed(world, workload, replicas, PreferencePolicy::Ignore)?;
    let more = met.price().picos().checked_sub(ignored.price().picos())?;
    let a_month = Price::from_picos(more.saturating_mul(HOURS_OF_A_MONTH));
    let dollars = (a_month.picos() + PICOS / 2) / PICOS;
    if dollars == 0 {
        return None;
    }
    let text = format!(
        "{wish} costs about ${dollars}/mo: {} on {} instead of {}",
        counted(replicas, "replica"),
        counted(met.claims.len(), "new node"),
        counted(ignored.claims.len(), "node")
    );
    Some(Found::new(workload.document, workload.path(path), text))
}

/// The first preference of a workload: where it stands, and what it is called.
fn wish(workload: &Workload) -> Option<(&'static str, &'static str)> {
    let spec = &workload.spec;
    let affinity = spec.affinity.as_ref();
    let near = affinity.and_then(|it| it.pod_affinity.as_ref());
    let away = affinity.and_then(|it| it.pod_anti_affinity.as_ref());
    let nodes = affinity.and_then(|it| it.node_affinity.as_ref());
    let is_soft = |it: &model::object::TopologySpreadConstraint| *it.when_unsatisfiable == *"ScheduleAnyway";
    if away.is_some_and(|it| !it.preferred.is_empty()) {
        Some((PATHS[0], "preferring to be away from other pods"))
    } else if near.is_some_and(|it| !it.preferred.is_empty()) {
        Some((PATHS[1], "preferring to be near other pods"))
    } else if nodes.is_some_and(|it| !it.preferred.is_empty()) {
        Some((PATHS[2], "preferring certain nodes"))
    } else if spec.topology_spread_constraints.iter().any(is_soft) {
        Some((PATHS[3], "spreading where it can (ScheduleAnyway)"))
    } else {
        None
    }
}

const PATHS: [&str; 4] = [
    "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution",
    "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution",
    "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution",
    "spec.topologySpreadConstraints",
];

/// The nodes that so many pods of a workload alone would get; none where some get none, which other rules tell.
fn placed(world: &World, workload: &Workload, replicas: usize, policy: PreferencePolicy) -> Option<Plan> {
    let source = world.places(workload).first()?.pool.source?;
    let pools = world.pools.iter().filter(|pool| pool.source == Some(source));
    let objects = Objects {
        node_pools: Table::new(pools.map(|pool| ready(&pool.pool)).collect()),
        pods: Table::new((0..replicas).map(|at| pod(world, workload, at)).collect()),
        ..Objects::default()
    };
    let settings = Settings {
        preference_policy: policy,
        ..Settings::default()
    };
    let title = Title {
        name: String::new(),
        taken_at: world.now,
        origin: String::new(),
    };
    let catalog = world.catalog(source)?;
    let snapshot = Snapshot::sharing(title, Arc::new(settings), objects, catalog);
    let plan = packing::plan(&snapshot, &packing::Options::default());
    plan.unplaced.is_empty().then_some(plan)
}

/// The pool as it is once it serves.
fn ready(pool: &NodePool) -> Arc<NodePool> {
    let mut pool = pool.clone();
    let condition = Condition {
        kind: "Ready".into(),
        status: ConditionStatus::True,
        ..Condition::default()
    };
    pool.status.conditions = vec![condition].into();
    Arc::new(pool)
}

/// A pod of the workload that waits for a node.
fn pod(world: &World, workload: &Workload, at: usize) -> Arc<Pod> {
    let name = format!("{}-{at}", workload.name);
    let owner = OwnerReference {
        kind: workload.kind.as_str().into(),
        name: workload.name.as_str().into(),
        controller: Some(true),
        ..OwnerReference::default()
    };
    let waits = BriefCondition {
        kind: "PodScheduled".into(),
        status: ConditionStatus::False,
        reason: "Unschedulable".into(),
        last_transition_time: Some(world.now),
    };
    let mut spec = workload.spec.admitted();
    // Which volumes it gets, nobody knows yet.
    spec.volumes = List::default();
    let mut pod = Pod {
        metadata: Metadata {
            name: name.as_str().into(),
            uid: name.as_str().into(),
            namespace: workload.namespace.as_str().into(),
            labels: workload.labels.clone(),
            creation_timestamp: Some(world.now),
            owner_references: vec![owner].into(),
            ..Metadata::default()
        },
        spec: Arc::new(spec),
        ..Pod::default()
    };
    pod.status.conditions = vec![waits].into();
    Arc::new(pod)
}
