//! The page: a cluster as a live picture for people. Read-only, one document, streamed to whoever watches.
//!
//! Every figure is computed by `insight`; this crate decides when to look, what of it has changed since, and who may see
//! it. It runs on threads of its own that yield to everybody else's, and computes only while somebody watches.

pub mod access;
mod asset;
mod deep;
mod delta;
mod desk;
mod guard;
mod hub;
mod look;
mod page;
mod route;
mod seen;
mod tile;
mod trend;
mod worker;

pub use access::{Access, Reviewer, Verdict};
pub use delta::Document;
pub use page::{Page, Settings};
pub use seen::{Act, Answers, Asked, Eye, Mode, Refused, Seen, Stage, Title};
