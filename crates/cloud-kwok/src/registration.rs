//! Machines that have not joined yet: each waits for its time and then becomes a Node object.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use model::object::{Node, ObjectKey, Uid};
use runtime::{Api, ApiError, Clock, Delete, queue::Backoff};
use tokio::task::AbortHandle;

use crate::machine::Machine;

/// How long a failed creation waits. Upstream gives up after four tries within a second; a machine that was paid for is
/// worth more patience.
const BACKOFF: Backoff = Backoff {
    least: Duration::from_millis(10),
    most: Duration::from_secs(10),
};

/// The machines that have not joined yet, by the name of their node.
#[derive(Clone)]
pub(crate) struct Registrations {
    api: Api,
    clock: Clock,
    waiting: Arc<Mutex<BTreeMap<String, Waiting>>>,
}

struct Waiting {
    machine: Arc<Machine>,
    launched_at: Timestamp,
    stage: Stage,
    task: AbortHandle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It waits for its time.
    Booting,
    /// The Node object is being created.
    Joining,
    /// The machine was deleted while its Node object was being created.
    Leaving,
}

/// What came of calling a machine back before it joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recalled {
    /// It is gone.
    Gone,
    /// Its node is being created, and will be deleted again.
    Leaving,
    /// It was not waiting.
    Unknown,
}

impl Registrations {
    pub(crate) fn new(api: Api, clock: Clock) -> Self {
        let waiting = Arc::default();
        Self { api, clock, waiting }
    }

    /// Lets a machine join now.
    pub(crate) async fn join(&self, machine: &Machine) -> Result<(), ApiError> {
        match self.api.create::<Node>("", &machine.node()).await {
            Err(error) if !error.is_already_exists() => Err(error),
            _ => Ok(()),
        }
    }

    /// Lets a machine join at its time, in the background. A machine that waits already goes on waiting.
    pub(crate) fn join_at(&self, machine: Machine, due: Timestamp) {
        let (machine, name) = (Arc::new(machine.clone()), machine.node_name);
        let launched_at = self.clock.now();
        let mut waiting = self.lock();
        if waiting.contains_key(&name) {
            return;
        }
        let wait = Duration::try_from(due.duration_since(launched_at)).unwrap_or(Duration::ZERO);
        let task = tokio::spawn(self.clone().wait_and_join(Arc::clone(&machine), wait));
        let entry = Waiting {
            machine,
            launched_at,
            stage: Stage::Booting,
            task: task.abort_handle(),
        };
        waiting.insert(name, entry);
    }

    /// Lets nobody join any more: whoever comes next takes them up.
    pub(crate) fn stop(&self) {
        for (_, entry) in std::mem::take(&mut *self.lock()) {
            entry.task.abort();
        }
    }

    /// The machines that wait, with the time they were launched at.
    pub(crate) fn all(&self) -> Vec<(Arc<Machine>, Timestamp)> {
        let waiting = self.lock();
        let staying = waiting.values().filter(|entry| entry.stage != Stage::Leaving);
        staying
            .map(|entry| (Arc::clone(&entry.machine), entry.launched_at))
            .collect()
    }

    /// The names of a claim's nodes that wait.
    pub(crate) fn of_claim(&self, claim: &Uid) -> Vec<String> {
        let waiting = self.lock();
        let of_claim = waiting.iter().filter(|(_, entry)| entry.machine.claim_uid == *claim);
        of_claim.map(|(name, _)| name.clone()).collect()
    }

    /// Calls a machine back.
    pub(crate) fn recall(&self, node_name: &str) -> Recalled {
        let mut waiting = self.lock();
        let Some(entry) = waiting.get_mut(node_name) else {
            return Recalled::Unknown;
        };
        if entry.stage == Stage::Booting {
            entry.task.abort();
            waiting.remove(node_name);
            return Recalled::Gone;
        }
        entry.stage = Stage::Leaving;
        Recalled::Leaving
    }

    async fn wait_and_join(self, machine: Arc<Machine>, wait: Duration) {
        tokio::time::sleep(wait).await;
        let mut failures = 0;
        while self.is_staying(&machine.node_name) {
            let Err(error) = self.join(&machine).await else { break };
            failures += 1;
            tracing::error!(
                "NodeClaim.name" = %machine.claim_name, node = %machine.node_name, error = %error,
                "failed creating node from nodeclaim"
            );
            tokio::time::sleep(BACKOFF.after(failures)).await;
        }
        self.finish(&machine.node_name).await;
    }

    /// Goes on to create the node, unless the machine was called back.
    fn is_staying(&self, node_name: &str) -> bool {
        let mut waiting = self.lock();
        match waiting.get_mut(node_name) {
            Some(entry) if entry.stage != Stage::Leaving => {
                entry.stage = Stage::Joining;
                true
            }
            _ => false,
        }
    }

    async fn finish(&self, node_name: &str) {
        let left = self.lock().remove(node_name);
        if left.is_some_and(|entry| entry.stage == Stage::Leaving) {
            let key = ObjectKey::cluster_scoped(node_name);
            if let Err(error) = self.api.delete::<Node>(&key, &Delete::default()).await
                && !error.is_not_found()
            {
                tracing::error!(node = %node_name, error = %error, "failed deleting node of a deleted nodeclaim");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
