//! Who acts? One replica at a time: the one that holds a Lease, by client-go's rules.
//!
//! Times are measured on our own monotonic clock, from the moment a renewal was *sent*, against what others can have
//! seen of it at the earliest. So neither clocks that differ nor a process that was stopped for a while make two leaders:
//! whoever could not renew stops acting by [`Leader::epoch_now`] before anybody else may begin.

mod record;

use std::{
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::Method;
use model::object::ObjectKey;
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout, timeout_at},
};

use crate::{Api, ApiError, Clock, Event, EventKind, Recorder, Resource, event::Reference, random::Random};
use record::{Move, Record, next_move};

/// What is held, by whom, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Election {
    /// The Lease: its namespace and name.
    pub lease: ObjectKey,
    /// Who we are: unique among all replicas that ever were.
    pub identity: String,
    /// How long others wait after the last renewal they saw.
    pub duration: Duration,
    /// How long we try to renew before we give up.
    pub renew_deadline: Duration,
    /// How often we try.
    pub retry_period: Duration,
}

impl Election {
    /// With controller-runtime's times.
    pub fn new(namespace: &str, name: &str, identity: String) -> Self {
        Self {
            lease: ObjectKey::new(namespace, name),
            identity,
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

/// `<hostname>_<uuid>`, as upstream names its replicas.
pub fn identity(random: &Random) -> String {
    let names = rustix::system::uname();
    format!("{}_{}", names.nodename().to_string_lossy(), random.uuid())
}

/// Whether we lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leadership {
    /// Not yet.
    Candidate,
    /// We do. Of two leaders the later one has the greater epoch.
    Leading {
        /// How often the leader has changed.
        epoch: u64,
    },
    /// We did, and no longer do; we go on as a candidate.
    Lost,
}

/// Tells whether we lead.
#[derive(Debug, Clone)]
pub struct Leader {
    changes: watch::Receiver<Leadership>,
    until: Arc<Mutex<Option<Instant>>>,
    /// Who waits for changes of what never changes must wait for ever.
    _never: Option<Arc<watch::Sender<Leadership>>>,
}

impl Leader {
    /// A replica that leads without asking anybody.
    pub fn unopposed() -> Self {
        let (never, changes) = watch::channel(Leadership::Leading { epoch: 0 });
        Self {
            changes,
            until: Arc::default(),
            _never: Some(Arc::new(never)),
        }
    }

    /// To wait for changes.
    pub fn changes(&self) -> watch::Receiver<Leadership> {
        self.changes.clone()
    }

    /// The epoch, if we may act at this very moment: also right after the process stood still, before the elector has
    /// noticed.
    pub fn epoch_now(&self) -> Option<u64> {
        let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
        match *self.changes.borrow() {
            Leadership::Leading { epoch } => until.is_none_or(|until| Instant::now() < until).then_some(epoch),
            Leadership::Candidate | Leadership::Lost => None,
        }
    }
}

/// Renewals are jittered by up to this much while we are a candidate, so that candidates do not all ask at once.
const JITTER: f64 = 1.2;

/// Takes part in an election.
pub struct Elector {
    api: Api,
    clock: Clock,
    recorder: Recorder,
    election: Election,
    /// The Lease as the server last gave it to us.
    lease: Option<Value>,
    /// What it said, and since when.
    seen: Option<(Record, Instant)>,
    status: watch::Sender<Leadership>,
    until: Arc<Mutex<Option<Instant>>>,
    complaint: String,
}

impl Elector {
    /// An elector, and where to ask whether we lead. Its API client should be one of its own, without a rate limit: a
    /// lease must not be lost because we are busy.
    pub fn new(api: Api, clock: Clock, recorder: Recorder, election: Election) -> (Self, Leader) {
        let (status, changes) = watch::channel(Leadership::Candidate);
        let until = Arc::default();
        let leader = Leader {
            changes,
            until: Arc::clone(&until),
            _never: None,
        };
        let elector = Self {
            api,
            clock,
            recorder,
            election,
            lease: None,
            seen: None,
            status,
            until,
            complaint: String::new(),
        };
        (elector, leader)
    }

    /// Takes part until `stop`, and then gives the Lease back. Whatever acts on our leadership must have ended before.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        {
            let mut stop = pin!(stop);
            tokio::select! {
                biased;
                () = &mut stop => {}
                () = self.take_part() => {}
            }
        }
        if matches!(*self.status.borrow(), Leadership::Leading { .. }) {
            self.end_term("stopped leading");
        }
        let limit = self.election.renew_deadline;
        if timeout(limit, self.release()).await.is_err() {
            tracing::error!(lock = %self.election.lease, "Failed to release lease: no answer in time");
        }
    }

