//! Nodes end at their time: apart if their pool spreads the ends, and inside its budgets if it wants that.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    drift::never,
    world::{MINUTE, World, on_virtual_time, text},
};

/// A pool whose nodes live for so long, with these annotations and budgets.
fn ageing(expire_after: &str, annotations: &Value, budgets: &Value) -> World {
    let world = World::new(&never());
    world.change_pool(|pool| {
        pool["metadata"]["annotations"] = annotations.clone();
        pool["spec"]["disruption"]["budgets"] = budgets.clone();
        pool["spec"]["template"]["spec"]["expireAfter"] = json!(expire_after);
    });
    world
}

fn names(claims: &[Value]) -> BTreeSet<String> {
    claims
        .iter()
        .map(|claim| text(claim, "/metadata/name").to_owned())
        .collect()
}

/// When each of these claims was deleted.
fn ends(world: &mut World, claims: &BTreeSet<String>) -> BTreeSet<(String, String)> {
    let history = world.history();
    let changes = history.iter().filter(|change| change.resource.plural == "nodeclaims");
    let ends = changes.map(|change| {
        let part = |pointer| text(&change.object, pointer).to_owned();
        (part("/metadata/name"), part("/metadata/deletionTimestamp"))
    });
    ends.filter(|(name, end)| claims.contains(name) && !end.is_empty())
        .collect()
}

#[test]
fn nodes_born_together_end_apart_if_their_pool_spreads_the_ends() {
    on_virtual_time(async {
        let all = json!([{"nodes": "100%"}]);
        let mut world = ageing("10h", &json!({"dovetail.dev/expiry-spread": "50%"}), &all);
        let mut life = world.with_lonely(4).await;
        let born = names(&world.claims());
        life.pass(&world, 601 * MINUTE).await;
        let ends = ends(&mut world, &born);
        let times: BTreeSet<&String> = ends.iter().map(|(_, end)| end).collect();
        assert_eq!((ends.len(), times.len()), (4, 4), "{ends:?}");
        let bounds = ["2026-01-01T05:00:00Z", "2026-01-01T10:05:00Z"].map(ToOwned::to_owned);
        assert!(
            times.iter().all(|end| bounds[0] <= **end && **end <= bounds[1]),
            "{ends:?}"
        );
    });
}

#[test]
fn a_node_whose_time_has_come_waits_for_its_pools_window_if_the_pool_wants_that() {
    let closed_until_three = json!([{"nodes": "0", "schedule": "0 0 * * *", "duration": "3h"}]);
    let for_drift_only = json!([{"nodes": "0", "reasons": ["Drifted", "Empty", "Underutilized", "Unhealthy"]}]);
    let cases = [
        (json!({"dovetail.dev/expiry-grace": "24h"}), &closed_until_three, 3),
        (json!({"dovetail.dev/expiry-grace": "1h"}), &closed_until_three, 2),
        (json!({}), &closed_until_three, 1),
        (json!({"dovetail.dev/expiry-grace": "24h"}), &for_drift_only, 1),
    ];
    for (annotations, budgets, hour) in cases {
        on_virtual_time(async {
            let mut world = ageing("1h", &annotations, budgets);
            let mut life = world.with_lonely(1).await;
            let born = names(&world.claims());
            life.pass(&world, 230 * MINUTE).await;
            let ends = ends(&mut world, &born);
            let end = ends.first().map(|(_, end)| end.as_str()).unwrap_or_default();
            assert!(
                end.starts_with(&format!("2026-01-01T0{hour}:0")),
                "{annotations} {budgets}: {end}"
            );
        });
    }
}

#[test]
fn nodes_that_wait_for_a_budget_of_one_end_one_after_the_other() {
    on_virtual_time(async {
        let mut world = ageing(
            "1h",
            &json!({"dovetail.dev/expiry-grace": "24h"}),
            &json!([{"nodes": "1"}]),
        );
        let mut life = world.with_lonely(3).await;
        let born = names(&world.claims());
        world.history();
        life.pass(&world, 90 * MINUTE).await;
        let mut going: BTreeSet<String> = BTreeSet::new();
        let mut gone = 0;
        for change in world
            .history()
            .iter()
            .filter(|change| change.resource.plural == "nodeclaims")
        {
            let name = text(&change.object, "/metadata/name").to_owned();
            if change.event == simulator::Event::Deleted {
                going.remove(&name);
                gone += usize::from(born.contains(&name));
            } else if !text(&change.object, "/metadata/deletionTimestamp").is_empty() {
                going.insert(name);
            }
            assert!(going.len() <= 1, "{going:?} go at once");
        }
        assert_eq!(gone, 3);
    });
}
