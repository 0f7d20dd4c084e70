//! The provider against an Azure in memory and an API server in this process.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up fails")]
#![expect(clippy::needless_pass_by_value, reason = "manifests are written where they are used")]

mod asked;
#[path = "../cluster/mod.rs"]
mod cluster;
mod conformance;
mod drift;
mod in_place;
mod launch;
mod memory;
mod node_class;
mod offers;
mod world;
