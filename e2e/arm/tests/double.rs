//! Does the double of Azure Resource Manager keep the contract, and does every knob do what it says?
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a helper of a test fails as the test does"
)]

#[path = "double/allocation.rs"]
mod allocation;
#[path = "double/client.rs"]
mod client;
#[path = "double/contract.rs"]
mod contract;
#[path = "double/faults.rs"]
mod faults;
#[path = "double/graph.rs"]
mod graph;
#[path = "double/laws.rs"]
mod laws;
#[path = "double/lifecycle.rs"]
mod lifecycle;
#[path = "double/machines.rs"]
mod machines;
#[path = "double/operations.rs"]
mod operations;
#[path = "double/outside.rs"]
mod outside;
#[path = "double/reads.rs"]
mod reads;
#[path = "double/tokens.rs"]
mod tokens;
#[path = "double/tour.rs"]
mod tour;
