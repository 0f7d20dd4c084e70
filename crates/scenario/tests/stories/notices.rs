//! What the cloud says beforehand about its machines is heeded: their nodes are drained before they are gone.

use std::{collections::BTreeSet, time::Duration};

use catalogue::Source;
use cloud_sim::{Machine, Rules, Scope};
use runtime::Settings;
use scenario::{Life, Setup, World, furnish, on_virtual_time};
use simulator::{Fault, Verb};
use tokio::time::Instant;

use crate::{mutants::told, run, seed};

fn setup(rules: Rules) -> Setup {
    Setup {
        source: Source::Kwok,
        rules,
        settings: Settings::default(),
        start: "2026-01-05T00:00:00Z".parse().unwrap(),
        is_checked: false,
    }
}

#[test]
fn pods_on_machines_that_will_be_taken_move_before_they_are_gone() {
    let scenario = told(
        "{name: a, lasts: 50m, pools: [{name: general, capacity: [spot]}], \
         workloads: [{name: web, replicas: 4, spread: node}], steps: [{at: 10m, interrupt: {}}], \
         expect: [all pods run by 5m, at least 4 pods are evicted by 12m, all pods run by 13m, at least 4 nodes are taken, \
         all pods run at the end]}",
    );
    assert_eq!(run(&scenario, &seed(1)).failures, [""; 0]);
}

#[test]
fn a_notice_is_told_counted_and_its_offering_is_left_alone() {
    let scenario = told(
        "{name: a, lasts: 50m, pools: [{name: general, capacity: [spot]}], workloads: [{name: web, replicas: 2, spread: node}]}",
    );
    let setup = setup(Rules::default());
    let ended = on_virtual_time(async {
        let world = World::new(&setup).unwrap();
        furnish(&scenario, &world).unwrap();
        let mut life = Life::begin(&world);
        let began = Instant::now();
        life.until(&world, began + Duration::from_mins(10)).await;
        let offers = |machines: Vec<Machine>| -> BTreeSet<(String, String)> {
            let offer = |machine: Machine| (machine.instance_type().to_owned(), machine.zone().to_owned());
            machines.into_iter().map(offer).collect()
        };
        let before = offers(world.region.machines());
        assert_eq!(world.region.interrupt(&Scope::default(), 1000), 2);
        life.until(&world, began + Duration::from_mins(13)).await;
        let after = offers(world.region.machines());
        let reasons: BTreeSet<String> = world
            .server
            .list("Event")
            .iter()
            .map(|event| {
                let kind = event["involvedObject"]["kind"].as_str().unwrap_or_default();
                format!("{kind} {}", event["reason"].as_str().unwrap_or_default())
            })
            .collect();
        let disrupted = ["spot_interrupted", "general", "spot", "", "graceful"];
        let counts = [
            world.metrics.nodeclaims_disrupted_total.value(disrupted),
            world
                .metrics
                .interruption_received_messages_total
                .value(["spot_interrupted"]),
            world.metrics.interruption_deleted_messages_total.value([]),
        ];
        (before, after, reasons, counts)
    });
    let (before, after, reasons, counts) = ended.unwrap();
    assert_eq!(format!("{counts:?}"), "[2.0, 2.0, 2.0]");
    for expected in [
        "NodeClaim SpotInterrupted",
        "NodeClaim TerminatingOnInterruption",
        "Node SpotInterrupted",
        "Node TerminatingOnInterruption",
    ] {
        assert!(reasons.contains(expected), "{expected} is not among {reasons:?}");
    }
    assert!(!after.is_empty() && after.is_disjoint(&before), "{before:?} {after:?}");
}

/// The API server answers 409 also when it could not settle who came first: then the claim is there as before.
#[test]
fn a_notice_is_heeded_although_the_first_writes_about_its_claims_meet_a_conflict() {
    let scenario = told(
        "{name: a, lasts: 50m, pools: [{name: general, capacity: [spot]}], workloads: [{name: web, replicas: 2, spread: node}]}",
    );
    let setup = setup(Rules::default());
    let staying = on_virtual_time(async {
        let world = World::new(&setup).unwrap();
        furnish(&scenario, &world).unwrap();
        let mut life = Life::begin(&world);
        let began = Instant::now();
        life.until(&world, began + Duration::from_mins(10)).await;
        let mut struck = BTreeSet::new();
        world.server.set_faults(move |facts| {
            let is_about_a_claim = facts.resource.plural == "nodeclaims" && facts.write.is_some();
            if is_about_a_claim && struck.insert((facts.name.clone(), facts.verb == Verb::Delete)) {
                Fault::Fail(409)
            } else {
                Fault::None
            }
        });
        assert_eq!(world.region.interrupt(&Scope::default(), 1000), 2);
        let asked_back: BTreeSet<String> = world
            .region
            .machines()
            .iter()
            .map(|it| it.claim.as_str().to_owned())
            .collect();
        life.until(&world, began + Duration::from_mins(11)).await;
        let claims = world.server.list("NodeClaim");
        let is_staying = |claim: &&serde_json::Value| {
            let name = claim["metadata"]["name"].as_str().unwrap_or_default();
            asked_back.contains(name) && claim["metadata"]["deletionTimestamp"].is_null()
        };
        claims.iter().filter(is_staying).count()
    });
    assert_eq!(staying.unwrap(), 0);
}

/// How many pods are there still and not going, 25 seconds after all spot machines were announced to be taken back. They
/// need ten seconds to end, and a budget wants all of them.
fn left_behind(notice: Duration) -> usize {
    let scenario = told(
        "{name: a, lasts: 50m, pools: [{name: general, capacity: [spot]}], \
         workloads: [{name: web, replicas: 3, spread: node, minAvailable: 3}]}",
    );
    let setup = setup(Rules {
        notice,
        ..Rules::default()
    });
    let left = on_virtual_time(async {
        let world = World::new(&setup).unwrap();
        furnish(&scenario, &world).unwrap();
        let mut life = Life::begin(&world);
        let began = Instant::now();
        life.until(&world, began + Duration::from_mins(10)).await;
        let uid = |pod: &serde_json::Value| pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let before: BTreeSet<String> = world.server.list("Pod").iter().map(uid).collect();
        assert_eq!(world.region.interrupt(&Scope::default(), 1000), 3);
        life.until(&world, began + Duration::from_secs(625)).await;
        let pods = world.server.list("Pod");
        let is_left =
            |pod: &&serde_json::Value| before.contains(&uid(pod)) && pod["metadata"]["deletionTimestamp"].is_null();
        pods.iter().filter(is_left).count()
    });
    left.unwrap()
}

#[test]
fn with_half_a_minute_of_notice_pods_go_in_time_whatever_protects_them() {
    assert_eq!(left_behind(Duration::from_secs(30)), 0);
    // There is time to wait for the budget, which lets one go when another runs elsewhere.
    assert!(left_behind(Duration::from_mins(2)) > 0);
}
