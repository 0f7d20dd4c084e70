//! Where the page computes: on a thread that yields to all others, one thing at a time, with a short queue.
//!
//! Plans have threads of their own. If the page used them, a look at a large cluster would make a plan wait; here it can
//! only take the time that nobody else wants.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};

use tokio::sync::oneshot;

/// How much less urgent than everything else its work is.
const NICE: i32 = 5;

type Job = Box<dyn FnOnce() + Send>;

/// A thread that computes.
#[derive(Debug, Clone)]
pub(crate) struct Worker {
    jobs: SyncSender<Job>,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// Too many wait already.
    Busy,
    /// The work stopped in the middle.
    Stopped,
}

impl Worker {
    /// Starts one that lets so many jobs wait.
    pub(crate) fn start(name: &str, waiting: usize) -> io::Result<Self> {
        let (jobs, received) = sync_channel(waiting);
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || work_off(&received))?;
        Ok(Self { jobs })
    }

    /// The answer of some work. Work whose asker has gone away before it began is not done.
    pub(crate) async fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, NoAnswer> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move || {
            if !answer.is_closed() {
                let _ = answer.send(work());
            }
        });
        self.jobs.try_send(job).map_err(|_| NoAnswer::Busy)?;
        answered.await.map_err(|_| NoAnswer::Stopped)
    }
}

fn work_off(jobs: &Receiver<Job>) {
    // Where the system does not allow it, the work is as urgent as any.
    let _ = rustix::process::nice(NICE);
    while let Ok(job) = jobs.recv() {
        // What the job had borrowed is dropped with it, so nothing half-changed is seen again.
        if catch_unwind(AssertUnwindSafe(job)).is_err() {
            tracing::error!("a computation for the page stopped in the middle");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[tokio::test]
    async fn a_worker_answers_and_survives_work_that_stops() {
        let worker = Worker::start("test", 2).unwrap();
        assert_eq!(worker.run(|| 6 * 7).await, Ok(42));
        assert_eq!(worker.run(|| -> u8 { panic!("no") }).await, Err(NoAnswer::Stopped));
        assert_eq!(worker.run(|| 1).await, Ok(1));
    }

    #[tokio::test]
    async fn who_comes_when_the_queue_is_full_is_sent_away_at_once() {
        let worker = Worker::start("test", 1).unwrap();
        let (release, released) = channel::<()>();
        let (begun, beginning) = oneshot::channel();
        let first = worker.run(move || {
            let _ = begun.send(());
            released.recv().is_ok()
        });
        let mut first = Box::pin(first);
        // Polled once each, so that they are in the queue.
        tokio::select! {
            _ = &mut first => panic!("it waits to be released"),
            begun = beginning => begun.unwrap(),
        }
        let second = worker.run(|| 2);
        let mut second = Box::pin(second);
        assert!(futures_poll(&mut second).await);
        assert_eq!(worker.run(|| 3).await, Err(NoAnswer::Busy));
        release.send(()).unwrap();
        assert_eq!(first.await, Ok(true));
        assert_eq!(second.await, Ok(2));
    }

    /// Polls a future once; true when it is still waiting.
    async fn futures_poll<F: Future + Unpin>(future: &mut F) -> bool {
        std::future::poll_fn(|context| {
            let waits = std::pin::Pin::new(&mut *future).poll(context).is_pending();
            std::task::Poll::Ready(waits)
        })
        .await
    }
}
