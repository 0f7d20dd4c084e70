//! When a registered node is opened to pods.

use jiff::Timestamp;
use model::object::NodeClaim;
use state::State;

/// Whether the taint that keeps pods off a node may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Release {
    /// It may.
    Now,
    /// It stays for a reason, until a moment or until something changes.
    Wait(String, Timestamp),
}

/// Whether a claim's node may be opened to pods.
pub(super) fn may_release(_claim: &NodeClaim, _state: &State, _now: Timestamp) -> Release {
    Release::Now
}
