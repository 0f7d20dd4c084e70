//! The autoscaler as processes: each starts with an empty state, and another starts when it dies.
//!
//! A story with one process lets it act without asking anybody. A story with replicas has them elect a leader with the
//! real lease; each watches, and acts only while it leads.

use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use cloud::{CloudProvider, Fenced};
use controllers::{Cluster, Keeper, Parts, fence, flight::Flight, watches::Watches};
use jiff::Timestamp;
use runtime::{
    Api, Clock, Engine, Event, Metrics, Recorder, Settings,
    api::{MayWrite, Options},
    event,
    lease::{Election, Elector, Leader, Leadership},
    random::Random,
    standstill::Standstill,
};
use serde_json::Value;
use simulator::ApiServer;
use tokio::{sync::mpsc::Receiver, task::JoinSet, time::Instant};

use crate::{
    World,
    caller::{Called, Caller},
    ground::text,
};

/// What is put between the autoscaler and the cloud.
pub type Wrap = Arc<dyn Fn(Arc<dyn CloudProvider>) -> Arc<dyn CloudProvider> + Send + Sync>;

/// Where the lease is, and what outlives the autoscaler.
pub const NAMESPACE: &str = "kube-system";

/// What every process is given.
#[derive(Clone)]
struct Outfit {
    server: ApiServer,
    region: Arc<cloud_sim::Region>,
    clock: Clock,
    metrics: Arc<Metrics>,
    settings: Arc<Settings>,
    wrap: Option<Wrap>,
    called: Option<Called>,
    flight: Option<Arc<Flight>>,
    known: Arc<Mutex<Weak<Cluster>>>,
}

impl Outfit {
    /// A cluster of which nothing is known yet, recorded if the world asks for that.
    fn cluster(&self, parts: Parts) -> Arc<Cluster> {
        let cluster = Cluster::new(parts);
        let cluster = Arc::new(match &self.flight {
            Some(flight) => cluster.recorded(Arc::clone(flight)),
            None => cluster,
        });
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&cluster);
        cluster
    }

    /// The parts of a process that must ask before it acts, if it must.
    fn parts(&self, name: &str, may_act: Option<&MayWrite>) -> (Parts, Receiver<Event>) {
        let options = Options {
            may_write: may_act.cloned(),
            ..Options::new(&agent(name))
        };
        let (recorder, events) = Recorder::new(1024);
        let mut cloud: Arc<dyn CloudProvider> = Arc::new(self.region.provider_of(name));
        if let Some(called) = &self.called {
            cloud = Arc::new(Caller::new(cloud, name, Arc::clone(called)));
        }
        if let Some(wrap) = &self.wrap {
            cloud = wrap(cloud);
        }
        if let Some(may_act) = may_act {
            cloud = Arc::new(Fenced::new(cloud, Arc::clone(may_act)));
        }
        let parts = Parts {
            api: Api::with(self.server.client(), options),
            cloud,
            clock: self.clock.clone(),
            engine: Engine::Inline,
            recorder,
            metrics: Arc::clone(&self.metrics),
            settings: Arc::clone(&self.settings),
        };
        (parts, events)
    }

    /// Everything from an empty state to the loss of the lease, again and again.
    async fn terms(self, name: String, leader: Leader) {
        let is_leading = |leadership: &Leadership| matches!(leadership, Leadership::Leading { .. });
        loop {
            let (parts, events) = self.parts(&name, Some(&fence(&leader)));
            let telling = event::record(parts.api.clone(), self.clock.clone(), events);
            let cluster = self.cluster(parts);
            let Ok(controllers) = controllers::all(&cluster) else {
                return;
            };
            let mut watches = Watches::start(&cluster);
            let mut changes = leader.changes();
            let term = async {
                watches.listed().await;
                let Ok(mine) = changes.wait_for(is_leading).await.map(|mine| *mine) else {
                    return;
                };
                let keeper = Keeper::new(&cluster, NAMESPACE);
                tokio::select! {
                    biased;
                    _ = changes.wait_for(|now| *now != mine) => {}
                    () = keeper.run() => {}
                    () = controllers => {}
                    () = watches.ended() => {}
                }
            };
            tokio::select! {
                biased;
                () = term => {}
                () = telling => {}
            }
        }
    }
}

