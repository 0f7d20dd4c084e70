//! Work to be done, each item once: what is asked for again while it waits is the same work, and while it is being done
//! it waits until that is over. Failed work waits longer each time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use crate::rate::{Rate, TokenBucket};

/// How long failed work waits: doubling from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure.
    pub least: Duration,
    /// At most.
    pub most: Duration,
}

impl Backoff {
    /// The wait after a number of failures in a row.
    pub fn after(self, failures: u32) -> Duration {
        let doubled = 2u32.checked_pow(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        self.least.saturating_mul(doubled).min(self.most)
    }
}

/// A queue of keys.
#[derive(Debug)]
pub struct Queue<K> {
    inner: Mutex<Inner<K>>,
    changed: Notify,
    backoff: Backoff,
    /// How often failed work may be tried again, all keys together.
    retries: Option<TokenBucket>,
}

#[derive(Debug)]
struct Inner<K> {
    /// When a key is due; a key waits at most once.
    due: BTreeMap<K, Instant>,
    by_time: BTreeSet<(Instant, K)>,
    /// What is being done.
    active: BTreeMap<K, Active>,
    failures: BTreeMap<K, u32>,
    news: News,
}

/// A key that is being worked on.
#[derive(Debug, Clone, Copy)]
struct Active {
    since: Instant,
    /// It was asked for meanwhile, for then.
    again: Option<Instant>,
}

/// What a queue holds at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    /// Keys that are due.
    pub depth: usize,
    /// How long the keys that are being worked on have been, all together.
    pub unfinished: Duration,
    /// How long the one that has been longest has been.
    pub longest: Duration,
}

/// What happened to a queue since somebody last asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct News {
    /// Keys that came to wait.
    pub adds: u64,
    /// Keys that came to wait for later.
    pub retries: u64,
}

impl<K: Ord + Clone> Queue<K> {
    /// An empty queue.
    pub fn new(backoff: Backoff) -> Self {
        let inner = Inner {
            due: BTreeMap::new(),
            by_time: BTreeSet::new(),
            active: BTreeMap::new(),
            failures: BTreeMap::new(),
            news: News::default(),
        };
        Self {
            inner: Mutex::new(inner),
            changed: Notify::new(),
            backoff,
            retries: None,
        }
    }

    /// A queue whose failed keys together come back no more often than a rate, as upstream's controllers have it.
    #[must_use]
    pub fn with_retries_at(mut self, rate: Rate) -> Self {
        self.retries = Some(TokenBucket::new(rate));
        self
    }

    /// Asks for work as soon as possible.
    pub fn add(&self, key: K) {
        self.add_after(key, Duration::ZERO);
    }

    /// Asks for work after a time; the earliest wish counts.
    pub fn add_after(&self, key: K, delay: Duration) {
        let mut inner = self.lock();
        inner.news.retries += u64::from(!delay.is_zero());
        inner.add(key, after(delay));
        drop(inner);
        self.changed.notify_one();
    }

    /// The next work that is due. It must be given back with [`Queue::done`] or [`Queue::failed`].
    pub async fn next(&self) -> K {
        self.next_waited().await.0
    }

    /// The next work that is due, and for how long it has been.
    pub async fn next_waited(&self) -> (K, Duration) {
        loop {
            let now = Instant::now();
            let wait = match self.lock().take(now) {
                Ok((key, due, more)) => {
                    // Two additions may have left one wake-up only: whoever takes work wakes the next one.
                    if more {
                        self.changed.notify_one();
                    }
                    return (key, now.saturating_duration_since(due));
                }
                Err(next) => next,
            };
            let changed = self.changed.notified();
            match wait {
                None => changed.await,
                Some(at) => {
                    tokio::select! {
                        () = changed => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
            }
        }
    }

    /// Work that went well.
    pub fn done(&self, key: &K) {
        let mut inner = self.lock();
        inner.failures.remove(key);
        inner.finish(key, None);
        drop(inner);
        self.changed.notify_one();
    }

    /// Work that failed, or wants to be done again soon: it waits longer each time. Returns how long.
    pub fn failed(&self, key: &K) -> Duration {
        let mut inner = self.lock();
        inner.news.retries += 1;
        let failures = inner.failures.entry(key.clone()).or_default();
        *failures += 1;
        let turn = self.retries.as_ref().and_then(|bucket| bucket.reserve(Duration::MAX));
        let delay = self.backoff.after(*failures).max(turn.unwrap_or_default());
        inner.finish(key, Some(after(delay)));
        drop(inner);
        self.changed.notify_one();
        delay
    }

    /// What waits and what is being done.
    pub fn load(&self) -> Load {
        let now = Instant::now();
        let inner = self.lock();
        let running = || {
            inner
                .active
                .values()
                .map(|active| now.saturating_duration_since(active.since))
        };
        Load {
            depth: inner.by_time.iter().take_while(|(at, _)| *at <= now).count(),
            unfinished: running().sum(),
            longest: running().max().unwrap_or_default(),
        }
    }

    /// What happened since this was last asked.
    pub fn news(&self) -> News {
        std::mem::take(&mut self.lock().news)
    }

    fn lock(&self) -> MutexGuard<'_, Inner<K>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits are no longer than a year: what is further away than clocks can count must not stop anybody.
fn after(delay: Duration) -> Instant {
    Instant::now() + delay.min(Duration::from_hours(24 * 365))
}

impl<K: Ord + Clone> Inner<K> {
    fn add(&mut self, key: K, at: Instant) {
        if let Some(Active { again, .. }) = self.active.get_mut(&key) {
            *again = Some(again.map_or(at, |known| known.min(at)));
            return;
        }
        match self.due.get(&key) {
            Some(known) if *known <= at => return,
            Some(known) => {
                self.by_time.remove(&(*known, key.clone()));
            }
            None => {}
        }
        self.news.adds += u64::from(!self.due.contains_key(&key));
        self.due.insert(key.clone(), at);
        self.by_time.insert((at, key));
    }

    /// The first key that is due, since when, and whether others wait; or when the next one will be due.
    fn take(&mut self, now: Instant) -> Result<(K, Instant, bool), Option<Instant>> {
        match self.by_time.first() {
            Some((at, _)) if *at > now => Err(Some(*at)),
            None => Err(None),
            Some(_) => {
                let Some((due, key)) = self.by_time.pop_first() else {
                    return Err(None);
                };
                self.due.remove(&key);
                let (since, again) = (now, None);
                self.active.insert(key.clone(), Active { since, again });
                Ok((key, due, !self.by_time.is_empty()))
            }
        }
    }

    fn finish(&mut self, key: &K, retry: Option<Instant>) {
        let again = self.active.remove(key).and_then(|active| active.again);
        let next = match (again, retry) {
            (Some(again), Some(retry)) => Some(again.min(retry)),
            (again, retry) => again.or(retry),
        };
        if let Some(at) = next {
            self.add(key.clone(), at);
        }
    }
}

#[cfg(test)]
mod tests;
