//! How a provider keeps its node classes: they are watched, resolved, written and finalized alike on every cloud.
//!
//! A cloud says what is its own ([`Keeper`]): what a class resolves to, what its hash follows from, what goes with it. The
//! rest is here: which classes there are ([`Objects`]), when each is looked at ([`run`]), what is written about it.

mod finalize;
mod fingerprint;
mod look;
mod objects;
mod status;

use std::{sync::Arc, time::Duration};

use api::condition::ConditionTypes;
use api::node_class::NodeClass;
use async_trait::async_trait;
use runtime::{
    Clock, Recorder,
    queue::{Backoff, Queue},
};
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
};

use look::Outcome;
pub use look::Step;
pub use objects::Objects;
pub use status::set;

/// Classes that are looked at at once.
const WORKERS: usize = 10;
const BACKOFF: Backoff = Backoff {
    least: Duration::from_millis(100),
    most: Duration::from_secs(10),
};

/// What a cloud knows of its node classes.
#[async_trait]
pub trait Keeper: Send + Sync + 'static {
    /// Their kind.
    type Class: NodeClass;

    /// The classes as they are now.
    fn objects(&self) -> &Objects<Self::Class>;

    /// The time.
    fn clock(&self) -> &Clock;

    /// Who takes events.
    fn recorder(&self) -> &Recorder;

    /// What Ready follows from.
    fn condition_types(&self) -> ConditionTypes;

    /// The hash of what running machines cannot change.
    fn hash(&self, class: &Self::Class) -> String;

    /// Finds out what a class resolves to, and puts it into its status. Every step runs even if another fails.
    async fn resolve(&self, class: &mut Self::Class) -> Vec<Step>;

    /// Removes what was made for a class that nobody uses any more.
    async fn clear_away(&self, _class: &Self::Class) -> Result<(), String> {
        Ok(())
    }

    /// Forgets what was learnt about a class that is gone.
    fn forget(&self, _class: &Self::Class) {}

    /// Says what went wrong with a class, in the words of its kind.
    fn report(&self, class: &Self::Class, error: &str);
}

/// Looks at a class once, and says when to look again; none: when it changes.
pub async fn reconcile<K: Keeper>(keeper: &K, class: &K::Class) -> Result<Option<Duration>, String> {
    let outcome = look_twice(keeper, class).await;
    if outcome.errors.is_empty() {
        return Ok(outcome.after);
    }
    Err(outcome.errors.join("; "))
}

/// Follows all classes until dropped, and claims, for which classes wait that are to go.
pub async fn run<K: Keeper>(keeper: Arc<K>) {
    let (changed, mut changes) = mpsc::unbounded_channel();
    let queue = Arc::new(Queue::new(BACKOFF));
    let places = Arc::new(Semaphore::new(WORKERS));
    let mut tasks = JoinSet::new();
    let (this, freed) = (Arc::clone(&keeper), changed.clone());
    tasks.spawn(async move { this.objects().follow(changed).await });
    let this = Arc::clone(&keeper);
    tasks.spawn(async move { this.objects().follow_claims(freed).await });
    loop {
        tokio::select! {
            Some(name) = changes.recv() => queue.add(name),
            name = queue.next() => {
                let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
                let (this, queue) = (Arc::clone(&keeper), Arc::clone(&queue));
                tasks.spawn(async move {
                    work(&*this, &queue, name).await;
                    drop(place);
                });
            }
        }
        while tasks.try_join_next().is_some() {}
    }
}

async fn work<K: Keeper>(keeper: &K, queue: &Queue<String>, name: String) {
    let Ok(Some(class)) = keeper.objects().class(&name).await else {
        queue.done(&name);
        return;
    };
    let outcome = look_twice(keeper, &class).await;
    for error in &outcome.errors {
        keeper.report(&class, error);
    }
    if outcome.is_to_be_retried {
        queue.failed(&name);
        return;
    }
    queue.done(&name);
    if let Some(after) = outcome.after {
        queue.add_after(name, after);
    }
}

/// The hash and the status are upstream's two controllers: one that fails does not keep the other from its work.
async fn look_twice<K: Keeper>(keeper: &K, class: &K::Class) -> Outcome {
    if class.is_deleting() {
        return Outcome::of(vec![finalize::finalize(keeper, class).await]);
    }
    let hash = fingerprint::write(keeper, class).await;
    let mut steps = status::look(keeper, class).await;
    steps.push(hash);
    Outcome::of(steps)
}
