//! The autoscaler dies before and after every write of a story, and the story ends well each time.

use std::sync::{Arc, Mutex};

use runtime::settings::Steering;
use simulator::{ApiServer, Fault, RequestFacts};

use crate::{story::come_and_go, world::on_virtual_time};

/// Events only tell; losing one is nothing.
fn matters(facts: &RequestFacts) -> bool {
    facts.write.is_some() && facts.resource.plural != "events"
}

/// The writes of a story in which nothing goes wrong.
fn writes(steering: Steering) -> Vec<String> {
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
    on_virtual_time(come_and_go(steering, note, |_| {})).unwrap();
    std::mem::take(&mut *seen.lock().unwrap())
}

/// A run that dies at one write; none when it ends well.
fn failure(steering: Steering, at: usize, what: &str, fault: Fault) -> Option<String> {
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
    match on_virtual_time(come_and_go(steering, crash, |_| {})) {
        Ok(told) if told.deaths == 1 && told.claims_ever == told.nodes_ever => None,
        other => Some(format!("{fault:?} write {} ({what}): {other:?}", at + 1)),
    }
}

/// Every run that dies at one write of the story and does not end well.
fn sweep(steering: Steering) {
    let writes = &writes(steering);
    println!("{} writes: {writes:#?}", writes.len());
    let sweep = |fault: Fault| -> Vec<String> {
        let runs = writes.iter().enumerate();
        runs.filter_map(|(at, what)| failure(steering, at, what, fault))
            .collect()
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

#[test]
fn a_story_ends_well_whichever_write_the_autoscaler_dies_at() {
    sweep(Steering::default());
}

#[test]
fn a_story_ends_well_too_when_the_autoscaler_dies_binding_pods_itself() {
    sweep(Steering::Pin);
}
