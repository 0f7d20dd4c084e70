//! A real Kubernetes control plane as plain processes, for tests.

pub mod client;
mod deadline;
mod error;
pub mod gomod;
pub mod manifest;

pub use client::{Client, Response};
pub use deadline::Deadline;
pub use error::{Error, Result};
