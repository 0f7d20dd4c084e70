//! The suite every provider must pass.

use std::time::Duration;

use cloud::conformance::{Fault, Harness, failures};

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn the_provider_does_what_any_provider_must() {
    let failures = failures(World::new).await;
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn every_fault_of_the_suite_can_be_had_here() {
    let world = World::new().await;
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
