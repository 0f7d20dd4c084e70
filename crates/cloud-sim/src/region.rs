//! The truth: which machines run, what they cost, what is short, and what happens next.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use catalogue::Source;
use cloud::{CloudError, LaunchToken, Launched, Notice, NoticeKind, UnavailableOfferings};
use jiff::Timestamp;
use model::{
    object::{Map, NodeClaim, ProviderId, Text},
    price::Price,
    quantity::Quantity,
    requirement::Operator,
    resources::ResourceList,
    snapshot::CatalogType,
};
use tokio::sync::{Notify, watch};

use crate::{CallFacts, CallFault, Chance, CloudSim, Ending, Machine, Market, Method, Phase, Scope, market::Offer};

/// Tells the time.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// How the region behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Of everything that chance decides.
    pub seed: u64,
    /// From launch to the kubelet's joining, at least and at most.
    pub boot: (Duration, Duration),
    /// From joining to ready, at least and at most.
    pub ready: (Duration, Duration),
    /// From deletion to gone, at least and at most.
    pub shutdown: (Duration, Duration),
    /// For this long, reads do not show a machine that was launched.
    pub read_lag: Duration,
    /// How often spot prices take a step; none: they stand still.
    pub price_step: Option<Duration>,
    /// How long before it takes a spot machine back the cloud says so.
    pub notice: Duration,
    /// How many cores may run at most; none: as many as one likes.
    pub quota_cpu: Option<u64>,
    /// How many launches a minute are accepted, and as many at once; none: as many as one likes.
    pub launches_per_minute: Option<u32>,
}

impl Default for Rules {
    /// A quick region in which nothing goes wrong.
    fn default() -> Self {
        let secs = Duration::from_secs;
        Self {
            seed: 0,
            boot: (secs(20), secs(40)),
            ready: (secs(5), secs(10)),
            shutdown: (secs(5), secs(20)),
            read_lag: Duration::ZERO,
            price_step: None,
            notice: secs(120),
            quota_cpu: None,
            launches_per_minute: None,
        }
    }
}

/// What is wrong with a machine that was launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// Its kubelet never joins.
    NeverJoins,
    /// Its node never becomes ready.
    NeverReady,
    /// It has only so many percent of the memory that was promised.
    LessMemory(u32),
}

/// What machines boot from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Its name.
    pub name: String,
    /// What is wrong with every machine that boots from it.
    pub defect: Option<Defect>,
}

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

/// Goes wrong for a while, for machines launched meanwhile.
#[derive(Debug, Clone)]
struct Batch {
    scope: Scope,
    defect: Defect,
    per_mille: u32,
    until: Timestamp,
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

/// A notice in the queue that processes read.
struct Queued {
    notice: Notice,
    /// Somebody has it, and has so long to acknowledge it.
    hidden_until: Timestamp,
    /// It comes once more although it was acknowledged.
    is_twice: bool,
}

/// How long a notice that somebody has received is kept from others.
const HIDDEN: Duration = Duration::from_secs(20);
/// How many notices are given at once.
const AT_ONCE: usize = 10;
/// How many of a thousand notices come although they were acknowledged: a queue promises at least once, not once.
const TWICE: u32 = 50;

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

    /// These offers are short for a while.
    pub fn run_short(&self, scope: &Scope, time: Duration) {
        let until = after(self.now(), time);
        let mut inner = self.lock();
        inner.note(self.now(), format!("short {scope}"));
        inner.short.push((scope.clone(), until));
    }

    /// There are only so many more of these offers.
    pub fn limit_stock(&self, scope: &Scope, left: u64) {
        self.lock().stock.insert(scope.clone(), left);
    }

    /// Machines of these offers that are launched meanwhile have a defect, so many of a thousand.
    pub fn spoil(&self, scope: &Scope, defect: Defect, per_mille: u32, time: Duration) {
        let until = after(self.now(), time);
        let scope = scope.clone();
        self.lock().batches.push(Batch {
            scope,
            defect,
            per_mille,
            until,
        });
    }

    /// From now on machines boot from another image, and those that booted from an earlier one have drifted.
    pub fn release(&self, image: Image) {
        let mut inner = self.lock();
        inner.note(self.now(), format!("image {}", image.name));
        inner.image = Some(image);
    }

    /// The image that machines boot from now.
    pub fn image(&self) -> String {
        let inner = self.lock();
        inner
            .image
            .as_ref()
            .map_or_else(|| "image-1".to_owned(), |image| image.name.clone())
    }

