//! What a person may do to the simulation from the page. Every act is a step of a story, or the speed of time.

use std::{collections::BTreeMap, time::Duration};

use cloud_sim::{Defect, Image, Scope};
use scenario::{Workload, World};
use serde_json::{Value, json};
use web::Act;

use super::{Demo, FASTEST};
use crate::terminal::counted;

/// How long a zone is gone, or stock is short.
const LONG: Duration = Duration::from_mins(10);
/// So many of a thousand spot machines does a storm take.
const STORM: u32 = 600;
/// More replicas than this are not asked of a demo.
const MOST_REPLICAS: u64 = 2000;

/// The buttons.
pub(super) fn acts() -> Vec<Act> {
    let act = |id: &str, label: &str, about: &str| Act {
        id: id.to_owned(),
        label: label.to_owned(),
        about: about.to_owned(),
    };
    vec![
        act("scale-out", "Scale out", "Every Deployment gets twice its pods"),
        act("scale-in", "Scale in", "Every Deployment loses half of its pods"),
        act(
            "spot-storm",
            "Spot storm",
            "The cloud takes back six of ten spot machines in two minutes",
        ),
        act("zone-outage", "Zone down", "The busiest zone fails for ten minutes"),
        act(
            "stock-out",
            "Sold out",
            "The commonest instance type is sold out for ten minutes",
        ),
        act(
            "new-image",
            "New image",
            "Machines boot from a new image: those there are have drifted",
        ),
        act(
            "bad-image",
            "Bad image",
            "Machines boot from an image with which they never become ready",
        ),
        act(
            "impossible-pod",
            "Stuck pod",
            "A pod comes that no NodePool has a place for",
        ),
    ]
}

/// Does it, and says what was done.
pub(super) fn act(demo: &Demo, act: &str, argument: Option<u32>) -> Result<String, String> {
    let world = &demo.world;
    let said = match act {
        "speed" => {
            let times = argument.filter(|times| *times <= FASTEST);
            let times = times.ok_or_else(|| format!("a speed is 0 to {FASTEST}"))?;
            demo.speed.set(times);
            return Ok(format!("time passes {times} times as fast"));
        }
        "scale-out" => scaled(world, |replicas| (replicas * 2).clamp(1, MOST_REPLICAS)),
        "scale-in" => scaled(world, |replicas| replicas.div_ceil(2)),
        "spot-storm" => {
            let scope = Scope {
                capacity_type: Some("spot".to_owned()),
                ..Scope::default()
            };
            let taken = world.region.interrupt(&scope, STORM);
            format!("spot notices for {}, two minutes left", counted(taken, "node"))
        }
        "zone-outage" => {
            let zone = busiest(world, |machine| machine.zone().to_owned()).ok_or("there is no machine yet")?;
            let lost = world.region.lose_zone(&zone, LONG);
            format!("{zone} is down for ten minutes: {} lost", counted(lost, "node"))
        }
        "stock-out" => {
            let kind = busiest(world, |machine| machine.instance_type().to_owned()).ok_or("there is no machine yet")?;
            let scope = Scope {
                instance_type: Some(kind.clone()),
                ..Scope::default()
            };
            world.region.run_short(&scope, LONG);
            format!("{kind} is sold out for ten minutes")
        }
        "new-image" => released(demo, None),
        "bad-image" => released(demo, Some(Defect::NeverReady)),
        "impossible-pod" => {
            let number = demo.next_number();
            let workload = Workload {
                name: format!("impossible-{number}"),
                replicas: 1,
                cpu: "900".to_owned(),
                memory: "4Gi".to_owned(),
                ..Workload::default()
            };
            for manifest in workload.manifests(world.keeper) {
                world.server.create(manifest).map_err(|failure| failure.message)?;
            }
            format!("{} wants 900 cores", workload.name)
        }
        _ => return Err(format!("there is no act {act}")),
    };
    demo.say(&said);
    Ok(said)
}

fn released(demo: &Demo, defect: Option<Defect>) -> String {
    let name = format!("image-{}", demo.next_number() + 1);
    let what = if defect.is_some() {
        "is bad: machines never become ready"
    } else {
        "is out: all machines have drifted"
    };
    demo.world.region.release(Image {
        name: name.clone(),
        defect,
    });
    format!("{name} {what}")
}

/// Gives every workload of the namespace default other replicas.
fn scaled(world: &World, replicas: impl Fn(u64) -> u64) -> String {
    let (mut before, mut after) = (0, 0);
    for object in world.server.list(world.keeper) {
        if object["metadata"]["namespace"] != "default" {
            continue;
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let now = object["spec"]["replicas"].as_u64().unwrap_or(1);
        let then = replicas(now);
        before += now;
        after += then;
        let change = |set: &mut Value| set["spec"]["replicas"] = json!(then);
        let _ = world.server.update(world.keeper, &format!("default/{name}"), change);
    }
    format!("{before} replicas become {after}")
}

/// What most machines have in common.
fn busiest(world: &World, of: impl Fn(&cloud_sim::Machine) -> String) -> Option<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for machine in world.region.machines() {
        *counts.entry(of(&machine)).or_default() += 1;
    }
    let most = counts
        .into_iter()
        .max_by_key(|(name, count)| (*count, std::cmp::Reverse(name.clone())));
    most.map(|(name, _)| name)
}
