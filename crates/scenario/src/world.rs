//! The world around the autoscaler: an API server, a cloud, stand-ins for the rest of a cluster, and one clock.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicI64, Ordering},
    },
};

use catalogue::{Damaged, Source};
use cloud_sim::{Market, Region, Rules};
use controllers::{Cluster, flight::Flight};
use jiff::{SignedDuration, Timestamp};
use runtime::{Clock, Metrics, Settings};
use serde_json::json;
use simulator::{ApiServer, Resource, Running, Standins};
use tokio::task::JoinSet;

use crate::{ground, objects::KEEPER, process::Dead};

/// How a world is made.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Whose catalogue the cloud sells.
    pub source: Source,
    /// How the cloud behaves.
    pub rules: Rules,
    /// How the autoscaler runs.
    pub settings: Settings,
    /// What time it is at first.
    pub start: Timestamp,
    /// Whether it is a cluster for people: kinds have their schemas, and everybody is there. That costs time.
    pub is_checked: bool,
}

/// The world.
pub struct World {
    /// The API server.
    pub server: ApiServer,
    /// The cloud.
    pub region: Arc<Region>,
    /// The time everywhere but in the autoscaler.
    pub clock: Clock,
    /// The autoscaler's own time.
    pub(crate) ours: Clock,
    ahead: Arc<AtomicI64>,
    /// Processes that faults have killed, and that nobody has buried yet.
    pub(crate) dead: Dead,
    /// The kind that keeps the pods of workloads here: a Deployment's roll-outs cost time that stories do not need.
    pub keeper: &'static str,
    /// How the autoscaler runs.
    pub settings: Arc<Settings>,
    /// What all its processes count together.
    pub metrics: Arc<Metrics>,
    /// Where its processes record what they decide on, if they do.
    pub flight: Option<Arc<Flight>>,
    /// What the process that was started last knows of the cluster, for as long as it lives.
    pub(crate) known: Arc<Mutex<Weak<Cluster>>>,
    _standins: Running,
    _ground: JoinSet<()>,
}

impl World {
    /// An empty cluster. To be made inside a runtime.
    pub fn new(setup: &Setup) -> Result<Self, Damaged> {
        let clock = Clock::starting_at(setup.start);
        let (telling, regional, ahead) = (clock.clone(), clock.clone(), Arc::new(AtomicI64::new(0)));
        let server = ApiServer::new(move || telling.now());
        let region = Region::new(
            market(setup.source)?,
            setup.rules.clone(),
            Arc::new(move || regional.now()),
        );
        let (seconds, true_time) = (Arc::clone(&ahead), clock.clone());
        let ours = Clock::told_by(move || true_time.now() + SignedDuration::from_secs(seconds.load(Ordering::Relaxed)));
        install(&server, setup);
        let ground = ground::start(&server, &region);
        // Nodes are the ground's business: it knows the machines behind them.
        let everybody = if setup.is_checked {
            Standins::all()
        } else {
            Standins::default()
        };
        let standins = Standins {
            node_ready_after: None,
            ..everybody
        };
        Ok(Self {
            _standins: standins.start(&server),
            _ground: ground,
            server,
            region,
            clock,
            ours,
            ahead,
            dead: Dead::default(),
            keeper: if setup.is_checked { "Deployment" } else { KEEPER },
            settings: Arc::new(setup.settings.clone()),
            metrics: Arc::default(),
            flight: flight(&setup.settings),
            known: Arc::default(),
        })
    }

    /// What the autoscaler knows of the cluster; none while it is not running.
    pub fn known(&self) -> Option<Arc<Cluster>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// From now on, the autoscaler's clock is ahead of everybody else's, or behind.
    pub fn set_clock_ahead(&self, seconds: i64) {
        self.ahead.store(seconds, Ordering::Relaxed);
    }
}

/// The flight recorder that the settings ask for. A story goes on without one that cannot be started, and says so.
fn flight(settings: &Settings) -> Option<Arc<Flight>> {
    let path = settings.flight_recorder.as_str();
    if path.is_empty() {
        return None;
    }
    match Flight::start(Path::new(path)) {
        Ok(flight) => Some(Arc::new(flight)),
        Err(error) => {
            eprintln!("--flight-recorder {path:?} cannot be written: {error}");
            None
        }
    }
}

/// What a cloud sells, read once for all worlds of the process.
fn market(source: Source) -> Result<Arc<Market>, Damaged> {
    static READ: Mutex<BTreeMap<Source, Arc<Market>>> = Mutex::new(BTreeMap::new());
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(market) = read.get(&source) {
        return Ok(Arc::clone(market));
    }
    let market = Arc::new(Market::load(source)?);
    read.insert(source, Arc::clone(&market));
    Ok(market)
}

fn install(server: &ApiServer, setup: &Setup) {
    if setup.is_checked {
        let provider = match setup.source {
            Source::Aws => api::provider::Provider::Aws,
            Source::Azure => api::provider::Provider::Azure,
            Source::Kwok => api::provider::Provider::Kwok,
        };
        for definition in api::crds::installation(&[provider]) {
            if let Ok(definition) = serde_json::to_value(definition) {
                let _ = server.create(definition);
            }
        }
    }
    for (group, plural, kind) in KINDS {
        server.define(&Resource::new(group, plural), kind, false);
    }
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        let _ = server.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    }
}

impl Drop for World {
    /// What strikes and listens holds the server that holds it: without this, every world would stay for good.
    fn drop(&mut self) {
        self.server.clear_faults();
    }
}

/// The kinds of our own that a story knows.
const KINDS: [(&str, &str, &str); 6] = [
    ("karpenter.sh", "nodepools", "NodePool"),
    ("karpenter.sh", "nodeclaims", "NodeClaim"),
    ("karpenter.sh", "nodeoverlays", "NodeOverlay"),
    ("karpenter.k8s.aws", "ec2nodeclasses", "EC2NodeClass"),
    ("karpenter.azure.com", "aksnodeclasses", "AKSNodeClass"),
    ("karpenter.kwok.sh", "kwoknodeclasses", "KWOKNodeClass"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Witness, fault::Engine, on_virtual_time};

    /// A hundred thousand seeds are played in one process.
    #[test]
    fn a_world_that_has_ended_leaves_nothing_behind() {
        let left = on_virtual_time(async {
            let setup = Setup {
                source: Source::Kwok,
                rules: Rules::default(),
                settings: Settings::default(),
                start: Timestamp::UNIX_EPOCH,
                is_checked: false,
            };
            let world = World::new(&setup).unwrap();
            Engine::new(1, None).install(&world, Witness::new(false).listener(&world));
            // Whoever listens to the server's requests holds these, and the server.
            let settings = Arc::downgrade(&world.settings);
            drop(world);
            settings
        });
        assert!(left.unwrap().upgrade().is_none());
    }
}
