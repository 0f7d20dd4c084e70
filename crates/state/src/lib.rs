//! What the cluster is, folded from watch events and from our own writes, and given out as a Snapshot.
//!
//! Synchronous: the caller owns the lock, the time and the order of events. An event older than what is known of its
//! object is dropped, so a lagging watch cannot take back what we wrote ourselves, and a late answer cannot bring back
//! what the watch saw go.
//!
//! Beside the objects it keeps what is nowhere in the API: which machines we mean to delete, which are about to get pods,
//! how long pods have waited, and what NodePools have promised to claims that do not count yet.

mod change;
mod freshness;
mod ledger;
mod listing;
mod machines;
mod marks;
mod node_counts;
mod pod_times;
mod state;
mod store;
mod usage;

pub use change::{Change, Transition, Visitor};
pub use ledger::{Excess, LimitExceeded, Reservation};
pub use listing::Wait;
pub use marks::nomination_window;
pub use node_counts::NodeCounts;
pub use pod_times::PodTimes;
pub use state::{Kind, State, Tracked};
pub use store::Store;
