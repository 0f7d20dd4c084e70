//! Which spec is next? The longest left, except that only one at a time may have port 8080.
//!
//! Upstream's chaos specs start a manager with default settings inside the test, and it serves its metrics there.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::spec::Spec;

/// The specs still to run, shared by all shards.
pub(crate) struct Queue {
    inner: Mutex<Inner>,
    port_is_free: Condvar,
}

struct Inner {
    specs: VecDeque<Spec>,
    port_in_use: bool,
}

impl Queue {
    /// Specs in the order in which they are to be taken.
    pub(crate) fn new(specs: Vec<Spec>) -> Self {
        let inner = Inner {
            specs: specs.into(),
            port_in_use: false,
        };
        Self {
            inner: Mutex::new(inner),
            port_is_free: Condvar::new(),
        }
    }

    /// The next spec that can run now; waits when all that are left want the port.
    pub(crate) fn take(&self) -> Option<Spec> {
        let mut inner = self.lock();
        loop {
            if let Some(spec) = inner.take() {
                return Some(spec);
            }
            if inner.specs.is_empty() {
                return None;
            }
            inner = self.port_is_free.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// `spec` has ended.
    pub(crate) fn done(&self, spec: &Spec) {
        if wants_port(spec) {
            self.lock().port_in_use = false;
            self.port_is_free.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn take(&mut self) -> Option<Spec> {
        let allowed = |spec: &Spec| !(self.port_in_use && wants_port(spec));
        let spec = self
            .specs
            .iter()
            .position(allowed)
            .and_then(|index| self.specs.remove(index))?;
        self.port_in_use |= wants_port(&spec);
        Some(spec)
    }
}

fn wants_port(spec: &Spec) -> bool {
    spec.text.starts_with("Chaos ")
}

#[cfg(test)]
mod tests {
    use super::super::Suite;
    use super::*;

    fn queue(texts: &[&str]) -> Queue {
        let spec = |text: &&str| Spec {
            suite: Suite::Regression,
            description: "Regression".to_owned(),
            text: (*text).to_owned(),
        };
        Queue::new(texts.iter().map(spec).collect())
    }

    #[test]
    fn specs_that_share_a_port_never_run_together() {
        let queue = queue(&["Chaos one", "Chaos two", "Drift"]);
        let one = queue.take().unwrap();
        assert_eq!(one.text, "Chaos one");
        assert_eq!(queue.take().unwrap().text, "Drift");
        queue.done(&one);
        assert_eq!(queue.take().unwrap().text, "Chaos two");
        assert_eq!(queue.take(), None);
    }

    #[test]
    fn shard_left_with_nothing_but_port_specs_waits_for_its_turn() {
        let queue = queue(&["Chaos one", "Chaos two"]);
        let one = queue.take().unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| queue.take());
            queue.done(&one);
            assert_eq!(waiting.join().unwrap().unwrap().text, "Chaos two");
        });
    }
}
