//! Where planning runs: on threads of its own, so that the lease, the probes and the watches never wait for a plan.

use tokio::sync::oneshot;

/// Runs work that computes.
#[derive(Debug, Clone, Copy)]
pub enum Engine {
    /// On a thread of its own.
    Threaded,
    /// At once, where it is asked for: for tests, whose order must not depend on threads.
    Inline,
}

/// The work ended without an answer: it panicked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the planner stopped while computing; the panic is in the log")]
pub struct Panicked;

impl Engine {
    /// The answer of some work.
    pub async fn run<R: Send + 'static>(&self, work: impl FnOnce() -> R + Send + 'static) -> Result<R, Panicked> {
        match self {
            Self::Inline => Ok(work()),
            Self::Threaded => {
                let (answer, answered) = oneshot::channel();
                let thread = std::thread::Builder::new().name("engine".to_owned());
                let spawned = thread.spawn(move || {
                    let _ = answer.send(work());
                });
                drop(spawned);
                answered.await.map_err(|_| Panicked)
            }
        }
    }
}
