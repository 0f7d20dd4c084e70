//! Does every pod that needs a place appear once, and no other pod?

use std::collections::BTreeMap;

use model::{
    object::{ObjectKey, Pod},
    plan::Plan,
    snapshot::Snapshot,
};

use super::{Rule, Verdict, world::World};

pub(super) fn check(snapshot: &Snapshot, world: &World, plan: &Plan, verdict: &mut Verdict) {
    let mut seen: BTreeMap<ObjectKey, usize> = BTreeMap::new();
    for pod in mentioned(plan) {
        *seen.entry(pod.metadata.key()).or_default() += 1;
    }
    for (key, times) in &seen {
        if *times > 1 {
            verdict.violate(Rule::Demand, Some(key), None, format!("the pod appears {times} times"));
        }
        if let Some(pod) = snapshot.objects().pods.get(key)
            && !needs_a_place(snapshot, world, pod)
        {
            verdict.violate(Rule::Demand, Some(key), None, "the pod does not need a place");
        }
    }
    for pod in snapshot.provisionable_pods() {
        let key = pod.metadata.key();
        if !seen.contains_key(&key) {
            verdict.violate(
                Rule::Demand,
                Some(&key),
                None,
                "the pod needs a place and does not appear",
            );
        }
    }
}

fn mentioned(plan: &Plan) -> impl Iterator<Item = &Pod> {
    let claimed = plan.claims.iter().flat_map(|claim| &claim.pods);
    let existing = plan.existing.iter().flat_map(|node| &node.pods);
    let unplaced = plan.unplaced.iter().map(|unplaced| &unplaced.pod);
    claimed.chain(existing).chain(unplaced).map(AsRef::as_ref)
}

/// A pod that waits, or one whose node goes away or is not part of the question. Pods that stand for a buffer's room are
/// no part of a snapshot.
fn needs_a_place(snapshot: &Snapshot, world: &World, pod: &Pod) -> bool {
    let Some(name) = &pod.node_name else {
        return pod.is_provisionable();
    };
    let is_leaving = |node: &super::world::StateNode| {
        node.node_name().is_some_and(|node| **node == *name.as_str()) && node.is_leaving
    };
    snapshot.node(name).is_none() || world.nodes.values().any(is_leaving)
}
