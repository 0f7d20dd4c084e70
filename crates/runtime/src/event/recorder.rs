//! Who takes events: says each once within its time, keeps to the budgets, and never waits.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::mpsc::{Receiver, Sender, channel},
    time::Instant,
};

use super::{Bucket, Event};
use crate::{
    api::Counter,
    rate::{Rate, TokenBucket},
};

/// What each budget allows, as upstream's.
const BUDGET: Rate = Rate {
    per_second: 5.0,
    burst: 10,
};
/// How often we forget what may be said again.
const SWEEP: Duration = Duration::from_secs(10);

/// Takes events and sees that they reach the API server, in order and not too often.
#[derive(Debug, Clone)]
pub struct Recorder {
    events: Sender<Event>,
    gate: Arc<Gate>,
    lost: Counter,
}

#[derive(Debug)]
struct Gate {
    quiet: Mutex<Quiet>,
    nominated: TokenBucket,
    insufficient_capacity: TokenBucket,
}

/// What must not be said again, and until when.
#[derive(Debug)]
struct Quiet {
    until: HashMap<u64, Instant>,
    swept: Instant,
}

impl Recorder {
    /// A recorder, and what it records, which is written with [`super::record`].
    pub fn new(size: usize) -> (Self, Receiver<Event>) {
        let (events, received) = channel(size);
        let quiet = Quiet {
            until: HashMap::new(),
            swept: Instant::now(),
        };
        let gate = Gate {
            quiet: Mutex::new(quiet),
            nominated: TokenBucket::new(BUDGET),
            insufficient_capacity: TokenBucket::new(BUDGET),
        };
        let recorder = Self {
            events,
            gate: Arc::new(gate),
            lost: Counter::default(),
        };
        (recorder, received)
    }

    /// Says that something happened. Never waits; when too much happens at once, events are lost rather than work.
    pub fn publish(&self, event: Event) {
        if !self.gate.lets_pass(&event) {
            return;
        }
        if self.events.try_send(event).is_err() {
            self.lost.raise();
            if self.lost.get().is_power_of_two() {
                tracing::error!(
                    lost = self.lost.get(),
                    "Unable to record event: too many queued events, dropped event"
                );
            }
        }
    }

    /// How many events were lost because too many waited.
    pub fn lost(&self) -> u64 {
        self.lost.get()
    }
}

impl Gate {
    fn lets_pass(&self, event: &Event) -> bool {
        // parity: an event that its budget refuses counts as said all the same.
        let is_new = event.dedupe.is_empty() || self.quiet.lock().unwrap_or_else(PoisonError::into_inner).note(event);
        is_new
            && match event.bucket {
                None => true,
                Some(Bucket::Nominated) => self.nominated.try_take(),
                Some(Bucket::InsufficientCapacity) => self.insufficient_capacity.try_take(),
            }
    }
}

impl Quiet {
    /// True if the event may be said, which begins its quiet time.
    fn note(&mut self, event: &Event) -> bool {
        let now = Instant::now();
        if now.duration_since(self.swept) >= SWEEP {
            self.until.retain(|_, until| *until > now);
            self.swept = now;
        }
        let key = key(event);
        if self.until.get(&key).is_some_and(|until| *until > now) {
            return false;
        }
        self.until.insert(key, now + event.quiet);
        true
    }
}

/// Reason and values, not object or message: what upstream knows repetitions by.
fn key(event: &Event) -> u64 {
    let mut hasher = DefaultHasher::new();
    let text = format!("{}-{}", event.reason.to_lowercase(), event.dedupe.join("-"));
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use model::object::Node;

    use super::*;
    use crate::event::EventKind;

    fn event(reason: &str, values: &[&str]) -> Event {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        Event::new(&Node::default(), EventKind::Normal, reason, "words".to_owned()).deduped_by(values)
    }

    fn received(events: &mut Receiver<Event>) -> usize {
        std::iter::from_fn(|| events.try_recv().ok()).count()
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_is_said_once_within_its_time_whatever_its_object_and_message() {
        let (recorder, mut events) = Recorder::new(100);
        recorder.publish(event("Evicted", &["web"]));
        recorder.publish(event("evicted", &["web"]));
        recorder.publish(event("Evicted", &["other"]));
        recorder.publish(event("Nominated", &["web"]));
        assert_eq!(received(&mut events), 3);
        tokio::time::advance(Duration::from_secs(119)).await;
        recorder.publish(event("Evicted", &["web"]));
        assert_eq!(received(&mut events), 0);
        tokio::time::advance(Duration::from_secs(1)).await;
        recorder.publish(event("Evicted", &["web"]));
        assert_eq!(received(&mut events), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_without_values_is_said_each_time() {
        let (recorder, mut events) = Recorder::new(100);
        for _ in 0..5 {
            recorder.publish(event("Finalized", &[]));
        }
        assert_eq!(received(&mut events), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_that_its_budget_refuses_stays_unsaid_for_its_time() {
        let (recorder, mut events) = Recorder::new(100);
        let nominate = |pod: usize| {
            let event = event("Nominated", &[&pod.to_string()]);
            recorder.publish(event.within(Bucket::Nominated));
        };
        (0..20).for_each(nominate);
        assert_eq!(received(&mut events), 10);
        tokio::time::advance(Duration::from_mins(1)).await;
        nominate(15);
        assert_eq!(received(&mut events), 0);
        recorder.publish(event("InsufficientCapacityError", &["a"]).within(Bucket::InsufficientCapacity));
        tokio::time::advance(Duration::from_mins(1)).await;
        nominate(15);
        assert_eq!(received(&mut events), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn too_many_events_are_lost_and_counted() {
        let (recorder, mut events) = Recorder::new(3);
        for _ in 0..5 {
            recorder.publish(event("Finalized", &[]));
        }
        assert_eq!((received(&mut events), recorder.lost()), (3, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_be_said_again_is_forgotten() {
        let (recorder, _events) = Recorder::new(3);
        for pod in 0..100 {
            recorder.publish(event("Evicted", &[&pod.to_string()]));
        }
        tokio::time::advance(Duration::from_mins(2)).await;
        recorder.publish(event("Evicted", &["last"]));
        assert_eq!(recorder.gate.quiet.lock().unwrap().until.len(), 1);
    }
}
