//! What files do not say because nobody has judged it yet: a NodePool fresh from a manifest has no status, a pod that
//! kube-scheduler has not seen waits for no reason. Taken at their best, and told.

use std::sync::Arc;

use forecast::{Change, Kind, Workload};
use model::{
    object::{BriefCondition, Condition, ConditionStatus, Job, Metadata, NodePool, Object, Pod, PodPhase},
    snapshot::{Objects, Snapshot, Table},
};

use crate::terminal::counted;

/// The snapshot with pools that are ready unless they say otherwise and pods that wait unless somebody said why, and what
/// was assumed for that.
pub(super) fn assumed(mut snapshot: Snapshot) -> (Snapshot, Vec<String>) {
    let mut told = Vec::new();
    let mut objects = snapshot.objects().clone();
    if let Some(count) = judged(&mut objects.node_pools, made_ready) {
        let (pools, have) = (counted(count, "NodePool"), if count == 1 { "has" } else { "have" });
        told.push(format!("{pools} that no controller has judged {have} no fault: ready"));
    }
    if let Some(count) = judged(&mut objects.pods, made_to_wait) {
        let (pods, need) = (counted(count, "pod"), if count == 1 { "needs" } else { "need" });
        told.push(format!("{pods} that kube-scheduler has not judged {need} a place"));
    }
    if !told.is_empty() {
        let (title, settings) = (snapshot.title().clone(), snapshot.settings().clone());
        snapshot = Snapshot::sharing(title, settings.into(), objects, snapshot.shared_catalog().clone());
    }
    (snapshot, told)
}

/// The snapshot with the pods that workloads fresh from a manifest will make, and what was assumed for that. One whose pods
/// are there, or that an API server has seen, has those it has; and where there are machines, pods that are not there may
/// have been left out of the dump.
pub(super) fn with_pods(snapshot: Snapshot, jobs: &[Job]) -> (Snapshot, Vec<String>) {
    let unmade = unmade(&snapshot, jobs);
    let objects = snapshot.objects();
    if !objects.nodes.is_empty() || !objects.node_claims.is_empty() {
        let told = unmade.iter().take(MOST_TOLD).map(|Wanted { name, .. }| {
            format!("{name} has no pods here, and none are planned for; dovetail whatif -f FILE plays a manifest")
        });
        return (snapshot.clone(), told.collect());
    }
    let (unmade, too_many): (Vec<_>, Vec<_>) = unmade.into_iter().partition(|it| it.pods <= MOST_PODS);
    let mut told: Vec<String> = too_many
        .iter()
        .map(|Wanted { name, pods, .. }| format!("{name} wants {pods} pods that nobody has made: left out"))
        .collect();
    let changes: Vec<Change> = unmade.iter().map(Wanted::made).collect();
    let Ok(made) = forecast::changed(&snapshot, &changes) else {
        return (snapshot, told);
    };
    told.extend(unmade.iter().map(|Wanted { name, pods, .. }| match pods {
        1 => format!("{name} makes its pod, which nobody has made yet"),
        count => format!("{name} makes its {count} pods, which nobody has made yet"),
    }));
    told.extend(made.assumed);
    (made.snapshot, told)
}

/// So many workloads without pods are named.
const MOST_TOLD: usize = 5;
/// So many pods are made for one workload: more are a slip, and would fill the memory of whoever asks.
const MOST_PODS: u32 = 10_000;

/// What wants pods and has none.
struct Wanted<'a> {
    name: String,
    pods: u32,
    by: By<'a>,
}

enum By<'a> {
    Workload(Workload),
    Job(&'a Job),
}

impl<'a> Wanted<'a> {
    fn of(workload: Workload, pods: u32) -> Self {
        Self {
            // A manifest need not say a namespace.
            name: workload.to_string().replace(" /", " "),
            pods,
            by: By::Workload(workload),
        }
    }

    fn of_job(job: &'a Job) -> Self {
        Self {
            name: format!("Job {}", job.metadata.key()),
            pods: job.width(),
            by: By::Job(job),
        }
    }

    /// What brings the pods.
    fn made(&self) -> Change {
        match &self.by {
            By::Workload(workload) => Change::Scale(workload.clone(), self.pods),
            By::Job(job) => Change::Apply(Box::new(Objects {
                pods: Table::new(job.pods().map(Arc::new).collect()),
                ..Objects::default()
            })),
        }
    }
}

