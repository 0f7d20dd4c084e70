//! A process that stands still for a while, as one that is stopped does, and then goes on: for tests, on virtual time.
//!
//! Nothing in it is polled meanwhile. Its timers run out all the same, and what they woke goes on with everything else:
//! a lease that was lost, a deadline that has passed. Whoever spawns a task that belongs to the process spawns it
//! [`inherited`]; outside of tests nobody ever stands still, and that is all there is to it.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Waker},
};

tokio::task_local! {
    static CURRENT: Standstill;
}

/// A future that can be spawned.
pub type Spawnable<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Stops a process, and lets it go on.
#[derive(Clone, Default)]
pub struct Standstill(Arc<Mutex<Stopped>>);

#[derive(Default)]
struct Stopped {
    is_stopped: bool,
    /// Who was woken meanwhile.
    woken: Vec<Waker>,
}

impl Standstill {
    /// From now on nothing moves.
    pub fn stop(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_stopped = true;
    }

    /// Everything goes on.
    pub fn go_on(&self) {
        let woken = {
            let mut stopped = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            stopped.is_stopped = false;
            std::mem::take(&mut stopped.woken)
        };
        for waker in woken {
            waker.wake();
        }
    }

    /// Work that stands still with the process, and all that it spawns.
    pub fn keep<T: 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Spawnable<T> {
        let kept = Kept {
            standstill: self.clone(),
            work: Box::pin(work),
        };
        Box::pin(CURRENT.scope(self.clone(), kept))
    }

    /// Whether nothing may move; if so, who asks is woken when it may.
    fn holds(&self, waker: &Waker) -> bool {
        let mut stopped = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if stopped.is_stopped && !stopped.woken.iter().any(|known| known.will_wake(waker)) {
            stopped.woken.push(waker.clone());
        }
        stopped.is_stopped
    }
}

/// Work that stands still with the process of whoever spawns it.
pub fn inherited<T: 'static>(work: impl Future<Output = T> + Send + 'static) -> Spawnable<T> {
    match CURRENT.try_with(Clone::clone) {
        Ok(standstill) => standstill.keep(work),
        Err(_) => Box::pin(work),
    }
}

struct Kept<T> {
    standstill: Standstill,
    work: Spawnable<T>,
}

impl<T> Future for Kept<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        if self.standstill.holds(cx.waker()) {
            return Poll::Pending;
        }
        self.work.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicU32, Ordering},
        time::Duration,
    };

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_a_stopped_process_spawned_stands_still_too_and_then_goes_on() {
        let (standstill, steps) = (Standstill::default(), Arc::new(AtomicU32::new(0)));
        let counted = Arc::clone(&steps);
        let process = standstill.keep(async move {
            let inner = tokio::spawn(inherited(async move {
                for _ in 0..6 {
                    tokio::time::sleep(Duration::from_secs(10)).await;
                    counted.fetch_add(1, Ordering::Relaxed);
                }
            }));
            let _ = inner.await;
        });
        let process = tokio::spawn(process);
        tokio::time::sleep(Duration::from_secs(25)).await;
        assert_eq!(steps.load(Ordering::Relaxed), 2);
        standstill.stop();
        tokio::time::sleep(Duration::from_mins(10)).await;
        assert_eq!(steps.load(Ordering::Relaxed), 2);
        standstill.go_on();
        // The timer that ran out meanwhile counts, those after it begin only now.
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(steps.load(Ordering::Relaxed), 3);
        process.await.unwrap();
        assert_eq!(steps.load(Ordering::Relaxed), 6);
    }
}
