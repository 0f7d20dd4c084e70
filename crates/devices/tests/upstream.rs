//! Upstream's behaviours with devices, through the crate's front door: provisioning/dra_test and the suites of
//! scheduling/dynamicresources.
#![allow(clippy::unwrap_used, reason = "a fixture that cannot be built fails its test")]
#![allow(clippy::needless_pass_by_value, reason = "fixtures are written where they are used")]

#[path = "upstream/allocator.rs"]
mod allocator;
#[path = "upstream/capacity.rs"]
mod capacity;
#[path = "upstream/cluster.rs"]
mod cluster;
#[path = "upstream/counters.rs"]
mod counters;
#[path = "upstream/provisioning.rs"]
mod provisioning;
#[path = "upstream/requests.rs"]
mod requests;
#[path = "upstream/topology.rs"]
mod topology;
