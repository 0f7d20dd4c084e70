//! Every act of a story has a record, and its id is where people look: on claims and on events.

use std::{collections::BTreeMap, time::Duration};

use api::annotations::DECISION;
use catalogue::Source;
use cloud_sim::Rules;
use ledger::{Action, ENTRY, Id, Limits, Phase, Record, Ring, name_of, read_shard};
use runtime::Settings;
use scenario::{Life, NAMESPACE, Scenario, Setup, World, furnish, on_virtual_time, tell};
use serde_json::{Value, json};
use simulator::Resource;
use tokio::time::Instant;

use crate::life;

fn world(scenario: &Scenario, settings: Settings) -> World {
    let setup = Setup {
        source: Source::Kwok,
        rules: Rules::default(),
        settings,
        start: "2026-11-16T03:00:00Z".parse().unwrap(),
        is_checked: false,
    };
    let world = World::new(&setup).unwrap();
    furnish(scenario, &world).unwrap();
    world
}

fn key(slot: usize) -> String {
    format!("{NAMESPACE}/{}", name_of(slot))
}

/// What is kept in the cluster.
fn kept(world: &World) -> Ring {
    let maps = (0..10).filter_map(|slot| world.server.get("ConfigMap", &key(slot)));
    let shards = maps.map(|map| {
        let (number, records, unread) = read_shard(map["binaryData"][ENTRY].as_str().unwrap()).unwrap();
        assert_eq!(unread, 0);
        (number, records)
    });
    Ring::restored(Limits::default(), shards.collect())
}

fn decision(object: &Value) -> Option<Id> {
    object["metadata"]["annotations"][DECISION]
        .as_str()
        .map(|text| text.parse().unwrap())
}

fn steps(record: &Record) -> Vec<&str> {
    record.steps.iter().map(|step| step.step.as_str()).collect()
}

/// Lives with the story's steps happening meanwhile.
async fn live(life: &mut Life, world: &World, scenario: &Scenario, until: &mut (Instant, u64), minute: u64) {
    let end = until.0 + Duration::from_mins(minute);
    let mut steps = scenario.clone();
    // Steps up to now have happened.
    steps.steps.retain(|step| {
        let at: u64 = step.at.trim_end_matches('m').parse().unwrap();
        (until.1..minute).contains(&at)
    });
    for step in &mut steps.steps {
        let at: u64 = step.at.trim_end_matches('m').parse().unwrap();
        step.at = format!("{}m", at - until.1);
    }
    tokio::select! {
        biased;
        () = life.until(world, end) => {}
        () = async { tell(&steps, world, |_| {}).await; std::future::pending().await } => {}
    }
    until.1 = minute;
}

