//! Everything that waits: the API client, watches, the lease, events, metrics, logs, settings, queues, the clock.
//!
//! Nothing here knows what the product decides. Everything that happens is bounded: a call has a deadline, a queue a
//! size, a retry a count.

pub mod api;
pub mod clock;
#[cfg(test)]
mod double;
pub mod egress;
pub mod engine;
pub mod event;
pub mod http;
pub mod keepsake;
pub mod lease;
pub mod log;
pub mod metrics;
pub mod queue;
pub mod random;
pub mod rate;
pub mod remembered;
pub mod rounds;
pub mod settings;
pub mod standstill;
pub mod watch;

pub use api::{Api, ApiError, Delete, Patch, Resource};
pub use clock::Clock;
pub use engine::Engine;
pub use event::{Event, EventKind, Recorder};
pub use metrics::Metrics;
pub use settings::{Notice, Settings, SettingsError};
