//! The provider over HTTP against the double of Resource Manager, which checks every request against Azure's schemas.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up fails")]
#![expect(clippy::needless_pass_by_value, reason = "manifests are written where they are used")]

#[path = "../cluster/mod.rs"]
mod cluster;
mod conformance;
mod identity;
mod journey;
mod modes;
mod trouble;
mod wire;
mod world;
