//! EC2NodeClasses: what their selectors find, and whether nodes can be launched from them.

pub(crate) mod capacity;
mod filters;
mod finalize;
mod fingerprint;
mod image_choice;
pub(crate) mod images;
pub(crate) mod instance_profiles;
pub(crate) mod networks;
mod parameters;
mod status;
mod validation;

use std::{sync::Arc, time::Duration};

use api::aws::EC2NodeClass;
use runtime::queue::{Backoff, Queue};
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
};

pub(crate) use image_choice::images_of_types;
use status::{Outcome, Step};
use validation::Verdict;

use crate::{border::Machines, objects::name_of, reads::ReadSide, remembered::Remembered};

/// Classes that are looked at at once.
const WORKERS: usize = 10;
const BACKOFF: Backoff = Backoff {
    least: Duration::from_millis(100),
    most: Duration::from_secs(10),
};

/// Looks after node classes: `nodeclass` and `nodeclass.hash` of upstream.
pub struct Controller {
    pub(crate) read: Arc<ReadSide>,
    pub(crate) machines: Arc<dyn Machines>,
    verdicts: Remembered<Verdict>,
}

impl Controller {
    /// Over both sides.
    pub fn new(read: Arc<ReadSide>, machines: Arc<dyn Machines>) -> Self {
        Self {
            verdicts: Remembered::new(read.clock.clone()),
            read,
            machines,
        }
    }

    /// Looks at a class once, and says when to look again; none: when it changes.
    pub async fn reconcile(&self, class: &EC2NodeClass) -> Result<Option<Duration>, String> {
        let outcome = self.look_twice(class).await;
        if outcome.errors.is_empty() {
            return Ok(outcome.after);
        }
        Err(outcome.errors.join("; "))
    }

    async fn look_twice(&self, class: &EC2NodeClass) -> Outcome {
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

    /// Follows all classes until dropped, and claims, for which classes wait that are to go.
    pub async fn run(self: Arc<Self>) {
        let (changed, mut changes) = mpsc::unbounded_channel();
        let queue = Arc::new(Queue::new(BACKOFF));
        let places = Arc::new(Semaphore::new(WORKERS));
        let mut tasks = JoinSet::new();
        let (read, freed) = (Arc::clone(&self.read), changed.clone());
        tasks.spawn(async move { read.objects.follow(changed).await });
        let read = Arc::clone(&self.read);
        tasks.spawn(async move { read.objects.follow_claims(freed).await });
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
                EC2NodeClass.name = name_of(&class),
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
