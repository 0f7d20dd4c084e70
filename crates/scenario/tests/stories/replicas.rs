//! Several processes of which one leads: whoever stands still or is cut off does not act when it comes back.

use scenario::{FaultKind, Play, Profile};

use crate::{life, mutants::contested, run, seed};

#[test]
fn a_leader_that_stands_still_is_replaced_and_does_not_act_when_it_goes_on() {
    let outcome = run(&contested("pause"), &seed(1));
    assert_eq!(outcome.failures, [""; 0]);
    assert_eq!(outcome.replicas, Some(2));
}

#[test]
fn a_leader_that_does_not_reach_the_api_server_is_replaced_and_gives_way() {
    let outcome = run(&contested("partition"), &seed(1));
    assert_eq!(outcome.failures, [""; 0]);
}

#[test]
fn a_process_that_is_alone_and_stands_still_goes_on_where_it_was() {
    let mut scenario = contested("pause");
    scenario.replicas = None;
    assert_eq!(run(&scenario, &seed(1)).failures, [""; 0]);
}

#[test]
fn replicas_are_the_same_story_byte_for_byte() {
    let how = Play {
        profile: Profile::Hostile,
        is_written: true,
        ..seed(9)
    };
    let (first, second) = (run(&life(), &how), run(&life(), &how));
    assert_eq!(first.replicas, Some(2), "every third seed has replicas");
    assert!(first.lasting.iter().any(|line| line.kind == FaultKind::Pause));
    assert!(first.log.len() > 10_000);
    assert_eq!(first, second);
}
