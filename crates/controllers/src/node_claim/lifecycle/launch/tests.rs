//! What follows from each answer of the cloud to a launch?

use model::object::{Map, Text};
use serde_json::json;

use super::*;

fn now() -> Timestamp {
    "2026-11-16T10:01:00Z".parse().unwrap()
}

fn claim() -> NodeClaim {
    serde_json::from_value(json!({
        "metadata": {
            "name": "a", "uid": "u", "generation": 1, "creationTimestamp": "2026-11-16T10:00:00Z",
            "labels": {"team": "web", "karpenter.sh/capacity-type": "spot"},
            "annotations": {"note": "ours", "dovetail.dev/launch-attempt": "1"},
        },
    }))
    .unwrap()
}

fn with_launched(status: &str) -> NodeClaim {
    let mut claim = claim();
    claim.status = serde_json::from_value(json!({"conditions": [{"type": "Launched", "status": status}]})).unwrap();
    claim
}

fn launched() -> Launched {
    let pairs = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter().map(|(key, value)| (Text::from(*key), Text::from(*value)));
        Map::from_pairs(pairs.collect())
    };
    Launched {
        provider_id: "kwok://a".into(),
        image_id: "image".into(),
        capacity: [("cpu".into(), "4".parse().unwrap())].into_iter().collect(),
        allocatable: [("cpu".into(), "3900m".parse().unwrap())].into_iter().collect(),
        labels: pairs(&[
            ("karpenter.sh/capacity-type", "on-demand"),
            ("topology.kubernetes.io/zone", "z"),
        ]),
        annotations: pairs(&[("note", "theirs"), ("hash", "7")]),
    }
}

fn shown(claim: &NodeClaim) -> (ConditionStatus, String, String) {
    let condition = claim.condition("Launched").unwrap();
    (
        condition.status,
        condition.reason.to_string(),
        condition.message.to_string(),
    )
}

#[test]
fn the_cloud_is_asked_once_for_each_attempt_on_record() {
    let token = |attempt| {
        Decision::Ask(LaunchToken {
            claim: "u".into(),
            attempt,
        })
    };
    let mut second = claim();
    record_attempt(&mut second, 2);
    let cases = [
        (claim(), Recall::Nothing, token(1)),
        (second, Recall::Nothing, token(2)),
        (with_launched("Unknown"), Recall::Failed, token(1)),
        (
            with_launched("Unknown"),
            Recall::Launched(launched()),
            Decision::Adopt(launched()),
        ),
        (with_launched("True"), Recall::Launched(launched()), Decision::Settled),
        (with_launched("False"), Recall::Nothing, Decision::Settled),
    ];
    for (claim, recall, expected) in cases {
        assert_eq!(decide(&claim, recall), expected);
    }
}

#[test]
fn finalizer_and_attempt_are_on_record_before_a_launch_and_written_together() {
    let bare: NodeClaim = serde_json::from_value(json!({"metadata": {"finalizers": ["other"]}})).unwrap();
    let after = prepared(&bare).unwrap();
    let expected = json!({
        "finalizers": ["other", "karpenter.sh/termination"],
        "annotations": {"dovetail.dev/launch-attempt": "1"},
    });
    assert_eq!(serde_json::to_value(&after.metadata).unwrap(), expected);
    assert_eq!(prepared(&after), None);
}

#[test]
fn a_claim_that_another_controller_launched_gets_no_attempt() {
    let mut claim = with_launched("True");
    claim.metadata.annotations = Map::default();
    let after = prepared(&claim).unwrap();
    assert_eq!((after.metadata.finalizers.len(), attempt(&after)), (1, None));
}

#[test]
fn labels_of_the_claim_and_annotations_of_the_cloud_win() {
    let mut claim = claim();
    adopt(&mut claim, &launched(), now());
    let written = serde_json::to_value(&claim).unwrap();
    let labels = json!({"team": "web", "karpenter.sh/capacity-type": "spot", "topology.kubernetes.io/zone": "z"});
    let annotations = json!({"note": "theirs", "hash": "7", "dovetail.dev/launch-attempt": "1"});
    assert_eq!(
        (&written["metadata"]["labels"], &written["metadata"]["annotations"]),
        (&labels, &annotations)
    );
    let status = &written["status"];
    let facts = [
        &status["providerID"],
        &status["imageID"],
        &status["capacity"],
        &status["allocatable"],
    ];
    assert_eq!(
        facts,
        [
            &json!("kwok://a"),
            &json!("image"),
            &json!({"cpu": "4"}),
            &json!({"cpu": "3900m"})
        ]
    );
    assert_eq!(
        shown(&claim),
        (ConditionStatus::True, "Launched".to_owned(), String::new())
    );
}

#[test]
fn a_failed_launch_ends_the_claim_or_is_tried_again_by_its_class() {
    let unknown = |reason: &str, message: &str| Some((ConditionStatus::Unknown, reason.to_owned(), message.to_owned()));
    let cases = [
        (
            CloudError::InsufficientCapacity {
                message: "none".to_owned(),
                offerings: Vec::new(),
            },
            Verdict::GiveUp(Reason::InsufficientCapacity),
            None,
        ),
        (
            CloudError::NodeClassNotReady("why".to_owned()),
            Verdict::GiveUp(Reason::NodeClassNotReady),
            None,
        ),
        (
            CloudError::Create {
                reason: "NoSubnet".to_owned(),
                message: "x".repeat(2000),
            },
            Verdict::Retry,
            unknown("NoSubnet", &"x".repeat(2000)),
        ),
        (
            CloudError::Terminal {
                reason: "Unauthorized".to_owned(),
                message: "no permission".to_owned(),
            },
            Verdict::Wait,
            unknown("Unauthorized", "no permission"),
        ),
        (
            CloudError::Other("broken".to_owned()),
            Verdict::Retry,
            unknown("LaunchFailed", "broken"),
        ),
        (
            CloudError::Other("x".repeat(1025)),
            Verdict::Retry,
            unknown("LaunchFailed", &format!("{}...", "x".repeat(1021))),
        ),
    ];
    for (error, verdict, condition) in cases {
        let mut claim = claim();
        assert_eq!(refuse(&mut claim, &error, now()), verdict, "{error}");
        let condition_now = claim.condition("Launched").map(|_| shown(&claim));
        assert_eq!((condition_now, attempt(&claim)), (condition, Some(1)), "{error}");
    }
}

#[test]
fn the_attempt_is_raised_only_when_its_machine_is_gone() {
    let mut claim = claim();
    assert_eq!(
        refuse(&mut claim, &CloudError::NotFound("i-1".to_owned()), now()),
        Verdict::Retry
    );
    assert_eq!(attempt(&claim), Some(2));
}

#[test]
fn a_long_message_is_cut_between_characters() {
    let cut = shortened(&"ü".repeat(600));
    assert_eq!(cut, format!("{}...", "ü".repeat(510)));
    assert_eq!(shortened(&"x".repeat(1024)), "x".repeat(1024));
}

#[test]
fn the_event_names_claim_and_error() {
    let error = CloudError::InsufficientCapacity {
        message: "no spot".to_owned(),
        offerings: Vec::new(),
    };
    let event = insufficient_capacity(&claim(), &error);
    let said = (&*event.reason, event.message.as_str(), event.dedupe);
    let message = "NodeClaim a event: insufficient capacity, no spot";
    assert_eq!(said, ("InsufficientCapacityError", message, vec!["u".to_owned()]));
}
