//! Each rule can be broken: bugs on purpose, in the controllers and in the cloud they see, and the rule that finds each.

use controllers::mutation::{self, Mutation};
use scenario::{FaultKind, FaultLine, Play, Scenario, Step};

use crate::{
    life,
    mutant::{Bug, with},
    run, seed,
};

/// The rules that a run breaks; sentences of the story aside.
fn broken(scenario: &Scenario, how: &Play) -> Vec<String> {
    let outcome = run(scenario, how);
    let rule = |failure: &String| failure.split(' ').next().unwrap_or_default().to_owned();
    let is_rule = |word: &String| {
        let (letter, number) = word.split_at_checked(1).unwrap_or_default();
        matches!(letter, "I" | "L") && number.parse::<u8>().is_ok()
    };
    let mut rules: Vec<String> = outcome.failures.iter().map(rule).filter(is_rule).collect();
    rules.dedup();
    rules
}

/// That a bug breaks a rule which nothing breaks without it.
fn finds(rule: &str, scenario: &Scenario, mutation: Mutation) {
    let without = broken(scenario, &seed(1));
    assert_eq!(without, [""; 0], "without {mutation:?}");
    mutation::set(Some(mutation));
    let with = broken(scenario, &seed(1));
    mutation::set(None);
    assert!(
        with.iter().any(|one| one == rule),
        "{mutation:?} broke {with:?} and not {rule}"
    );
}

fn finds_cloud(rules: &[&str], scenario: &Scenario, bug: Bug) {
    let how = Play {
        wrap: Some(with(bug)),
        ..seed(1)
    };
    assert_eq!(broken(scenario, &seed(1)), [""; 0], "without {bug:?}");
    let found = broken(scenario, &how);
    for rule in rules {
        assert!(
            found.iter().any(|one| one == rule),
            "{bug:?} broke {found:?} and not {rule}"
        );
    }
}

pub(crate) fn told(text: &str) -> Scenario {
    Scenario::read("mutant.yaml", text).unwrap()
}

fn with_lost_answers() -> Scenario {
    let mut scenario = life();
    scenario.faults = vec![FaultLine {
        kind: FaultKind::CloudLostAnswers,
        from: None,
        time: "5m".to_owned(),
        per_mille: Some(500),
        seconds: None,
    }];
    scenario
}

#[test]
fn a_cloud_that_deletes_nothing_leaks_and_orphans() {
    finds_cloud(&["I1", "I2"], &life(), Bug::DeletesNothing);
}

#[test]
fn a_claim_that_is_let_go_before_its_machine_is_an_orphan() {
    // Before the node is there, nobody else has the machine removed.
    let scenario = told(
        "{name: a, lasts: 40m, region: {boot: 8m-9m}, pools: [{name: general}], workloads: [{name: web}], \
         steps: [{at: 3m, remove: [web], delete: [{kind: NodePool, name: general}]}]}",
    );
    finds("I2", &scenario, Mutation::LetsGoFirst);
}

#[test]
fn a_protected_pod_that_is_evicted_is_noticed() {
    let scenario = told(
        "{name: a, lasts: 40m, pools: [{name: general}], \
         workloads: [{name: web, replicas: 2, spread: node, doNotDisrupt: true}], \
         steps: [{at: 10m, delete: [{kind: NodePool, name: general}]}]}",
    );
    finds("I3", &scenario, Mutation::EvictsProtected);
}

#[test]
fn pods_that_are_deleted_past_their_budget_are_noticed() {
    finds("I3", &life(), Mutation::DeletesPods);
}

#[test]
fn claims_past_a_limit_are_noticed() {
    let scenario = told(
        "{name: a, lasts: 40m, pools: [{name: general, limits: {cpu: '4'}}], \
         workloads: [{name: web, replicas: 8, spread: node}]}",
    );
    finds("I4", &scenario, Mutation::IgnoresLimits);
}

#[test]
fn a_launch_that_forgets_its_token_launches_twice() {
    finds("I5", &with_lost_answers(), Mutation::ForgetsToken);
    finds_cloud(&["I5"], &with_lost_answers(), Bug::ForgetsTheToken);
}

