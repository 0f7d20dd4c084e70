//! Puts requests that come close together into one call.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use runtime::Metrics;
use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};

use crate::Failure;

/// How requests are gathered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// The word in metrics.
    pub(super) name: &'static str,
    /// A call goes out when nothing has come for this long,
    pub(super) idle: Duration,
    /// or after this long,
    pub(super) longest: Duration,
    /// or with this many.
    pub(super) most: usize,
}

/// Does the work of a batch. The answers are in the order of the requests.
pub(super) type Work<I, O> = Box<dyn Fn(Vec<I>) -> Pin<Box<dyn Future<Output = Vec<O>> + Send>> + Send + Sync>;

/// Gathers requests.
pub(super) struct Batcher<I, O> {
    inner: Arc<Inner<I, O>>,
}

struct Inner<I, O> {
    window: Window,
    work: Work<I, O>,
    waiting: Mutex<Waiting<I, O>>,
    arrived: Notify,
    metrics: Option<Arc<Metrics>>,
}

struct Waiting<I, O> {
    requests: Vec<(I, oneshot::Sender<O>)>,
    is_gathering: bool,
}

impl<I: Send + 'static, O: Send + 'static> Batcher<I, O> {
    pub(super) fn new(window: Window, metrics: Option<Arc<Metrics>>, work: Work<I, O>) -> Self {
        Self {
            inner: Arc::new(Inner {
                window,
                work,
                metrics,
                waiting: Mutex::new(Waiting {
                    requests: Vec::new(),
                    is_gathering: false,
                }),
                arrived: Notify::new(),
            }),
        }
    }

    /// Asks. Whoever comes first gathers the others.
    pub(super) async fn ask(&self, request: I) -> Result<O, Failure> {
        let (send, receive) = oneshot::channel();
        let must_gather = {
            let mut waiting = self.inner.lock();
            waiting.requests.push((request, send));
            !std::mem::replace(&mut waiting.is_gathering, true)
        };
        if must_gather {
            let inner = Arc::clone(&self.inner);
            tokio::spawn(async move { inner.gather().await });
        } else {
            self.inner.arrived.notify_one();
        }
        receive.await.map_err(|_| Failure {
            code: String::new(),
            message: format!("a batch of {} was given up", self.inner.window.name),
            status: None,
        })
    }
}

impl<I, O> Inner<I, O> {
    fn lock(&self) -> MutexGuard<'_, Waiting<I, O>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn gather(&self) {
        let began = Instant::now();
        loop {
            let left = self.window.longest.saturating_sub(began.elapsed());
            if left.is_zero() || self.lock().requests.len() >= self.window.most {
                break;
            }
            let wait = self.window.idle.min(left);
            if tokio::time::timeout(wait, self.arrived.notified()).await.is_err() {
                break;
            }
        }
        let requests = {
            let mut waiting = self.lock();
            waiting.is_gathering = false;
            std::mem::take(&mut waiting.requests)
        };
        if let Some(metrics) = &self.metrics {
            let name = [self.window.name];
            metrics
                .cloudprovider_batcher_batch_time_seconds
                .observe(name, began.elapsed().as_secs_f64());
            let size = u32::try_from(requests.len()).unwrap_or(u32::MAX);
            metrics.cloudprovider_batcher_batch_size.observe(name, f64::from(size));
        }
        let (items, senders): (Vec<I>, Vec<_>) = requests.into_iter().unzip();
        for (answer, sender) in (self.work)(items).await.into_iter().zip(senders) {
            // Whoever asked may be gone.
            drop(sender.send(answer));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;

    use super::*;

    fn doubling(window: Window) -> (Batcher<u32, u32>, Arc<AtomicUsize>) {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let work: Work<u32, u32> = Box::new(move |numbers| {
            counted.fetch_add(1, Ordering::SeqCst);
            Box::pin(async move { numbers.into_iter().map(|number| number * 2).collect() })
        });
        (Batcher::new(window, None, work), calls)
    }

    const WINDOW: Window = Window {
        name: "test",
        idle: Duration::from_millis(100),
        longest: Duration::from_secs(1),
        most: 500,
    };

    #[tokio::test(start_paused = true)]
    async fn requests_that_come_together_make_one_call_and_each_gets_its_own_answer() {
        let (batcher, calls) = doubling(WINDOW);
        let answers = join_all((0..40).map(|number| batcher.ask(number))).await;
        let expected: Vec<_> = (0..40).map(|number| Ok(number * 2)).collect();
        assert_eq!(answers, expected);
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_steady_stream_is_cut_after_the_longest_wait() {
        let (batcher, calls) = doubling(WINDOW);
        let stream = (0..30).map(|number| {
            let batcher = &batcher;
            async move {
                tokio::time::sleep(Duration::from_millis(u64::from(number) * 90)).await;
                batcher.ask(number).await
            }
        });
        join_all(stream).await;
        assert_eq!(calls.load(Ordering::SeqCst), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_far_apart_make_a_call_each() {
        let (batcher, calls) = doubling(WINDOW);
        for number in 0..3 {
            assert_eq!(batcher.ask(number).await, Ok(number * 2));
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        assert_eq!(calls.load(Ordering::SeqCst), 3);
    }
}
