//! Deaths at the steps of a story: before and after every write and every call to the cloud that changes something.

use scenario::{Play, Scenario};

use crate::{failures, mutants::told, run, seed};

/// Every death of a story, one run each.
fn deaths(scenario: &Scenario) -> Vec<(String, Scenario, Play)> {
    let calm = run(scenario, &seed(1));
    assert_eq!(calm.failures, [""; 0]);
    let mut plays = Vec::new();
    for point in calm.points {
        for death in point.deaths() {
            let what = format!("{} request {}, {}", death.fault, death.request, point.what);
            let how = Play {
                strikes: Some(vec![death]),
                ..seed(1)
            };
            plays.push((what, scenario.clone(), how));
        }
    }
    plays
}

/// Of so many deaths one is played, by turns before and after, as long as a run costs a second: 1 plays all, and so does
/// `dovetail simulate --sweep`.
const EVERY: usize = 3;

fn survives(scenario: &Scenario, least: usize) {
    let plays = deaths(scenario);
    println!("{}: {} deaths", scenario.name, plays.len());
    assert!(plays.len() >= least, "only {} deaths", plays.len());
    let plays: Vec<_> = plays.into_iter().step_by(EVERY).collect();
    assert_eq!(failures(&plays), [""; 0], "of {} deaths", plays.len());
}

#[test]
fn a_launch_survives_a_death_at_every_step() {
    let scenario = told(
        "{name: launch, lasts: 9m, pools: [{name: general, capacity: [on-demand]}], \
         workloads: [{name: web, replicas: 6, spread: node}], \
         expect: [all pods run by 6m, at most 6 nodes, all pods run at the end]}",
    );
    survives(&scenario, 100);
}

#[test]
fn a_drain_survives_a_death_at_every_step() {
    let scenario = told(
        "{name: drain, lasts: 16m, pools: [{name: general, capacity: [on-demand], disruption: {budgets: [{nodes: '100%'}]}}], \
         workloads: [{name: web, replicas: 4, spread: node, minAvailable: 1}], \
         steps: [{at: 4m, scale: {web: 1}}], expect: [all pods run by 3m, all pods run at the end, at most 1 nodes]}",
    );
    survives(&scenario, 150);
}

#[test]
fn a_replacement_survives_a_death_at_every_step() {
    let scenario = told(
        "{name: replace, lasts: 24m, pools: [{name: general, capacity: [on-demand], disruption: {budgets: [{nodes: '100%'}]}}], \
         workloads: [{name: web, replicas: 3, spread: node, minAvailable: 2}], steps: [{at: 4m, image: {name: image-2}}], \
         expect: [all pods run by 3m, every node runs image image-2, all pods run at the end, at most 3 nodes]}",
    );
    survives(&scenario, 150);
}

#[test]
fn an_interruption_survives_a_death_at_every_step() {
    let scenario = told(
        "{name: interruption, lasts: 16m, pools: [{name: general, capacity: [spot]}], \
         workloads: [{name: web, replicas: 3, spread: node}], steps: [{at: 4m, interrupt: {}}], \
         expect: [all pods run by 3m, all pods run at the end, at most 3 nodes]}",
    );
    survives(&scenario, 100);
}
