//! How a controller runs: changes of the state become keys in its queue, workers reconcile them, failures wait.

use std::{
    fmt::{self, Display},
    hash::{DefaultHasher, Hash, Hasher},
    panic::AssertUnwindSafe,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use cloud::CloudError;
use futures_util::FutureExt;
use runtime::{
    ApiError, Settings,
    engine::Panicked,
    metrics::{Sheet, Source},
    queue::{Backoff, News, Queue},
    rate::Rate,
    settings::MetricsProfile,
    standstill::inherited,
};
use state::{Change, State};
use tokio::{
    sync::Semaphore,
    task::{JoinSet, coop},
};
use tracing::Instrument;

use crate::Cluster;

/// When an item is to be looked at again, changes aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// When something changes.
    Change,
    /// After a time, if nothing changes before.
    After(Duration),
    /// Soon, waiting longer each time: somebody else changed what we were about to change.
    Again,
}

impl Next {
    /// The sooner of two.
    #[must_use]
    pub fn or_sooner(self, other: Self) -> Self {
        match (self, other) {
            (Self::Again, _) | (_, Self::Again) => Self::Again,
            (Self::After(one), Self::After(two)) => Self::After(one.min(two)),
            (Self::After(one), Self::Change) | (Self::Change, Self::After(one)) => Self::After(one),
            (Self::Change, Self::Change) => Self::Change,
        }
    }
}

/// Why a reconcile failed. It is tried again, waiting longer each time.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The API server.
    #[error("{0}")]
    Api(#[from] ApiError),
    /// The cloud.
    #[error("{0}")]
    Cloud(#[from] CloudError),
    /// The planner.
    #[error("{0}")]
    Engine(#[from] Panicked),
    /// Something said in full.
    #[error("{0}")]
    Other(String),
    /// Several at once.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Several(Vec<Problem>),
}

/// A controller.
#[async_trait]
pub trait Controller: Send + Sync + 'static {
    /// What it reconciles: the name of an object, or `()` for the whole cluster.
    type Key: Ord + Clone + Display + Send + Sync + 'static;

    /// Its name in metrics and logs; upstream's.
    fn name(&self) -> &'static str;

    /// How many items it works on at once.
    fn workers(&self, settings: &Settings) -> usize;

    /// How long failed items wait.
    fn backoff(&self) -> Backoff {
        Backoff {
            least: Duration::from_millis(5),
            most: Duration::from_secs(1000),
        }
    }

    /// How often failed items come back, all together; none does not limit that.
    fn retries(&self, settings: &Settings) -> Option<Rate> {
        let _ = settings;
        None
    }

    /// What it begins with, before anything has changed.
    fn initial(&self) -> Vec<Self::Key> {
        Vec::new()
    }

    /// Which items a change concerns.
    fn concerns(&self, change: &Change, state: &State) -> Vec<Self::Key>;

    /// Looks at an item and does what is to be done.
    async fn reconcile(&self, cluster: &Cluster, key: &Self::Key) -> Result<Next, Problem>;
}

tokio::task_local! {
    static CONTROLLER: &'static str;
}

/// The controller on whose behalf this is done; empty outside of reconciles.
pub fn current() -> &'static str {
    CONTROLLER.try_with(|name| *name).unwrap_or_default()
}

/// Tells the lines of one reconcile from those of another, also of another process: a UUID as upstream's are.
struct ReconcileId(u128);

impl ReconcileId {
    fn next(now: jiff::Timestamp) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut hasher = DefaultHasher::new();
        (now.as_nanosecond(), count).hash(&mut hasher);
        let high = hasher.finish();
        count.hash(&mut hasher);
        Self(u128::from(high) << 64 | u128::from(hasher.finish()))
    }
}

impl Display for ReconcileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |from: u32, digits: u32| (self.0 >> from) & ((1 << (digits * 4)) - 1);
        let (version, variant) = (0x4000 | part(64, 3), 0x8000 | part(48, 4) & 0x3fff);
        let (time, low) = (part(96, 8), part(0, 12));
        write!(
            f,
            "{time:08x}-{:04x}-{version:04x}-{variant:04x}-{low:012x}",
            part(80, 4)
        )
    }
}

/// The queue of a controller, to be fed by others than changes too.
pub type Work<C> = Arc<Queue<<C as Controller>::Key>>;

/// Runs a controller until the future is dropped. Reconciles in flight end with it.
pub fn run<C: Controller>(controller: Arc<C>, cluster: Arc<Cluster>) -> (Work<C>, impl Future<Output = ()> + Send) {
    let mut queue = Queue::new(controller.backoff());
    if let Some(rate) = controller.retries(cluster.settings()) {
        queue = queue.with_retries_at(rate);
    }
    let queue = Arc::new(queue);
    let (listening, heard) = (Arc::clone(&controller), Arc::clone(&queue));
    cluster.listen(Box::new(move |change, state| {
        for key in listening.concerns(change, state) {
            heard.add(key);
        }
    }));
    for key in controller.initial() {
        queue.add(key);
    }
    (Arc::clone(&queue), work(controller, cluster, queue))
}

/// Shows what a controller's queue holds when somebody asks: what hangs is seen while it hangs.
struct Shown<C: Controller> {
    name: &'static str,
    queue: Work<C>,
    cluster: Weak<Cluster>,
}

