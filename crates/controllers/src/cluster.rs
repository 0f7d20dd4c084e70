//! What every controller may look at and act through.
//!
//! The state changes in one place, [`Cluster::fold`]: events of watches and answers to our own writes take the same way,
//! so what we wrote is seen at once, and every controller hears of every change.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use cloud::CloudProvider;
use jiff::{SignedDuration, Timestamp};
use model::{
    object::ObjectKey,
    snapshot::{Inputs, Snapshot},
};
use runtime::{Api, ApiError, Clock, Delete, Engine, Event, Metrics, Patch, Recorder, Settings};
use serde_json::Value;
use state::{Change, State, Tracked};

use crate::{
    flight::{Flight, Taped},
    patch::{self, Lock, Written},
    records::Book,
};

/// What a cluster is made of.
pub struct Parts {
    /// The API server.
    pub api: Api,
    /// The cloud.
    pub cloud: Arc<dyn CloudProvider>,
    /// The time.
    pub clock: Clock,
    /// Where plans are made.
    pub engine: Engine,
    /// Where events go.
    pub recorder: Recorder,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// How to run.
    pub settings: Arc<Settings>,
}

/// Hears of a change, while the state is still locked: it may look, and must not wait.
pub(crate) type Listener = Box<dyn Fn(&Change, &State) + Send + Sync>;

/// The cluster.
pub struct Cluster {
    parts: Parts,
    state: Mutex<State>,
    listeners: Mutex<Vec<Listener>>,
    /// Our clock was wrong when it was last looked at, which was said.
    is_clock_wrong: AtomicBool,
    /// What was decided.
    book: Book,
    /// What decisions were made on, if that is recorded.
    flight: Option<Arc<Flight>>,
}

/// How far our clock may be from the API server's. It is finer than what the server tells, so it counts while it is near.
const TOLERATED: SignedDuration = SignedDuration::from_mins(1);

impl Cluster {
    /// A cluster of which nothing is known yet.
    pub fn new(parts: Parts) -> Self {
        let state = State::new(parts.settings.decisions.clone());
        // Who is told of decisions is told from the book, kept or not.
        let book = Book::new(parts.settings.decision_records || !parts.settings.notify_url.is_empty());
        Self {
            parts,
            state: Mutex::new(state),
            listeners: Mutex::default(),
            is_clock_wrong: AtomicBool::new(false),
            book,
            flight: None,
        }
    }

    /// The same, with everything that decisions are made on recorded.
    #[must_use]
    pub fn recorded(mut self, flight: Arc<Flight>) -> Self {
        let changes = Arc::clone(&flight);
        self.listen(Box::new(move |change, _| changes.changed(change)));
        self.flight = Some(flight);
        self
    }

    /// What was decided.
    pub(crate) fn book(&self) -> &Book {
        &self.book
    }

    /// What was decided, in the order it first was.
    pub fn decisions(&self) -> Vec<ledger::Record> {
        self.book.records()
    }

    /// The latest of them, at most so many.
    pub fn latest_decisions(&self, most: usize) -> Vec<ledger::Record> {
        self.book.latest(most)
    }

    /// What a decision would be made on now, as numbers.
    pub(crate) fn inputs(&self) -> Inputs {
        self.lock().inputs()
    }

    /// Records a decision, if that is asked for.
    pub(crate) fn tape(&self, whole: &Snapshot, inputs: &Inputs, taped: impl FnOnce() -> Taped) {
        if let Some(flight) = &self.flight {
            flight.decided(whole, inputs, taped());
        }
    }

    /// Whether decisions are recorded.
    pub(crate) fn is_taped(&self) -> bool {
        self.flight.is_some()
    }

    /// The API server, for what is not tracked. Tracked kinds are written with [`Cluster::create`] and its like.
    pub fn api(&self) -> &Api {
        &self.parts.api
    }

    /// The cloud.
    pub fn cloud(&self) -> &Arc<dyn CloudProvider> {
        &self.parts.cloud
    }

