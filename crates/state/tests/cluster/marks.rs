//! Marks live as long as what they mark, and say when consolidation should look again.

use std::{collections::BTreeMap, time::Duration};

use model::object::{Node, NodeClaim, NodePool, ObjectKey, Pod, ProviderId};
use serde_json::json;
use state::{Change, State, nomination_window};

use crate::objects::{apply, at, claim, claim_name, cluster, delete, deleting, node, node_pool, pod, pod_key, pool};

#[test]
fn mark_for_deletion_tells_who_listens_to_claims_once() {
    let mut state = cluster();
    apply::<NodeClaim>(&mut state, claim("a", "id-a"));
    let Some(Change::NodeClaim(heard)) = state.mark_for_deletion(&claim_name("a")) else {
        panic!("a change of the claim")
    };
    assert_eq!(heard.before, heard.after);
    assert_eq!(state.mark_for_deletion(&claim_name("a")), None);
    assert_eq!(state.mark_for_deletion(&claim_name("unknown")), None);
    assert_eq!(state.marked_for_deletion().collect::<Vec<_>>(), [claim_name("a")]);
    assert!(state.unmark_for_deletion(&claim_name("a")).is_some());
    assert_eq!(state.unmark_for_deletion(&claim_name("a")), None);
}

#[test]
fn marks_of_a_claim_die_with_it_even_when_another_takes_its_name() {
    for is_replaced in [false, true] {
        let mut state = cluster();
        apply::<NodeClaim>(&mut state, claim("a", "id-a"));
        state.mark_for_deletion(&claim_name("a"));
        let mut another = claim("a", "id-b");
        another["metadata"]["uid"] = "another".into();
        if !is_replaced {
            delete::<NodeClaim>(&mut state, &ObjectKey::cluster_scoped("a"));
        }
        apply::<NodeClaim>(&mut state, another);
        assert_eq!(state.marked_for_deletion().count(), 0);
        assert_eq!(
            state.usage(&pool()).to_string(),
            r#"{"cpu":"4","memory":"8Gi","nodes":"1"}"#
        );
    }
}

#[test]
fn nomination_lasts_for_its_window_and_is_extended_by_the_next() {
    let window = nomination_window(Duration::from_secs(10));
    assert_eq!(window, Duration::from_secs(20));
    assert_eq!(nomination_window(Duration::from_secs(1)), Duration::from_secs(10));
    let mut state = cluster();
    state.nominate("id-a", at(0), window);
    assert!(!state.is_nominated("id-a", at(1)), "no such machine");
    apply::<NodeClaim>(&mut state, claim("a", "id-a"));
    state.nominate("id-a", at(0), window);
    state.nominate("id-a", at(15), window);
    let during: Vec<bool> = [0, 34, 35].map(|second| state.is_nominated("id-a", at(second))).into();
    assert_eq!(during, [true, true, false]);
}

#[test]
fn nomination_and_buffer_pods_die_with_the_machine_not_with_one_of_its_parts() {
    let id = ProviderId::from("id-a");
    let mut state = cluster();
    apply::<NodeClaim>(&mut state, claim("a", "id-a"));
    apply::<Node>(&mut state, node("n", "id-a"));
    state.nominate("id-a", at(0), Duration::from_secs(20));
    state.set_buffer_pods(BTreeMap::from([(id.clone(), 2)]));
    delete::<NodeClaim>(&mut state, &ObjectKey::cluster_scoped("a"));
    assert_eq!((state.is_nominated("id-a", at(1)), state.buffer_pods(&id)), (true, 2));
    delete::<Node>(&mut state, &ObjectKey::cluster_scoped("n"));
    assert_eq!((state.is_nominated("id-a", at(1)), state.buffer_pods(&id)), (false, 0));
}

/// Changes the state.
type Do = Box<dyn FnOnce(&mut State)>;