fn agent(name: &str) -> String {
    format!("karpenter/{name}")
}

/// The process that a request comes from, if it is one of those that elect a leader.
pub(crate) fn process_of(agent: &str) -> Option<&str> {
    agent
        .strip_prefix("karpenter/")
        .filter(|name| name.starts_with(REPLICA))
}

/// How replicas are called; a process that is alone is called otherwise.
const REPLICA: &str = "replica-";

/// One run of the autoscaler, until it is dropped.
struct Process {
    name: String,
    standstill: Standstill,
    _tasks: JoinSet<()>,
}

impl Process {
    /// One that is alone.
    fn alone(outfit: &Outfit) -> Self {
        let name = "simulated".to_owned();
        let (parts, events) = outfit.parts(&name, None);
        let standstill = Standstill::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(standstill.keep(event::record(parts.api.clone(), outfit.clock.clone(), events)));
        let cluster = outfit.cluster(parts);
        match controllers::all(&cluster) {
            Ok(controllers) => {
                tasks.spawn(standstill.keep(async move {
                    let mut watches = Watches::start(&cluster);
                    watches.listed().await;
                    let keeper = Keeper::new(&cluster, NAMESPACE);
                    tokio::select! {
                        biased;
                        () = keeper.run() => {}
                        () = controllers => {}
                        () = watches.ended() => {}
                    }
                }));
            }
            // Only wrong repair policies do, and the simulated cloud's are right.
            Err(error) => eprintln!("the autoscaler does not start: {error}"),
        }
        Self {
            name,
            standstill,
            _tasks: tasks,
        }
    }

    /// One of several.
    fn candidate(outfit: &Outfit, name: String, seed: u64) -> Self {
        let election = Election::new(NAMESPACE, &outfit.settings.leader_election_name, name.clone());
        let options = Options {
            random: Random::seeded(seed),
            deadline: Some(election.renew_deadline / 2),
            ..Options::new(&agent(&name))
        };
        let api = Api::with(outfit.server.client(), options);
        let (recorder, events) = Recorder::new(16);
        let standstill = Standstill::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(standstill.keep(event::record(api.clone(), outfit.clock.clone(), events)));
        let (elector, leader) = Elector::new(api, outfit.clock.clone(), recorder, election);
        tasks.spawn(standstill.keep(elector.run(std::future::pending())));
        tasks.spawn(standstill.keep(outfit.clone().terms(name.clone(), leader)));
        Self {
            name,
            standstill,
            _tasks: tasks,
        }
    }
}

/// The autoscaler, however often it dies.
pub struct Life {
    outfit: Outfit,
    processes: Vec<Option<Process>>,
    /// Processes started so far.
    started: u64,
    /// One of them stands still.
    is_still: bool,
    /// How often it died.
    pub deaths: usize,
}

/// How long a new process takes to come up.
const RESTART: Duration = Duration::from_secs(2);

impl Life {
    /// Starts it.
    pub fn begin(world: &World) -> Self {
        Self::begin_with(world, None, 0, None)
    }

    /// With so many replicas; none: one process that asks nobody.
    pub(crate) fn begin_with(world: &World, wrap: Option<Wrap>, replicas: usize, called: Option<Called>) -> Self {
        let mut life = Self {
            outfit: Outfit {
                server: world.server.clone(),
                region: Arc::clone(&world.region),
                clock: world.ours.clone(),
                metrics: Arc::clone(&world.metrics),
                settings: Arc::clone(&world.settings),
                wrap,
                called,
                flight: world.flight.clone(),
                known: Arc::clone(&world.known),
            },
            processes: (0..replicas.max(1)).map(|_| None).collect(),
            started: 0,
            is_still: false,
            deaths: 0,
        };
        for at in 0..life.processes.len() {
            life.start(at, replicas > 0);
        }
        life
    }

