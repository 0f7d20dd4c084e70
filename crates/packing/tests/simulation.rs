//! Are simulations on a prepared cluster the same as planning the changed cluster from scratch?
#![allow(clippy::unwrap_used, reason = "a test")]

mod generated;

use std::sync::Arc;

use generated::{faithful, read};
use model::{object::NodeName, plan::Plan, snapshot::Snapshot};
use packing::{Prepared, UnknownNode, plan};
use workloads::{Shape, diverse::Types};

fn fleet(name: &str) -> Snapshot {
    let shape = Shape::named(name, Some(150), Types::Fake400, 1).unwrap();
    read(&shape.generate())
}

fn random(seed: u64) -> Snapshot {
    read(&workloads::random::random(seed))
}

/// The same cluster with a node's claim marked for deletion, so that planning it moves the node's pods.
fn leaving(snapshot: &Snapshot, node: &NodeName) -> Option<Snapshot> {
    let claim = snapshot.claim_of_node(snapshot.node(node)?)?;
    let mut claim = (**claim).clone();
    claim.metadata.deletion_timestamp = Some(snapshot.taken_at());
    Some(snapshot.overlaid(|objects| objects.node_claims = objects.node_claims.with([Arc::new(claim)])))
}

type Placed = (Vec<(NodeName, Vec<String>)>, Vec<Vec<String>>, Vec<String>);

/// Who is where, in words that two plans can be compared by.
fn places(plan: &Plan) -> Placed {
    let names = |pods: &[Arc<model::object::Pod>]| pods.iter().map(|pod| pod.metadata.name.to_string()).collect();
    let existing = plan.existing.iter().map(|node| (node.name.clone(), names(&node.pods)));
    let claims = plan.claims.iter().map(|claim| names(&claim.pods));
    let unplaced = plan.unplaced.iter().map(|entry| entry.pod.metadata.name.to_string());
    (existing.collect(), claims.collect(), unplaced.collect())
}

#[test]
fn removing_any_one_node_moves_its_pods_as_planning_without_it_would() {
    for name in ["fleet-mixed", "fleet-basic"] {
        let snapshot = fleet(name);
        let prepared = Prepared::new(&snapshot, &faithful());
        let mut simulator = prepared.simulator();
        let mut compared = 0;
        for node in prepared.nodes() {
            let Some(changed) = leaving(&snapshot, node) else {
                continue;
            };
            let simulated = simulator.without(std::slice::from_ref(node)).unwrap();
            assert_eq!(
                places(&simulated.plan),
                places(&plan(&changed, &faithful())),
                "{name}: {node}"
            );
            compared += 1;
        }
        assert!(compared > 0, "{name} has nodes");
    }
}

#[test]
fn a_simulation_leaves_nothing_behind() {
    let snapshot = fleet("fleet-mixed");
    let prepared = Prepared::new(&snapshot, &faithful());
    let nodes: Vec<NodeName> = prepared.nodes().cloned().collect();
    let first: Vec<_> = {
        let mut simulator = prepared.simulator();
        nodes
            .iter()
            .map(|node| simulator.without(std::slice::from_ref(node)).unwrap().plan)
            .collect()
    };
    let mut simulator = prepared.simulator();
    simulator.without(&nodes).unwrap();
    for (node, expected) in nodes.iter().zip(first).rev() {
        let again = simulator.without(std::slice::from_ref(node)).unwrap();
        assert_eq!(places(&again.plan), places(&expected), "{node}");
    }
}

#[test]
fn random_clusters_are_simulated_the_same_twice() {
    for seed in 1..12 {
        let snapshot = random(seed);
        let prepared = Prepared::new(&snapshot, &faithful());
        let mut simulator = prepared.simulator();
        for node in prepared.nodes() {
            let once = simulator.without(std::slice::from_ref(node)).unwrap();
            let twice = simulator.without(std::slice::from_ref(node)).unwrap();
            assert_eq!(places(&once.plan), places(&twice.plan), "seed {seed}: {node}");
        }
    }
}

#[test]
fn moving_a_nodes_pods_takes_work_in_proportion_to_the_pods() {
    let snapshot = fleet("fleet-mixed");
    let prepared = Prepared::new(&snapshot, &faithful());
    let mut simulator = prepared.simulator();
    let node = prepared.nodes().next().unwrap().clone();
    simulator.without(std::slice::from_ref(&node)).unwrap();
    let simulation = simulator.without(std::slice::from_ref(&node)).unwrap();
    let words = prepared.nodes().count().div_ceil(64) as u64;
    let limit = (simulation.moved as u64 + 1) * (words + 4);
    assert!(simulation.work.words <= limit * 4, "{:?}", simulation.work);
}

#[test]
fn a_node_nobody_knows_is_refused_by_name() {
    let prepared = Prepared::new(&fleet("fleet-mixed"), &faithful());
    let unknown = NodeName::from("nowhere");
    let refused = prepared.simulator().without(std::slice::from_ref(&unknown));
    assert_eq!(refused, Err(UnknownNode(unknown)));
}
