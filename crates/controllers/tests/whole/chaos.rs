//! An API server that misbehaves at random, from a seed, for two minutes: the story ends well all the same.

use std::time::Duration;

use runtime::{random::Random, settings::Steering};
use simulator::{ApiServer, Fault, RequestFacts};

use crate::{story::come_and_go, world::on_virtual_time};

/// In a thousand requests. Half of the refusals come after the fact.
fn misbehave(random: &Random, facts: &RequestFacts) -> Fault {
    let is_write = facts.write.is_some();
    match random.next() % 1000 {
        0..20 if is_write => Fault::Fail(409),
        20..40 => Fault::Fail(429),
        40..55 => Fault::Fail(500),
        55..70 => Fault::Fail(503),
        70..75 => Fault::Fail(504),
        75..105 if is_write => Fault::LoseAnswer,
        105..135 => Fault::Delay(Duration::from_millis(random.next() % 8000)),
        135..145 => Fault::DropWatches,
        145..150 => Fault::CompactHistory,
        150..160 if is_write => Fault::CrashBefore,
        160..170 if is_write => Fault::CrashAfter,
        _ => Fault::None,
    }
}

#[test]
fn a_story_ends_well_whatever_the_api_server_does_for_two_minutes() {
    let (mut failed, mut deaths) = (Vec::new(), 0);
    for seed in 0..20 {
        let trouble = move |server: &ApiServer| {
            let random = Random::seeded(seed);
            server.set_faults(move |facts| misbehave(&random, facts));
        };
        match on_virtual_time(come_and_go(Steering::default(), trouble, ApiServer::clear_faults)) {
            Ok(told) => deaths += told.deaths,
            Err(wrong) => failed.push(format!("seed {seed}: {wrong}")),
        }
    }
    assert!(
        failed.is_empty(),
        "{} of 20 seeds failed:\n{}",
        failed.len(),
        failed.join("\n")
    );
    assert!(deaths > 0, "no seed was hostile");
}
