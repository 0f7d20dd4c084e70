//! Seeded workloads: the same inputs for us and for the reference, as snapshot files (`docs/snapshot-file.md`).
//!
//! Everything here is a pure function of its arguments: no clock, no environment, no randomness but seeded ones. The
//! crate knows Kubernetes objects only as JSON, so that neither engine's types shape what both are given.

pub mod catalogue;
pub mod consolidation;
pub mod diverse;
mod fleet;
pub mod gorand;
pub mod mixed;
pub mod object;
pub mod performance;
pub mod placed;
pub mod printed;
pub mod quantity;
pub mod random;
pub mod regression;
pub mod rng;
pub mod shape;
pub mod snapshot;
pub mod steady;

pub use shape::Shape;
pub use snapshot::Snapshot;
