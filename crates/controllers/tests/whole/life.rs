//! The autoscaler as a process: it starts with an empty state, and starts again when it dies.

use std::{sync::Arc, time::Duration};

use cloud_kwok::{Kwok, Offers};
use controllers::{Cluster, Parts, watches::Watches};
use runtime::{Api, Engine, Recorder, event};
use tokio::{task::JoinSet, time::Instant};

use crate::world::World;

/// One run of the autoscaler, until it is dropped.
struct Process {
    _tasks: JoinSet<()>,
}

impl Process {
    fn start(world: &World) -> Self {
        let api = Api::new(world.server.client(), "karpenter/test");
        let (recorder, events) = Recorder::new(1024);
        let cluster = Arc::new(Cluster::new(Parts {
            api: api.clone(),
            cloud: Arc::new(Kwok::new(api.clone(), world.clock.clone(), Offers::generated())),
            clock: world.clock.clone(),
            engine: Engine::Inline,
            recorder,
            metrics: Arc::clone(&world.metrics),
            settings: Arc::new(world.settings.clone()),
        }));
        let controllers = controllers::all(&cluster).unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(event::record(api, world.clock.clone(), events));
        tasks.spawn(async move {
            let mut watches = Watches::start(&cluster);
            watches.listed().await;
            tokio::select! {
                () = controllers => {}
                () = watches.ended() => {}
            }
        });
        Self { _tasks: tasks }
    }
}

/// The autoscaler, however often it dies.
pub(crate) struct Life {
    process: Option<Process>,
    pub(crate) deaths: usize,
}

/// How long a new process takes to come up.
const RESTART: Duration = Duration::from_secs(2);

impl Life {
    pub(crate) fn begin(world: &World) -> Self {
        Self {
            process: Some(Process::start(world)),
            deaths: 0,
        }
    }

    /// Lives until nothing is wrong; says what is if that takes too long.
    pub(crate) async fn until(
        &mut self,
        world: &World,
        limit: Duration,
        wrong: impl Fn(&World) -> Vec<String>,
    ) -> Result<(), String> {
        let deadline = Instant::now() + limit;
        loop {
            let left = wrong(world);
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(format!("after {limit:?}: {}", left.join("; ")));
            }
            self.pass(world, Duration::from_millis(500)).await;
        }
    }

    /// Lives for a time.
    pub(crate) async fn pass(&mut self, world: &World, time: Duration) {
        let end = Instant::now() + time;
        loop {
            tokio::select! {
                biased;
                () = world.server.crashed() => {
                    self.process = None;
                    self.deaths += 1;
                    tokio::time::sleep(RESTART).await;
                    self.process = Some(Process::start(world));
                }
                () = tokio::time::sleep_until(end) => return,
            }
        }
    }
}
