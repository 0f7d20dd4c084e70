//! Our process may die at any moment: the next one goes on, keeps the order and leaks nothing.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use simulator::Fault;

use super::{TIERS, one_of_each_tier, world::World};

/// More writes than the end of a node takes.
const WRITES: u64 = 40;

/// Ends a node with a crash at one of the writes, and another process that goes on. False when there was no such write.
async fn survives(write: u64, fault: Fault) -> bool {
    let mut world = World::new();
    world.node("n");
    one_of_each_tier(&world, "n");
    let struck = Arc::new(AtomicBool::new(false));
    let strikes = Arc::clone(&struck);
    world.server.set_faults(move |request| {
        let hits = request.write == Some(write) && !strikes.swap(true, Ordering::Relaxed);
        if hits { fault } else { Fault::None }
    });
    world.start();
    world.server.delete("Node", "n").unwrap();
    let dead = {
        let world = &world;
        tokio::select! {
            () = world.server.crashed() => true,
            () = world.until_released("n") => false,
        }
    };
    if dead {
        world.kill();
        world.start();
        world.until_released("n").await;
    }
    let mut order = world.evicted();
    order.dedup();
    assert_eq!(order, TIERS, "evictions after {fault:?} at write {write}");
    assert!(!world.cloud.has("n"), "machine after {fault:?} at write {write}");
    assert!(world.server.list("Pod").is_empty());
    for kind in ["Drained", "VolumesDetached", "InstanceTerminating"] {
        let expected = Some(("True".to_owned(), kind.to_owned()));
        assert_eq!(
            world.condition("n", kind),
            expected,
            "{kind} after {fault:?} at write {write}"
        );
    }
    struck.load(Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn crash_around_any_write_keeps_the_order_and_leaks_nothing() {
    for fault in [Fault::CrashBefore, Fault::CrashAfter] {
        let mut write = 1;
        while survives(write, fault).await {
            write += 1;
            assert!(write < WRITES, "the end of a node takes fewer writes");
        }
        assert!(write > 7, "only {} writes were struck", write - 1);
    }
}

#[tokio::test(start_paused = true)]
async fn lost_answer_to_any_write_or_conflict_at_it_keeps_the_order_and_leaks_nothing() {
    for fault in [Fault::LoseAnswer, Fault::Fail(409)] {
        let mut write = 1;
        while survives(write, fault).await {
            write += 1;
            assert!(write < WRITES, "the end of a node takes fewer writes");
        }
    }
}
