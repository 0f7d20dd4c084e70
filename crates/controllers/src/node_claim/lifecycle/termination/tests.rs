#![allow(
    clippy::needless_pass_by_value,
    reason = "a literal reads better without a reference"
)]

use cloud::Launched;
use serde_json::{Value, json};

use super::*;

/// A claim deleted at 10:00 with our finalizer, and more.
fn claim(more: Value) -> NodeClaim {
    let mut json = json!({
        "metadata": {
            "name": "a", "deletionTimestamp": "2026-11-16T10:00:00Z",
            "finalizers": ["other", "karpenter.sh/termination"],
        },
        "spec": {}, "status": {},
    });
    for (part, fields) in more.as_object().unwrap() {
        for (field, value) in fields.as_object().unwrap() {
            json[part][field] = value.clone();
        }
    }
    serde_json::from_value(json).unwrap()
}

fn node(metadata: Value) -> Arc<Node> {
    Arc::new(serde_json::from_value(json!({ "metadata": metadata })).unwrap())
}

#[test]
fn nodes_go_first_then_the_machine_then_the_claim() {
    let registered = json!([{"type": "Registered", "status": "True"}]);
    let staying = node(json!({"name": "n"}));
    let going = node(json!({"name": "m", "deletionTimestamp": "2026-11-16T10:00:00Z"}));
    let opened = node(json!({"name": "o", "labels": {"karpenter.sh/registered": "true"}}));
    let launched = json!({"status": {"providerID": "p"}});
    let joined = json!({"status": {"providerID": "p", "conditions": registered}});
    let attempted = json!({"metadata": {"annotations": {"dovetail.dev/launch-attempt": "1"}}});
    let recalled = || Recall::Launched(Launched::default());
    let cases = [
        (
            claim(json!({"metadata": {"finalizers": ["other"]}})),
            vec![],
            Recall::Nothing,
            Decision::LetGo,
        ),
        (
            claim(joined.clone()),
            vec![Arc::clone(&staying), Arc::clone(&going)],
            Recall::Nothing,
            Decision::DeleteNodes(vec![Arc::clone(&staying)]),
        ),
        (
            claim(joined.clone()),
            vec![going],
            Recall::Nothing,
            Decision::DeleteNodes(vec![]),
        ),
        (claim(joined), vec![], Recall::Nothing, Decision::DeleteInstance),
        // The process died between opening the node and writing that down.
        (
            claim(launched.clone()),
            vec![Arc::clone(&opened)],
            Recall::Nothing,
            Decision::DeleteNodes(vec![opened]),
        ),
        // Nobody deletes the node of a claim that never registered: it goes with its machine.
        (
            claim(launched),
            vec![staying],
            Recall::Nothing,
            Decision::DeleteInstance,
        ),
        (claim(json!({})), vec![], Recall::Nothing, Decision::RemoveFinalizer),
        (
            claim(attempted.clone()),
            vec![],
            Recall::Nothing,
            Decision::DeleteInstance,
        ),
        (claim(attempted.clone()), vec![], recalled(), Decision::DeleteInstance),
        (claim(attempted), vec![], Recall::Failed, Decision::RemoveFinalizer),
    ];
    for (claim, nodes, recall, expected) in cases {
        assert_eq!(decide(&claim, &nodes, &recall), expected, "{claim:?}");
    }
}

#[test]
fn the_end_of_the_grace_period_is_written_down_once() {
    let graced = claim(json!({"spec": {"terminationGracePeriod": "1h30m"}}));
    let decision = decide(&graced, &[], &Recall::Nothing);
    let deadline: Timestamp = "2026-11-16T11:30:00Z".parse().unwrap();
    assert_eq!(decision, Decision::AnnotateDeadline(deadline));
    let after = annotated(&graced, &written(deadline));
    let expected = json!({"karpenter.sh/nodeclaim-termination-timestamp": "2026-11-16T11:30:00Z"});
    assert_eq!(
        serde_json::to_value(&after).unwrap()["metadata"]["annotations"],
        expected
    );
    assert_eq!(decide(&after, &[], &Recall::Nothing), Decision::RemoveFinalizer);
    let unreadable = annotated(&graced, "soon");
    assert_eq!(decide(&unreadable, &[], &Recall::Nothing), Decision::RemoveFinalizer);
}

#[test]
fn other_finalizers_stay() {
    let after = without_finalizer(&claim(json!({})));
    let left: Vec<&str> = after.metadata.finalizers.iter().map(|finalizer| &**finalizer).collect();
    assert_eq!(left, ["other"]);
}
