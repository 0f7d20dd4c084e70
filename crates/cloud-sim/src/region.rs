//! The truth: which machines run, what they cost, what is short, and what happens next.

mod launch;
mod notices;
mod rules;
mod stock;
mod trouble;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use cloud::{CloudError, LaunchToken, Launched};
use jiff::Timestamp;
use model::{
    object::{NodeClaim, ProviderId},
    price::Price,
    snapshot::CatalogType,
};
use tokio::sync::{Notify, watch};

use self::{notices::Queued, trouble::Batch};
use crate::{CallFacts, CallFault, Chance, CloudSim, Ending, Machine, Market, Phase, Scope};

pub use rules::{Defect, Image, Rules};

/// Tells the time.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What happened to a machine, for those who play its part in the cluster.
#[derive(Debug, Clone, PartialEq)]
pub enum Happening {
    /// Its kubelet joins the cluster.
    Joined(Arc<Machine>),
    /// Its node is ready.
    Ready(Arc<Machine>),
    /// The cloud says that it will take it back.
    Notice(Arc<Machine>),
    /// It is gone.
    Gone(Arc<Machine>, Ending),
}

/// What the machines cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bill {
    /// So far, in 10⁻¹² dollars.
    pub spent_picos: u128,
    /// An hour, as of now.
    pub hourly: Price,
    /// Machines launched so far.
    pub launched: u64,
    /// Machines that the cloud took back or lost so far.
    pub taken: u64,
}

type Faults = Box<dyn FnMut(&CallFacts) -> CallFault + Send>;

/// The region.
pub struct Region {
    pub(crate) market: Arc<Market>,
    pub(crate) rules: Rules,
    pub(crate) chance: Chance,
    now: Now,
    began: Timestamp,
    inner: Mutex<Inner>,
    faults: Mutex<Option<Faults>>,
    changed: Notify,
    crash: Notify,
    /// Counts what was put into the queue of notices.
    told: watch::Sender<u64>,
}

#[derive(Default)]
struct Inner {
    machines: BTreeMap<ProviderId, Machine>,
    foreign: BTreeSet<ProviderId>,
    /// What each launch was answered, also when its machine is gone.
    tokens: BTreeMap<LaunchToken, Launched>,
    /// Offers that are short, until when.
    short: Vec<(Scope, Timestamp)>,
    /// How many more of an offer there are; an offer that is not named never ends.
    stock: BTreeMap<Scope, u64>,
    batches: Vec<Batch>,
    image: Option<Image>,
    happened: VecDeque<Happening>,
    journal: Vec<(Timestamp, String)>,
    prices: Option<(u64, Vec<Arc<CatalogType>>)>,
    /// When launches of the last minute were accepted.
    recent: VecDeque<Timestamp>,
    calls: u64,
    launched: u64,
    taken: u64,
    /// In 10⁻¹² dollars an hour times nanoseconds.
    paid: u128,
    rebooted: BTreeSet<String>,
    /// Launches for claims that had a machine.
    doubles: Vec<String>,
    queue: VecDeque<Queued>,
}

const HOUR_NANOS: u128 = 3_600_000_000_000;

impl Region {
    /// An empty region.
    pub fn new(market: Arc<Market>, rules: Rules, now: Now) -> Arc<Self> {
        Arc::new(Self {
            chance: Chance::new(rules.seed),
            began: now(),
            market,
            rules,
            now,
            inner: Mutex::default(),
            faults: Mutex::default(),
            changed: Notify::new(),
            crash: Notify::new(),
            told: watch::Sender::new(0),
        })
    }

    /// What one process sees of it.
    pub fn provider(self: &Arc<Self>) -> CloudSim {
        self.provider_of("")
    }

    /// What the process of this name sees of it.
    pub fn provider_of(self: &Arc<Self>, who: &str) -> CloudSim {
        CloudSim::new(Arc::clone(self), who)
    }