impl<C: Controller> Source for Shown<C> {
    #[expect(clippy::cast_precision_loss, reason = "a gauge")]
    fn sheets(&self, _profile: MetricsProfile) -> Vec<Sheet> {
        let Some(cluster) = self.cluster.upgrade() else {
            return Vec::new();
        };
        let (name, metrics, load) = (self.name, cluster.metrics(), self.queue.load());
        let of = [name, name];
        vec![
            metrics
                .workqueue_depth
                .sheet_of([([name, name, ""], load.depth as f64)]),
            metrics
                .workqueue_unfinished_work_seconds
                .sheet_of([(of, load.unfinished.as_secs_f64())]),
            metrics
                .workqueue_longest_running_processor_seconds
                .sheet_of([(of, load.longest.as_secs_f64())]),
        ]
    }
}

async fn work<C: Controller>(controller: Arc<C>, cluster: Arc<Cluster>, queue: Work<C>) {
    let shown = Arc::new(Shown::<C> {
        name: controller.name(),
        queue: Arc::clone(&queue),
        cluster: Arc::downgrade(&cluster),
    });
    cluster.metrics().show(&shown);
    let workers = controller.workers(cluster.settings()).max(1);
    let slots = Arc::new(Semaphore::new(workers));
    let most = cluster.metrics();
    #[expect(clippy::cast_precision_loss, reason = "a gauge")]
    most.controller_runtime_max_concurrent_reconciles
        .set([controller.name()], workers as f64);
    let mut running = JoinSet::new();
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
            return;
        };
        let (key, waited) = queue.next_waited().await;
        measure_queue(&*controller, &cluster, &queue, waited);
        while running.try_join_next().is_some() {}
        let (controller, cluster, queue) = (Arc::clone(&controller), Arc::clone(&cluster), Arc::clone(&queue));
        running.spawn(inherited(async move {
            one(&*controller, &cluster, &queue, key).await;
            drop(slot);
        }));
        coop::consume_budget().await;
    }
}

#[expect(clippy::cast_precision_loss, reason = "counters")]
fn measure_queue<C: Controller>(controller: &C, cluster: &Cluster, queue: &Queue<C::Key>, waited: Duration) {
    let (name, metrics) = (controller.name(), cluster.metrics());
    let News { adds, retries } = queue.news();
    metrics.workqueue_adds_total.add([name, name], adds as f64);
    metrics.workqueue_retries_total.add([name, name], retries as f64);
    metrics
        .workqueue_queue_duration_seconds
        .observe([name, name], waited.as_secs_f64());
}

async fn one<C: Controller>(controller: &C, cluster: &Cluster, queue: &Queue<C::Key>, key: C::Key) {
    let name = controller.name();
    let metrics = cluster.metrics();
    metrics.controller_runtime_active_workers.add([name], 1.0);
    let began = tokio::time::Instant::now();
    let result = watched(controller, cluster, &key).await;
    let took = began.elapsed().as_secs_f64();
    metrics.controller_runtime_reconcile_time_seconds.observe([name], took);
    metrics.workqueue_work_duration_seconds.observe([name, name], took);
    metrics.controller_runtime_active_workers.add([name], -1.0);
    let outcome = match result {
        Ok(Next::Change) => {
            queue.done(&key);
            "success"
        }
        Ok(Next::After(delay)) => {
            queue.add_after(key.clone(), delay);
            queue.done(&key);
            "requeue_after"
        }
        Ok(Next::Again) => {
            queue.failed(&key);
            "requeue"
        }
        Err(problem) => {
            let delay = queue.failed(&key);
            metrics.controller_runtime_reconcile_errors_total.inc([name]);
            tracing::error!(controller = name, object = %key, error = %problem, retry_in = ?delay, "Reconciler error");
            "error"
        }
    };
    metrics.controller_runtime_reconcile_total.inc([name, outcome]);
}

/// A reconcile whose panic is a failure like any other: its item is tried again, and all others go on.
async fn watched<C: Controller>(controller: &C, cluster: &Cluster, key: &C::Key) -> Result<Next, Problem> {
    let name = controller.name();
    let span = tracing::info_span!("reconcile", controller = name, reconcileID = %ReconcileId::next(cluster.now()));
    let work = controller.reconcile(cluster, key).instrument(span);
    let work = AssertUnwindSafe(CONTROLLER.scope(name, work));
    work.catch_unwind().await.unwrap_or_else(|panic| {
        cluster.metrics().controller_runtime_reconcile_panics_total.inc([name]);
        let words = panic.downcast_ref::<String>().map(String::as_str);
        let words = words
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        Err(Problem::Other(format!("panic: {words}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reconcile_has_an_id_of_its_own_that_reads_as_a_uuid() {
        let now = jiff::Timestamp::UNIX_EPOCH;
        let ids: Vec<String> = (0..3).map(|_| ReconcileId::next(now).to_string()).collect();
        assert!(ids[0] != ids[1] && ids[1] != ids[2], "{ids:?}");
        for id in ids {
            let lengths: Vec<usize> = id.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12], "{id}");
            assert_eq!(&id[14..15], "4", "{id}");
        }
    }
}
