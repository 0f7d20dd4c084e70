//! Our process may die at any moment, and a claim may be deleted at any moment: one machine for each claim, none left over.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde_json::json;
use simulator::Fault;

use super::world::World;

/// More writes than the life of a claim takes.
const WRITES: u64 = 60;

/// Lets a fault strike one write, counted from now on. Says whether it did.
fn strike(world: &World, write: u64, fault: Fault) -> Arc<AtomicBool> {
    let struck = Arc::new(AtomicBool::new(false));
    let (strikes, from) = (Arc::clone(&struck), world.server.writes());
    world.server.set_faults(move |request| {
        let hits = request.write == Some(from + write) && !strikes.swap(true, Ordering::Relaxed);
        if hits { fault } else { Fault::None }
    });
    struck
}

/// Waits for something; if our process dies first, another one goes on.
async fn with_a_successor(world: &mut World, is: impl AsyncFn(&World)) {
    let dead = {
        let world = &*world;
        tokio::select! {
            () = world.server.crashed() => true,
            () = is(world) => false,
        }
    };
    if dead {
        world.kill();
        world.start();
        is(world).await;
    }
}

/// Launches and ends a claim with a fault at one of the writes. False when there was no such write.
async fn survives(write: u64, fault: Fault) -> bool {
    let mut world = World::new();
    world.claim("a", &json!({}));
    let struck = strike(&world, write, fault);
    world.start();
    with_a_successor(&mut world, async |world| world.until_ready("a").await).await;
    assert_eq!(
        world.cloud.machines().len(),
        1,
        "machines after {fault:?} at write {write}"
    );
    let nodes = world.server.list("Node");
    assert_eq!(nodes.len(), 1);
    assert_eq!(nodes[0]["metadata"]["labels"]["karpenter.sh/initialized"], "true");
    world.server.delete("NodeClaim", "a").unwrap();
    with_a_successor(&mut world, async |world| world.until_nothing_is_left().await).await;
    struck.load(Ordering::Relaxed)
}

async fn survives_all(fault: Fault) {
    let mut write = 1;
    while survives(write, fault).await {
        write += 1;
        assert!(write < WRITES, "the life of a claim takes fewer writes");
    }
    assert!(write > 8, "only {} writes were struck", write - 1);
}

#[tokio::test(start_paused = true)]
async fn a_crash_before_any_write_leaves_one_machine_and_then_none() {
    survives_all(Fault::CrashBefore).await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_leaves_one_machine_and_then_none() {
    survives_all(Fault::CrashAfter).await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_any_write_leaves_one_machine_and_then_none() {
    survives_all(Fault::LoseAnswer).await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_write_is_written_again() {
    survives_all(Fault::Fail(500)).await;
}

/// Deletes a claim while our process is dead, after a crash at one of the writes of its launch.
async fn is_cleaned_up(write: u64, fault: Fault) -> bool {
    let mut world = World::new();
    world.claim("a", &json!({}));
    let struck = strike(&world, write, fault);
    world.start();
    {
        let world = &world;
        tokio::select! {
            () = world.server.crashed() => {}
            () = world.until_ready("a") => {}
        }
    }
    world.kill();
    world.server.clear_faults();
    world.server.delete("NodeClaim", "a").unwrap();
    world.start();
    world.until_nothing_is_left().await;
    struck.load(Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn a_claim_deleted_while_nobody_looked_leaves_nothing_in_any_phase() {
    for fault in [Fault::CrashBefore, Fault::CrashAfter] {
        let mut write = 1;
        while is_cleaned_up(write, fault).await {
            write += 1;
            assert!(write < WRITES, "a launch takes fewer writes");
        }
        assert!(write > 4, "only {} writes were struck", write - 1);
    }
}

/// Deletes a claim right after one of the writes of its launch. False when there was no such write.
async fn goes_after(write: u64) -> bool {
    let mut world = World::new();
    world.claim("a", &json!({}));
    world.start();
    let mut has_come = false;
    world
        .until("the write, or no more of them", |server| {
            has_come = server.writes() >= write;
            has_come
                || world
                    .condition("a", "Ready")
                    .is_some_and(|(status, _)| status == "True")
        })
        .await;
    world.server.delete("NodeClaim", "a").unwrap();
    world.until_nothing_is_left().await;
    has_come
}

#[tokio::test(start_paused = true)]
async fn a_claim_deleted_in_any_phase_leaves_nothing() {
    let mut write = 0;
    while goes_after(write).await {
        write += 1;
        assert!(write < WRITES, "a launch takes fewer writes");
    }
}
