//! Stories told to whole clusters: those that come with the binary, with trouble, and with deaths at every step.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "the whole target is a test"
)]

mod mutant;
mod mutants;

use scenario::{Outcome, Play, Profile, STORIES, Scenario, on_virtual_time, play};

pub(crate) fn life() -> Scenario {
    Scenario::read("life.yaml", include_str!("../life.yaml")).unwrap()
}

fn story(name: &str) -> Scenario {
    let story = STORIES.iter().find(|story| story.name == name).unwrap();
    Scenario::read(name, story.text).unwrap()
}

pub(crate) fn run(scenario: &Scenario, how: &Play) -> Outcome {
    on_virtual_time(play(scenario, how)).unwrap().unwrap()
}

pub(crate) fn seed(seed: u64) -> Play {
    Play {
        seed,
        ..Play::default()
    }
}

macro_rules! end_as_they_say {
    ($($test:ident $name:literal,)*) => {$(
        #[test]
        fn $test() {
            let outcome = run(&story($name), &seed(1));
            assert_eq!(outcome.failures, [""; 0]);
        }
    )*};
}

end_as_they_say! {
    morning_rush_ends_as_it_says "morning-rush",
    scale_in_ends_as_it_says "scale-in",
    spot_storm_ends_as_it_says "spot-storm",
    zone_outage_ends_as_it_says "zone-outage",
    bad_image_ends_as_it_says "bad-image",
    drift_roll_ends_as_it_says "drift-roll",
    batch_night_ends_as_it_says "batch-night",
    runaway_pod_ends_as_it_says "runaway-pod",
    stock_out_ends_as_it_says "stock-out",
    budget_window_ends_as_it_says "budget-window",
}

#[test]
fn no_story_of_the_binary_is_left_out() {
    assert_eq!(STORIES.len(), 10);
}

#[test]
fn a_seed_is_the_same_story_byte_for_byte() {
    let how = Play {
        profile: Profile::Hostile,
        is_written: true,
        ..seed(7)
    };
    let (first, second) = (run(&life(), &how), run(&life(), &how));
    assert!(first.log.len() > 10_000);
    let differs = first
        .log
        .lines()
        .zip(second.log.lines())
        .find(|(one, other)| one != other);
    assert_eq!(differs, None);
    assert_eq!(first, second);
    let other = run(&life(), &Play { seed: 8, ..how });
    assert_ne!(other.log, first.log);
}
