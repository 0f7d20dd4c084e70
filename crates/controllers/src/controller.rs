//! How a controller runs: changes of the state become keys in its queue, workers reconcile them, failures wait.

use std::{fmt::Display, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use async_trait::async_trait;
use cloud::CloudError;
use futures_util::FutureExt;
use runtime::{
    ApiError, Settings,
    engine::Panicked,
    queue::{Backoff, Queue},
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

    /// What it begins with, before anything has changed.
    fn initial(&self) -> Vec<Self::Key> {
        Vec::new()
    }

    /// Which items a change concerns.
    fn concerns(&self, change: &Change, state: &State) -> Vec<Self::Key>;

    /// Looks at an item and does what is to be done.
    async fn reconcile(&self, cluster: &Cluster, key: &Self::Key) -> Result<Next, Problem>;
}

/// The queue of a controller, to be fed by others than changes too.
pub type Work<C> = Arc<Queue<<C as Controller>::Key>>;

/// Runs a controller until the future is dropped. Reconciles in flight end with it.
pub fn run<C: Controller>(controller: Arc<C>, cluster: Arc<Cluster>) -> (Work<C>, impl Future<Output = ()> + Send) {
    let queue = Arc::new(Queue::new(controller.backoff()));
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

async fn work<C: Controller>(controller: Arc<C>, cluster: Arc<Cluster>, queue: Work<C>) {
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
        let key = queue.next().await;
        while running.try_join_next().is_some() {}
        let (controller, cluster, queue) = (Arc::clone(&controller), Arc::clone(&cluster), Arc::clone(&queue));
        running.spawn(async move {
            one(&*controller, &cluster, &queue, key).await;
            drop(slot);
        });
        coop::consume_budget().await;
    }
}

async fn one<C: Controller>(controller: &C, cluster: &Cluster, queue: &Queue<C::Key>, key: C::Key) {
    let name = controller.name();
    let metrics = cluster.metrics();
    #[expect(clippy::cast_precision_loss, reason = "a gauge")]
    metrics.workqueue_depth.set([name, name, ""], queue.depth() as f64);
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
    let span = tracing::info_span!("reconcile", controller = name);
    let work = AssertUnwindSafe(controller.reconcile(cluster, key).instrument(span));
    work.catch_unwind().await.unwrap_or_else(|panic| {
        cluster.metrics().controller_runtime_reconcile_panics_total.inc([name]);
        let words = panic.downcast_ref::<String>().map(String::as_str);
        let words = words
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        Err(Problem::Other(format!("panic: {words}")))
    })
}
