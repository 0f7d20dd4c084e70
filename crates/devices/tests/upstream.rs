//! Upstream's behaviours with devices, through the crate's front door: provisioning/dra_test and the suites of
//! scheduling/dynamicresources.

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
