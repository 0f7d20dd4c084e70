//! Which pods belong together, when a default constraint has no selector of its own?

use model::{
    object::{LabelSelector, LabelSelectorRequirement, Labels, List, OwnerReference, Pod, Text},
    snapshot::Snapshot,
};

/// The selectors of the services that pick the pod and of the workload that manages it, all of them at once; none when
/// there is no such selector.
pub fn default_selector(snapshot: &Snapshot, pod: &Pod) -> Option<LabelSelector> {
    let mut labels: Vec<(Text, Text)> = Vec::new();
    for selector in service_selectors(snapshot, pod) {
        labels.extend(selector.iter().cloned());
    }
    let mut expressions = Vec::new();
    if let Some(owner) = pod.metadata.controller() {
        add_owner(snapshot, pod, owner, &mut labels, &mut expressions);
    }
    let selector = LabelSelector {
        match_labels: Labels::from_pairs(labels),
        match_expressions: expressions.into(),
    };
    let is_empty = selector.match_labels.is_empty() && selector.match_expressions.is_empty();
    (!is_empty).then_some(selector)
}

fn service_selectors<'a>(snapshot: &'a Snapshot, pod: &'a Pod) -> impl Iterator<Item = &'a Labels> {
    let services = snapshot.objects().services.iter();
    let of_namespace = services.filter(|service| service.metadata.namespace == pod.metadata.namespace);
    let selectors = of_namespace.filter_map(|service| service.spec.selector.as_ref());
    selectors.filter(|selector| {
        selector
            .iter()
            .all(|(key, value)| pod.metadata.labels.get(key) == Some(value))
    })
}

fn add_owner(
    snapshot: &Snapshot,
    pod: &Pod,
    owner: &OwnerReference,
    labels: &mut Vec<(Text, Text)>,
    expressions: &mut Vec<LabelSelectorRequirement>,
) {
    let (objects, namespace) = (snapshot.objects(), &pod.metadata.namespace);
    let selector = match (&*owner.api_version, &*owner.kind) {
        ("v1", "ReplicationController") => {
            if let Some(owner) = objects.replication_controllers.find(namespace, &owner.name) {
                labels.extend(owner.spec.selector.iter().cloned());
            }
            None
        }
        ("apps/v1", "ReplicaSet") => objects
            .replica_sets
            .find(namespace, &owner.name)
            .and_then(|owner| owner.spec.selector.as_ref()),
        ("apps/v1", "StatefulSet") => objects
            .stateful_sets
            .find(namespace, &owner.name)
            .and_then(|owner| owner.spec.selector.as_ref()),
        _ => None,
    };
    if let Some(selector) = selector {
        expressions.extend(as_expressions(selector));
    }
}

/// All of a selector as expressions, so that two selectors that contradict each other pick nothing.
fn as_expressions(selector: &LabelSelector) -> impl Iterator<Item = LabelSelectorRequirement> {
    let labels = selector
        .match_labels
        .iter()
        .map(|(key, value)| LabelSelectorRequirement {
            key: key.clone(),
            operator: "In".into(),
            values: List::from(vec![value.clone()]),
        });
    labels.chain(selector.match_expressions.iter().cloned())
}
