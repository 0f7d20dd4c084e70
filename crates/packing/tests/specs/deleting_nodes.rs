//! Do pods of nodes that go away get a place in time?

use serde_json::json;

use super::fixture::{labels::*, *};

/// A world in which the pod's node is going away.
fn leaving(pod: Object) -> World {
    let mut world = World::new().with(pool("default"));
    world.provision([pod]);
    assert_eq!(world.label("a", INSTANCE_TYPE), Some("small-instance-type"));
    world.change("NodeClaim", "launched-001", Build::deleting);
    world.change("Node", "launched-001", Build::deleting);
    world
}

/// The type first in line for the new node; none when no node is launched.
fn replacement(world: &World) -> Option<String> {
    let plan = world.plan();
    assert!(plan.claims.len() < 2);
    let claim = plan.claims.first()?;
    claim.options.iter().next().map(ToString::to_string)
}

fn owned(kind: &str) -> Object {
    pod("a").memory("100M").owned_by(owner("apps/v1", kind, "owner"))
}

#[test]
fn pod_of_a_node_that_goes_away_gets_a_new_one() {
    let world = leaving(pod("a").memory("100M"));
    assert_eq!(replacement(&world).as_deref(), Some("small-instance-type"));
}

#[test]
fn pod_that_ends_with_its_node_gets_no_new_one() {
    for pod in [pod("a").memory("100M"), owned("ReplicaSet")] {
        let mut world = leaving(pod);
        world.change("Pod", "a", Build::deleting);
        assert_eq!(replacement(&world), None);
    }
}

#[test]
fn daemon_of_a_node_that_goes_away_gets_no_new_one() {
    let own = node("own", &[("cpu", "32")])
        .label(INSTANCE_TYPE, "small-instance-type")
        .initialized();
    let mut world = World::new().with(pool("default")).with(daemon_set("owner", &pod("")));
    world.add(claim(&own, "default").deleting());
    world.add(own.deleting());
    world.add(owned("DaemonSet").on("own").deleting());
    assert_eq!(replacement(&world), None);
}

#[test]
fn pod_of_a_stateful_set_gets_a_new_node_even_while_it_ends() {
    let mut world = leaving(owned("StatefulSet"));
    world.change("Pod", "a", Build::deleting);
    assert_eq!(replacement(&world).as_deref(), Some("small-instance-type"));
}

#[test]
fn pod_that_no_budget_lets_go_gets_no_new_node() {
    let budget = |name: &str, field: &str, value: serde_json::Value| {
        object("policy/v1", "PodDisruptionBudget", "default", name)
            .with("spec.selector.matchLabels", json!({ "pdb-test": "value" }))
            .with(&format!("spec.{field}"), value)
            .with("status.observedGeneration", 1)
    };
    let all = || budget("budget", "minAvailable", json!("100%"));
    for budgets in [
        vec![budget("budget", "maxUnavailable", json!(0))],
        vec![budget("budget", "maxUnavailable", json!("0%"))],
        vec![all()],
        vec![all(), all().renamed("second")],
    ] {
        let mut world = leaving(pod("a").memory("100M").label("pdb-test", "value"));
        budgets.clone().into_iter().for_each(|budget| world.add(budget));
        assert_eq!(replacement(&world), None, "{budgets:?}");
    }
}