    /// What it sells.
    pub fn market(&self) -> &Market {
        &self.market
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// All machines of this cluster that truly run, by name.
    pub fn machines(&self) -> Vec<Machine> {
        let mut inner = self.lock();
        inner.tick(self.now());
        inner.machines.values().cloned().collect()
    }

    /// Machines of others.
    pub fn foreign(&self) -> Vec<ProviderId> {
        self.lock().foreign.iter().cloned().collect()
    }

    /// Starts a machine of somebody else.
    pub fn start_foreign(&self, id: &str) -> ProviderId {
        let id = ProviderId::from(id);
        self.lock().foreign.insert(id.clone());
        id
    }

    /// What the machines cost.
    pub fn bill(&self) -> Bill {
        let now = self.now();
        let mut inner = self.lock();
        inner.tick(now);
        let running = inner.machines.values();
        let hourly: u64 = running.clone().map(|machine| machine.price.picos()).sum();
        let owed: u128 = running.map(|machine| cost(machine, now)).sum();
        Bill {
            spent_picos: (inner.paid + owed) / HOUR_NANOS,
            hourly: Price::from_picos(hourly),
            launched: inner.launched,
            taken: inner.taken,
        }
    }

    /// What happened since this was last asked, a line each.
    pub fn take_journal(&self) -> Vec<(Timestamp, String)> {
        std::mem::take(&mut self.lock().journal)
    }

    /// Launches for claims that had another machine already, a sentence each.
    pub fn doubles(&self) -> Vec<String> {
        self.lock().doubles.clone()
    }

    /// The image that machines boot from now.
    pub fn image(&self) -> String {
        let inner = self.lock();
        inner
            .image
            .as_ref()
            .map_or_else(|| "image-1".to_owned(), |image| image.name.clone())
    }

    /// Waits until a fault has killed a process.
    pub async fn crashed(&self) {
        self.crash.notified().await;
    }

    /// Waits until something was asked that changes what happens next.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// When something happens next, as far as is known.
    pub fn due(&self) -> Option<Timestamp> {
        let inner = self.lock();
        if !inner.happened.is_empty() {
            return Some(self.now());
        }
        let next = |machine: &Machine| match machine.phase {
            Phase::Booting => machine.joins_at,
            Phase::Joined if !machine.is_ready => machine.ready_at,
            Phase::Joined => None,
            Phase::Ending(_, at) => Some(at),
        };
        inner.machines.values().filter_map(next).min()
    }

    /// What has happened up to now and was not told yet.
    pub fn happenings(&self) -> Vec<Happening> {
        let mut inner = self.lock();
        inner.tick(self.now());
        inner.happened.drain(..).collect()
    }

    pub(crate) fn lock_foreign(&self, id: &ProviderId) -> bool {
        self.lock().foreign.contains(id)
    }

    pub(crate) fn killed(&self) {
        self.crash.notify_one();
    }

    /// Which step of the walk the prices are at.
    pub(crate) fn price_step(&self) -> u64 {
        let Some(step) = self.rules.price_step else {
            return 0;
        };
        let passed = self.now().duration_since(self.began).as_secs();
        let step = i64::try_from(step.as_secs()).unwrap_or(i64::MAX).max(1);
        u64::try_from(passed / step).unwrap_or(0)
    }

    /// All types at the prices of now.
    pub(crate) fn types(&self) -> Vec<Arc<CatalogType>> {
        if self.rules.price_step.is_none() {
            return self.market.types().to_vec();
        }
        let step = self.price_step();
        let mut inner = self.lock();
        match &inner.prices {
            Some((at, types)) if *at == step => types.clone(),
            _ => {
                let types = self.market.priced(self.chance, step);
                inner.prices = Some((step, types.clone()));
                types
            }
        }
    }

    /// Begins to remove a claim's machines; says whether there are any.
    pub(crate) fn delete(&self, claim: &NodeClaim) -> Result<(), CloudError> {
        let now = self.now();
        let mut inner = self.lock();
        inner.tick(now);
        let named = claim.status.provider_id.as_ref();
        let is_own =
            |machine: &Machine| *machine.claim_uid() == claim.metadata.uid && named.is_none_or(|id| *id == machine.id);
        let own: Vec<ProviderId> = inner
            .machines
            .values()
            .filter(|machine| is_own(machine))
            .map(|machine| machine.id.clone())
            .collect();
        if own.is_empty() {
            return Err(gone());
        }
        for id in own {
            let (least, most) = self.rules.shutdown;
            let time = self.chance.of("shutdown", id.as_str()).between(least, most);
            inner.end(now, |machine| machine.id == id, Ending::Deleted, after(now, time));
        }
        drop(inner);
        self.changed.notify_one();
        Ok(())
    }

    /// The machines that reads show now.
    pub(crate) fn visible(&self) -> Vec<Machine> {
        let now = self.now();
        let mut inner = self.lock();
        inner.tick(now);
        let visible = inner.machines.values().filter(|machine| machine.visible_from <= now);
        visible.cloned().collect()
    }

    /// A machine, if reads show it now.
    pub(crate) fn visible_one(&self, id: &ProviderId) -> Option<Machine> {
        let now = self.now();
        let mut inner = self.lock();
        inner.tick(now);
        inner
            .machines
            .get(id)
            .filter(|machine| machine.visible_from <= now)
            .cloned()
    }

    pub(crate) fn reboot(&self, operation: &str) {
        self.lock().rebooted.insert(operation.to_owned());
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn note(&mut self, now: Timestamp, line: String) {
        self.journal.push((now, line));
    }

    /// Lets happen what was due. Machines are gone through by name, so the order is that of names within an instant.
    fn tick(&mut self, now: Timestamp) {
        let mut gone = Vec::new();
        for machine in self.machines.values_mut() {
            if machine.phase == Phase::Booting && machine.joins_at.is_some_and(|at| at <= now) {
                machine.phase = Phase::Joined;
                self.happened.push_back(Happening::Joined(Arc::new(machine.clone())));
            }
            let is_due = !machine.is_ready && machine.ready_at.is_some_and(|at| at <= now);
            if machine.phase == Phase::Joined && is_due {
                machine.is_ready = true;
                self.happened.push_back(Happening::Ready(Arc::new(machine.clone())));
            }
            if let Phase::Ending(ending, at) = machine.phase
                && at <= now
            {
                gone.push((machine.id.clone(), ending, at));
            }
        }
        for (id, ending, at) in gone {
            if let Some(machine) = self.machines.remove(&id) {
                self.paid += cost(&machine, at);
                self.taken += u64::from(ending != Ending::Deleted);
                self.note(at, format!("gone {id} {ending:?}"));
                self.happened.push_back(Happening::Gone(Arc::new(machine), ending));
            }
        }
    }

    /// Begins to end machines; those that are ending already go as they were to.
    fn end(
        &mut self,
        now: Timestamp,
        is_meant: impl Fn(&Machine) -> bool,
        ending: Ending,
        gone_at: Timestamp,
    ) -> usize {
        let mut lines = Vec::new();
        for machine in self.machines.values_mut() {
            let is_new = match machine.phase {
                Phase::Ending(_, at) => gone_at < at && ending != Ending::Deleted,
                _ => true,
            };
            if is_new && is_meant(machine) {
                machine.phase = Phase::Ending(ending, gone_at);
                lines.push(format!("end {} {ending:?}", machine.id));
                if ending == Ending::Interrupted {
                    self.happened.push_back(Happening::Notice(Arc::new(machine.clone())));
                }
            }
        }
        let count = lines.len();
        for line in lines {
            self.note(now, line);
        }
        count
    }
}

fn is_meant(scope: &Scope, machine: &Machine) -> bool {
    scope.includes(machine.instance_type(), machine.zone(), machine.capacity_type())
}

fn after(start: Timestamp, time: Duration) -> Timestamp {
    start.saturating_add(time).unwrap_or(Timestamp::MAX)
}

/// What a machine cost up to a time, in 10⁻¹² dollars an hour times nanoseconds.
fn cost(machine: &Machine, until: Timestamp) -> u128 {
    let nanos = until.duration_since(machine.launched_at).as_nanos();
    u128::from(machine.price.picos()) * u128::try_from(nanos).unwrap_or(0)
}

pub(crate) fn gone() -> CloudError {
    CloudError::NotFound("instance terminated".to_owned())
}
