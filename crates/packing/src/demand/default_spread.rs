//! Which default spread constraints of the cluster a pod without its own gets, and which pods they count for it.

use std::{collections::BTreeMap, collections::HashMap, sync::Arc};

use model::{
    object::{
        LabelSelector, LabelSelectorRequirement, Labels, Map, OwnerReference, Pod, PodSpec, Text,
        TopologySpreadConstraint, Uid,
    },
    snapshot::{Objects, Snapshot},
};

/// Injects the defaults; replicas of a workload keep sharing one spec.
#[derive(Debug)]
pub(super) struct DefaultSpread<'a> {
    objects: &'a Objects,
    constraints: &'a [TopologySpreadConstraint],
    specs: HashMap<Shape, Option<Arc<PodSpec>>>,
}

/// All that the outcome depends on.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Shape {
    namespace: Text,
    controller: Option<Uid>,
    labels: Labels,
    /// The address of the spec, which lives as long as the snapshot.
    spec: *const PodSpec,
}

impl<'a> DefaultSpread<'a> {
    /// None when the cluster has no default constraints.
    pub(super) fn of(snapshot: &'a Snapshot) -> Option<Self> {
        let constraints = &snapshot.settings().default_constraints;
        (!constraints.is_empty()).then(|| Self {
            objects: snapshot.objects(),
            constraints,
            specs: HashMap::new(),
        })
    }

    /// The pod with the defaults; none when it has constraints of its own, or nothing tells which pods are its like.
    pub(super) fn constrained(&mut self, pod: &Pod) -> Option<Pod> {
        if !pod.spec.topology_spread_constraints.is_empty() {
            return None;
        }
        let shape = Shape {
            namespace: pod.metadata.namespace.clone(),
            controller: pod.metadata.controller().map(|owner| owner.uid.clone()),
            labels: pod.metadata.labels.clone(),
            spec: Arc::as_ptr(&pod.spec),
        };
        let (objects, constraints) = (self.objects, self.constraints);
        let spec = self
            .specs
            .entry(shape)
            .or_insert_with(|| Some(Arc::new(spread(&pod.spec, constraints, &selector_of(pod, objects)?))));
        let spec = Arc::clone(spec.as_ref()?);
        Some(Pod { spec, ..pod.clone() })
    }
}

fn spread(spec: &PodSpec, constraints: &[TopologySpreadConstraint], selector: &LabelSelector) -> PodSpec {
    let with_selector = |constraint: &TopologySpreadConstraint| TopologySpreadConstraint {
        label_selector: Some(selector.clone()),
        ..constraint.clone()
    };
    let mut spec = spec.clone();
    spec.topology_spread_constraints = constraints.iter().map(with_selector).collect();
    spec
}

/// The pods that kube-scheduler takes for the like of a pod: those its services select and its controller owns.
///
/// A ReplicationController's selector overwrites that of a service; ReplicaSets and StatefulSets add theirs.
fn selector_of(pod: &Pod, objects: &Objects) -> Option<LabelSelector> {
    let mut labels = service_labels(pod, objects);
    let mut expressions = Vec::new();
    if let Some(owner) = pod.metadata.controller() {
        labels.extend(replication_controller_labels(pod, owner, objects));
        expressions = owner_expressions(pod, owner, objects);
    }
    let is_empty = labels.is_empty() && expressions.is_empty();
    (!is_empty).then(|| LabelSelector {
        match_labels: Map::from_pairs(labels.into_iter().collect()),
        match_expressions: expressions.into(),
    })
}

/// Of services that disagree on a label the last by name wins.
fn service_labels(pod: &Pod, objects: &Objects) -> BTreeMap<Text, Text> {
    let labels = &pod.metadata.labels;
    let in_namespace = objects
        .services
        .iter()
        .filter(|service| service.metadata.namespace == pod.metadata.namespace);
    let selectors = in_namespace.filter_map(|service| service.spec.selector.as_ref());
    let matching = selectors.filter(|selector| selector.iter().all(|(key, value)| labels.get(key) == Some(value)));
    matching.flat_map(|selector| selector.iter().cloned()).collect()
}

fn replication_controller_labels(pod: &Pod, owner: &OwnerReference, objects: &Objects) -> Vec<(Text, Text)> {
    if (&*owner.api_version, &*owner.kind) != ("v1", "ReplicationController") {
        return Vec::new();
    }
    let controller = objects
        .replication_controllers
        .find(&pod.metadata.namespace, &owner.name);
    controller.map_or_else(Vec::new, |controller| controller.spec.selector.to_vec())
}

