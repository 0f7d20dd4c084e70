//! How pods fare: their state for those who ask, and how long they take to be bound and to start.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use api::labels::{ARCH, CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE};
use async_trait::async_trait;
use jiff::Timestamp;
use model::{
    object::{BriefCondition, ConditionStatus, ObjectKey, Pod, PodPhase},
    snapshot::Snapshot,
};
use runtime::{
    Metrics, Settings,
    metrics::{About, Drawn, Sheet},
};
use state::{Change, PodTimes, State};

use crate::{Cluster, Controller, Next, Problem, steering};

/// Remembers the pods that wait, and measures how long.
#[derive(Debug, Default)]
pub(super) struct PodMetrics {
    waiting: Mutex<BTreeMap<ObjectKey, Waiting>>,
}

/// What a pod has been seen to wait for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Waiting {
    to_start: bool,
    to_be_bound: bool,
}

/// What a look at a pod brings: seconds that it took, if it has just come so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Measured {
    startup: Option<f64>,
    provisioning_startup: Option<f64>,
    bound: Option<f64>,
    provisioning_bound: Option<f64>,
    /// The pod runs or has ended: when it was planned is of no more use.
    is_over: bool,
}

/// Whether a pod's waiting is to be measured.
pub(super) fn is_waiting(pod: &Pod) -> bool {
    pod.status.phase == PodPhase::Pending
}

fn holds<'a>(pod: &'a Pod, kind: &str) -> Option<&'a BriefCondition> {
    pod.condition(kind)
        .filter(|condition| condition.status == ConditionStatus::True)
}

/// What a pod waits for now, given what it waited for, and what that took.
fn decide(pod: &Pod, waiting: Waiting, planned: Option<Timestamp>) -> (Waiting, Measured) {
    if is_waiting(pod) {
        let (to_start, to_be_bound) = (true, true);
        return (Waiting { to_start, to_be_bound }, Measured::default());
    }
    let mut now = waiting;
    let mut measured = Measured::default();
    let until = |condition: &BriefCondition, since: Option<Timestamp>| {
        Some(condition.last_transition_time?.duration_since(since?).as_secs_f64())
    };
    let born = pod.metadata.creation_timestamp;
    let ready = holds(pod, "Ready");
    if waiting.to_start && (ready.is_some() || pod.is_terminal()) {
        now.to_start = false;
        measured.is_over = true;
        measured.startup = ready.and_then(|ready| until(ready, born));
        measured.provisioning_startup = ready.and_then(|ready| until(ready, planned));
    }
    if let Some(scheduled) = holds(pod, "PodScheduled").filter(|_| waiting.to_be_bound) {
        now.to_be_bound = false;
        measured.bound = until(scheduled, born);
        measured.provisioning_bound = until(scheduled, planned);
    }
    // A pod that ended without being bound would be remembered until it is deleted, for nothing.
    if pod.is_terminal() {
        now.to_be_bound = false;
    }
    (now, measured)
}

impl PodMetrics {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers what a pod waits for.
    fn remember(&self, key: &ObjectKey, waiting: Waiting) {
        if waiting == Waiting::default() {
            self.lock().remove(key);
        } else {
            self.lock().insert(key.clone(), waiting);
        }
    }

    /// How long the pods that wait have waited.
    pub(super) fn waiting_sheets(&self, cluster: &Cluster) -> Vec<Sheet> {
        let waiting = self.lock().clone();
        let now = cluster.now();
        let rows: Vec<Row> = cluster.look(|state| {
            let row = |(key, waiting): (&ObjectKey, &Waiting)| {
                let pod = state.get::<Pod>(key)?;
                Some(Row::new(pod, *waiting, state.pod_times(key), now))
            };
            waiting.iter().filter_map(row).collect()
        });
        let metrics = cluster.metrics();
        let named = |family: &Drawn<2>, of: fn(&Row) -> Option<f64>| {
            family.sheet_of(
                rows.iter()
                    .filter_map(|row| Some(([&*row.key.name, &*row.key.namespace], of(row)?))),
            )
        };
        let classed = |family: &Drawn<3>, of: fn(&Row) -> Option<f64>| {
            let values = |row: &'_ Row| {
                [
                    row.key.name.to_string(),
                    row.key.namespace.to_string(),
                    row.dynamic.to_string(),
                ]
            };
            family.sheet_of(rows.iter().filter_map(|row| Some((values(row), of(row)?))))
        };
        vec![
            named(&metrics.pods_unstarted_time_seconds, |row| row.unstarted),
            named(&metrics.pods_provisioning_unstarted_time_seconds, |row| {
                row.provisioning_unstarted
            }),
            named(&metrics.pods_provisioning_scheduling_undecided_time_seconds, |row| {
                row.undecided
            }),
            classed(&metrics.pods_unbound_time_seconds, |row| row.unbound),
            classed(&metrics.pods_provisioning_unbound_time_seconds, |row| {
                row.provisioning_unbound
            }),
        ]
    }
}

/// How long a pod has waited, for each thing it waits for.
struct Row {
    key: ObjectKey,
    dynamic: bool,
    unstarted: Option<f64>,
    provisioning_unstarted: Option<f64>,
    unbound: Option<f64>,
    provisioning_unbound: Option<f64>,
    undecided: Option<f64>,
}

