//! Where do pods land when a plan is carried out?

mod cloud;

use cloud::{CAPACITY_TYPE, ZONE, claim, node, plan, pod, running, snapshot};
use model::object::ObjectKey;
use scheduler::rehearsal::{Landed, Outcome, Spot, rehearse};
use serde_json::json;

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("default", name)
}

fn landed(name: &str, claim: usize) -> Landed {
    Landed {
        pod: key(name),
        on: Spot::Claim(claim),
    }
}

#[test]
fn a_plan_with_room_to_spare_is_carried_out() {
    let snapshot = snapshot(&[
        pod("p", &json!({})),
        pod("q", &json!({ "nodeSelector": { ZONE: "b" } })),
    ]);
    let claims = vec![
        claim(&snapshot, &["small"], &[(ZONE, &["a"])], &["p"]),
        claim(&snapshot, &["small"], &[(ZONE, &["b"])], &["q"]),
    ];
    let outcome = rehearse(&snapshot, &plan(claims, Vec::new()));
    let expected = Outcome {
        as_planned: 2,
        ..Outcome::default()
    };
    assert_eq!(outcome, expected);
}

/// A flexible pod that is first in the queue, and one that must be on demand; a node for each, the one on demand larger.
fn contested() -> (model::snapshot::Snapshot, model::plan::Plan) {
    let snapshot = snapshot(&[
        pod("a-flexible", &json!({ "requests": { "cpu": "2", "memory": "1Gi" } })),
        pod(
            "b-on-demand",
            &json!({ "requests": { "cpu": "7", "memory": "1Gi" }, "nodeSelector": { CAPACITY_TYPE: "on-demand" } }),
        ),
    ]);
    let claims = vec![
        claim(&snapshot, &["small"], &[(CAPACITY_TYPE, &["spot"])], &["a-flexible"]),
        claim(
            &snapshot,
            &["large"],
            &[(CAPACITY_TYPE, &["on-demand"])],
            &["b-on-demand"],
        ),
    ];
    (snapshot, plan(claims, Vec::new()))
}

#[test]
fn released_together_the_flexible_pod_takes_the_emptiest_node_and_the_other_stays_pending() {
    let (snapshot, plan) = contested();
    let expected = Outcome {
        as_planned: 0,
        elsewhere: vec![landed("a-flexible", 1)],
        pending: vec![key("b-on-demand")],
        unused: vec![0],
    };
    assert_eq!(rehearse(&snapshot, &plan), expected);
}

#[test]
fn waves_and_nominations_steer_both_home() {
    let (snapshot, plan) = contested();
    let home = Outcome {
        as_planned: 2,
        ..Outcome::default()
    };
    let mut in_waves = plan.clone();
    in_waves.claims[1].wave = 1;
    let mut nominating = plan;
    nominating.claims[1].nominated = vec![0];
    for steered in [in_waves, nominating] {
        assert_eq!(rehearse(&snapshot, &steered), home);
    }
}

#[test]
fn a_pod_may_land_on_a_node_that_was_there_and_higher_priority_comes_first() {
    let low = pod("a-low", &json!({ "requests": { "cpu": "2", "memory": "1Gi" } }));
    let high = pod(
        "b-high",
        &json!({ "requests": { "cpu": "2", "memory": "1Gi" }, "priority": 10 }),
    );
    let objects = [
        node("n", &json!({})),
        running("there", "n", &json!({ "requests": { "cpu": "1", "memory": "1Gi" } })),
        low,
        high,
    ];
    let snapshot = snapshot(&objects);
    let claims = vec![claim(&snapshot, &["small"], &[], &["a-low", "b-high"])];
    let expected = Outcome {
        as_planned: 1,
        elsewhere: vec![Landed {
            pod: key("b-high"),
            on: Spot::Node("n".into()),
        }],
        ..Outcome::default()
    };
    assert_eq!(rehearse(&snapshot, &plan(claims, Vec::new())), expected);
}
