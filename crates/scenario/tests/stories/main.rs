//! Stories told to whole clusters: those that come with the binary, with trouble, and with deaths at every step.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "the whole target is a test"
)]

mod mutant;
mod mutants;
mod notices;
mod records;
mod replicas;
mod sweep;

use std::sync::Mutex;

use scenario::{
    FaultKind, FaultLine, Outcome, Play, Profile, STORIES, Scenario, Strike, on_virtual_time, play, shrink,
};

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

#[test]
fn nodes_that_are_there_at_first_are_what_their_pool_asks_for() {
    // On AWS pools ask for more than the offerings of a type say: its category and generation.
    let text = "name: big\ncloud: aws\nlasts: 20m\npools:\n- {name: general}\nfilled: {nodes: 12, pods: 120}\n";
    let outcome = run(&Scenario::read("big.yaml", text).unwrap(), &seed(1));
    let drifted = outcome.tally.disrupted.get("Drifted");
    assert_eq!(drifted, None, "{:?}", outcome.tally.disrupted);
}

/// Plays on two threads, and says what failed.
fn failures(plays: &[(String, Scenario, Play)]) -> Vec<String> {
    let left = Mutex::new(plays.iter());
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = left.lock().unwrap().next();
                    let Some((what, scenario, how)) = next else { return };
                    let outcome = run(scenario, how);
                    if !outcome.failures.is_empty() {
                        failed
                            .lock()
                            .unwrap()
                            .push(format!("{what}: {}", outcome.failures.join("; ")));
                    }
                }
            });
        }
    });
    failed.into_inner().unwrap()
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
    azure_stock_out_ends_as_it_says "azure-stock-out",
    budget_window_ends_as_it_says "budget-window",
}

#[test]
fn no_story_of_the_binary_is_left_out() {
    assert_eq!(STORIES.len(), 11);
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

/// Hostile seeds that every run of the tests plays: about a minute of one core. Two thousand are the aim.
const SEEDS: u64 = 12;

#[test]
fn hostile_runs_end_well() {
    let how = |seed| Play {
        seed,
        profile: Profile::Hostile,
        ..Play::default()
    };
    let plays: Vec<_> = (1..=SEEDS)
        .map(|seed| (format!("seed {seed}"), life(), how(seed)))
        .collect();
    assert_eq!(failures(&plays), [""; 0]);
}

#[test]
fn a_saved_failure_fails_again_in_the_same_way() {
    let how = Play {
        profile: Profile::Hostile,
        wrap: Some(mutant::with(mutant::Bug::ForgetsTheToken)),
        ..seed(2)
    };
    let failed = run(&life(), &how);
    assert!(
        failed.failures.iter().any(|failure| failure.starts_with("I5")),
        "{:?}",
        failed.failures
    );
    let strikes = shrink(&life(), &how, &failed, 60);
    assert!(
        !strikes.is_empty() && strikes.len() < failed.strikes.len(),
        "{strikes:?}"
    );
    let small = scenario::saved(&life(), &how, &failed, strikes.clone());
    // As a file, and played as a file is: without a profile.
    let text = serde_saphyr::to_string(&small).unwrap();
    let small = Scenario::read("saved.yaml", &text).unwrap();
    let with_the_bug = Play {
        wrap: how.wrap,
        ..seed(small.seed.unwrap())
    };
    let again = run(&small, &with_the_bug);
    assert!(
        again.failures.iter().any(|failure| failure.starts_with("I5")),
        "{:?}",
        again.failures
    );
    assert_eq!(again.strikes, strikes);
    let mended = run(&small, &seed(small.seed.unwrap()));
    assert_eq!(mended.failures, [""; 0]);
}

#[test]
fn a_failure_is_shrunk_to_the_faults_it_needs() {
    let mut scenario = life();
    // Nobody comes back from this one: the process dies, and the sentence wants that it never did.
    scenario.expect = vec!["at most 3 nodes are launched".to_owned()];
    scenario.faults = vec![FaultLine {
        kind: FaultKind::SlowAnswers,
        from: None,
        time: "10m".to_owned(),
        per_mille: Some(100),
        seconds: None,
    }];
    let how = seed(1);
    let failed = run(&scenario, &how);
    assert!(!failed.strikes.is_empty() && !failed.failures.is_empty(), "{failed:?}");
    // It fails without any fault, and that is what is found out.
    assert_eq!(shrink(&scenario, &how, &failed, 20), [] as [Strike; 0]);
}
