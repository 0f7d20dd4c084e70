//! The suite every provider must pass, with every request of it checked.

use std::time::Duration;

use cloud::conformance::{Fault, Harness, all};

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn over_http_the_provider_does_what_any_provider_must_and_keeps_to_azures_schemas() {
    let mut failures = Vec::new();
    for case in all() {
        let world = World::new().await;
        let mut said = (case.run)(&world).await;
        // Azure keeps the interface of a machine that it could not allocate for three minutes; then it is swept.
        tokio::time::sleep(Duration::from_mins(4)).await;
        world.run_for(Duration::from_secs(20)).await;
        if let Some(fault) = world.fault_found() {
            said = said.and(Err(fault));
        }
        if let Err(reason) = said {
            failures.push(format!("{}: {reason}", case.name));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn the_double_has_every_fault_of_the_suite() {
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
