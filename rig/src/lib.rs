//! A real Kubernetes control plane as plain processes, for tests.
//!
//! ```no_run
//! # fn main() -> rig::Result<()> {
//! let cluster = rig::Cluster::builder().kwok(Vec::new()).start()?;
//! let nodes = cluster.client().get("/api/v1/nodes")?;
//! # Ok(())
//! # }
//! ```
//!
//! What it costs: minutes once per version (see [`build`]), then a few seconds and about 500 MB per cluster.

pub mod build;
pub mod cache;
pub mod client;
mod cluster;
mod deadline;
mod deployment;
mod error;
pub mod gomod;
mod guard;
pub mod karpenter;
mod kwok;
pub mod manifest;
pub mod moto;
mod pki;
pub mod ports;
mod process;
pub mod reference;
pub mod tool;

pub use client::{Client, Response};
pub use cluster::{Builder, Cluster};
pub use deadline::Deadline;
pub use deployment::{Controller, Deployment};
pub use error::{Error, Result};
pub use process::Process;
