//! The suite every provider must pass.

use std::time::Duration;

use cloud::conformance::{Fault, Harness, failures};

use crate::world::World;

#[tokio::test]
async fn the_launch_side_does_what_any_provider_must() {
    let failures = failures(|| World::new("us-west-2")).await;
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[tokio::test]
async fn every_fault_of_the_suite_can_be_had_here() {
    let world = World::new("ap-southeast-2").await;
    let while_ = Duration::from_secs(1);
    for fault in [
        Fault::LostResponse,
        Fault::PartialFailure,
        Fault::ReadLag(while_),
        Fault::Throttled(while_),
        Fault::OutOfStock,
    ] {
        assert!(world.inject(fault).await, "{fault:?}");
    }
}