    fn start(&mut self, at: usize, is_replica: bool) {
        self.started += 1;
        let process = if is_replica {
            // Never the same name again: who held the lease before is somebody else.
            let name = format!("{REPLICA}{}-{}", at + 1, self.started);
            Process::candidate(&self.outfit, name, self.started)
        } else {
            Process::alone(&self.outfit)
        };
        if let Some(place) = self.processes.get_mut(at) {
            *place = Some(process);
        }
    }

    /// Ends the process that leads and starts another.
    pub async fn restart(&mut self, world: &World) {
        let at = self.leading(world);
        self.restart_one(at).await;
    }

    async fn restart_one(&mut self, at: usize) {
        let ended = self.processes.get_mut(at).and_then(Option::take);
        let is_replica = ended.is_some_and(|process| process.name.starts_with(REPLICA));
        self.deaths += 1;
        tokio::time::sleep(RESTART).await;
        self.start(at, is_replica);
    }

    /// Where the process is that holds the lease; the first without one.
    fn leading(&self, world: &World) -> usize {
        let holder = holder(world);
        let is_it = |process: &Option<Process>| process.as_ref().is_some_and(|it| Some(&it.name) == holder.as_ref());
        self.processes.iter().position(is_it).unwrap_or(0)
    }

    /// The process that leads stands still from now on, or all go on.
    pub(crate) fn stand_still(&mut self, is_still: bool, world: &World) {
        if is_still == self.is_still {
            return;
        }
        self.is_still = is_still;
        if !is_still {
            for process in self.processes.iter().flatten() {
                process.standstill.go_on();
            }
        } else if let Some(Some(process)) = self.processes.get(self.leading(world)) {
            process.standstill.stop();
        }
    }

    /// Lives until a time, with a new process whenever a fault kills one.
    pub async fn until(&mut self, world: &World, end: Instant) {
        loop {
            tokio::select! {
                biased;
                () = world.server.crashed() => self.bury(world).await,
                () = world.region.crashed() => self.bury(world).await,
                () = tokio::time::sleep_until(end) => return,
            }
        }
    }

    async fn bury(&mut self, world: &World) {
        let dead = std::mem::take(&mut *world.dead.lock().unwrap_or_else(PoisonError::into_inner));
        if self.processes.len() == 1 {
            return self.restart_one(0).await;
        }
        for name in dead {
            let is_it = |process: &Option<Process>| process.as_ref().is_some_and(|process| process.name == name);
            if let Some(at) = self.processes.iter().position(is_it) {
                self.restart_one(at).await;
            }
        }
    }
}

/// Names of processes that faults have killed.
pub(crate) type Dead = Arc<Mutex<Vec<String>>>;

/// Who holds the lease, as the API server has it.
pub(crate) fn holder(world: &World) -> Option<String> {
    holder_at(&world.server, &world.settings)
}

pub(crate) fn holder_at(server: &ApiServer, settings: &Settings) -> Option<String> {
    let lease = lease(server, settings)?;
    Some(text(&lease, "/spec/holderIdentity").to_owned()).filter(|holder| !holder.is_empty())
}

/// When the process that leads began to, if processes elect a leader.
pub(crate) fn led_since(server: &ApiServer, settings: &Settings) -> Option<Timestamp> {
    let lease = lease(server, settings)?;
    text(&lease, "/spec/acquireTime").parse().ok()
}

fn lease(server: &ApiServer, settings: &Settings) -> Option<Arc<Value>> {
    server.object("Lease", &format!("{NAMESPACE}/{}", settings.leader_election_name))
}
