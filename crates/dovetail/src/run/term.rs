//! One term after the other: watch, wait for the lease, act while it is ours.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use anyhow::{Context, bail};
use cloud::{Call, CallObserver, Fenced, Metered};
use controllers::{Cluster, Keeper, Parts, fence, watches::Watches};
use runtime::{
    Api, Engine, Metrics, Recorder,
    api::{self, Observation, Observer, Options},
    event,
    lease::Leadership,
    random::Random,
    rate::Rate,
};
use tokio::task::JoinSet;

use super::{Process, USER_AGENT, choice, edge::Edge, namespace, telling};

/// Terms, for ever. Ends only when something is wrong that waiting does not mend.
pub(super) async fn terms(process: &Process, edge: &Edge) -> anyhow::Result<()> {
    loop {
        term(process, edge).await?;
        tracing::info!("no longer leading: beginning anew as a candidate");
    }
}

/// Everything from an empty state to the loss of the lease.
async fn term(process: &Process, edge: &Edge) -> anyhow::Result<()> {
    let (settings, clock) = (&process.settings, &process.clock);
    let api = connect(process, edge).await?;
    let (recorder, events) = Recorder::new(1024);
    let chosen = choice::choose(process, &api, &recorder).await?;
    let cloud = Arc::new(Metered::new(chosen.cloud, Arc::new(CloudCalls::new(&process.metrics))));
    let cloud = Arc::new(Fenced::new(cloud, fence(edge.leader())));
    let cluster = Cluster::new(Parts {
        api: api.clone(),
        cloud,
        clock: clock.clone(),
        engine: Engine::Threaded,
        recorder,
        metrics: Arc::clone(&process.metrics),
        settings: Arc::clone(settings),
    });
    let cluster = Arc::new(match &process.flight {
        Some(flight) => cluster.recorded(Arc::clone(flight)),
        None => cluster,
    });
    *process.known.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&cluster);
    // The controllers listen before the first object arrives, and act once all have.
    let controllers = controllers::all(&cluster)?;
    let mut tasks = JoinSet::new();
    tasks.spawn(event::record(api, clock.clone(), events));
    let mut watches = Watches::start(&cluster);
    let mut lost = edge.leader().changes();
    tokio::select! {
        () = listed(&mut watches, edge) => {}
        _ = lost.wait_for(|leadership| *leadership == Leadership::Lost) => return Ok(()),
    }
    edge.show(String::new());
    let leading = |leadership: &Leadership| matches!(leadership, Leadership::Leading { .. });
    let mine = *lost.wait_for(leading).await.context("the elector is gone")?;
    tracing::info!("leading");
    if settings.decision_records {
        let namespace = namespace::of_the_lease(&settings.leader_election_namespace);
        keep(process, &cluster, &mut tasks, namespace);
    }
    if let Some(teller) = &process.teller {
        tasks.spawn(telling::run(Arc::clone(teller), Arc::clone(&cluster)));
    }
    if let Some(work) = chosen.work {
        tasks.spawn(work);
    }
    tasks.spawn(controllers);
    tokio::select! {
        ended = tasks.join_next() => bail!("a part of the controller ended: {ended:?}"),
        () = watches.ended() => bail!("a watch ended"),
        // Another term of our own is another term, too: somebody else may have led in between.
        _ = lost.wait_for(|leadership| *leadership != mine) => Ok(()),
    }
}

/// Sees that decisions outlive this process, if it is known where.
fn keep(process: &Process, cluster: &Arc<Cluster>, tasks: &mut JoinSet<()>, namespace: anyhow::Result<String>) {
    let Ok(namespace) = namespace else {
        tracing::error!(
            "decisions are not kept: the namespace is unknown; set --leader-election-namespace, or --decision-records=false"
        );
        return;
    };
    let keeper = Arc::new(Keeper::new(cluster, &namespace));
    *process.keeper.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&keeper));
    tasks.spawn(async move { keeper.run().await });
}

/// Waits for the first list of everything, and shows meanwhile what is missing.
async fn listed(watches: &mut Watches, edge: &Edge) {
    let mut waiting = watches.waiting();
    let show = async {
        loop {
            let missing: Vec<String> = waiting
                .borrow_and_update()
                .iter()
                .map(|(kind, reason)| format!("{kind:?}: {reason}"))
                .collect();
            edge.show(missing.join("; "));
            if waiting.changed().await.is_err() {
                tokio::time::sleep(Duration::MAX).await;
            }
        }
    };
    tokio::select! {
        () = watches.listed() => {}
        () = show => {}
    }
}

/// A client that writes only while we lead.
async fn connect(process: &Process, edge: &Edge) -> anyhow::Result<Api> {
    let settings = &process.settings;
    let options = Options {
        rate: Some(Rate {
            per_second: f64::from(settings.kube_client_qps),
            burst: settings.kube_client_burst,
        }),
        random: Random::from_system(),
        observer: Some(Arc::new(Requests(Arc::clone(&process.metrics)))),
        may_write: Some(fence(edge.leader())),
        ..Options::new(USER_AGENT)
    };
    Ok(api::connect(None, options).await?)
}

/// Counts what the cloud is asked, and for which controller.
struct CloudCalls {
    metrics: Arc<Metrics>,
    began: tokio::time::Instant,
}

impl CloudCalls {
    fn new(metrics: &Arc<Metrics>) -> Self {
        Self {
            metrics: Arc::clone(metrics),
            began: tokio::time::Instant::now(),
        }
    }
}

impl CallObserver for CloudCalls {
    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    fn called(&self, call: &Call<'_>) {
        let controller = controllers::current();
        let labels = [controller, call.method, call.provider];
        self.metrics
            .cloudprovider_duration_seconds
            .observe(labels, call.took.as_secs_f64());
        if let Some(error) = call.error {
            let labels = [controller, call.method, call.provider, error, call.node_pool];
            self.metrics.cloudprovider_errors_total.inc(labels);
        }
    }
}

/// Counts requests as client-go does.
struct Requests(Arc<Metrics>);

impl Observer for Requests {
    fn requested(&self, request: &Observation<'_>) {
        let code = request
            .code
            .map_or_else(|| "<error>".to_owned(), |code| code.to_string());
        self.0.client_go_request_total.inc([&code, request.method]);
        let labels = [
            request.verb,
            request.group,
            request.version,
            request.resource,
            request.subresource,
        ];
        self.0
            .client_go_request_duration_seconds
            .observe(labels, request.seconds);
    }
}
