//! The latest of something: whoever is slow misses what came in between, and nobody waits for whoever is slow.

use std::sync::{Condvar, Mutex, PoisonError};

/// Room for one.
#[derive(Debug)]
pub(super) struct Latest<T> {
    room: Mutex<Option<T>>,
    came: Condvar,
}

impl<T> Default for Latest<T> {
    fn default() -> Self {
        Self {
            room: Mutex::new(None),
            came: Condvar::new(),
        }
    }
}

impl<T> Latest<T> {
    /// Puts one in the place of what is there.
    pub(super) fn put(&self, one: T) {
        *self.room.lock().unwrap_or_else(PoisonError::into_inner) = Some(one);
        self.came.notify_one();
    }

    /// Waits for one, and takes it.
    pub(super) fn take(&self) -> T {
        let mut room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(one) = room.take() {
                return one;
            }
            room = self.came.wait(room).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_late_gets_the_latest() {
        let latest = Latest::default();
        latest.put(1);
        latest.put(2);
        assert_eq!(latest.take(), 2);
        std::thread::scope(|scope| {
            let taken = scope.spawn(|| latest.take());
            latest.put(3);
            assert_eq!(taken.join().unwrap(), 3);
        });
    }
}