    /// Takes spot machines of these offers back, so many of a thousand, after the usual notice. Says how many.
    pub fn interrupt(&self, scope: &Scope, per_mille: u32) -> usize {
        let now = self.now();
        let gone_at = after(now, self.rules.notice);
        let round = now.as_second().to_string();
        let mut inner = self.lock();
        inner.tick(now);
        let struck = |machine: &Machine| {
            let draw = self.chance.of("interruption", &format!("{}@{round}", machine.id));
            machine.capacity_type() == "spot" && is_meant(scope, machine) && draw.happens(per_mille)
        };
        let known = inner.happened.len();
        let ended = inner.end(now, struck, Ending::Interrupted, gone_at);
        let struck: Vec<ProviderId> = inner.happened.range(known..).filter_map(noticed).collect();
        for id in struck {
            let receipt = format!("{id}@{round}");
            let is_twice = self.chance.of("twice", &receipt).happens(TWICE);
            inner.queue.push_back(Queued {
                notice: Notice {
                    receipt: receipt.as_str().into(),
                    kind: NoticeKind::SpotInterruption,
                    machines: vec![id.as_str().into()],
                    at: now,
                    deadline: Some(gone_at),
                },
                hidden_until: now,
                is_twice,
            });
        }
        drop(inner);
        self.changed.notify_one();
        self.told.send_modify(|count| *count += 1);
        ended
    }

