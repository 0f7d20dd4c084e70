//! Upstream's scheduling specs, one test for each behaviour, against the public planner.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unreachable_pub,
    reason = "the whole tree is a test"
)]

mod fixture;
mod binpacking;
mod compatibility;
mod existing_nodes;
mod in_flight;
mod preferences;
mod requirements;
mod volumes;
