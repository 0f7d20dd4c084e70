//! The autoscaler dies before and after every write of a replacement, and the node is replaced all the same, once.

use std::sync::{Arc, Mutex};

use serde_json::json;
use simulator::{ApiServer, Fault, RequestFacts};

use crate::{
    drift::{hasty, outdate, outdated},
    world::{MINUTE, World, on_virtual_time},
};

/// Events only tell; losing one is nothing.
fn matters(facts: &RequestFacts) -> bool {
    facts.write.is_some() && facts.resource.plural != "events"
}

/// An outdated node is replaced. `trouble` begins when it has become outdated. What a death leaves over is empty, and goes.
async fn renewal(trouble: impl FnOnce(&ApiServer)) -> Result<usize, String> {
    let disruption =
        json!({"consolidateAfter": "1m", "consolidationPolicy": "WhenEmpty", "budgets": [{"nodes": "100%"}]});
    let mut world = World::new(&disruption);
    let mut life = world.with_lonely(1).await;
    outdate(&world);
    trouble(&world.server);
    life.pass(&world, 2 * MINUTE).await;
    world.server.clear_faults();
    life.until(&world, 40 * MINUTE, |world| outdated(world, 1, 1)).await?;
    life.pass(&world, 3 * MINUTE).await;
    let mut wrong = outdated(&world, 1, 1);
    wrong.extend(hasty(&world.history()));
    if wrong.is_empty() {
        Ok(life.deaths)
    } else {
        Err(wrong.join("; "))
    }
}

fn writes() -> Vec<String> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noting = Arc::clone(&seen);
    let note = move |server: &ApiServer| {
        server.set_faults(move |facts| {
            if matters(facts) {
                let what = format!("{:?} {} {}", facts.verb, facts.resource.plural, facts.subresource);
                noting.lock().unwrap().push(what);
            }
            Fault::None
        });
    };
    on_virtual_time(renewal(note)).unwrap();
    std::mem::take(&mut *seen.lock().unwrap())
}

/// A run that dies at one write; none when it ends well.
fn failure(at: usize, what: &str, fault: Fault) -> Option<String> {
    let mut count = 0;
    let crash = move |server: &ApiServer| {
        server.set_faults(move |facts| {
            count += usize::from(matters(facts));
            if matters(facts) && count == at + 1 {
                fault
            } else {
                Fault::None
            }
        });
    };
    match on_virtual_time(renewal(crash)) {
        Ok(1) => None,
        other => Some(format!("{fault:?} write {} ({what}): {other:?}", at + 1)),
    }
}

#[test]
fn a_node_is_replaced_whichever_write_the_autoscaler_dies_at() {
    let writes = &writes();
    println!("{} writes: {writes:#?}", writes.len());
    let sweep = |fault: Fault| -> Vec<String> {
        let runs = writes.iter().enumerate();
        runs.filter_map(|(at, what)| failure(at, what, fault)).collect()
    };
    let failed: Vec<String> = std::thread::scope(|scope| {
        let sweeps = [Fault::CrashBefore, Fault::CrashAfter].map(|fault| scope.spawn(move || sweep(fault)));
        sweeps.into_iter().flat_map(|sweep| sweep.join().unwrap()).collect()
    });
    let runs = 2 * writes.len();
    assert!(
        failed.is_empty(),
        "{} of {runs} runs failed:\n{}",
        failed.len(),
        failed.join("\n")
    );
}
