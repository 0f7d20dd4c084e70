//! What one decision can take over from the one before: all that follows from the catalogue, for as long as it stays.
//!
//! A decision is the same with and without it. It belongs to whoever decides again and again; nothing is kept anywhere else.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::snapshot::Snapshot;
use packing::{Prepared, supply::Offered};

/// What is kept between decisions.
#[derive(Debug, Default)]
pub struct Warm(Mutex<packing::Warm>);

impl Warm {
    /// What the node class of every NodePool offers.
    pub(crate) fn offered(&self, snapshot: &Snapshot) -> Arc<Offered> {
        self.lock().offered(snapshot)
    }

    /// A cluster ready to be asked about.
    pub(crate) fn prepare(&self, snapshot: &Snapshot, options: &packing::Options) -> Prepared {
        self.lock().prepare(snapshot, options)
    }

    fn lock(&self) -> MutexGuard<'_, packing::Warm> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
