//! The whole autoscaler, in a cluster in this process, on virtual time: what it reaches, and whether it reaches it too
//! when it dies at any step and when the API server misbehaves.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "the whole target is a test"
)]

mod bad_days;
mod chaos;
mod crash;
mod invariant;
mod life;
mod steering;
mod story;
mod world;