    /// Waits until there is a notice to be received.
    pub(crate) async fn noticed(&self) {
        let mut told = self.told.subscribe();
        loop {
            let next = self.lock().queue.iter().map(|queued| queued.hidden_until).min();
            let wait = next.map(|at| at.duration_since(self.now()));
            let wait = wait.map_or(Duration::MAX, |wait| Duration::try_from(wait).unwrap_or(Duration::ZERO));
            if wait.is_zero() {
                return;
            }
            tokio::select! {
                biased;
                _ = told.changed() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// The notices that nobody else has.
    pub(crate) fn receive(&self) -> Vec<Notice> {
        let now = self.now();
        let mut inner = self.lock();
        let free = inner.queue.iter_mut().filter(|queued| queued.hidden_until <= now);
        let given = free.take(AT_ONCE).map(|queued| {
            queued.hidden_until = after(now, HIDDEN);
            queued.notice.clone()
        });
        given.collect()
    }

    pub(crate) fn acknowledge(&self, receipt: &str) {
        self.lock().queue.retain_mut(|queued| {
            let is_it = *queued.notice.receipt == *receipt;
            !is_it || std::mem::take(&mut queued.is_twice)
        });
    }

    /// Machines that the cloud has said it will take back, and since when.
    pub fn notices(&self) -> Vec<(Machine, Timestamp)> {
        let notice = self.rules.notice;
        let machines = self.machines().into_iter();
        let ending = machines.filter_map(|machine| match machine.phase {
            Phase::Ending(Ending::Interrupted, gone_at) => {
                let since = gone_at.checked_sub(notice).unwrap_or(gone_at);
                Some((machine, since))
            }
            _ => None,
        });
        ending.collect()
    }

    /// A zone fails: its machines are gone at once, and it sells nothing for a while. Says how many.
    pub fn lose_zone(&self, zone: &str, time: Duration) -> usize {
        let scope = Scope {
            zone: Some(zone.to_owned()),
            ..Scope::default()
        };
        self.run_short(&scope, time);
        let now = self.now();
        let mut inner = self.lock();
        inner.tick(now);
        let ended = inner.end(now, |machine| is_meant(&scope, machine), Ending::Lost, now);
        drop(inner);
        self.changed.notify_one();
        ended
    }

    /// A machine fails without a word.
    pub fn lose(&self, id: &ProviderId) {
        let now = self.now();
        self.lock().end(now, |machine| machine.id == *id, Ending::Lost, now);
        self.changed.notify_one();
    }

    /// A machine that has been there before the story began, joined and ready: as if launched for this claim.
    pub fn adopt(&self, claim: &NodeClaim, token: &LaunchToken) -> Result<Arc<Machine>, CloudError> {
        let launched = self.launch(claim, token, &UnavailableOfferings::default())?;
        let now = self.now();
        let mut inner = self.lock();
        let id = ProviderId::from(&*launched.provider_id);
        let machine = inner.machines.get_mut(&id).ok_or_else(gone)?;
        (machine.phase, machine.is_ready) = (Phase::Joined, true);
        (machine.joins_at, machine.ready_at) = (Some(now), Some(now));
        machine.visible_from = now;
        Ok(Arc::new(machine.clone()))
    }

    /// What goes wrong with calls from now on. The hook must not use the region.
    pub fn set_faults(&self, faults: impl FnMut(&CallFacts) -> CallFault + Send + 'static) {
        *self.faults.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(faults));
    }

    /// Nothing goes wrong with calls from now on.
    pub fn clear_faults(&self) {
        *self.faults.lock().unwrap_or_else(PoisonError::into_inner) = None;
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

    /// Counts a call, and asks what goes wrong with it.
    pub(crate) fn judge(&self, method: Method, about: &str, who: &str) -> CallFault {
        let number = {
            let mut inner = self.lock();
            inner.calls += 1;
            inner.calls
        };
        let facts = CallFacts {
            number,
            method,
            about: about.to_owned(),
            who: who.to_owned(),
        };
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.as_mut().map_or(CallFault::None, |faults| faults(&facts))
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

    /// Launches a machine for a claim, or says which one the same launch gave before.
    /// What the caller knows to be short is not asked for.
    pub(crate) fn launch(
        &self,
        claim: &NodeClaim,
        token: &LaunchToken,
        known: &UnavailableOfferings,
    ) -> Result<Launched, CloudError> {
        let now = self.now();
        let types = known.overlay(&self.types(), now);
        let mut inner = self.lock();
        inner.tick(now);
        if let Some(known) = inner.tokens.get(token) {
            return Ok(known.clone());
        }
        self.throttle(&mut inner, now)?;
        let offers = self.market.admitted(claim, &types);
        let offer = inner.first_in_stock(&offers, self.rules.quota_cpu, now)?;
        let launched = self.start(&mut inner, claim, token, &offer, now);
        drop(inner);
        self.changed.notify_one();
        Ok(launched)
    }

    fn throttle(&self, inner: &mut Inner, now: Timestamp) -> Result<(), CloudError> {
        const WINDOW: Duration = Duration::from_mins(1);
        let Some(most) = self.rules.launches_per_minute else {
            return Ok(());
        };
        while inner.recent.front().is_some_and(|at| after(*at, WINDOW) <= now) {
            inner.recent.pop_front();
        }
        let oldest = inner.recent.front().copied();
        if let Some(oldest) = oldest.filter(|_| inner.recent.len() >= usize::try_from(most).unwrap_or(usize::MAX)) {
            let wait = after(oldest, WINDOW).duration_since(now);
            return Err(CloudError::Throttled {
                message: "RequestLimitExceeded: Request limit exceeded.".to_owned(),
                retry_after: Duration::try_from(wait).ok(),
            });
        }
        inner.recent.push_back(now);
        Ok(())
    }

    fn start(
        &self,
        inner: &mut Inner,
        claim: &NodeClaim,
        token: &LaunchToken,
        offer: &Offer<'_>,
        now: Timestamp,
    ) -> Launched {
        inner.launched += 1;
        let other = inner
            .machines
            .values()
            .find(|it| it.is_staying() && *it.claim_uid() == token.claim);
        if let Some(other) = other {
            let double = format!(
                "NodeClaim {} was launched again as {token} while {} ran",
                claim.metadata.name, other.id
            );
            inner.doubles.push(double);
        }
        let thing = token.to_string();
        let (id, node_name) = self.names(claim, offer, inner.launched, &thing);
        let image = inner.image.clone().unwrap_or_else(|| Image {
            name: "image-1".to_owned(),
            defect: None,
        });
        let launched = describe(claim, &id, &image.name, offer);
        let defect = image.defect.or_else(|| inner.defect(self.chance, offer, &thing, now));
        let within =
            |question: &str, (least, most): (Duration, Duration)| self.chance.of(question, &thing).between(least, most);
        let joins_at = after(now, within("boot", self.rules.boot));
        let ready_at = after(joins_at, within("ready", self.rules.ready));
        let (capacity, allocatable) = truly(&launched, defect);
        let machine = Machine {
            id: id.clone(),
            node_name,
            claim: claim.name(),
            token: token.clone(),
            price: offer.offering.price,
            launched_at: now,
            phase: Phase::Booting,
            joins_at: (defect != Some(Defect::NeverJoins)).then_some(joins_at),
            ready_at: (defect != Some(Defect::NeverReady)).then_some(ready_at),
            is_ready: false,
            capacity,
            allocatable,
            launched: launched.clone(),
            visible_from: after(now, self.rules.read_lag),
        };
        inner.note(
            now,
            format!(
                "launch {id} {} {} {} for {} ({token})",
                machine.instance_type(),
                machine.zone(),
                machine.capacity_type(),
                machine.claim,
            ),
        );
        inner.machines.insert(id, machine);
        inner.tokens.insert(token.clone(), launched.clone());
        launched
    }

    /// The cloud's name for a machine, and its own.
    fn names(&self, claim: &NodeClaim, offer: &Offer<'_>, number: u64, thing: &str) -> (ProviderId, String) {
        let bits = self.chance.of("name", thing).number();
        match self.market.source() {
            Source::Aws => {
                let id = format!("aws:///{}/i-0{bits:016x}", offer.zone);
                let node = format!(
                    "ip-10-{}-{}-{}.ec2.internal",
                    number / 65_025 % 255,
                    number / 255 % 255,
                    number % 255 + 1
                );
                (id.as_str().into(), node)
            }
            Source::Azure => {
                let node = format!("aks-{}-{:08x}", claim.metadata.name, bits >> 32);
                let id = format!(
                    "azure:///subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/demo/providers/Microsoft.Compute/virtualMachines/{node}"
                );
                (id.as_str().into(), node)
            }
            Source::Kwok => {
                let node = format!("kwok-{}-{:010}", claim.metadata.name, bits % 10_000_000_000);
                (format!("kwok://{node}").as_str().into(), node)
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

    /// The cheapest offer that can be had; otherwise which ones could not, and why.
    fn first_in_stock<'a>(
        &mut self,
        offers: &[Offer<'a>],
        quota: Option<u64>,
        now: Timestamp,
    ) -> Result<Offer<'a>, CloudError> {
        self.short.retain(|(_, until)| *until > now);
        let mut refused = Vec::new();
        for offer in offers {
            match self.why_short(offer, quota) {
                None => {
                    self.take(offer);
                    return Ok(*offer);
                }
                Some(reason) => refused.push(offer.unavailable(reason)),
            }
        }
        // A fleet request names so many; that it fails for want of all of them is what a caller can learn.
        refused.truncate(60);
        let message = match refused.first() {
            Some(first) => format!(
                "all requested instance types were unavailable during launch ({})",
                first.reason
            ),
            None => "no instance type satisfied the requirements".to_owned(),
        };
        Err(CloudError::InsufficientCapacity {
            message,
            offerings: refused,
        })
    }

    fn why_short(&self, offer: &Offer<'_>, quota: Option<u64>) -> Option<&'static str> {
        let is_it = |scope: &Scope| scope.includes(offer.described.name.as_str(), offer.zone, offer.capacity_type);
        let cores = |resources: &ResourceList| u64::try_from(resources.amount("cpu").value()).unwrap_or(0);
        if self.short.iter().any(|(scope, _)| is_it(scope))
            || self.stock.iter().any(|(scope, left)| *left == 0 && is_it(scope))
        {
            return Some("InsufficientInstanceCapacity");
        }
        let running = || -> u64 { self.machines.values().map(|it| cores(&it.launched.capacity)).sum() };
        let is_over = quota.is_some_and(|quota| running() + cores(&offer.described.capacity) > quota);
        is_over.then_some("VcpuLimitExceeded")
    }

    fn take(&mut self, offer: &Offer<'_>) {
        for (scope, left) in &mut self.stock {
            if scope.includes(offer.described.name.as_str(), offer.zone, offer.capacity_type) {
                *left = left.saturating_sub(1);
            }
        }
    }

    fn defect(&mut self, chance: Chance, offer: &Offer<'_>, thing: &str, now: Timestamp) -> Option<Defect> {
        self.batches.retain(|batch| batch.until > now);
        let struck = self.batches.iter().find(|batch| {
            let (name, zone) = (offer.described.name.as_str(), offer.zone);
            batch.scope.includes(name, zone, offer.capacity_type) && chance.of("defect", thing).happens(batch.per_mille)
        });
        struck.map(|batch| batch.defect)
    }
}

/// The machine that the cloud has just said it will take back.
fn noticed(happening: &Happening) -> Option<ProviderId> {
    match happening {
        Happening::Notice(machine) => Some(machine.id.clone()),
        _ => None,
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

fn describe(claim: &NodeClaim, id: &ProviderId, image: &str, offer: &Offer<'_>) -> Launched {
    let facts = offer.described.requirements.iter().chain(&offer.offering.requirements);
    let single = facts.filter_map(|it| match (it.operator, it.values.as_slice()) {
        (Operator::In, [value]) => Some((Text::from(it.key.as_str()), Text::from(value.as_str()))),
        _ => None,
    });
    let mut labels: Vec<(Text, Text)> = claim.metadata.labels.iter().cloned().collect();
    labels.push((api::labels::INSTANCE_TYPE.into(), offer.described.name.as_str().into()));
    labels.extend(single);
    Launched {
        provider_id: id.as_str().into(),
        image_id: image.into(),
        capacity: offer.described.capacity.clone(),
        allocatable: offer.shape.allocatable(),
        labels: Map::from_pairs(labels),
        annotations: Map::default(),
    }
}

/// What a machine truly has, and what of it pods may use.
fn truly(launched: &Launched, defect: Option<Defect>) -> (ResourceList, ResourceList) {
    let Some(Defect::LessMemory(percent)) = defect else {
        return (launched.capacity.clone(), launched.allocatable.clone());
    };
    let less = |resources: &ResourceList| {
        resources.map(|name, quantity| {
            if name.as_str() == "memory" {
                Quantity::from_bytes(quantity.value() / 100 * i64::from(percent))
            } else {
                quantity
            }
        })
    };
    (less(&launched.capacity), less(&launched.allocatable))
}
