//! Empty nodes go once they were quiet for as long as their pool wants.

use serde_json::{Value, json};

use crate::world::{MINUTE, SECOND, World, first, is_true, on_virtual_time, text};

fn quiet_for(after: &str) -> Value {
    json!({"consolidateAfter": after, "consolidationPolicy": "WhenEmpty", "budgets": [{"nodes": "100%"}]})
}

#[test]
fn an_empty_node_goes_after_it_was_quiet_and_not_before() {
    on_virtual_time(async {
        let mut world = World::new(&quiet_for("2m"));
        let mut life = world.with_lonely(2).await;
        world.scale("web", 1);
        life.pass(&world, 110 * SECOND).await;
        assert_eq!(world.nodes().len(), 2);
        let settled = life.until(&world, 2 * MINUTE, |world| world.unsettled(1, 1));
        settled.await.unwrap();
        let history = world.history();
        let marked = |claim: &Value| is_true(claim, "DisruptionReason");
        let at = first(&history, "nodeclaims", marked).unwrap();
        let conditions = history[at].object["status"]["conditions"].as_array().unwrap();
        let why = conditions.iter().find(|one| one["type"] == "DisruptionReason").unwrap();
        assert_eq!(why["reason"], "Empty");
        let said = world.said();
        let expected = ("DisruptionTerminating".to_owned(), "Disrupting Node: Empty".to_owned());
        assert!(said.contains(&expected), "{said:#?}");
        let metrics = &world.metrics;
        assert_eq!(
            metrics
                .voluntary_disruption_decisions_total
                .value(["delete", "empty", "empty"]),
            1.0
        );
        let labels = ["empty", "default", "on-demand", "when_empty", "graceful"];
        assert_eq!(metrics.nodeclaims_disrupted_total.value(labels), 1.0);
    });
}

/// When a condition of some claim first held, and when it was marked to go.
fn waited(history: &[simulator::Change]) -> jiff::SignedDuration {
    let since = |claim: &Value, kind: &str| {
        let conditions = claim["status"]["conditions"].as_array().unwrap();
        let condition = conditions.iter().find(|one| one["type"] == kind).unwrap();
        let since: jiff::Timestamp = text(condition, "/lastTransitionTime").parse().unwrap();
        since
    };
    let marked = first(history, "nodeclaims", |claim| is_true(claim, "DisruptionReason")).unwrap();
    let claim = &history[marked].object;
    since(claim, "DisruptionReason").duration_since(since(claim, "Consolidatable"))
}

#[test]
fn what_is_to_go_for_its_price_is_looked_at_again_after_a_while_empty_or_not() {
    for (policy, pods) in [("WhenEmpty", 0), ("WhenEmptyOrUnderutilized", 1)] {
        on_virtual_time(async {
            let mut disruption = quiet_for("1m");
            disruption["consolidationPolicy"] = json!(policy);
            let mut world = World::new(&disruption);
            let mut life = crate::life::Life::begin(&world);
            // A node for eight pods that keeps one of them, or none.
            world.add("web", 8, &json!({}));
            let settled = life.until(&world, 10 * MINUTE, |world| world.unsettled(8, world.nodes().len()));
            settled.await.unwrap();
            world.history();
            world.scale("web", pods);
            life.pass(&world, 10 * MINUTE).await;
            let waited = waited(&world.history());
            assert!((15..=30).contains(&waited.as_secs()), "{policy}: {waited:?}");
        });
    }
}

#[test]
fn a_node_with_pods_is_not_empty() {
    on_virtual_time(async {
        let world = World::new(&quiet_for("0s"));
        let mut life = world.with_lonely(2).await;
        life.pass(&world, 10 * MINUTE).await;
        assert_eq!(world.unsettled(2, 2), Vec::<String>::new());
    });
}

#[test]
fn nothing_goes_from_a_pool_that_never_consolidates() {
    on_virtual_time(async {
        let world = World::new(&quiet_for("Never"));
        let mut life = world.with_lonely(2).await;
        world.scale("web", 1);
        life.pass(&world, 20 * MINUTE).await;
        assert_eq!(world.nodes().len(), 2);
    });
}

#[test]
fn budgets_let_empty_nodes_go_a_few_at_a_time() {
    on_virtual_time(async {
        let mut disruption = quiet_for("0s");
        disruption["budgets"] = json!([{"nodes": "1"}]);
        let mut world = World::new(&disruption);
        let mut life = world.with_lonely(4).await;
        world.history();
        world.scale("web", 1);
        let settled = life.until(&world, 10 * MINUTE, |world| world.unsettled(1, 1));
        settled.await.unwrap();
        let mut going: Vec<String> = Vec::new();
        for change in world
            .history()
            .iter()
            .filter(|change| change.resource.plural == "nodeclaims")
        {
            let name = text(&change.object, "/metadata/name").to_owned();
            let is_going = !text(&change.object, "/metadata/deletionTimestamp").is_empty();
            going.retain(|known| *known != name);
            if is_going && change.event != simulator::Event::Deleted {
                going.push(name);
            }
            assert!(going.len() <= 1, "{going:?} go at once");
        }
    });
}
