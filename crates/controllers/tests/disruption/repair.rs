//! Broken nodes are mended: rebooted, or replaced.

use serde_json::{Value, json};

use crate::{
    drift::never,
    world::{MINUTE, SECOND, World, is_true, on_virtual_time, text},
};

fn repairing() -> World {
    let mut world = World::new(&never());
    world.settings.decisions.feature_gates.node_repair = true;
    world
}

/// Something of a node is broken.
fn break_node(world: &World, node: &str, condition: &str) {
    let since = world.server.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let broken = json!({"type": condition, "status": "True", "reason": "Broken", "message": "",
        "lastTransitionTime": since, "lastHeartbeatTime": since});
    let change = |node: &mut Value| node["status"]["conditions"].as_array_mut().unwrap().push(broken);
    world.server.update("Node", node, change).unwrap();
}

#[test]
fn a_broken_node_is_replaced_after_its_trouble_was_borne() {
    on_virtual_time(async {
        let world = repairing();
        let mut life = world.with_lonely(1).await;
        let node = text(&world.nodes()[0], "/metadata/name").to_owned();
        break_node(&world, &node, "KWOKUnhealthy");
        life.pass(&world, 20 * SECOND).await;
        assert_eq!(world.nodes().len(), 1, "it is borne for half a minute");
        let mended = |world: &World| {
            let mut wrong = world.unsettled(1, 1);
            if world.server.get("Node", &node).is_some() {
                wrong.push("the broken node is there".to_owned());
            }
            wrong
        };
        life.until(&world, 10 * MINUTE, mended).await.unwrap();
    });
}

#[test]
fn a_node_that_needs_a_reboot_is_rebooted_and_stays() {
    on_virtual_time(async {
        let world = repairing();
        let mut life = world.with_lonely(1).await;
        let node = world.nodes().remove(0);
        let name = text(&node, "/metadata/name").to_owned();
        let before = text(&node, "/status/nodeInfo/bootID").to_owned();
        break_node(&world, &name, "KWOKRebootRequired");
        let rebooted = |world: &World| {
            let now = world.server.get("Node", &name).unwrap();
            let boot = text(&now, "/status/nodeInfo/bootID");
            if boot == before {
                vec!["it has not booted".to_owned()]
            } else {
                Vec::new()
            }
        };
        life.until(&world, 10 * MINUTE, rebooted).await.unwrap();
        let heal = |node: &mut Value| {
            let conditions = node["status"]["conditions"].as_array_mut().unwrap();
            conditions.retain(|one| one["type"] != "KWOKRebootRequired");
        };
        world.server.update("Node", &name, heal).unwrap();
        // Its pod may have found another node meanwhile; what counts is that this one is back.
        let settled = life.until(&world, 10 * MINUTE, |world| world.unsettled(1, world.nodes().len()));
        settled.await.unwrap();
        assert!(world.server.get("Node", &name).is_some());
        assert!(world.claims().iter().all(|claim| !is_true(claim, "Rebooting")));
    });
}

#[test]
fn broken_nodes_are_left_alone_when_too_many_of_a_pool_are() {
    on_virtual_time(async {
        let world = repairing();
        let mut life = world.with_lonely(5).await;
        let nodes = world.nodes();
        for node in &nodes[..2] {
            break_node(&world, text(node, "/metadata/name"), "KWOKUnhealthy");
        }
        life.pass(&world, 20 * MINUTE).await;
        for node in &nodes {
            assert!(world.server.get("Node", text(node, "/metadata/name")).is_some());
        }
        let said = world.said();
        let why = "more than 20% of nodes in nodepool \"default\" are unhealthy";
        let blocked = |(reason, message): &(String, String)| reason == "NodeRepairBlocked" && message == why;
        assert!(said.iter().any(blocked), "{said:#?}");
    });
}

#[test]
fn a_node_that_must_not_be_repaired_is_not() {
    on_virtual_time(async {
        let world = repairing();
        let mut life = world.with_lonely(1).await;
        let name = text(&world.nodes()[0], "/metadata/name").to_owned();
        let change = |node: &mut Value| node["metadata"]["annotations"]["karpenter.sh/do-not-repair"] = json!("true");
        world.server.update("Node", &name, change).unwrap();
        break_node(&world, &name, "KWOKUnhealthy");
        life.pass(&world, 20 * MINUTE).await;
        assert!(world.server.get("Node", &name).is_some());
    });
}

/// When the first claim got each mark, and when another one was up, as places in the history.
struct Marks {
    up: Option<usize>,
    bounded: Option<usize>,
    going: Option<usize>,
}

impl Marks {
    fn of(history: &[simulator::Change], old: &str) -> Self {
        let is_old = |claim: &Value| text(claim, "/metadata/name") == old;
        let first = |happened: &dyn Fn(&Value) -> bool| crate::world::first(history, "nodeclaims", happened);
        Self {
            up: first(&|claim| !is_old(claim) && is_true(claim, "Initialized")),
            bounded: first(&|claim| is_old(claim) && !bound(claim).is_empty()),
            going: first(&|claim| is_old(claim) && !text(claim, "/metadata/deletionTimestamp").is_empty()),
        }
    }
}

fn bound(claim: &Value) -> &str {
    text(
        claim,
        "/metadata/annotations/karpenter.sh~1nodeclaim-termination-timestamp",
    )
}

#[test]
fn a_broken_node_goes_once_its_replacement_is_up_and_its_drain_is_bounded() {
    on_virtual_time(async {
        let mut world = repairing();
        let mut life = world.with_lonely(1).await;
        let old = text(&world.claims()[0], "/metadata/name").to_owned();
        world.history();
        break_node(&world, text(&world.nodes()[0], "/metadata/name"), "KWOKUnhealthy");
        life.pass(&world, 10 * MINUTE).await;
        let history = world.history();
        let marks = Marks::of(&history, &old);
        assert!(
            marks.up.unwrap() < marks.bounded.unwrap() && marks.bounded < marks.going,
            "{:?} {:?} {:?}",
            marks.up,
            marks.bounded,
            marks.going
        );
        // The policy of this fault allows a drain of 45 seconds.
        let going = &history[marks.going.unwrap()].object;
        let time = |text: &str| text.parse::<jiff::Timestamp>().unwrap();
        let left = time(bound(going)).duration_since(time(text(going, "/metadata/deletionTimestamp")));
        assert!((40..=45).contains(&left.as_secs()), "{left:?}");
        let labels = ["kwok_unhealthy", "default", "on-demand", "", "eventual"];
        assert_eq!(world.metrics.nodeclaims_unhealthy_disrupted_total.value(labels), 1.0);
    });
}

#[test]
fn a_broken_node_whose_replacement_never_comes_up_is_neither_bounded_nor_deleted() {
    on_virtual_time(async {
        let mut world = repairing();
        let mut life = world.with_lonely(1).await;
        let old = text(&world.claims()[0], "/metadata/name").to_owned();
        world.change_pool(|pool| {
            pool["spec"]["template"]["spec"]["startupTaints"] =
                json!([{"key": "agent/starting", "effect": "NoSchedule"}]);
            pool["spec"]["disruption"]["budgets"] = json!([{"nodes": "0", "reasons": ["Drifted"]}]);
        });
        world.history();
        break_node(&world, text(&world.nodes()[0], "/metadata/name"), "KWOKUnhealthy");
        life.pass(&world, 30 * MINUTE).await;
        let marks = Marks::of(&world.history(), &old);
        assert_eq!((marks.up, marks.bounded, marks.going), (None, None, None));
        assert!(world.claims().len() > 1, "it was tried");
    });
}