impl Row {
    fn new(pod: &Pod, waiting: Waiting, times: PodTimes, now: Timestamp) -> Self {
        let passed = |since: Option<Timestamp>| since.map(|since| now.duration_since(since).as_secs_f64());
        let is_pending = is_waiting(pod);
        let is_scheduled = holds(pod, "PodScheduled").is_some();
        let is_unbound = is_pending && !is_scheduled;
        let is_undecided = times.decided.is_none() && !is_scheduled && pod.node_name.is_none() && !pod.is_terminal();
        let born = passed(pod.metadata.creation_timestamp);
        let planned = passed(times.schedulable);
        Self {
            key: pod.metadata.key(),
            dynamic: pod.has_device_claims(),
            unstarted: born.filter(|_| waiting.to_start),
            provisioning_unstarted: planned.filter(|_| waiting.to_start),
            unbound: born.filter(|_| is_unbound),
            provisioning_unbound: planned.filter(|_| is_unbound),
            undecided: passed(times.acknowledged).filter(|_| is_undecided),
        }
    }
}

#[async_trait]
impl Controller for PodMetrics {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        "metrics.pod"
    }

    fn workers(&self, _settings: &Settings) -> usize {
        1
    }

    fn concerns(&self, change: &Change, _state: &State) -> Vec<ObjectKey> {
        let Change::Pod(pod) = change else { return Vec::new() };
        let waits = |pod: &Option<std::sync::Arc<Pod>>| pod.as_ref().is_some_and(|pod| is_waiting(pod));
        let Some(key) = pod.latest().map(|pod| pod.metadata.key()) else {
            return Vec::new();
        };
        let is_ours = waits(&pod.after) || waits(&pod.before) || self.lock().contains_key(&key);
        is_ours.then_some(key).into_iter().collect()
    }

    async fn reconcile(&self, cluster: &Cluster, key: &ObjectKey) -> Result<Next, Problem> {
        let seen = cluster.look(|state| {
            let pod = state.get::<Pod>(key)?.clone();
            let place = steering::place(&pod, state);
            Some((pod, state.pod_times(key), place))
        });
        let Some((pod, times, place)) = seen else {
            self.lock().remove(key);
            return Ok(Next::Change);
        };
        let waiting = self.lock().get(key).copied().unwrap_or_default();
        let was_unbound = waiting.to_be_bound;
        let (waiting, measured) = decide(&pod, waiting, times.schedulable);
        self.remember(key, waiting);
        if let Some(place) = place.filter(|_| was_unbound && !waiting.to_be_bound) {
            let steering = cluster.settings().steering.as_str();
            cluster.metrics().steering_pods_landed_total.inc([steering, place]);
        }
        observe(cluster.metrics(), &pod, measured);
        if measured.is_over {
            cluster.fold(|state| {
                state.forget_pod_times(key);
                None
            });
        }
        Ok(Next::Change)
    }
}

fn observe(metrics: &Metrics, pod: &Pod, measured: Measured) {
    let dynamic = if pod.has_device_claims() { "true" } else { "false" };
    if let Some(seconds) = measured.startup {
        metrics.pods_startup_duration_seconds.observe([], seconds);
    }
    if let Some(seconds) = measured.provisioning_startup {
        metrics.pods_provisioning_startup_duration_seconds.observe([], seconds);
    }
    if let Some(seconds) = measured.bound {
        metrics.pods_bound_duration_seconds.observe([dynamic], seconds);
    }
    if let Some(seconds) = measured.provisioning_bound {
        metrics
            .pods_provisioning_bound_duration_seconds
            .observe([dynamic], seconds);
    }
}

/// The state of every pod, written as it is sent.
pub(super) fn state_sheet(metrics: &Metrics, snapshot: &Snapshot) -> Sheet {
    let pods: Vec<_> = snapshot.objects().pods.iter().cloned().collect();
    let snapshot = snapshot.clone();
    let about = metrics.pods_state.about().clone();
    Sheet::each(about, pods.into_iter(), move |about, pod, out| {
        state_of(about, pod, &snapshot, out);
    })
}

fn state_of(about: &About, pod: &Pod, snapshot: &Snapshot, out: &mut String) {
    let metadata = &pod.metadata;
    let node = pod.node_name.as_ref().and_then(|name| snapshot.node(name));
    let label = |key: &str| {
        node.and_then(|node| node.metadata.labels.get(key))
            .map_or("", AsRef::as_ref)
    };
    let owner = metadata.owner_references.iter().next().map(|owner| {
        let (version, kind) = (&owner.api_version, owner.kind.to_lowercase());
        format!(
            "/apis/{version}/namespaces/{}/{kind}s/{}",
            metadata.namespace, owner.name
        )
    });
    let flag = |is: bool| if is { "true" } else { "false" };
    let values: [&str; 13] = [
        &metadata.name,
        &metadata.namespace,
        owner.as_deref().unwrap_or_default(),
        pod.node_name.as_ref().map_or("", |node| node.as_str()),
        flag(pod.node_name.is_some()),
        label(NODEPOOL),
        label(ZONE),
        label(ARCH),
        label(CAPACITY_TYPE),
        label(INSTANCE_TYPE),
        phase_name(pod.status.phase),
        flag(holds(pod, "Ready").is_some()),
        flag(!label(NODEPOOL).is_empty()),
    ];
    about.sample(out, &values, 1.0);
}

fn phase_name(phase: PodPhase) -> &'static str {
    match phase {
        PodPhase::Unset => "",
        PodPhase::Pending => "Pending",
        PodPhase::Running => "Running",
        PodPhase::Succeeded => "Succeeded",
        PodPhase::Failed => "Failed",
        PodPhase::Unknown => "Unknown",
    }
}
