//! The autoscaler dies before and after every write of a story, and the story ends well each time.

use std::sync::{Arc, Mutex};

use simulator::{ApiServer, Fault, RequestFacts};

use crate::{story::come_and_go, world::on_virtual_time};

/// Events only tell; losing one is nothing.
fn matters(facts: &RequestFacts) -> bool {
    facts.write.is_some() && facts.resource.plural != "events"
}

/// The writes of a story in which nothing goes wrong.
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
    on_virtual_time(come_and_go(note, |_| {})).unwrap();

    seen.lock().unwrap().clone()
}

#[test]
fn a_story_ends_well_whichever_write_the_autoscaler_dies_at() {
    let writes = writes();
    println!("{} writes: {writes:#?}", writes.len());
    let mut failed = Vec::new();
    for (at, what) in writes.iter().enumerate() {
        for fault in [Fault::CrashBefore, Fault::CrashAfter] {
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
            let told = on_virtual_time(come_and_go(crash, |_| {}));
            match told {
                Ok(told) if told.deaths == 1 && told.claims_ever == told.nodes_ever => {}
                other => failed.push(format!("{fault:?} write {} ({what}): {other:?}", at + 1)),
            }
        }
    }
    assert!(
        failed.is_empty(),
        "{} of {} runs failed:\n{}",
        failed.len(),
        2 * writes.len(),
        failed.join("\n")
    );
}