fn owner_expressions(pod: &Pod, owner: &OwnerReference, objects: &Objects) -> Vec<LabelSelectorRequirement> {
    let namespace = &pod.metadata.namespace;
    let spec = match (&*owner.api_version, &*owner.kind) {
        ("apps/v1", "ReplicaSet") => objects.replica_sets.find(namespace, &owner.name).map(|set| &set.spec),
        ("apps/v1", "StatefulSet") => objects.stateful_sets.find(namespace, &owner.name).map(|set| &set.spec),
        _ => None,
    };
    let Some(selector) = spec.and_then(|spec| spec.selector.as_ref()) else {
        return Vec::new();
    };
    let is = |(key, value): &(Text, Text)| LabelSelectorRequirement {
        key: key.clone(),
        operator: "In".into(),
        values: vec![value.clone()].into(),
    };
    let labels = selector.match_labels.iter().map(is);
    labels.chain(selector.match_expressions.iter().cloned()).collect()
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "literals read better by value")]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::demand::fixture::{object, pending, pod, snapshot_with};

    fn owner(api_version: &str, kind: &str, is_controller: bool) -> Value {
        json!([{ "apiVersion": api_version, "kind": kind, "name": "o", "uid": "o", "controller": is_controller }])
    }

    fn service(name: &str, selector: Value) -> Value {
        object("v1", "Service", "ns", name, json!({ "spec": { "selector": selector } }))
    }

    fn replica_set(selector: Value) -> Value {
        object(
            "apps/v1",
            "ReplicaSet",
            "ns",
            "o",
            json!({ "spec": { "selector": selector } }),
        )
    }

    /// The pod `p` with labels app=web and rev=1, as it comes out; none when it is left alone.
    fn constrained(mut parts: Value, mut objects: Vec<Value>) -> Option<Pod> {
        parts["metadata"]["labels"] = json!({ "app": "web", "rev": "1" });
        objects.push(pending("p", parts));
        let zone =
            json!({ "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2 });
        let snapshot = snapshot_with(json!({ "settings": { "defaultConstraints": [zone] } }), objects);
        DefaultSpread::of(&snapshot).unwrap().constrained(pod(&snapshot, "p"))
    }

    fn selector(parts: Value, objects: Vec<Value>) -> Option<Value> {
        let pod = constrained(parts, objects)?;
        let constraints = serde_json::to_value(&pod.spec.topology_spread_constraints).unwrap();
        assert_eq!(constraints[0]["minDomains"], 2);
        Some(constraints[0]["labelSelector"].clone())
    }

    fn is(key: &str, value: &str) -> Value {
        json!({ "key": key, "operator": "In", "values": [value] })
    }

    #[test]
    fn selector_is_deduced_from_services_and_the_controller() {
        let of_set =
            |is_controller| json!({ "metadata": { "ownerReferences": owner("apps/v1", "ReplicaSet", is_controller) } });
        let of_controller = json!({ "metadata": { "ownerReferences": owner("v1", "ReplicationController", true) } });
        let web = || service("s", json!({ "app": "web" }));
        let exists = json!({ "key": "rev", "operator": "Exists" });
        let set = replica_set(json!({ "matchLabels": { "app": "db" }, "matchExpressions": [exists] }));
        let controller = object(
            "v1",
            "ReplicationController",
            "ns",
            "o",
            json!({ "spec": { "selector": { "app": "rc" } } }),
        );
        let cases = [
            (json!({}), vec![], None),
            (json!({}), vec![web()], Some(json!({ "matchLabels": { "app": "web" } }))),
            (json!({}), vec![service("s", json!({ "app": "db" }))], None),
            (json!({}), vec![service("s", json!({}))], None),
            (json!({}), vec![service("s", Value::Null)], None),
            (
                json!({}),
                vec![web(), service("t", json!({ "rev": "1" }))],
                Some(json!({ "matchLabels": { "app": "web", "rev": "1" } })),
            ),
            (
                of_set(true),
                vec![set.clone()],
                Some(json!({ "matchExpressions": [is("app", "db"), exists] })),
            ),
            (
                of_set(true),
                vec![web(), set.clone()],
                Some(json!({ "matchLabels": { "app": "web" }, "matchExpressions": [is("app", "db"), exists] })),
            ),
            (of_set(false), vec![set], None),
            (of_set(true), vec![], None),
            (
                of_controller,
                vec![web(), controller],
                Some(json!({ "matchLabels": { "app": "rc" } })),
            ),
        ];
        for (parts, objects, expected) in cases {
            assert_eq!(selector(parts, objects.clone()), expected, "{objects:?}");
        }
    }

    #[test]
    fn pod_with_a_constraint_of_its_own_gets_no_default() {
        let own = json!([{ "maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule" }]);
        let parts = json!({ "spec": { "topologySpreadConstraints": own } });
        assert_eq!(constrained(parts, vec![service("s", json!({ "app": "web" }))]), None);
    }

    #[test]
    fn replicas_share_the_spec_they_are_given() {
        let labels = json!({ "metadata": { "labels": { "app": "web" } } });
        let objects = vec![
            service("s", json!({ "app": "web" })),
            pending("a", labels.clone()),
            pending("b", labels),
        ];
        let zone = json!({ "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule" });
        let snapshot = snapshot_with(json!({ "settings": { "defaultConstraints": [zone] } }), objects);
        let mut defaults = DefaultSpread::of(&snapshot).unwrap();
        let [a, b] = ["a", "b"].map(|name| defaults.constrained(pod(&snapshot, name)).unwrap().spec);
        assert!(Arc::ptr_eq(&a, &b));
    }
}
