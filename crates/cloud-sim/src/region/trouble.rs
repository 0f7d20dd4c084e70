//! What goes wrong, from when, and for how long: shortages, bad machines, lost zones, failing calls.

use std::{sync::PoisonError, time::Duration};

use jiff::Timestamp;
use model::object::ProviderId;

use super::{Defect, Image, Region, after, is_meant};
use crate::{CallFacts, CallFault, Ending, Method, Scope};

/// Goes wrong for a while, for machines launched meanwhile.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    pub(super) scope: Scope,
    pub(super) defect: Defect,
    pub(super) per_mille: u32,
    pub(super) until: Timestamp,
}

impl Region {
    /// These offers are short for a while.
    pub fn run_short(&self, scope: &Scope, time: Duration) {
        let until = after(self.now(), time);
        let mut inner = self.lock();
        inner.note(self.now(), format!("short {scope}"));
        inner.short.push((scope.clone(), until));
    }

    /// There are only so many more of these offers.
    pub fn limit_stock(&self, scope: &Scope, left: u64) {
        self.lock().stock.insert(scope.clone(), left);
    }

    /// Machines of these offers that are launched meanwhile have a defect, so many of a thousand.
    pub fn spoil(&self, scope: &Scope, defect: Defect, per_mille: u32, time: Duration) {
        let until = after(self.now(), time);
        let scope = scope.clone();
        self.lock().batches.push(Batch {
            scope,
            defect,
            per_mille,
            until,
        });
    }

    /// From now on machines boot from another image, and those that booted from an earlier one have drifted.
    pub fn release(&self, image: Image) {
        let mut inner = self.lock();
        inner.note(self.now(), format!("image {}", image.name));
        inner.image = Some(image);
    }

    /// A zone fails: its machines are gone at once, and it sells nothing for a while. Says how many.
    pub fn lose_zone(&self, zone: &str, time: Duration) -> usize {
        let scope = Scope {
            zone: Some(zone.to_owned()),
            ..Scope::default()
        };
        self.run_short(&scope, time);
        let now = self.now();
        let mut inner = self.lock();
        inner.tick(now);
        let ended = inner.end(now, |machine| is_meant(&scope, machine), Ending::Lost, now);
        drop(inner);
        self.changed.notify_one();
        ended
    }

    /// A machine fails without a word.
    pub fn lose(&self, id: &ProviderId) {
        let now = self.now();
        self.lock().end(now, |machine| machine.id == *id, Ending::Lost, now);
        self.changed.notify_one();
    }

    /// What goes wrong with calls from now on. The hook must not use the region.
    pub fn set_faults(&self, faults: impl FnMut(&CallFacts) -> CallFault + Send + 'static) {
        *self.faults.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(faults));
    }

    /// Nothing goes wrong with calls from now on.
    pub fn clear_faults(&self) {
        *self.faults.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Counts a call, and asks what goes wrong with it.
    pub(crate) fn judge(&self, method: Method, about: &str, who: &str) -> CallFault {
        let number = {
            let mut inner = self.lock();
            inner.calls += 1;
            inner.calls
        };
        let facts = CallFacts {
            number,
            method,
            about: about.to_owned(),
            who: who.to_owned(),
        };
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.as_mut().map_or(CallFault::None, |faults| faults(&facts))
    }
}
