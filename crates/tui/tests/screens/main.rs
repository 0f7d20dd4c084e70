//! What the terminal view shows of the cluster of `crates/dovetail/tests/fixtures/prod-us`, key by key.
// Clippy sees tests only in test functions; here everything is one.
#![allow(clippy::unwrap_used, clippy::panic)]

mod fixture;
mod frames;
mod golden;
mod keys;
mod source;
