//! Observe, decide, act: one folder per controller.
//!
//! A reconcile looks at the [`Cluster`] (what the watches and our own writes have told), decides with a pure function,
//! and acts through it. Nothing else writes to the cluster or the cloud.

pub mod capacity_buffer;
pub mod catalog;
mod cluster;
mod conditions;
mod controller;
pub mod disruption;
mod fence;
pub mod flight;
pub mod interruption;
pub mod mutation;
pub mod node;
pub mod node_claim;
pub mod node_overlay;
pub mod node_pool;
pub mod observability;
mod patch;
pub mod provisioning;
mod records;
pub mod static_capacity;
pub mod steering;
mod team;
pub mod watches;

pub use cluster::{Cluster, Parts};
pub use controller::{Controller, Next, Problem, Work, current, run};
pub use fence::fence;
pub use records::Keeper;
pub use team::all;
