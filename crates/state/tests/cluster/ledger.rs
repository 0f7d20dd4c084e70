//! Limits of NodePools hold at every instant.

use std::sync::Arc;

use model::{
    object::{NodeClaim, NodeClaimName, ObjectKey},
    snapshot::{Catalog, CatalogType},
};
use proptest::prelude::*;
use serde_json::json;
use state::{LimitExceeded, State};

use crate::objects::{apply, at, claim, claim_name, cluster, delete, deleting, pool, resources};

fn reserve(state: &mut State, name: &str, cpu: &str, limit: &str) -> Result<(), LimitExceeded> {
    let (most, limits) = (resources(json!({ "cpu": cpu })), resources(json!({ "cpu": limit })));
    state.reserve(&pool(), &claim_name(name), &most, &limits, at(1))
}

fn open(state: &State) -> Vec<String> {
    state.reservations().map(|(claim, _)| claim.to_string()).collect()
}

#[test]
fn promises_count_until_their_claims_count_themselves() {
    let mut state = cluster();
    reserve(&mut state, "a", "6", "10").unwrap();
    let refused = reserve(&mut state, "b", "6", "10").unwrap_err();
    assert_eq!(
        refused.to_string(),
        "NodePool \"pool\" cannot take another node: 6 cpu on top of 6 would exceed its limit of 10; raise \
         spec.limits.cpu or let nodes go"
    );

    apply::<NodeClaim>(&mut state, claim("a", ""));
    assert_eq!(
        open(&state),
        ["a"],
        "seen, but it may still become anything it was promised"
    );
    assert_eq!(state.committed(&pool()).to_string(), r#"{"cpu":"6","nodes":"1"}"#);

    apply::<NodeClaim>(&mut state, claim("a", "id-a"));
    assert_eq!(open(&state), [""; 0]);
    assert_eq!(
        state.committed(&pool()).to_string(),
        r#"{"cpu":"4","memory":"8Gi","nodes":"1"}"#
    );
    reserve(&mut state, "b", "6", "10").unwrap();
}

#[test]
fn promise_ends_with_its_claim_or_when_it_is_taken_back() {
    let mut state = cluster();
    for name in ["gone", "leaving", "marked", "failed"] {
        reserve(&mut state, name, "1", "10").unwrap();
    }
    apply::<NodeClaim>(&mut state, claim("gone", ""));
    delete::<NodeClaim>(&mut state, &ObjectKey::cluster_scoped("gone"));
    apply::<NodeClaim>(&mut state, deleting(claim("leaving", "")));
    apply::<NodeClaim>(&mut state, claim("marked", ""));
    state.mark_for_deletion(&claim_name("marked"));
    assert_eq!(open(&state), ["failed"]);
    let released = state.release(&claim_name("failed")).unwrap();
    assert_eq!((released.pool, released.since), (pool(), at(1)));
    assert_eq!(state.committed(&pool()).to_string(), "{}");
}

#[test]
fn asking_again_for_the_same_claim_replaces_its_promise() {
    let mut state = cluster();
    reserve(&mut state, "a", "6", "10").unwrap();
    reserve(&mut state, "a", "8", "10").unwrap();
    assert_eq!(state.committed(&pool()).to_string(), r#"{"cpu":"8","nodes":"1"}"#);
}

#[test]
fn exceeded_limit_lets_nothing_in_that_does_not_ask_for_it_either() {
    let mut state = cluster();
    apply::<NodeClaim>(&mut state, claim("a", "id-a"));
    let limits = resources(json!({ "memory": "4Gi" }));
    let refused = state.reserve(
        &pool(),
        &claim_name("b"),
        &resources(json!({ "cpu": "1" })),
        &limits,
        at(1),
    );
    assert_eq!(refused.unwrap_err().resource.as_str(), "memory");
    let limits = resources(json!({ "nodes": "1" }));
    let refused = state.reserve(&pool(), &claim_name("b"), &resources(json!({})), &limits, at(1));
    assert_eq!(refused.unwrap_err().resource.as_str(), "nodes");
}

#[test]
fn after_a_restart_a_claim_that_is_not_launched_counts_as_the_most_it_can_become() {
    let entry = |name: &str, cpu: &str, memory: &str| {
        let json = json!({ "name": name, "capacity": { "cpu": cpu, "memory": memory } });
        Arc::new(serde_json::from_value::<CatalogType>(json).unwrap())
    };
    let mut state = cluster();
    let catalog = Catalog {
        instance_types: vec![
            entry("small", "2", "8Gi"),
            entry("large", "6", "4Gi"),
            entry("huge", "96", "1Ti"),
        ],
        ..Catalog::default()
    };
    state.set_catalog(catalog);
    apply::<NodeClaim>(&mut state, claim("a", ""));
    apply::<NodeClaim>(&mut state, deleting(claim("b", "")));
    assert_eq!(
        state.committed(&pool()).to_string(),
        r#"{"cpu":"6","memory":"8Gi","nodes":"1"}"#
    );
    assert!(reserve(&mut state, "c", "5", "10").is_err());
    assert!(reserve(&mut state, "c", "4", "10").is_ok());
}

#[test]
fn static_pool_gets_as_many_nodes_as_its_limit_leaves() {
    let names = |names: &[&str]| {
        names
            .iter()
            .map(|name| claim_name(name))
            .collect::<Vec<NodeClaimName>>()
    };
    let mut state = cluster();
    apply::<NodeClaim>(&mut state, claim("old", "id-o"));
    apply::<NodeClaim>(&mut state, deleting(claim("leaving", "id-l")));
    assert_eq!(
        state.reserve_nodes(&pool(), &names(&["a", "b", "c"]), Some(4), at(1)),
        2
    );
    assert_eq!(open(&state), ["a", "b"]);
    assert_eq!(state.reserve_nodes(&pool(), &names(&["c"]), Some(4), at(2)), 0);

    apply::<NodeClaim>(&mut state, claim("a", ""));
    assert_eq!(state.node_counts(&pool()).all(), 4, "seen or promised, it is one");
    state.release(&claim_name("b"));
    assert_eq!(state.reserve_nodes(&pool(), &names(&["c"]), Some(4), at(3)), 1);
    assert_eq!(state.reserve_nodes(&pool(), &names(&["d"]), None, at(3)), 1);
}

/// What happens to one of several claims.
#[derive(Debug, Clone, Copy)]
enum Step {
    Reserve(u8),
    Create(u8),
    Launch(u8),
    Delete(u8),
    Release(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let which = 0u8..6;
    prop_oneof![
        which.clone().prop_map(Step::Reserve),
        which.clone().prop_map(Step::Create),
        which.clone().prop_map(Step::Launch),
        which.clone().prop_map(Step::Delete),
        which.prop_map(Step::Release),
    ]
}

proptest! {
    /// A claim may only be created while it has a promise, and becomes 1 to 4 cpus of the 4 it was promised.
    #[test]
    fn usage_never_exceeds_the_limit_in_any_order_of_steps(steps in prop::collection::vec(step(), 0..60)) {
        let mut state = cluster();
        for step in steps {
            let name = |which: u8| format!("c{which}");
            let key = |which: u8| ObjectKey::cluster_scoped(&name(which));
            match step {
                Step::Reserve(which) if state.get::<NodeClaim>(&key(which)).is_none() => {
                    let _refused = reserve(&mut state, &name(which), "4", "10");
                }
                Step::Create(which) if open(&state).contains(&name(which)) => {
                    apply::<NodeClaim>(&mut state, claim(&name(which), ""));
                }
                Step::Launch(which) if state.get::<NodeClaim>(&key(which)).is_some() => {
                    let mut claim = claim(&name(which), &format!("id-{which}"));
                    claim["status"]["capacity"]["cpu"] = (1 + which % 4).to_string().into();
                    apply::<NodeClaim>(&mut state, claim);
                }
                Step::Delete(which) if state.get::<NodeClaim>(&key(which)).is_some() => {
                    delete::<NodeClaim>(&mut state, &key(which));
                }
                Step::Release(which) if state.get::<NodeClaim>(&key(which)).is_none() => {
                    drop(state.release(&claim_name(&name(which))));
                }
                _ => {}
            }
            let limit = resources(json!({ "cpu": "10" })).amount("cpu");
            prop_assert!(state.committed(&pool()).amount("cpu") <= limit);
            prop_assert!(state.usage(&pool()).amount("cpu") <= state.committed(&pool()).amount("cpu"));
        }
    }
}
