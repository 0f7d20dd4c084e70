//! Passes over whole clusters, without one: what is pending, and what is decided.

use model::snapshot::Snapshot;
use serde_json::{Value, json};

use super::{
    claim::Draft,
    decide::Step,
    fixture::{node_pool, pending, snapshot},
    pass::{Manner, pass},
};

fn drafts(snapshot: &Snapshot) -> Vec<Draft> {
    let outcome = pass(snapshot, &Manner::default(), &mut packing::Warm::default());
    let drafts = outcome.steps.into_iter().filter_map(|step| match step {
        Step::Create(draft) => Some(*draft),
        _ => None,
    });
    drafts.collect()
}

fn refusals(snapshot: &Snapshot) -> usize {
    let outcome = pass(snapshot, &Manner::default(), &mut packing::Warm::default());
    let is_refusal = |step: &&Step| matches!(step, Step::Refuse(_));
    outcome.steps.iter().filter(is_refusal).count()
}

/// The claim of a draft as the API server would hold it.
fn stored(draft: &Draft, created: &str) -> Value {
    let mut claim = draft.document();
    claim["metadata"]["uid"] = json!(format!("{}-uid", draft.claim.metadata.name));
    claim["metadata"]["creationTimestamp"] = created.into();
    claim
}

#[test]
fn pending_pod_becomes_a_claim_with_everything_its_template_and_plan_say() {
    let snapshot = snapshot(&["p"], vec![node_pool("p", &json!({})), pending("web", "3")]);
    let drafts = drafts(&snapshot);
    let [draft] = &drafts[..] else {
        panic!("{drafts:?}");
    };
    let name = draft.claim.metadata.name.to_string();
    assert!(name.starts_with("p-") && name.len() == 7, "{name}");
    let hash = super::claim::hash(&draft.pool).unwrap();
    let one = |key: &str, values: &[&str]| json!({ "key": key, "operator": "In", "values": values });
    let expected = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {
            "name": name,
            "labels": {
                "karpenter.sh/nodepool": "p", "karpenter.kwok.sh/kwoknodeclass": "default", "team": "a", "tier": "gold",
            },
            "annotations": {
                "note": "kept", "karpenter.sh/nodepool-hash": hash, "karpenter.sh/nodepool-hash-version": "v3",
                "karpenter.sh/nodeclaim-min-values-relaxed": "false", "dovetail.dev/launch-attempt": "1",
            },
            "finalizers": ["karpenter.sh/termination"],
            "ownerReferences": [{
                "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "p", "uid": "p-uid", "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "taints": [{ "key": "dedicated", "effect": "NoSchedule" }],
            "startupTaints": [{ "key": "cni", "effect": "NoExecute" }],
            "requirements": [
                one("karpenter.kwok.sh/kwoknodeclass", &["default"]),
                one("karpenter.sh/capacity-type", &["on-demand"]),
                one("karpenter.sh/nodepool", &["p"]),
                one("node.kubernetes.io/instance-type", &["large"]),
                one("team", &["a"]),
                one("tier", &["gold"]),
            ],
            "resources": { "requests": { "cpu": "3", "pods": "1" } },
            "nodeClassRef": { "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default" },
            "terminationGracePeriod": "1h30m0s",
            "expireAfter": "720h",
        },
    });
    assert_eq!(draft.document(), expected);
}

#[test]
fn pass_while_claims_are_in_flight_creates_nothing_new_for_their_pods() {
    let mut objects = vec![node_pool("p", &json!({}))];
    objects.extend((0..40).map(|at| pending(&format!("web-{at}"), "3")));
    let first = drafts(&snapshot(&["p"], objects.clone()));
    assert!(first.len() > 1);
    let mut later = objects.clone();
    later.extend(first.iter().map(|draft| stored(draft, "2026-11-16T12:09:58Z")));
    assert_eq!(drafts(&snapshot(&["p"], later.clone())), []);
    later.push(pending("late", "8"));
    let more = drafts(&snapshot(&["p"], later));
    assert_eq!(more.len(), 1, "one more machine for one more pod, whoever gets which");
}

#[test]
fn claim_that_was_not_launched_in_time_counts_no_longer() {
    let objects = vec![node_pool("p", &json!({})), pending("web", "3")];
    let first = drafts(&snapshot(&["p"], objects.clone()));
    let with = |created: &str| {
        let mut objects = objects.clone();
        objects.push(stored(&first[0], created));
        drafts(&snapshot(&["p"], objects)).len()
    };
    assert_eq!(with("2026-11-16T12:05:01Z"), 0);
    assert_eq!(with("2026-11-16T12:05:00Z"), 1);
}

#[test]
fn second_claim_for_the_same_pods_has_another_name() {
    let objects = vec![node_pool("p", &json!({})), pending("web", "3")];
    let first = drafts(&snapshot(&["p"], objects.clone()));
    assert_eq!(
        first,
        drafts(&snapshot(&["p"], objects.clone())),
        "asked twice, it is one claim"
    );
    let mut later = objects;
    later.push(stored(&first[0], "2026-11-16T12:00:00Z"));
    let second = drafts(&snapshot(&["p"], later));
    assert_ne!(first[0].claim.metadata.name, second[0].claim.metadata.name);
    assert!(second[0].is_made(&first[0].claim));
}

#[test]
fn claim_in_flight_takes_the_most_it_may_become_of_its_pools_limits() {
    let limited = node_pool("p", &json!({ "limits": { "cpu": "8" } }));
    let objects = vec![limited, pending("one", "1")];
    let first = drafts(&snapshot(&["p"], objects.clone()));
    assert_eq!(first[0].most.amount("cpu").to_string(), "8");
    let mut later = objects;
    later.push(stored(&first[0], "2026-11-16T12:09:58Z"));
    later.push(pending("two", "6"));
    assert_eq!(drafts(&snapshot(&["p"], later.clone())), []);
    assert_eq!(refusals(&snapshot(&["p"], later)), 1);
}

#[test]
fn unready_pool_gets_no_claims_and_others_go_on() {
    let mut broken = node_pool("broken", &json!({ "weight": 100 }));
    broken["status"]["conditions"][0]["status"] = "False".into();
    let objects = vec![broken, node_pool("good", &json!({})), pending("web", "1")];
    let drafts = drafts(&snapshot(&["broken", "good"], objects));
    let pools: Vec<_> = drafts.iter().map(|draft| &*draft.pool.metadata.name).collect();
    assert_eq!(pools, ["good"]);
}