/// Deployments, StatefulSets, ReplicaSets of nobody and Jobs that want pods and have none.
fn unmade<'a>(snapshot: &Snapshot, jobs: &'a [Job]) -> Vec<Wanted<'a>> {
    let objects = snapshot.objects();
    let has_pods = |metadata: &Metadata| {
        let is_here = |pod: &&Arc<Pod>| pod.metadata.namespace == metadata.namespace;
        let mut owners = objects
            .pods
            .iter()
            .filter(is_here)
            .filter_map(|pod| pod.metadata.controller());
        owners.any(|owner| owner.name.starts_with(&*metadata.name))
    };
    let wants = |kind: Kind, metadata: &Metadata, replicas: Option<i32>| {
        let replicas = u32::try_from(replicas.unwrap_or(1)).unwrap_or_default();
        let workload = Workload {
            kind,
            namespace: Some(metadata.namespace.to_string()),
            name: metadata.name.to_string(),
        };
        let is_unmade = replicas > 0 && !is_seen(metadata) && !has_pods(metadata);
        (is_unmade && metadata.controller().is_none()).then(|| Wanted::of(workload, replicas))
    };
    let deployments = objects.deployments.iter();
    let deployments = deployments.filter_map(|it| wants(Kind::Deployment, &it.metadata, it.spec.replicas));
    let sets = objects.stateful_sets.iter();
    let sets = sets.filter_map(|it| wants(Kind::StatefulSet, &it.metadata, it.spec.replicas));
    let revisions = objects.replica_sets.iter();
    let revisions = revisions.filter_map(|it| wants(Kind::ReplicaSet, &it.metadata, it.spec.replicas));
    let jobs = jobs.iter().map(Wanted::of_job).filter(|it| it.pods > 0);
    deployments.chain(sets).chain(revisions).chain(jobs).collect()
}

/// Puts in what was judged anew; how many, if any.
fn judged<T: Object>(table: &mut Table<T>, judge: impl Fn(&T) -> Option<T>) -> Option<usize> {
    let changed: Vec<Arc<T>> = table.iter().filter_map(|object| judge(object)).map(Arc::new).collect();
    if changed.is_empty() {
        return None;
    }
    let count = changed.len();
    *table = table.with(changed);
    Some(count)
}

/// Whether an API server has seen it: then whoever judges it has had the chance, and a snapshot answers as its cluster does.
fn is_seen(metadata: &Metadata) -> bool {
    !metadata.uid.is_unset()
}

fn made_ready(pool: &NodePool) -> Option<NodePool> {
    let is_ready = |condition: &Condition| *condition.kind == *"Ready";
    if is_seen(&pool.metadata) || pool.status.conditions.iter().any(is_ready) {
        return None;
    }
    let mut pool = pool.clone();
    let ready = Condition {
        kind: "Ready".into(),
        status: ConditionStatus::True,
        ..Condition::default()
    };
    pool.status.conditions = pool.status.conditions.iter().cloned().chain([ready]).collect();
    Some(pool)
}

/// A pod with a gate is not looked at by kube-scheduler, whoever wrote it down.
fn made_to_wait(pod: &Pod) -> Option<Pod> {
    let may_wait = matches!(pod.status.phase, PodPhase::Unset | PodPhase::Pending)
        && pod.node_name.is_none()
        && pod.spec.scheduling_gates.is_empty()
        && !pod.metadata.is_deleting()
        && !is_seen(&pod.metadata)
        && pod.condition("PodScheduled").is_none();
    if !may_wait {
        return None;
    }
    let mut pod = pod.clone();
    let unschedulable = BriefCondition {
        kind: "PodScheduled".into(),
        status: ConditionStatus::False,
        reason: "Unschedulable".into(),
        ..BriefCondition::default()
    };
    // Limits stand for requests that are missing, as the API server has it.
    pod.spec = Arc::new(pod.spec.admitted());
    pod.status.phase = PodPhase::Pending;
    pod.status.conditions = pod.status.conditions.iter().cloned().chain([unschedulable]).collect();
    pod.is_provisionable().then_some(pod)
}