#[test]
fn every_launch_and_disruption_has_a_record_that_claims_and_events_name_and_a_restart_keeps() {
    on_virtual_time(async {
        let scenario = life();
        let world = world(&scenario, Settings::default());
        let mut process = Life::begin(&world);
        let mut until = (Instant::now(), 0);
        live(&mut process, &world, &scenario, &mut until, 14).await;

        let ring = kept(&world);
        let claims = world.server.list("NodeClaim");
        assert!(claims.len() >= 2);
        let mut launched = BTreeMap::new();
        for claim in &claims {
            let id = decision(claim).unwrap();
            let record = ring.get(id).unwrap();
            assert_eq!(
                (record.action, record.phase),
                (Action::Launch, Phase::Done),
                "{record:?}"
            );
            assert_eq!(steps(record), ["planned", "created", "launched", "registered", "ready"]);
            assert!(
                record.pod_count > 0 && record.money.is_some() && !record.options.is_empty(),
                "{record:?}"
            );
            assert_eq!(record.options[0].verdict, "chosen");
            assert!(
                record
                    .options
                    .iter()
                    .any(|offer| offer.offer.starts_with("upstream's plan")),
                "{record:?}"
            );
            assert_eq!(record.inputs.digest.len(), 16);
            launched.insert(id, claim["metadata"]["name"].as_str().unwrap().to_owned());
        }
        let events = world.server.list("Event");
        let nominated: Vec<&Value> = events.iter().filter(|event| event["reason"] == "Nominated").collect();
        assert!(!nominated.is_empty());
        for event in nominated {
            let message = event["message"].as_str().unwrap();
            let id = decision(event).unwrap();
            assert_eq!(message, format!("Pod should schedule on: nodeclaim/{}", launched[&id]));
        }

        process.restart(&world).await;
        live(&mut process, &world, &scenario, &mut until, 100).await;
        let ring = kept(&world);
        assert_eq!(world.server.list("NodeClaim").len(), 0);
        for (id, name) in &launched {
            assert!(ring.get(*id).is_some(), "what an earlier process did is known");
            let goes = |record: &&Record| matches!(record.action, Action::Delete | Action::Replace);
            let gone: Vec<&Record> = ring
                .iter()
                .filter(goes)
                .filter(|record| record.concerns(name))
                .collect();
            assert!(
                gone.iter().any(|record| record.phase == Phase::Done),
                "{name}: {gone:?}"
            );
        }
        let replaced: Vec<&Record> = ring.iter().filter(|record| record.action == Action::Replace).collect();
        assert!(!replaced.is_empty());
        for record in replaced.iter().filter(|record| record.phase == Phase::Done) {
            assert_eq!(record.reason, "Drifted");
            let steps = steps(record);
            let order = ["planned", "tainted", "created", "ready", "deleted"].map(|step| {
                steps
                    .iter()
                    .position(|other| *other == step)
                    .unwrap_or_else(|| panic!("no {step} in {steps:?}"))
            });
            assert!(order.is_sorted(), "{steps:?}");
        }
        let ended: Vec<Value> = world.server.list("Event");
        let ended = ended.iter().filter(|event| event["reason"] == "DisruptionTerminating");
        let ids: Vec<Id> = ended.map(|event| decision(event).unwrap()).collect();
        assert!(
            !ids.is_empty() && ids.iter().all(|id| ring.get(*id).is_some()),
            "{ids:?}"
        );
    })
    .unwrap();
}

#[test]
fn shards_are_written_at_most_twice_a_minute_and_only_when_something_changed() {
    on_virtual_time(async {
        let scenario = life();
        let world = world(&scenario, Settings::default());
        let mut changes = world.server.changes();
        let mut process = Life::begin(&world);
        process.until(&world, Instant::now() + Duration::from_mins(14)).await;
        let mut writes = 0;
        while let Ok(change) = changes.try_recv() {
            writes += usize::from(change.resource == Resource::new("", "configmaps"));
        }
        assert!(
            (1..=6).contains(&writes),
            "{writes} writes while four pods got their nodes"
        );
    })
    .unwrap();
}

#[test]
fn a_shard_that_cannot_be_read_is_an_empty_part_and_nothing_else() {
    on_virtual_time(async {
        let scenario = life();
        let world = world(&scenario, Settings::default());
        let mut process = Life::begin(&world);
        let mut until = (Instant::now(), 0);
        live(&mut process, &world, &scenario, &mut until, 14).await;
        world
            .server
            .update("ConfigMap", &key(0), |map| {
                map["binaryData"] = json!({ENTRY: "bm90IGd6aXA="});
            })
            .unwrap();
        process.restart(&world).await;
        live(&mut process, &world, &scenario, &mut until, 44).await;
        let ring = kept(&world);
        assert!(ring.iter().any(|record| record.action == Action::Replace), "it goes on");
        assert!(
            ring.iter().all(|record| record.action != Action::Launch),
            "what was lost stays lost"
        );
    })
    .unwrap();
}

#[test]
fn where_records_are_switched_off_nothing_tells_of_them() {
    on_virtual_time(async {
        let scenario = life();
        let settings = Settings {
            decision_records: false,
            ..Settings::default()
        };
        let world = world(&scenario, settings);
        let mut process = Life::begin(&world);
        process.until(&world, Instant::now() + Duration::from_mins(14)).await;
        assert!(
            world
                .server
                .list("NodeClaim")
                .iter()
                .all(|claim| decision(claim).is_none())
        );
        assert!(world.server.list("Event").iter().all(|event| decision(event).is_none()));
        assert!((0..10).all(|slot| world.server.get("ConfigMap", &key(slot)).is_none()));
    })
    .unwrap();
}
