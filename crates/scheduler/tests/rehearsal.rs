//! Where do pods land when a plan is carried out?

mod cloud;

use std::collections::BTreeMap;

use cloud::{CAPACITY_TYPE, ZONE, claim, node, plan, pod, running, snapshot};
use model::object::ObjectKey;
use scheduler::rehearsal::{Landed, Outcome, Release, Spot, Steering, rehearse};
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
    let outcome = rehearse(&snapshot, &plan(claims, Vec::new()), &Steering::default());
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
    assert_eq!(rehearse(&snapshot, &plan, &Steering::default()), expected);
}

#[test]
fn on_demand_last_waves_and_nominations_steer_both_home() {
    let (snapshot, plan) = contested();
    let home = Outcome {
        as_planned: 2,
        ..Outcome::default()
    };
    let releasing = |release| Steering {
        release,
        nominations: BTreeMap::new(),
    };
    let nominating = Steering {
        release: Release::Together,
        nominations: BTreeMap::from([(key("b-on-demand"), 1)]),
    };
    for steering in [
        releasing(Release::OnDemandLast),
        releasing(Release::Waves(vec![vec![0], vec![1]])),
        nominating,
    ] {
        assert_eq!(rehearse(&snapshot, &plan, &steering), home, "{steering:?}");
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
    assert_eq!(
        rehearse(&snapshot, &plan(claims, Vec::new()), &Steering::default()),
        expected
    );
}
