//! Who wants to know about requests: metrics plug in here.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// One request, answered or not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation<'a> {
    /// The HTTP method.
    pub method: &'a str,
    /// What it did, in upstream's words: `CREATE`, `LIST`, `GET`, `UPDATE`, `PATCH`, `DELETE`; `WATCH` when one began.
    pub verb: &'static str,
    /// The API group; empty for the core.
    pub group: &'a str,
    /// The version of the group.
    pub version: &'a str,
    /// The resource, in the plural.
    pub resource: &'a str,
    /// The part of the object, such as `status`; often empty.
    pub subresource: &'a str,
    /// The HTTP status; none when there was no answer.
    pub code: Option<u16>,
    /// How long the answer took.
    pub seconds: f64,
}

/// Hears of every request.
pub trait Observer: Send + Sync {
    /// A request ended.
    fn requested(&self, observation: &Observation<'_>);

    /// A request waited for its turn, because we would otherwise ask too often.
    fn waited(&self, _seconds: f64) {}
}

/// Hears nothing.
pub(super) struct Nobody;

impl Observer for Nobody {
    fn requested(&self, _: &Observation<'_>) {}
}

/// What an API client has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that only look, watches included.
    pub reads: u64,
    /// Requests that change something, or try to.
    pub writes: u64,
    /// Requests of both kinds that repeat a failed one.
    pub retries: u64,
    /// Requests that had to wait for their turn.
    pub waited: u64,
    /// Calls that were given up because their turn was too far away.
    pub refused: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) reads: Counter,
    pub(super) writes: Counter,
    pub(super) retries: Counter,
    pub(super) waited: Counter,
    pub(super) refused: Counter,
}

impl Counters {
    pub(super) fn now(&self) -> Counts {
        Counts {
            reads: self.reads.get(),
            writes: self.writes.get(),
            retries: self.retries.get(),
            waited: self.waited.get(),
            refused: self.refused.get(),
        }
    }
}

/// A number that many may raise.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counter(Arc<AtomicU64>);

impl Counter {
    pub(crate) fn raise(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
