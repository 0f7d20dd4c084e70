//! What the state keeps beside the objects: usage and counts of NodePools, promises, marks, times of pods.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ledger;
mod marks;
mod objects;
mod pods;
mod usage;
