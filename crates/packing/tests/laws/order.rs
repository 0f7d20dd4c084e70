//! Does the order of a file's entries matter? An API server lists in none that means anything.

use serde_json::Value;
use workloads::rng::Rng;

use crate::{faithful, file, read};

/// The same entries, in an order drawn from a seed.
fn shuffled(list: &mut Value, seed: u64) {
    let entries = list.as_array_mut().unwrap();
    let mut rng = Rng::new(seed);
    for last in (1..entries.len()).rev() {
        let other = usize::try_from(rng.below(last as u64 + 1)).unwrap();
        entries.swap(last, other);
    }
}

#[test]
fn permuting_pods_nodes_and_pools_changes_nothing() {
    for seed in 0..60 {
        let mut file = file(seed);
        let plan = packing::plan(&read(&file), &faithful());
        shuffled(&mut file["objects"], seed);
        assert_eq!(packing::plan(&read(&file), &faithful()), plan, "seed {seed}");
    }
}

#[test]
fn permuting_instance_types_and_their_offerings_changes_no_decision() {
    for seed in 0..60 {
        let mut file = file(seed);
        let plan = packing::plan(&read(&file), &faithful());
        shuffled(&mut file["instanceTypes"], seed);
        for it in file["instanceTypes"].as_array_mut().unwrap() {
            shuffled(&mut it["offerings"], seed);
        }
        let permuted = packing::plan(&read(&file), &faithful());
        assert_eq!(permuted.price(), plan.price(), "seed {seed}");
        assert_eq!(permuted.existing, plan.existing, "seed {seed}");
        let unplaced = |plan: &model::plan::Plan| -> Vec<String> {
            let unplaced = plan.unplaced.iter();
            unplaced
                .map(|it| format!("{} {:?}", it.pod.metadata.key(), it.kind))
                .collect()
        };
        assert_eq!(unplaced(&permuted), unplaced(&plan), "seed {seed}");
        let claims = |plan: &model::plan::Plan| -> Vec<_> {
            let claims = plan.claims.iter().map(|claim| {
                let mut types: Vec<String> = claim.options.iter().map(ToString::to_string).collect();
                types.sort();
                let pods: Vec<String> = claim.pods.iter().map(|pod| pod.metadata.key().to_string()).collect();
                (claim.node_pool.clone(), pods, types, claim.constraints.clone())
            });
            claims.collect()
        };
        assert_eq!(claims(&permuted), claims(&plan), "seed {seed}");
    }
}
