//! Where planning runs: on a few threads of its own, so that the lease, the probes and the watches never wait for a plan.

use std::{
    any::Any,
    num::NonZero,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

use tokio::sync::oneshot;

/// Runs work that computes.
#[derive(Debug, Clone, Copy)]
pub enum Engine {
    /// On the engine's threads, which all engines of the process share.
    Threaded,
    /// At once, where it is asked for: for tests, whose order must not depend on threads.
    Inline,
}

/// The work ended without an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a computation stopped in the middle: {message}")]
pub struct Panicked {
    /// What the panic said.
    pub message: String,
}

/// Plans are made one after the other, and a second thread serves simulations beside them; more would only take turns.
const MOST_THREADS: usize = 4;

type Job = Box<dyn FnOnce() + Send>;

static POOL: OnceLock<Pool> = OnceLock::new();

/// Threads that come when there is more to do than those there are can do: each keeps the memory its largest plan took.
struct Pool {
    jobs: mpsc::Sender<Job>,
    received: Arc<Mutex<mpsc::Receiver<Job>>>,
    /// Jobs that wait or run.
    open: Arc<AtomicUsize>,
    /// Threads there are.
    threads: Mutex<usize>,
}

impl Engine {
    /// The answer of some work. Work whose asker has gone away before it began is not done.
    pub async fn run<R: Send + 'static>(&self, work: impl FnOnce() -> R + Send + 'static) -> Result<R, Panicked> {
        match self {
            Self::Inline => caught(work),
            Self::Threaded => threaded(work).await,
        }
    }
}

async fn threaded<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Result<R, Panicked> {
    let (answer, answered) = oneshot::channel();
    let job: Job = Box::new(move || {
        if !answer.is_closed() {
            let _ = answer.send(caught(work));
        }
    });
    POOL.get_or_init(Pool::new).take_on(job);
    answered.await.unwrap_or_else(|_| {
        Err(Panicked {
            message: "its thread is gone".to_owned(),
        })
    })
}

fn caught<R>(work: impl FnOnce() -> R) -> Result<R, Panicked> {
    // What the work had borrowed is dropped with it, so nothing half-changed is seen again.
    catch_unwind(AssertUnwindSafe(work)).map_err(|cause| Panicked { message: said(&*cause) })
}

fn said(cause: &(dyn Any + Send)) -> String {
    let text = cause.downcast_ref::<&str>().copied();
    let text = text.or_else(|| cause.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("it panicked without a message").to_owned()
}

impl Pool {
    fn new() -> Self {
        let (jobs, received) = mpsc::channel();
        Self {
            jobs,
            received: Arc::new(Mutex::new(received)),
            open: Arc::default(),
            threads: Mutex::new(0),
        }
    }

    /// Sees to it that a job is done; here and now when the system gives us not a single thread.
    fn take_on(&self, job: Job) {
        let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
        let there = self.hire(open);
        let finished = Arc::clone(&self.open);
        let job: Job = Box::new(move || {
            job();
            finished.fetch_sub(1, Ordering::SeqCst);
        });
        if there == 0 {
            job();
        } else if let Err(mpsc::SendError(job)) = self.jobs.send(job) {
            job();
        }
    }

    /// Starts a thread if there are fewer than jobs and than there may be. Returns how many there are.
    fn hire(&self, open: usize) -> usize {
        let most = thread::available_parallelism()
            .map_or(1, NonZero::get)
            .min(MOST_THREADS);
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        if *threads < most.min(open) {
            let received = Arc::clone(&self.received);
            let thread = thread::Builder::new().name("engine".to_owned());
            *threads += usize::from(thread.spawn(move || work_off(&received)).is_ok());
        }
        *threads
    }
}

fn work_off(jobs: &Mutex<mpsc::Receiver<Job>>) {
    loop {
        let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            Ok(job) => job(),
            Err(mpsc::RecvError) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_engine_answers_and_tells_what_a_panic_said() {
        for engine in [Engine::Inline, Engine::Threaded] {
            assert_eq!(engine.run(|| 6 * 7).await, Ok(42));
            let stopped = engine.run(|| -> u8 { panic!("no offering {}", 3) }).await;
            assert_eq!(
                stopped.map_err(|panicked| panicked.to_string()),
                Err("a computation stopped in the middle: no offering 3".to_owned())
            );
        }
    }

    #[tokio::test]
    async fn threads_survive_more_panics_than_there_are_threads() {
        for _ in 0..MOST_THREADS * 2 {
            let stopped = Engine::Threaded.run(|| -> u8 { panic!("again") }).await;
            assert!(stopped.is_err());
        }
        assert_eq!(Engine::Threaded.run(|| "alive").await, Ok("alive"));
    }

    #[tokio::test]
    async fn work_runs_on_a_thread_of_the_engine() {
        let name = Engine::Threaded
            .run(|| thread::current().name().map(str::to_owned))
            .await;
        assert_eq!(name, Ok(Some("engine".to_owned())));
    }
}
