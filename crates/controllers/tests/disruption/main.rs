//! Nodes that are empty, outdated, broken or too dear go, on virtual time: what goes, what stays, and in which order.
#![allow(clippy::float_cmp, reason = "counters count whole things")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "the whole target is a test"
)]

mod crash;
mod deletion_cost;
mod drift;
mod empty;
mod expiry;
mod held;
#[path = "../whole/life.rs"]
mod life;
mod repair;
mod scale_in;
mod world;
