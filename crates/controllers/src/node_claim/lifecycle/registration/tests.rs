//! What does a node get when it registers, and when is it held back?

use serde_json::{Value, json};

use super::*;

fn node(json: Value) -> Node {
    serde_json::from_value(json).unwrap()
}

fn claim() -> NodeClaim {
    serde_json::from_value(json!({
        "metadata": {
            "name": "a", "uid": "u",
            "labels": {"team": "web", "zone": "claim"},
            "annotations": {"note": "claim", "dovetail.dev/launch-attempt": "1"},
        },
        "spec": {
            "taints": [{"key": "dedicated", "value": "web", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "cilium", "effect": "NoExecute"}],
        },
    }))
    .unwrap()
}

fn fresh_node() -> Node {
    node(json!({
        "metadata": {
            "name": "n", "labels": {"zone": "kubelet", "kubernetes.io/os": "linux"},
            "annotations": {"karpenter.sh/x": "node"}, "finalizers": ["other"],
        },
        "spec": {"providerID": "p", "taints": [
            {"key": "karpenter.sh/unregistered", "effect": "NoExecute"},
            {"key": "dedicated", "value": "other", "effect": "NoSchedule"},
        ]},
    }))
}

#[test]
fn a_registration_waits_for_exactly_one_node_and_is_never_judged_again() {
    let with = |status: &str| -> NodeClaim {
        serde_json::from_value(json!({"status": {"conditions": [{"type": "Registered", "status": status}]}})).unwrap()
    };
    let one = Arc::new(fresh_node());
    let cases = [
        (NodeClaim::default(), Joined::None, Decision::NotFound),
        (with("Unknown"), Joined::Several, Decision::Several),
        (
            with("Unknown"),
            Joined::One(Arc::clone(&one)),
            Decision::Register(Arc::clone(&one)),
        ),
        (with("True"), Joined::One(Arc::clone(&one)), Decision::Settled),
        (with("False"), Joined::One(one), Decision::Settled),
    ];
    for (claim, joined, expected) in cases {
        assert_eq!(decide(&claim, joined), expected);
    }
}

#[test]
fn a_node_gets_what_its_claim_wants_and_keeps_its_own() {
    let after = serde_json::to_value(released(synced(&claim(), &fresh_node()))).unwrap();
    let expected = json!({
        "metadata": {
            "name": "n",
            "labels": {"kubernetes.io/os": "linux", "team": "web", "zone": "claim", "karpenter.sh/registered": "true"},
            "annotations": {"karpenter.sh/x": "node", "note": "claim"},
            "finalizers": ["other", "karpenter.sh/termination"],
            "ownerReferences": [{
                "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "a", "uid": "u", "blockOwnerDeletion": true,
            }],
        },
        "spec": {"providerID": "p", "taints": [
            {"key": "dedicated", "value": "other", "effect": "NoSchedule"},
            {"key": "cilium", "effect": "NoExecute"},
        ]},
        "status": {},
    });
    assert_eq!(after, expected);
}

#[test]
fn syncing_twice_changes_nothing_more() {
    let once = synced(&claim(), &fresh_node());
    assert_eq!(synced(&claim(), &once), once);
    assert!(once.spec.taints.iter().any(is_unregistered));
}

#[test]
fn a_node_that_brings_its_own_taints_gets_none() {
    let own = labelled(fresh_node(), labels::DO_NOT_SYNC_TAINTS);
    let after = released(synced(&claim(), &own));
    let keys: Vec<&str> = after.spec.taints.iter().map(|taint| &*taint.key).collect();
    assert_eq!(keys, ["dedicated"]);
}

#[test]
fn another_owner_of_the_same_name_is_not_the_claim() {
    let mut claimed = fresh_node();
    claimed.metadata.owner_references = vec![OwnerReference {
        uid: "other".into(),
        ..owner(&claim())
    }]
    .into();
    let uids: Vec<String> = synced(&claim(), &claimed)
        .metadata
        .owner_references
        .iter()
        .map(|owner| owner.uid.to_string())
        .collect();
    assert_eq!(uids, ["other", "u"]);
}

#[test]
fn only_a_node_that_never_had_the_taint_lacks_it() {
    let cases = [
        (fresh_node(), false),
        (node(json!({"metadata": {"name": "n"}})), true),
        (
            node(json!({"metadata": {"labels": {"karpenter.sh/registered": "false"}}})),
            false,
        ),
        (
            node(json!({"spec": {"taints": [{"key": "karpenter.sh/unregistered", "effect": "NoSchedule"}]}})),
            true,
        ),
    ];
    for (node, expected) in cases {
        assert_eq!(lacks_taint(&node), expected, "{node:?}");
    }
}
