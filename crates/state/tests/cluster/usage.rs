//! Usage and counts of NodePools.

use model::{
    object::{Node, NodeClaim, ObjectKey},
    quantity::Quantity,
    resources::{ResourceList, ResourceName},
};
use proptest::prelude::*;
use serde_json::{Value, json};
use state::{NodeCounts, State};

use crate::objects::{apply, claim, claim_name, cluster, delete, deleting, node, pool};

fn usage(state: &State) -> String {
    state.usage(&pool()).to_string()
}

#[test]
fn pool_holds_what_its_claims_expect_until_their_nodes_say() {
    let mut state = cluster();
    apply::<NodeClaim>(&mut state, claim("a", ""));
    assert_eq!(usage(&state), "{}", "not launched");
    apply::<NodeClaim>(&mut state, claim("a", "id-a"));
    assert_eq!(usage(&state), r#"{"cpu":"4","memory":"8Gi","nodes":"1"}"#);

    let mut starting = node("n", "id-a");
    starting["metadata"]["labels"]["karpenter.sh/initialized"] = "false".into();
    starting["status"]["capacity"] = json!({ "cpu": "3", "memory": "0" });
    apply::<Node>(&mut state, starting);
    assert_eq!(usage(&state), r#"{"cpu":"3","memory":"8Gi","nodes":"1"}"#);
    apply::<Node>(&mut state, node("n", "id-a"));
    assert_eq!(
        usage(&state),
        r#"{"cpu":"3","hugepages-2Mi":"0","memory":"7Gi","nodes":"1"}"#
    );

    delete::<Node>(&mut state, &ObjectKey::cluster_scoped("n"));
    assert_eq!(usage(&state), r#"{"cpu":"4","memory":"8Gi","nodes":"1"}"#);
    delete::<NodeClaim>(&mut state, &ObjectKey::cluster_scoped("a"));
    assert_eq!(usage(&state), "{}");
}

#[test]
fn machine_on_its_way_out_does_not_count_in_its_pool() {
    let terminating = |mut claim: Value| {
        claim["status"]["conditions"] = json!([{ "type": "InstanceTerminating", "status": "True" }]);
        claim
    };
    let mut state = cluster();
    for (name, id) in [("a", "id-a"), ("b", "id-b"), ("c", "id-c"), ("d", "id-d")] {
        apply::<NodeClaim>(&mut state, claim(name, id));
    }
    apply::<NodeClaim>(&mut state, deleting(claim("a", "id-a")));
    apply::<NodeClaim>(&mut state, terminating(claim("b", "id-b")));
    state.mark_for_deletion(&claim_name("c"));
    assert_eq!(usage(&state), r#"{"cpu":"4","memory":"8Gi","nodes":"1"}"#);
    state.unmark_for_deletion(&claim_name("c"));
    assert_eq!(usage(&state), r#"{"cpu":"8","memory":"16Gi","nodes":"2"}"#);
}

#[test]
fn node_of_a_pool_counts_without_its_claim_and_a_foreign_node_never() {
    let mut state = cluster();
    apply::<Node>(&mut state, node("left-over", "id-a"));
    apply::<Node>(
        &mut state,
        json!({ "metadata": { "name": "foreign" }, "status": { "capacity": { "cpu": "9" } } }),
    );
    assert_eq!(
        usage(&state),
        r#"{"cpu":"3","hugepages-2Mi":"0","memory":"7Gi","nodes":"1"}"#
    );
    assert_eq!(state.machines().count(), 2);
}

#[test]
fn static_pool_counts_claims_by_where_they_are_in_their_life() {
    let mut state = cluster();
    apply::<NodeClaim>(&mut state, claim("unlaunched", ""));
    apply::<NodeClaim>(&mut state, claim("launched", "id-l"));
    apply::<NodeClaim>(&mut state, claim("marked", "id-m"));
    apply::<NodeClaim>(&mut state, claim("pending", "id-p"));
    apply::<NodeClaim>(&mut state, deleting(claim("deleting", "")));
    state.mark_for_deletion(&claim_name("marked"));
    state.mark_pending_disruption(&claim_name("pending"));
    let counts = NodeCounts {
        active: 2,
        pending_disruption: 1,
        deleting: 2,
        reserved: 0,
    };
    assert_eq!(state.node_counts(&pool()), counts);

    state.mark_for_deletion(&claim_name("pending"));
    state.unmark_for_deletion(&claim_name("marked"));
    let counts = NodeCounts {
        active: 3,
        pending_disruption: 0,
        deleting: 2,
        reserved: 0,
    };
    assert_eq!(state.node_counts(&pool()), counts);
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Claim {
        which: u8,
        is_launched: bool,
        is_deleting: bool,
    },
    Node {
        which: u8,
        is_registered: bool,
        cpu: u8,
    },
    DeleteClaim(u8),
    DeleteNode(u8),
    Mark(u8),
    Unmark(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let which = 0u8..3;
    prop_oneof![
        3 => (which.clone(), any::<bool>(), any::<bool>())
            .prop_map(|(which, is_launched, is_deleting)| Step::Claim { which, is_launched, is_deleting }),
        3 => (which.clone(), any::<bool>(), 0u8..4)
            .prop_map(|(which, is_registered, cpu)| Step::Node { which, is_registered, cpu }),
        1 => which.clone().prop_map(Step::DeleteClaim),
        1 => which.clone().prop_map(Step::DeleteNode),
        1 => which.clone().prop_map(Step::Mark),
        1 => which.prop_map(Step::Unmark),
    ]
}

fn take(state: &mut State, step: Step) {
    match step {
        Step::Claim {
            which,
            is_launched,
            is_deleting,
        } => {
            let id = if is_launched {
                format!("id-{which}")
            } else {
                String::new()
            };
            let claim = claim(&format!("c{which}"), &id);
            apply::<NodeClaim>(state, if is_deleting { deleting(claim) } else { claim });
        }
        Step::Node {
            which,
            is_registered,
            cpu,
        } => {
            let mut node = node(&format!("n{which}"), &format!("id-{which}"));
            node["metadata"]["labels"]["karpenter.sh/registered"] = is_registered.to_string().into();
            node["status"]["capacity"]["cpu"] = cpu.to_string().into();
            apply::<Node>(state, node);
        }
        Step::DeleteClaim(which) => {
            let key = ObjectKey::cluster_scoped(&format!("c{which}"));
            if state.get::<NodeClaim>(&key).is_some() {
                delete::<NodeClaim>(state, &key);
            }
        }
        Step::DeleteNode(which) => {
            let key = ObjectKey::cluster_scoped(&format!("n{which}"));
            if state.get::<Node>(&key).is_some() {
                delete::<Node>(state, &key);
            }
        }
        Step::Mark(which) => drop(state.mark_for_deletion(&claim_name(&format!("c{which}")))),
        Step::Unmark(which) => drop(state.unmark_for_deletion(&claim_name(&format!("c{which}")))),
    }
}

proptest! {
    /// The model counts all machines anew.
    #[test]
    fn usage_kept_by_changes_is_the_usage_counted_anew(steps in prop::collection::vec(step(), 0..40)) {
        let mut state = cluster();
        for step in steps {
            take(&mut state, step);
            let mut expected = ResourceList::EMPTY;
            for machine in state.machines() {
                if !state.is_marked_for_deletion(machine) && machine.node_pool().is_some() {
                    expected.add(&machine.capacity());
                }
            }
            prop_assert_eq!(state.usage(&pool()).to_string(), expected.to_string());
            let nodes = state.usage(&pool()).get(ResourceName::Nodes.as_str());
            prop_assert!(nodes.is_none_or(|nodes| nodes > Quantity::ZERO));
        }
    }
}
