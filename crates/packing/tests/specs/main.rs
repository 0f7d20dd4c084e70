//! Upstream's scheduling specs, one test for each behaviour, against the public planner.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::needless_pass_by_value,
    unreachable_pub,
    reason = "the whole tree is a test"
)]

mod binpacking;
mod buffers;
mod claims;
mod compatibility;
mod daemons;
mod default_constraints;
mod deleting_nodes;
mod device_claims;
mod device_shares;
mod existing_nodes;
mod fixture;
mod in_flight;
mod instance_selection;
mod limits;
mod min_values;
mod offers;
mod pod_affinity;
mod pools;
mod preferences;
mod promises;
mod provisioning;
mod requirements;
mod reservations;
mod reserved;
mod spread;
mod spread_policies;
mod taints;
mod volumes;
