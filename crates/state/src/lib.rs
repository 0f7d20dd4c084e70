//! What the cluster is, folded from watch events and from our own writes, and given out as a Snapshot.
//!
//! Synchronous: the caller owns the lock, the time and the order of events. An event older than what is known of its
//! object is dropped, so a lagging watch cannot take back what we wrote ourselves.

mod change;
mod state;
mod store;

pub use change::{Change, Transition};
pub use state::{Kind, State, Tracked};
pub use store::Store;
