//! The thread that always answers: the lease, the probes, the metrics.

use std::{sync::Arc, thread::JoinHandle};

use anyhow::Context;
use runtime::{
    Recorder,
    api::{self, Options},
    event,
    http::{self, Check, Probes, Site},
    lease::{self, Election, Elector, Leader},
    random::Random,
};
use tokio::{net::TcpListener, runtime::Builder, sync::watch, task::JoinSet};

use super::{Process, USER_AGENT, namespace};

/// Why the controllers do not work yet; empty when they do.
pub(super) type NotReady = String;

/// The edge.
pub(super) struct Edge {
    leader: Leader,
    not_ready: Arc<watch::Sender<NotReady>>,
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

impl Edge {
    /// Starts it: when this returns, the ports are open.
    pub(super) fn start(process: &Process) -> anyhow::Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .context("starting the runtime of the edge")?;
        let (not_ready, shown) = watch::channel("the watches have not begun".to_owned());
        let (stop, stopping) = watch::channel(false);
        let (leader, mut tasks) = runtime.block_on(prepare(process, shown, stopping))?;
        let thread = std::thread::Builder::new()
            .name("edge".to_owned())
            .spawn(move || runtime.block_on(async { while tasks.join_next().await.is_some() {} }))
            .context("starting the thread of the edge")?;
        Ok(Self {
            leader,
            not_ready: Arc::new(not_ready),
            stop,
            thread,
        })
    }

    /// Whether we lead.
    pub(super) fn leader(&self) -> &Leader {
        &self.leader
    }

    /// Says why the controllers do not work yet, or with an empty text that they do.
    pub(super) fn show(&self, not_ready: NotReady) {
        self.not_ready.send_replace(not_ready);
    }

    /// Gives the lease back and closes the ports.
    pub(super) fn stop(self) {
        self.stop.send_replace(true);
        if self.thread.join().is_err() {
            tracing::error!("the thread of lease and probes ended in a panic");
        }
    }
}

async fn prepare(
    process: &Process,
    shown: watch::Receiver<NotReady>,
    stopping: watch::Receiver<bool>,
) -> anyhow::Result<(Leader, JoinSet<()>)> {
    let mut tasks = JoinSet::new();
    let settings = &process.settings;
    let metrics = Site::Metrics {
        metrics: Arc::clone(&process.metrics),
        profile: settings.metrics_profile,
    };
    tasks.spawn(answer(
        listen(settings.metrics_port, "--metrics-port").await?,
        metrics,
        stopping.clone(),
    ));
    let probes = listen(settings.health_probe_port, "--health-probe-port").await?;
    tasks.spawn(answer(probes, probe_site(shown), stopping.clone()));
    let leader = if settings.disable_leader_election {
        Leader::unopposed()
    } else {
        elect(process, &mut tasks, stopping).await?
    };
    Ok((leader, tasks))
}

async fn listen(port: u16, flag: &str) -> anyhow::Result<TcpListener> {
    http::listen(port)
        .await
        .with_context(|| format!("port {port} cannot be opened; {flag} chooses another"))
}

async fn answer(listener: TcpListener, site: Site, stopping: watch::Receiver<bool>) {
    http::serve(listener, Arc::new(site), asked(stopping)).await;
}

async fn asked(mut stopping: watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stop| *stop).await;
}

/// Upstream's checks: the caches are filled, and the kinds are served.
fn probe_site(shown: watch::Receiver<NotReady>) -> Site {
    let watching = move || {
        let reason = shown.borrow().clone();
        if reason.is_empty() { Ok(()) } else { Err(reason) }
    };
    Site::Probes {
        healthz: Probes::new(vec![Check::ping("healthz")]),
        readyz: Probes::new(vec![
            Check::new("manager", watching.clone()),
            Check::new("crd", watching),
            Check::ping("readyz"),
        ]),
    }
}

/// On a connection of its own, without a rate: a lease must not be lost because we are busy.
async fn elect(process: &Process, tasks: &mut JoinSet<()>, stopping: watch::Receiver<bool>) -> anyhow::Result<Leader> {
    let settings = &process.settings;
    let random = Random::from_system();
    let namespace = namespace::of_the_lease(&settings.leader_election_namespace)?;
    let election = Election::new(&namespace, &settings.leader_election_name, lease::identity(&random));
    let options = Options {
        random,
        deadline: Some(election.renew_deadline / 2),
        ..Options::new(USER_AGENT)
    };
    let api = api::connect(None, options).await?;
    let (recorder, events) = Recorder::new(16);
    tasks.spawn(event::record(api.clone(), process.clock.clone(), events));
    let (elector, leader) = Elector::new(api, process.clock.clone(), recorder, election);
    tasks.spawn(elector.run(asked(stopping)));
    Ok(leader)
}
