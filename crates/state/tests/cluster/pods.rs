//! How long pods wait, and where they are meant to run.

use std::time::Duration;

use model::object::{NodePool, ObjectKey, Pod};
use state::{PodTimes, State};

use crate::objects::{apply, at, claim_name, cluster, delete, node_pool, pod, pod_key, pool};

fn waiting() -> (State, ObjectKey) {
    let mut state = cluster();
    apply::<NodePool>(&mut state, node_pool(1, "True"));
    apply::<Pod>(&mut state, pod("p", ""));
    state.acknowledge_pod(&pod_key("p"), at(1));
    (state, pod_key("p"))
}

#[test]
fn first_decision_tells_how_long_the_pod_waited_for_it() {
    let (mut state, pod) = waiting();
    state.acknowledge_pod(&pod, at(2));
    assert_eq!(state.mark_unschedulable(&pod, at(4)), Some(Duration::from_secs(3)));
    assert_eq!(state.mark_schedulable(&pod, Some(&pool()), at(7)), None);
    assert_eq!(state.mark_schedulable(&pod, Some(&pool()), at(9)), None);
    let times = PodTimes {
        acknowledged: Some(at(1)),
        decided: Some(at(4)),
        schedulable: Some(at(7)),
        schedulable_in_healthy_pool: Some(at(7)),
    };
    assert_eq!(state.pod_times(&pod), times);
}

#[test]
fn decision_on_a_pod_that_was_not_acknowledged_has_nothing_to_tell() {
    let mut state = cluster();
    apply::<Pod>(&mut state, pod("p", ""));
    assert_eq!(state.mark_schedulable(&pod_key("p"), None, at(4)), None);
    assert_eq!(state.pod_times(&pod_key("p")).schedulable, Some(at(4)));
}

#[test]
fn pod_that_loses_its_place_is_no_longer_schedulable() {
    let (mut state, pod) = waiting();
    state.mark_schedulable(&pod, Some(&pool()), at(2));
    state.map_pod_to_claim(&pod, &claim_name("a"));
    state.mark_unschedulable(&pod, at(3));
    let times = PodTimes {
        acknowledged: Some(at(1)),
        decided: Some(at(2)),
        ..PodTimes::default()
    };
    assert_eq!((state.pod_times(&pod), state.claim_of_pod(&pod)), (times, None));
}

#[test]
fn only_a_pool_whose_nodes_register_counts_as_healthy() {
    let (mut state, pod) = waiting();
    state.mark_schedulable(&pod, Some(&pool()), at(2));
    assert_eq!(state.pod_times(&pod).schedulable_in_healthy_pool, Some(at(2)));
    apply::<NodePool>(&mut state, node_pool(1, "Unknown"));
    state.mark_schedulable(&pod, Some(&pool()), at(3));
    assert_eq!(state.pod_times(&pod).schedulable_in_healthy_pool, None);
    apply::<NodePool>(&mut state, node_pool(1, "True"));
    state.mark_schedulable(&pod, Some(&pool()), at(4));
    assert_eq!(state.pod_times(&pod).schedulable_in_healthy_pool, Some(at(4)));
    state.mark_schedulable(&pod, None, at(5));
    assert_eq!(state.pod_times(&pod).schedulable_in_healthy_pool, None);
    assert_eq!(state.pod_times(&pod).schedulable, Some(at(2)));
}

#[test]
fn bound_pod_moves_and_does_not_wait() {
    let mut state = cluster();
    apply::<Pod>(&mut state, pod("p", "n"));
    assert_eq!(state.mark_schedulable(&pod_key("p"), None, at(2)), None);
    assert_eq!(state.pod_times(&pod_key("p")), PodTimes::default());
}

#[test]
fn pods_of_a_claim_are_those_last_meant_to_run_on_it() {
    let mut state = cluster();
    for name in ["a", "b", "c"] {
        apply::<Pod>(&mut state, pod(name, ""));
        state.map_pod_to_claim(&pod_key(name), &claim_name("one"));
    }
    state.map_pod_to_claim(&pod_key("b"), &claim_name("two"));
    state.map_pod_to_claim(&pod_key("unknown"), &claim_name("one"));
    let pods = |claim: &str| state.pods_of_claim(&claim_name(claim)).cloned().collect::<Vec<_>>();
    assert_eq!(pods("one"), [pod_key("a"), pod_key("c")]);
    assert_eq!(pods("two"), [pod_key("b")]);
    assert_eq!(state.claim_of_pod(&pod_key("b")), Some(&claim_name("two")));
}

#[test]
fn everything_about_a_pod_is_forgotten_with_it() {
    for is_replaced in [false, true] {
        let (mut state, key) = waiting();
        state.mark_schedulable(&key, Some(&pool()), at(2));
        state.map_pod_to_claim(&key, &claim_name("a"));
        if is_replaced {
            let mut another = pod("p", "");
            another["metadata"]["uid"] = "another".into();
            apply::<Pod>(&mut state, another);
        } else {
            delete::<Pod>(&mut state, &key);
        }
        assert_eq!(state.pod_times(&key), PodTimes::default());
        assert_eq!(
            (state.claim_of_pod(&key), state.pods_of_claim(&claim_name("a")).count()),
            (None, 0)
        );
    }
}

#[test]
fn pod_that_runs_is_forgotten_when_asked_to() {
    let (mut state, pod) = waiting();
    state.map_pod_to_claim(&pod, &claim_name("a"));
    state.forget_pod_times(&pod);
    assert_eq!(
        (state.pod_times(&pod), state.claim_of_pod(&pod)),
        (PodTimes::default(), None)
    );
}
