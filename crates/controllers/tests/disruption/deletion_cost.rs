//! Pods on nodes that had better go are the first their ReplicaSets give up, if the gate is open.

use serde_json::{Value, json};

use crate::{
    drift::{never, outdate},
    world::{MINUTE, World, on_virtual_time, text},
};

const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

fn costs(world: &World) -> Vec<String> {
    let pods = world.pods();
    let mut costs: Vec<_> = pods
        .iter()
        .map(|pod| {
            pod["metadata"]["annotations"][COST]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect();
    costs.sort();
    costs
}

fn ranked(is_on: bool) -> World {
    let disruption =
        json!({"consolidateAfter": "0s", "consolidationPolicy": "WhenEmpty", "budgets": [{"nodes": "100%"}]});
    let mut world = World::new(&disruption);
    world.settings.decisions.feature_gates.pod_deletion_cost_management = is_on;
    world
}

#[test]
fn pods_bear_the_rank_of_their_nodes_and_what_else_is_annotated_stays() {
    on_virtual_time(async {
        let world = ranked(true);
        let mut life = world.with_lonely(3).await;
        let key = format!("default/{}", text(&world.pods()[0], "/metadata/name"));
        let note = |pod: &mut Value| pod["metadata"]["annotations"]["team"] = json!("shop");
        world.server.update("Pod", &key, note).unwrap();
        let annotated = |world: &World| {
            let costs = costs(world);
            if costs == ["-1", "-2", "-3"] { Vec::new() } else { costs }
        };
        life.until(&world, 10 * MINUTE, annotated).await.unwrap();
        assert_eq!(
            world.server.get("Pod", &key).unwrap()["metadata"]["annotations"]["team"],
            "shop"
        );
        let writes = &world.metrics.pod_deletion_cost_pod_annotation_writes_total;
        assert!(writes.value(["updated"]) >= 3.0);
        // A pool that is never consolidated has no order to tell.
        world.change_pool(|pool| pool["spec"]["disruption"]["consolidateAfter"] = json!("Never"));
        let cleared = |world: &World| costs(world).into_iter().filter(|cost| !cost.is_empty()).collect();
        life.until(&world, 10 * MINUTE, cleared).await.unwrap();
        assert_eq!(
            world.server.get("Pod", &key).unwrap()["metadata"]["annotations"]["team"],
            "shop"
        );
    });
}

#[test]
fn without_the_gate_nobody_writes_on_pods() {
    on_virtual_time(async {
        let world = ranked(false);
        let mut life = world.with_lonely(2).await;
        life.pass(&world, 10 * MINUTE).await;
        assert_eq!(costs(&world), ["", ""]);
    });
}

#[test]
fn pods_of_a_node_that_goes_cost_least() {
    on_virtual_time(async {
        let mut world = World::new(&never());
        world.settings.decisions.feature_gates.pod_deletion_cost_management = true;
        let mut life = world.with_lonely(1).await;
        // Its replacement never comes up, so the node keeps its mark for a while.
        world.change_pool(|pool| {
            pool["spec"]["template"]["spec"]["startupTaints"] =
                json!([{"key": "agent/starting", "effect": "NoSchedule"}]);
        });
        outdate(&world);
        let least = |world: &World| costs(world).into_iter().filter(|cost| cost != "-2147483648").collect();
        life.until(&world, 9 * MINUTE, least).await.unwrap();
    });
}
