//! Observe, decide, act: one folder per controller.
//!
//! A reconcile looks at the [`Cluster`] (what the watches and our own writes have told), decides with a pure function,
//! and acts through it. Nothing else writes to the cluster or the cloud.

mod cluster;
mod controller;

pub use cluster::{Cluster, Parts};
pub use controller::{Controller, Next, Problem, run};