    async fn take_part(&mut self) {
        loop {
            self.acquire().await;
            self.lead().await;
            self.end_term("stopped leading");
        }
    }

    async fn acquire(&mut self) {
        tracing::info!(lock = %self.election.lease, "Attempting to acquire leader lease...");
        loop {
            match self.attempt().await {
                Ok(Some(sent)) => return self.begin_term(sent),
                Ok(None) => {}
                Err(error) => self.complain(&error),
            }
            let pause = self.api.random().jittered(self.election.retry_period, JITTER);
            sleep(pause).await;
        }
    }

    /// Renews until that fails for too long or somebody else has taken over.
    async fn lead(&mut self) {
        loop {
            sleep(self.election.retry_period).await;
            let Some(deadline) = self.deadline().filter(|deadline| Instant::now() < *deadline) else {
                tracing::info!(lock = %self.election.lease, "Failed to renew lease in time");
                return;
            };
            match timeout_at(deadline, self.attempt()).await {
                Ok(Ok(Some(sent))) => self.extend_term(sent),
                Ok(Ok(None)) => {
                    tracing::info!(lock = %self.election.lease, "Failed to renew lease: somebody else holds it");
                    return;
                }
                Ok(Err(error)) => self.complain(&error),
                Err(_) => {}
            }
        }
    }

    /// Tries to hold the Lease: when the attempt was sent if we do now, nothing if somebody else does.
    async fn attempt(&mut self) -> Result<Option<Instant>, ApiError> {
        // The leader goes by what it wrote itself, which saves a question; if that has changed, we look again.
        if let Some(Move::Write(record)) = self.renewal()
            && let Ok(sent) = self.write(record).await
        {
            return Ok(Some(sent));
        }
        match self.look().await {
            Ok(()) => {}
            Err(error) if error.is_not_found() => return self.create().await.map(Some),
            Err(error) => return Err(error),
        }
        match self.next_move() {
            Move::Wait => Ok(None),
            Move::Write(record) => self.write(record).await.map(Some),
        }
    }

    fn next_move(&self) -> Move {
        let seen = self.seen.as_ref().map(|(record, at)| (record, at.elapsed()));
        let now = record::micro_time(self.clock.now());
        next_move(seen, &self.election.identity, self.election.duration, now)
    }

    /// What to write if we are the leader already.
    fn renewal(&self) -> Option<Move> {
        let (record, at) = self.seen.as_ref()?;
        let is_ours = record.holder == self.election.identity && at.elapsed() < self.election.duration;
        is_ours.then(|| self.next_move())
    }

    async fn look(&mut self) -> Result<(), ApiError> {
        let lease = self.ask(Method::GET, &self.path(), None).await?;
        let record = Record::of(&lease);
        // Only a change counts as a sign of life, and from when we see it: the times in it are of another clock.
        if self.seen.as_ref().is_none_or(|(known, _)| *known != record) {
            self.seen = Some((record, Instant::now()));
        }
        self.lease = Some(lease);
        Ok(())
    }

    async fn write(&mut self, record: Record) -> Result<Instant, ApiError> {
        let mut lease = self.lease.clone().unwrap_or_default();
        lease["spec"] = record.spec();
        let sent = Instant::now();
        let written = self.ask(Method::PUT, &self.path(), Some(&lease)).await?;
        self.lease = Some(written);
        self.seen = Some((record, Instant::now()));
        Ok(sent)
    }

