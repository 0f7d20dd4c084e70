//! What do few clusters have, and some of the random ones should? Fields left empty or filled in twice, nodes that lost
//! their claim and claims that lost their node, budgets of a time of day, daemons that differ from their template.
//!
//! Added to a finished cluster. Each has only a few of these, so that a difference can be traced to the one that made it.

mod budgets;
mod nodes;
mod pods;
mod supply;
mod terms;

use serde_json::Value;

use crate::object::Object;
use crate::rng::Rng;
use crate::snapshot::Snapshot;

/// Something that is done to a finished cluster.
type Change = fn(&mut Snapshot, &mut Rng);

/// Makes about two thirds of the clusters rare ones.
pub(super) fn add(snapshot: &mut Snapshot, rng: &mut Rng) {
    if rng.chance(35) {
        return;
    }
    let kinds: [&[Change]; 5] = [
        pods::CHANGES,
        terms::CHANGES,
        nodes::CHANGES,
        budgets::CHANGES,
        supply::CHANGES,
    ];
    for _ in 0..rng.between(1, 8) {
        let kind = *rng.pick(&kinds);
        rng.pick(kind)(snapshot, rng);
    }
}

/// Replaces the objects that are meant.
fn change(snapshot: &mut Snapshot, is_meant: impl Fn(&Object) -> bool, mut how: impl FnMut(Object) -> Object) {
    for object in snapshot.objects.iter_mut().filter(|object| is_meant(object)) {
        *object = how(object.clone());
    }
}

/// Whether the object is a pod without a node.
fn is_waiting(object: &Object) -> bool {
    object.kind() == "Pod" && object.get("spec.nodeName").is_null()
}

/// Whether the object is a pod on a node.
fn is_bound(object: &Object) -> bool {
    object.kind() == "Pod" && object.get("spec.nodeName").is_string()
}

/// The labels of a group of pods that has any of a kind.
fn some_group(snapshot: &Snapshot, rng: &mut Rng, is_meant: fn(&Object) -> bool) -> Option<Value> {
    let pods: Vec<&Object> = snapshot.objects.iter().filter(|object| is_meant(object)).collect();
    (!pods.is_empty()).then(|| rng.pick(&pods).get("metadata.labels").clone())
}

/// Changes the waiting pods of one group alike.
fn one_group(snapshot: &mut Snapshot, rng: &mut Rng, how: impl Fn(Object) -> Object) {
    if let Some(labels) = some_group(snapshot, rng, is_waiting) {
        change(
            snapshot,
            |pod| is_waiting(pod) && *pod.get("metadata.labels") == labels,
            how,
        );
    }
}

/// Changes some pods, each by itself.
fn some_pods(
    snapshot: &mut Snapshot,
    rng: &mut Rng,
    is_meant: fn(&Object) -> bool,
    how: impl Fn(Object, &mut Rng) -> Object,
) {
    change(
        snapshot,
        is_meant,
        |pod| if rng.chance(25) { how(pod, rng) } else { pod },
    );
}

/// Names of the nodes.
fn node_names(snapshot: &Snapshot) -> Vec<String> {
    snapshot.of_kind("Node").map(|node| node.name().to_string()).collect()
}
