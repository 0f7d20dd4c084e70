//! After pods went, the rest is brought together on fewer and cheaper nodes.

use serde_json::json;

use crate::{
    life::Life,
    world::{MINUTE, World, on_virtual_time, text},
};

#[test]
fn pods_that_are_left_are_brought_together() {
    on_virtual_time(async {
        let world = World::new(
            &json!({"consolidateAfter": "0s", "consolidationPolicy": "WhenEmptyOrUnderutilized",
            "budgets": [{"nodes": "100%"}]}),
        );
        let mut life = world.with_lonely(6).await;
        // What kept them apart is gone with them: the same number of pods that may share a node.
        world.add("api", 6, &json!({}));
        let both = life.until(&world, 10 * MINUTE, |world| {
            let running = world
                .pods()
                .iter()
                .filter(|pod| text(pod, "/status/phase") == "Running")
                .count();
            if running == 12 {
                Vec::new()
            } else {
                vec![format!("{running} of 12 pods run")]
            }
        });
        both.await.unwrap();
        let before = world.nodes().len();
        world.scale("web", 1);
        let settled = life.until(&world, 30 * MINUTE, |world| {
            let nodes = world.nodes().len();
            if nodes < before {
                world.unsettled(7, nodes)
            } else {
                vec![format!("{nodes} nodes for seven pods")]
            }
        });
        settled.await.unwrap();
        life.pass(&world, 20 * MINUTE).await;
        let after = world.nodes().len();
        assert!(after <= 3, "{after} nodes for seven pods, {before} before");
        assert_eq!(world.unsettled(7, after), Vec::<String>::new());
    });
}

#[test]
fn a_fleet_that_is_cheap_stays_as_it_is() {
    on_virtual_time(async {
        let mut world = World::new(
            &json!({"consolidateAfter": "0s", "consolidationPolicy": "WhenEmptyOrUnderutilized",
            "budgets": [{"nodes": "100%"}]}),
        );
        let mut life = Life::begin(&world);
        world.add("api", 8, &json!({}));
        let settled = life.until(&world, 30 * MINUTE, |world| world.unsettled(8, world.nodes().len()));
        settled.await.unwrap();
        life.pass(&world, 30 * MINUTE).await;
        world.history();
        life.pass(&world, 60 * MINUTE).await;
        let moved = world
            .history()
            .iter()
            .filter(|change| change.resource.plural == "nodeclaims" && change.event == simulator::Event::Added)
            .count();
        assert_eq!(moved, 0, "nothing is replaced over and over");
    });
}

#[test]
fn a_node_that_is_as_old_as_it_may_be_is_renewed() {
    on_virtual_time(async {
        let world = World::new(&crate::drift::never());
        world.change_pool(|pool| pool["spec"]["template"]["spec"]["expireAfter"] = json!("1h"));
        let mut life = world.with_lonely(1).await;
        let old = text(&world.claims()[0], "/metadata/name").to_owned();
        life.pass(&world, 61 * MINUTE).await;
        let renewed = life.until(&world, 10 * MINUTE, |world| {
            let mut wrong = world.unsettled(1, 1);
            if world.server.get("NodeClaim", &old).is_some() {
                wrong.push("the old claim is there".to_owned());
            }
            wrong
        });
        renewed.await.unwrap();
    });
}