    async fn create(&mut self) -> Result<Instant, ApiError> {
        let now = record::micro_time(self.clock.now());
        // A Lease that somebody deleted goes on counting where it was: epochs never repeat.
        let transitions = self.seen.as_ref().map_or(0, |(record, _)| record.transitions);
        let record = Record::held_by(&self.election.identity, self.election.duration, now, transitions);
        let ObjectKey { namespace, name } = &self.election.lease;
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": name, "namespace": namespace}, "spec": record.spec(),
        });
        let path = resource().collection(namespace);
        let sent = Instant::now();
        let created = self.ask(Method::POST, &path, Some(&lease)).await?;
        self.lease = Some(created);
        self.seen = Some((record, Instant::now()));
        Ok(sent)
    }

    /// Gives the Lease back if we hold it, so that nobody has to wait for it to expire.
    async fn release(&mut self) {
        // Our own last renewal may still be under way and change the Lease once more after we looked.
        for _ in 0..2 {
            if self.look().await.is_err() {
                return;
            }
            let Some((record, _)) = self
                .seen
                .as_ref()
                .filter(|(record, _)| record.holder == self.election.identity)
            else {
                return;
            };
            let now = record::micro_time(self.clock.now());
            let released = Record::released(now, record.transitions);
            match self.write(released).await {
                Ok(_) => return,
                Err(error) if error.is_conflict() => {}
                Err(error) => {
                    tracing::error!(lock = %self.election.lease, error = %error, "Failed to release lease");
                    return;
                }
            }
        }
    }

    /// One question, which must not use up the time that others after it need.
    async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, ApiError> {
        let limit = (self.election.renew_deadline / 2).max(Duration::from_secs(1));
        let answer = timeout(
            limit,
            self.api.call_once(method.clone(), path, body, "application/json"),
        );
        let late = || {
            Err(ApiError::transport(
                &method,
                path,
                format!("no answer within {limit:?}"),
            ))
        };
        let bytes = answer.await.unwrap_or_else(|_| late())?;
        serde_json::from_slice(&bytes).map_err(|error| ApiError::unreadable(&method, path, "the Lease", &error))
    }

    fn path(&self) -> String {
        resource().item(&self.election.lease)
    }

    /// Until when we may act on a renewal that was sent then; client-go's leader tries for as long.
    fn may_act_until(&self, sent: Instant) -> Instant {
        sent + self.election.retry_period + self.election.renew_deadline
    }

    fn deadline(&self) -> Option<Instant> {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn extend_term(&mut self, sent: Instant) {
        self.complaint.clear();
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.may_act_until(sent));
    }

    fn begin_term(&mut self, sent: Instant) {
        self.extend_term(sent);
        let epoch = self.seen.as_ref().map_or(0, |(record, _)| record.transitions);
        tracing::info!(lock = %self.election.lease, epoch, "Successfully acquired lease");
        self.status.send_replace(Leadership::Leading { epoch });
        self.announce("became leader");
    }

    fn end_term(&mut self, words: &str) {
        self.status.send_replace(Leadership::Lost);
        self.announce(words);
    }

    /// The event that client-go records on the Lease, in the name of the replica.
    fn announce(&self, words: &str) {
        let identity = &self.election.identity;
        let text = |pointer: &str| {
            let found = self.lease.as_ref().and_then(|lease| lease.pointer(pointer)?.as_str());
            found.unwrap_or_default()
        };
        let object = Reference {
            api_version: "coordination.k8s.io/v1".into(),
            kind: "Lease".into(),
            namespace: self.election.lease.namespace.clone(),
            name: self.election.lease.name.clone(),
            uid: text("/metadata/uid").into(),
            resource_version: text("/metadata/resourceVersion").into(),
        };
        let event = Event::about(
            object,
            EventKind::Normal,
            "LeaderElection",
            format!("{identity} {words}"),
        );
        self.recorder.publish(event.said_by(identity));
    }

    /// Says what is wrong, once as long as it stays the same.
    fn complain(&mut self, error: &ApiError) {
        let complaint = error.to_string();
        if complaint != self.complaint {
            tracing::error!(lock = %self.election.lease, error = %complaint, "Error retrieving or updating lease lock");
            self.complaint = complaint;
        }
    }
}

fn resource() -> Resource {
    Resource::new("coordination.k8s.io/v1", "Lease")
}

#[cfg(test)]
mod tests;
