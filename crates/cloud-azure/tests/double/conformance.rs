//! The suite every provider must pass, with every request of it checked.

use std::time::Duration;

use cloud::conformance::{Fault, Harness, all};

use crate::world::{MODES, World};

#[tokio::test(start_paused = true)]
async fn over_http_the_provider_does_what_any_provider_must_and_keeps_to_azures_schemas() {
    run_in("aksscriptless").await;
}

#[tokio::test(start_paused = true)]
async fn with_the_node_bootstrapping_service_it_does_too() {
    run_in("bootstrappingclient").await;
}

#[tokio::test(start_paused = true)]
async fn with_machines_of_an_agent_pool_it_does_too() {
    run_in("aksmachineapi").await;
}

#[tokio::test(start_paused = true)]
async fn with_machines_of_an_agent_pool_in_batches_it_does_too() {
    run_in("aksmachineapiheaderbatch").await;
}

async fn run_in(mode: &str) {
    let mut failures = Vec::new();
    for case in all() {
        let world = World::in_mode(mode).await;
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
    let while_ = Duration::from_secs(1);
    for mode in MODES {
        let world = World::in_mode(mode).await;
        for fault in [
            Fault::LostResponse,
            Fault::PartialFailure,
            Fault::ReadLag(while_),
            Fault::Throttled(while_),
            Fault::OutOfStock,
        ] {
            assert!(world.inject(fault).await, "{mode} {fault:?}");
        }
    }
}
