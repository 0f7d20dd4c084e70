//! Is a plan the same whether or not something was kept from the plan before?
#![allow(clippy::unwrap_used, reason = "a test")]

mod generated;

use generated::{faithful, read};
use model::object::{Given, NodePool, Pod};
use packing::{Prepared, Warm, plan};
use workloads::{Shape, diverse::Types};

#[test]
fn a_plan_is_the_same_with_what_other_plans_left() {
    let mut warm = Warm::default();
    for seed in 1..40 {
        let snapshot = read(&workloads::random::random(seed));
        let cold = plan(&snapshot, &faithful());
        for turn in ["first", "second"] {
            assert_eq!(warm.plan(&snapshot, &faithful()), cold, "seed {seed}, {turn} time");
        }
    }
}

#[test]
fn a_plan_follows_the_pools_and_pods_of_its_own_snapshot() {
    let mut warm = Warm::default();
    let types = Types::Fake400;
    let snapshot = read(&Shape::Diverse { pods: 100, types }.generate());
    warm.plan(&snapshot, &faithful());
    let pool = snapshot.objects().node_pools.iter().next().unwrap();
    let narrower: NodePool = {
        let mut pool = (**pool).clone();
        pool.spec.template.metadata.labels = Given::default();
        pool.spec.limits = model::resources::ResourceList::EMPTY;
        pool
    };
    let pods = snapshot.objects().pods.iter().take(40).map(|pod| {
        let pod: Pod = (**pod).clone();
        pod.metadata.key()
    });
    let changed = snapshot.with_node_pool(narrower).without_pods(pods);
    let cold = plan(&changed, &faithful());
    assert_eq!(warm.plan(&changed, &faithful()), cold);
    assert_ne!(warm.plan(&snapshot, &faithful()), cold);
    assert_eq!(warm.plan(&snapshot, &faithful()), plan(&snapshot, &faithful()));
}

#[test]
fn simulations_are_the_same_with_what_plans_left() {
    let mut warm = Warm::default();
    let snapshot = read(&Shape::FleetMixed { pods: 150, seed: 1 }.generate());
    warm.plan(&snapshot, &faithful());
    let (kept, anew) = (
        warm.prepare(&snapshot, &faithful()),
        Prepared::new(&snapshot, &faithful()),
    );
    let (mut kept_simulator, mut new_simulator) = (kept.simulator(), anew.simulator());
    for node in anew.nodes() {
        let node = std::slice::from_ref(node);
        assert_eq!(kept_simulator.without(node), new_simulator.without(node), "{node:?}");
    }
}
