//! The autoscaler as a process: it starts with an empty state, and starts again when it dies.

use std::{sync::Arc, time::Duration};

use cloud::CloudProvider;
use controllers::{Cluster, Keeper, Parts, watches::Watches};
use runtime::{Api, Engine, Recorder, event};
use tokio::{task::JoinSet, time::Instant};

use crate::World;

/// What is put between the autoscaler and the cloud.
pub type Wrap = Arc<dyn Fn(Arc<dyn CloudProvider>) -> Arc<dyn CloudProvider> + Send + Sync>;

/// Where the autoscaler keeps what outlives it.
pub const NAMESPACE: &str = "kube-system";

/// One run of the autoscaler, until it is dropped.
struct Process {
    _tasks: JoinSet<()>,
}

impl Process {
    fn start(world: &World, wrap: Option<&Wrap>) -> Self {
        let api = Api::new(world.server.client(), "karpenter/simulated");
        let (recorder, events) = Recorder::new(1024);
        let cloud: Arc<dyn CloudProvider> = Arc::new(world.region.provider());
        let cluster = Cluster::new(Parts {
            api: api.clone(),
            cloud: wrap.map_or_else(|| Arc::clone(&cloud), |wrap| wrap(Arc::clone(&cloud))),
            clock: world.ours.clone(),
            engine: Engine::Inline,
            recorder,
            metrics: Arc::clone(&world.metrics),
            settings: Arc::clone(&world.settings),
        });
        let cluster = Arc::new(match &world.flight {
            Some(flight) => cluster.recorded(Arc::clone(flight)),
            None => cluster,
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(event::record(api, world.ours.clone(), events));
        match controllers::all(&cluster) {
            Ok(controllers) => {
                tasks.spawn(async move {
                    let mut watches = Watches::start(&cluster);
                    watches.listed().await;
                    let keeper = Keeper::new(&cluster, NAMESPACE);
                    tokio::select! {
                        biased;
                        () = keeper.run() => {}
                        () = controllers => {}
                        () = watches.ended() => {}
                    }
                });
            }
            // Only wrong repair policies do, and the simulated cloud's are right.
            Err(error) => eprintln!("the autoscaler does not start: {error}"),
        }
        Self { _tasks: tasks }
    }
}

/// The autoscaler, however often it dies.
pub struct Life {
    process: Option<Process>,
    wrap: Option<Wrap>,
    /// How often it died.
    pub deaths: usize,
}

/// How long a new process takes to come up.
const RESTART: Duration = Duration::from_secs(2);

impl Life {
    /// Starts it.
    pub fn begin(world: &World) -> Self {
        Self::begin_with(world, None)
    }

    pub(crate) fn begin_with(world: &World, wrap: Option<Wrap>) -> Self {
        Self {
            process: Some(Process::start(world, wrap.as_ref())),
            wrap,
            deaths: 0,
        }
    }

    /// Ends the process and starts another.
    pub async fn restart(&mut self, world: &World) {
        self.process = None;
        self.deaths += 1;
        tokio::time::sleep(RESTART).await;
        self.process = Some(Process::start(world, self.wrap.as_ref()));
    }

    /// Lives until a time, with a new process whenever a fault kills one.
    pub async fn until(&mut self, world: &World, end: Instant) {
        loop {
            tokio::select! {
                biased;
                () = world.server.crashed() => self.restart(world).await,
                () = world.region.crashed() => self.restart(world).await,
                () = tokio::time::sleep_until(end) => return,
            }
        }
    }
}
