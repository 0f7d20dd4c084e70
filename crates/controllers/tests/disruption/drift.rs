//! Outdated nodes are replaced: what comes is up before what was goes.

use serde_json::{Value, json};
use simulator::{Change, Fault};

use crate::world::{MINUTE, SECOND, World, first, is_true, on_virtual_time, text, uids};

pub(crate) fn never() -> Value {
    json!({"consolidateAfter": "Never", "consolidationPolicy": "WhenEmpty", "budgets": [{"nodes": "100%"}]})
}

/// From now on nodes of the pool should bear a label, so that those there are have drifted.
pub(crate) fn outdate(world: &World) {
    world.change_pool(|pool| pool["spec"]["template"]["metadata"] = json!({"labels": {"generation": "two"}}));
}

/// Why not all nodes bear it.
pub(crate) fn outdated(world: &World, pods: usize, nodes: usize) -> Vec<String> {
    let mut wrong = world.unsettled(pods, nodes);
    for node in world.nodes() {
        if node["metadata"]["labels"]["generation"] != "two" {
            wrong.push(format!("node {} is outdated", node["metadata"]["name"]));
        }
    }
    wrong
}

/// What went before its replacement was up.
pub(crate) fn hasty(history: &[Change]) -> Vec<String> {
    let mut up: Vec<String> = Vec::new();
    let mut hasty = Vec::new();
    for change in history.iter().filter(|change| change.resource.plural == "nodeclaims") {
        let object = &change.object;
        let name = text(object, "/metadata/name").to_owned();
        let is_going = !text(object, "/metadata/deletionTimestamp").is_empty();
        if is_true(object, "Initialized") && !up.contains(&name) && !is_going {
            up.push(name.clone());
        }
        if is_going && up.contains(&name) && up.len() < 2 {
            hasty.push(format!("{name} went while nothing had come for it"));
        }
    }
    hasty
}

#[test]
fn an_outdated_node_is_replaced_and_its_replacement_is_up_before_it_goes() {
    on_virtual_time(async {
        let mut world = World::new(&never());
        let mut life = world.with_lonely(1).await;
        let old = text(&world.claims()[0], "/metadata/name").to_owned();
        world.history();
        outdate(&world);
        let renewed = life.until(&world, 10 * MINUTE, |world| outdated(world, 1, 1));
        renewed.await.unwrap();
        let history = world.history();
        let is = |object: &Value, name: &str| text(object, "/metadata/name") == name;
        let drifted = first(&history, "nodeclaims", |claim| {
            is(claim, &old) && is_true(claim, "Drifted")
        });
        let up = first(&history, "nodeclaims", |claim| {
            !is(claim, &old) && is_true(claim, "Initialized")
        });
        let gone = first(&history, "nodeclaims", |claim| {
            is(claim, &old) && !text(claim, "/metadata/deletionTimestamp").is_empty()
        });
        let evicted = first(&history, "pods", |pod| {
            !text(pod, "/metadata/deletionTimestamp").is_empty()
        });
        assert!(
            drifted.unwrap() < up.unwrap() && up < gone && gone < evicted,
            "{drifted:?} {up:?} {gone:?} {evicted:?}"
        );
        let said = world.said();
        for expected in [
            ("DisruptionLaunching", "Launching NodeClaim: Drifted"),
            (
                "DisruptionWaitingReadiness",
                "Waiting on readiness to continue disruption",
            ),
            ("DisruptionTerminating", "Disrupting NodeClaim: Drifted"),
        ] {
            assert!(
                said.iter().any(|(reason, message)| (&**reason, &**message) == expected),
                "{expected:?} is not among {said:#?}"
            );
        }
    });
}

#[test]
fn a_pool_of_outdated_nodes_is_renewed_node_by_node() {
    on_virtual_time(async {
        let mut disruption = never();
        disruption["budgets"] = json!([{"nodes": "1"}]);
        let mut world = World::new(&disruption);
        let mut life = world.with_lonely(3).await;
        world.history();
        outdate(&world);
        let renewed = life.until(&world, 30 * MINUTE, |world| outdated(world, 3, 3));
        renewed.await.unwrap();
        let created = world
            .history()
            .iter()
            .filter(|change| change.resource.plural == "nodeclaims" && change.event == simulator::Event::Added)
            .count();
        assert_eq!(created, 3, "one replacement for each");
    });
}