    /// The time: our own clock's, unless that is far from the API server's, whose timestamps everything is compared with.
    pub fn now(&self) -> Timestamp {
        let own = self.parts.clock.now();
        let Some(servers) = self.api().server_time() else {
            return own;
        };
        let is_wrong = own.duration_since(servers).abs() > TOLERATED;
        if self.is_clock_wrong.swap(is_wrong, Ordering::Relaxed) != is_wrong && is_wrong {
            tracing::error!(
                clock = %own, api_server = %servers,
                "the clock of this machine is wrong, so the API server's time counts; check its time synchronisation"
            );
        }
        if is_wrong { servers } else { own }
    }

    /// Where plans are made.
    pub fn engine(&self) -> Engine {
        self.parts.engine
    }

    /// What is counted.
    pub fn metrics(&self) -> &Metrics {
        &self.parts.metrics
    }

    /// How to run.
    pub fn settings(&self) -> &Settings {
        &self.parts.settings
    }

    /// Says that something happened.
    pub fn publish(&self, event: Event) {
        self.parts.recorder.publish(event);
    }

    /// Looks at the state. Nothing may be awaited inside.
    pub fn look<R>(&self, at: impl FnOnce(&State) -> R) -> R {
        at(&self.lock())
    }

    /// The object of a key.
    pub fn get<T: Tracked>(&self, key: &ObjectKey) -> Option<Arc<T>> {
        self.look(|state| state.get::<T>(key).cloned())
    }

    /// Everything a decision needs, now.
    pub fn snapshot(&self) -> Snapshot {
        let now = self.now();
        self.lock().snapshot(now)
    }

    /// Changes the state, and tells everybody what changed.
    pub fn fold<C: IntoIterator<Item = Change>>(&self, change: impl FnOnce(&mut State) -> C) {
        let mut state = self.lock();
        let changes: Vec<Change> = change(&mut state).into_iter().collect();
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        for change in &changes {
            for listener in listeners.iter() {
                listener(change, &state);
            }
        }
    }

    /// Changes what the state keeps beside the objects: marks, promises, times. Nobody is told.
    pub fn note<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        change(&mut self.lock())
    }

    /// From now on, hears of every change.
    pub fn listen(&self, listener: Listener) {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.push(listener);
    }

    /// Creates an object.
    pub async fn create<T: Tracked>(&self, namespace: &str, object: &Value) -> Result<T, ApiError> {
        let created: T = self.api().create(namespace, object).await?;
        self.fold(|state| state.apply(created.clone()));
        Ok(created)
    }

    /// Changes an object.
    pub async fn patch<T: Tracked>(&self, key: &ObjectKey, patch: &Patch) -> Result<T, ApiError> {
        self.patch_part(key, None, patch).await
    }

    /// Changes an object's status.
    pub async fn patch_status<T: Tracked>(&self, key: &ObjectKey, patch: &Patch) -> Result<T, ApiError> {
        self.patch_part(key, Some("status"), patch).await
    }

    /// Writes what differs between an object as it was read and as it should be, its status aside; none when nothing does.
    pub async fn update<T: Tracked + Written>(&self, before: &T, after: &T, lock: Lock) -> Result<Option<T>, ApiError> {
        match patch::of_object(before, after, lock) {
            Some(patch) => self
                .patch(&before.metadata().key(), &Patch::Merge(patch))
                .await
                .map(Some),
            None => Ok(None),
        }
    }

    /// Writes what differs in the status; none when nothing does.
    pub async fn update_status<T: Tracked + Written>(
        &self,
        before: &T,
        after: &T,
        lock: Lock,
    ) -> Result<Option<T>, ApiError> {
        match patch::of_status(before, after, lock) {
            Some(patch) => self
                .patch_status(&before.metadata().key(), &Patch::Merge(patch))
                .await
                .map(Some),
            None => Ok(None),
        }
    }

    /// Deletes an object. With finalizers it stays, deleting, until the watch tells that it is gone.
    pub async fn delete<T: Tracked>(&self, key: &ObjectKey, options: &Delete) -> Result<(), ApiError> {
        self.api().delete::<T>(key, options).await
    }

    async fn patch_part<T: Tracked>(&self, key: &ObjectKey, part: Option<&str>, patch: &Patch) -> Result<T, ApiError> {
        let patched: T = self.api().patch(key, part, patch).await?;
        self.fold(|state| state.apply(patched.clone()));
        Ok(patched)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