#[test]
fn disruptions_past_a_budget_are_noticed() {
    let scenario = told(
        "{name: a, lasts: 90m, pools: [{name: general, disruption: {budgets: [{nodes: '1'}]}}], \
         workloads: [{name: web, replicas: 6, spread: node}], steps: [{at: 10m, scale: {web: 1}}]}",
    );
    finds("I6", &scenario, Mutation::IgnoresBudgets);
}

#[test]
fn nodes_that_always_drift_move_pods_for_ever() {
    let scenario = told(
        "{name: a, lasts: 90m, pools: [{name: general, capacity: [on-demand], disruption: {budgets: [{nodes: '100%'}]}}], \
         workloads: [{name: web, replicas: 3, spread: node}]}",
    );
    finds_cloud(&["I8", "L2"], &scenario, Bug::AlwaysDrifted);
}

#[test]
fn machines_on_their_way_that_are_forgotten_are_launched_again_and_again() {
    let mut scenario = told(
        "{name: a, lasts: 60m, region: {boot: 4m-5m}, pools: [{name: general, capacity: [on-demand]}], \
         workloads: [{name: web}]}",
    );
    scenario.steps = (1..=12)
        .map(|number| Step {
            at: format!("{}s", 60 + 12 * number),
            scale: [("web".to_owned(), 1 + number)].into(),
            ..Step::default()
        })
        .collect();
    finds("I7", &scenario, Mutation::ForgetsInFlight);
}

#[test]
fn a_node_that_goes_before_its_replacement_is_up_is_noticed() {
    finds("I9", &life(), Mutation::GoesFirst);
    let dear = told(
        "{name: a, lasts: 90m, pools: [{name: general, capacity: [on-demand]}], \
         workloads: [{name: web, replicas: 12}, {name: stays, cpu: 500m}], \
         steps: [{at: 10m, scale: {web: 1}}]}",
    );
    finds("I9", &dear, Mutation::GoesFirst);
}

#[test]
fn a_process_that_acts_without_the_lease_is_noticed() {
    finds("I10", &contested("pause"), Mutation::IgnoresFence);
}

/// Two replicas while nodes come, are replaced and go, of which the leader stands still or is cut off again and again.
pub(crate) fn contested(fault: &str) -> Scenario {
    let mut scenario = life();
    scenario.replicas = Some(2);
    scenario.faults = [90, 930, 960, 1030, 2720, 3930]
        .map(|from| FaultLine {
            kind: if fault == "pause" {
                FaultKind::Pause
            } else {
                FaultKind::Partition
            },
            from: Some(format!("{from}s")),
            time: "40s".to_owned(),
            per_mille: None,
            seconds: None,
        })
        .to_vec();
    scenario
}

#[test]
fn nodes_that_come_and_go_for_ever_are_noticed() {
    let scenario = told(
        "{name: a, lasts: 110m, pools: [{name: general, capacity: [on-demand]}], \
         workloads: [{name: web, replicas: 3, spread: node}], \
         steps: [{at: 7m, scale: {web: 4}}, {at: 14m, scale: {web: 5}}]}",
    );
    finds("L2", &scenario, Mutation::NeverRests);
}

#[test]
fn a_notice_that_nobody_heeds_is_noticed() {
    let scenario = told(
        "{name: a, lasts: 50m, pools: [{name: general, capacity: [spot]}], \
         workloads: [{name: web, replicas: 3, spread: node}], steps: [{at: 10m30s, interrupt: {}}]}",
    );
    finds("L4", &scenario, Mutation::IgnoresNotices);
}

#[test]
fn a_pod_that_waits_without_a_word_is_noticed() {
    let huge = told("{name: a, lasts: 40m, pools: [{name: general}], workloads: [{name: huge, memory: 9000Gi}]}");
    finds("L1", &huge, Mutation::SaysNothing);
    finds("L1", &life_that_stays(), Mutation::IgnoresPods);
}

/// The same life without the end, at which no pod is left.
fn life_that_stays() -> Scenario {
    let mut scenario = life();
    scenario.steps.truncate(1);
    scenario
}

#[test]
fn a_claim_that_goes_for_ever_without_a_word_is_noticed() {
    finds("L3", &life(), Mutation::NeverFinalizes);
}