#[test]
fn several_outdated_nodes_are_renewed_at_once_each_by_a_replacement_of_its_own() {
    on_virtual_time(async {
        let mut world = World::new(&never());
        let mut life = world.with_lonely(3).await;
        world.history();
        outdate(&world);
        let renewed = life.until(&world, 10 * MINUTE, |world| outdated(world, 3, 3));
        renewed.await.unwrap();
        let created = world
            .history()
            .iter()
            .filter(|change| change.resource.plural == "nodeclaims" && change.event == simulator::Event::Added)
            .count();
        assert_eq!(created, 3, "one replacement for each");
        let decisions = &world.metrics.voluntary_disruption_decisions_total;
        assert_eq!(decisions.value(["replace", "drifted", ""]), 3.0);
    });
}

/// A node that was to go stays when its replacement is lost; taking its marks off may take a while.
#[test]
fn no_room_is_bought_for_pods_of_a_node_that_stays_while_its_marks_are_being_taken_off() {
    on_virtual_time(async {
        let mut world = World::new(&never());
        let mut life = world.with_lonely(1).await;
        let old = text(&world.claims()[0], "/metadata/name").to_owned();
        outdate(&world);
        let replacement = |world: &World| {
            let claims = world.claims();
            let names = claims.iter().map(|claim| text(claim, "/metadata/name").to_owned());
            names.filter(|name| *name != old).collect::<Vec<_>>()
        };
        let asked_for = |world: &World| match replacement(world)[..] {
            [] => vec!["no replacement yet".to_owned()],
            _ => Vec::new(),
        };
        life.until(&world, 10 * MINUTE, asked_for).await.unwrap();
        world.server.set_faults(|facts| match facts.resource.plural.as_str() {
            "nodes" if facts.verb.is_write() => Fault::Delay(20 * SECOND),
            _ => Fault::None,
        });
        world.history();
        for name in replacement(&world) {
            world.server.delete("NodeClaim", &name).unwrap();
        }
        life.pass(&world, 15 * SECOND).await;
        let is_new =
            |change: &&Change| change.resource.plural == "nodeclaims" && change.event == simulator::Event::Added;
        assert_eq!(world.history().iter().filter(is_new).count(), 0);
    });
}

#[test]
fn a_replacement_that_never_comes_up_leaves_the_node_as_it_was() {
    on_virtual_time(async {
        let world = World::new(&never());
        let mut life = world.with_lonely(1).await;
        let (old, pods) = (world.claims().remove(0), uids(&world.pods()));
        world.change_pool(|pool| {
            pool["spec"]["template"]["spec"]["startupTaints"] =
                json!([{"key": "agent/starting", "effect": "NoSchedule"}]);
        });
        life.pass(&world, 2 * MINUTE).await;
        let node = text(&old, "/status/nodeName").to_owned();
        let taints = world.server.get("Node", &node).unwrap()["spec"]["taints"].clone();
        assert_eq!(taints[0]["key"], "karpenter.sh/disrupted", "it is being replaced");
        life.pass(&world, 90 * MINUTE).await;
        assert_eq!(uids(&world.pods()), pods, "nobody moved");
        let kept = world.server.get("NodeClaim", text(&old, "/metadata/name")).unwrap();
        assert!(text(&kept, "/metadata/deletionTimestamp").is_empty());
        let made = world.claims().len();
        assert!(
            made <= 4,
            "{made} claims were made for a template that does not come up"
        );
        let node = world.server.get("Node", &node).unwrap();
        let is_closed = node["spec"]["taints"]
            .as_array()
            .is_some_and(|taints| !taints.is_empty());
        assert!(!is_closed, "{}", node["spec"]["taints"]);
        assert!(!is_true(&kept, "DisruptionReason"));
    });
}

#[test]
fn a_pool_at_its_limit_is_renewed_all_the_same() {
    on_virtual_time(async {
        let world = World::new(&never());
        world.change_pool(|pool| pool["spec"]["limits"] = json!({"nodes": "1"}));
        let mut life = world.with_lonely(1).await;
        outdate(&world);
        let renewed = life.until(&world, 10 * MINUTE, |world| outdated(world, 1, 1));
        renewed.await.unwrap();
    });
}