/// Whether consolidation looks again after each of these steps.
fn looks_again(steps: Vec<(&'static str, Do)>) -> Vec<(&'static str, bool)> {
    let mut state = cluster();
    let mut last = state.consolidation_state(at(0));
    let mut looks = Vec::new();
    for (name, step) in steps {
        step(&mut state);
        let seen = state.consolidation_state(at(0));
        looks.push((name, seen > last));
        last = seen;
    }
    looks
}

#[test]
fn consolidation_looks_again_after_what_may_make_it_possible() {
    let labelled = |key: &str, value: &str| {
        let mut node = node("n", "id-a");
        node["metadata"]["labels"][key] = value.into();
        node
    };
    let starting = labelled("karpenter.sh/initialized", "false");
    let (started, relabelled) = (node("n", "id-a"), labelled("team", "a"));
    let steps: Vec<(&str, bool, Do)> = vec![
        ("nothing", false, Box::new(|_| {})),
        (
            "claim not launched",
            false,
            Box::new(|state| apply::<NodeClaim>(state, claim("a", ""))),
        ),
        (
            "claim launched",
            true,
            Box::new(|state| apply::<NodeClaim>(state, claim("a", "id-a"))),
        ),
        (
            "node joins",
            false,
            Box::new(move |state| apply::<Node>(state, starting)),
        ),
        (
            "node initialised",
            true,
            Box::new(move |state| apply::<Node>(state, started)),
        ),
        (
            "node relabelled",
            false,
            Box::new(move |state| apply::<Node>(state, relabelled)),
        ),
        (
            "pod pending",
            false,
            Box::new(|state| apply::<Pod>(state, pod("p", ""))),
        ),
        ("pod bound", true, Box::new(|state| apply::<Pod>(state, pod("p", "n")))),
        (
            "pod changes",
            false,
            Box::new(|state| apply::<Pod>(state, pod("p", "n"))),
        ),
        ("pod gone", true, Box::new(|state| delete::<Pod>(state, &pod_key("p")))),
        (
            "marked",
            true,
            Box::new(|state| drop(state.mark_for_deletion(&claim_name("a")))),
        ),
        (
            "deleting",
            false,
            Box::new(|state| apply::<NodeClaim>(state, deleting(claim("a", "id-a")))),
        ),
        (
            "node gone",
            true,
            Box::new(|state| delete::<Node>(state, &ObjectKey::cluster_scoped("n"))),
        ),
        (
            "claim gone",
            true,
            Box::new(|state| delete::<NodeClaim>(state, &ObjectKey::cluster_scoped("a"))),
        ),
        (
            "pool",
            true,
            Box::new(|state| apply::<NodePool>(state, node_pool(1, "True"))),
        ),
        (
            "status of pool",
            false,
            Box::new(|state| apply::<NodePool>(state, node_pool(1, "False"))),
        ),
        (
            "spec of pool",
            true,
            Box::new(|state| apply::<NodePool>(state, node_pool(2, "False"))),
        ),
        ("overlays", true, Box::new(State::mark_unconsolidated)),
    ];
    let expected: Vec<_> = steps.iter().map(|(name, expected, _)| (*name, *expected)).collect();
    let steps = steps.into_iter().map(|(name, _, step)| (name, step)).collect();
    assert_eq!(looks_again(steps), expected);
}

#[test]
fn consolidation_looks_again_every_five_minutes_without_any_change() {
    let mut state = cluster();
    let first = state.consolidation_state(at(0));
    assert_eq!(state.consolidation_state(at(299)), first);
    assert_eq!(state.consolidation_state(at(300)), at(300));
}

#[test]
fn machine_is_the_node_and_the_claim_of_one_provider_id() {
    let mut state = cluster();
    apply::<NodeClaim>(&mut state, claim("a", "id-a"));
    apply::<Node>(&mut state, node("n", "id-a"));
    apply::<Node>(&mut state, json!({ "metadata": { "name": "foreign" } }));
    let names = |id: &str| {
        let machine = state.machine(id)?;
        let claim = machine.claim.map(|claim| claim.metadata.name.to_string());
        Some((machine.node.map(|node| node.metadata.name.to_string()), claim))
    };
    assert_eq!(names("id-a"), Some((Some("n".to_owned()), Some("a".to_owned()))));
    assert_eq!(names("foreign"), Some((Some("foreign".to_owned()), None)));
    assert_eq!(names("n"), None, "a node with a provider ID goes by that");
    assert!(state.machine_of_node(&"n".into()).unwrap().claim.is_some());
}
