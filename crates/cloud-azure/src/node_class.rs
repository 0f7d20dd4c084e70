//! AKSNodeClasses: what they resolve to, and whether nodes can be launched from them.

pub(crate) mod families;
mod finalize;
mod fingerprint;
mod image_choice;
pub(crate) mod images;
mod status;
mod surroundings;

use std::{sync::Arc, time::Duration};

use api::azure::AKSNodeClass;
use runtime::queue::{Backoff, Queue};
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
};

pub(crate) use image_choice::image_of_type;
use status::{Outcome, Step};

use crate::{objects::name_of, reads::ReadSide};

/// Classes that are looked at at once.
const WORKERS: usize = 10;
const BACKOFF: Backoff = Backoff {
    least: Duration::from_millis(100),
    most: Duration::from_secs(10),
};

/// Looks after node classes: `nodeclass.status`, `nodeclass.hash` and `nodeclass.termination` of upstream.
pub struct Controller {
    pub(crate) read: Arc<ReadSide>,
}

impl Controller {
    /// Over the read side.
    pub fn new(read: Arc<ReadSide>) -> Self {
        Self { read }
    }

    /// Looks at a class once, and says when to look again; none: when it changes.
    pub async fn reconcile(&self, class: &AKSNodeClass) -> Result<Option<Duration>, String> {
        let outcome = self.look_twice(class).await;
        if outcome.errors.is_empty() {
            return Ok(outcome.after);
        }
        Err(outcome.errors.join("; "))
    }

    async fn look_twice(&self, class: &AKSNodeClass) -> Outcome {
        let hash = match class.metadata.deletion_timestamp {
            None => self.write_hash(class).await,
            Some(_) => Step::Settled,
        };
        let mut outcome = self.look(class).await;
        let more = Outcome::of(vec![hash]);
        outcome.is_to_be_retried |= more.is_to_be_retried;
        outcome.errors.extend(more.errors);
        outcome
    }

    /// Follows all classes until dropped.
    pub async fn run(self: Arc<Self>) {
        let (changed, mut changes) = mpsc::unbounded_channel();
        let queue = Arc::new(Queue::new(BACKOFF));
        let places = Arc::new(Semaphore::new(WORKERS));
        let mut tasks = JoinSet::new();
        let read = Arc::clone(&self.read);
        tasks.spawn(async move { read.objects.follow(changed).await });
        loop {
            tokio::select! {
                Some(name) = changes.recv() => queue.add(name),
                name = queue.next() => {
                    let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
                    let (this, queue) = (Arc::clone(&self), Arc::clone(&queue));
                    tasks.spawn(async move {
                        this.work(&queue, name).await;
                        drop(place);
                    });
                }
            }
            while tasks.try_join_next().is_some() {}
        }
    }

    async fn work(&self, queue: &Queue<String>, name: String) {
        let Ok(Some(class)) = self.read.objects.class(&name).await else {
            queue.done(&name);
            return;
        };
        let outcome = self.look_twice(&class).await;
        for error in &outcome.errors {
            tracing::error!(
                controller = "nodeclass",
                AKSNodeClass.name = name_of(&class),
                error,
                "Reconciler error"
            );
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
}
