//! How is a Kubernetes object written down? A thin, ordered wrapper over JSON and the few kinds every generator needs.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::quantity::{cpu, memory};
use crate::rng::uid;

/// The label upstream's test helpers put on everything they make.
pub const DISCOVERY_LABEL: &str = "testing/cluster";
/// Zone of a node.
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// Name of a node.
pub const HOSTNAME: &str = "kubernetes.io/hostname";
/// Processor architecture of a node.
pub const ARCH: &str = "kubernetes.io/arch";
/// Operating system of a node.
pub const OS: &str = "kubernetes.io/os";
/// Spot, on-demand or reserved.
pub const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
/// The cloud's name for the machine.
pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
/// The pool a node belongs to.
pub const NODE_POOL: &str = "karpenter.sh/nodepool";

/// A Kubernetes object as JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Object(pub Value);

impl Object {
    /// An object with a deterministic uid; `namespace` is empty for cluster-scoped kinds.
    pub fn new(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        let object = Self(json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name } }));
        let object = object.with("metadata.uid", uid(&format!("{kind}/{namespace}/{name}")));
        if namespace.is_empty() {
            object
        } else {
            object.with("metadata.namespace", namespace)
        }
    }

    /// Sets the field at a dotted path, making the objects on the way.
    #[must_use]
    pub fn with(mut self, path: &str, value: impl Into<Value>) -> Self {
        if let Some(slot) = self.slot(path) {
            *slot = value.into();
        }
        self
    }

    /// Sets a map entry whose key contains dots (labels, annotations, node selectors).
    #[must_use]
    pub fn entry(mut self, path: &str, key: &str, value: impl Into<Value>) -> Self {
        if let Some(map) = self.slot(path).and_then(as_map) {
            map.insert(key.to_string(), value.into());
        }
        self
    }

    /// Appends to the list at a dotted path, making it when it is absent.
    #[must_use]
    pub fn push(mut self, path: &str, value: impl Into<Value>) -> Self {
        if let Some(list) = self.slot(path).and_then(as_list) {
            list.push(value.into());
        }
        self
    }

    /// The field at a dotted path, null when absent.
    pub fn get(&self, path: &str) -> &Value {
        path.split('.').fold(&self.0, |value, field| &value[field])
    }

    /// The object's kind.
    pub fn kind(&self) -> &str {
        self.get("kind").as_str().unwrap_or_default()
    }

    /// The object's name.
    pub fn name(&self) -> &str {
        self.get("metadata.name").as_str().unwrap_or_default()
    }

    /// The place a dotted path leads to; always there, because whatever stands in the way becomes an object.
    fn slot(&mut self, path: &str) -> Option<&mut Value> {
        path.split('.').try_fold(&mut self.0, |value, field| {
            Some(as_map(value)?.entry(field).or_insert(Value::Null))
        })
    }
}

/// The map behind a value, which becomes an empty one when it is anything else.
fn as_map(value: &mut Value) -> Option<&mut Map<String, Value>> {
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut()
}

/// The list behind a value, which becomes an empty one when it is anything else.
fn as_list(value: &mut Value) -> Option<&mut Vec<Value>> {
    if !value.is_array() {
        *value = json!([]);
    }
    value.as_array_mut()
}

/// A pod with one container that requests cpu (millicores) and memory (MiB), as a Deployment would have made it.
pub fn pod(namespace: &str, name: &str, cpu_m: u64, memory_mi: u64) -> Object {
    Object::new("v1", "Pod", namespace, name)
        .with("metadata.labels", json!({}))
        .with(
            "spec",
            json!({ "containers": [{
            "name": "main",
            "image": "registry.k8s.io/pause:3.10",
            "resources": { "requests": { "cpu": cpu(cpu_m), "memory": memory(memory_mi) } },
        }] }),
        )
}

/// Marks a pod as demand: kube-scheduler found no node for it.
#[must_use]
pub fn unschedulable(pod: Object) -> Object {
    pod.push(
        "status.conditions",
        json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/0 nodes are available" }),
    )
}

/// Binds a pod to a node, where it runs.
#[must_use]
pub fn running(pod: Object, node: &str) -> Object {
    pod.with("spec.nodeName", node)
        .with("status.phase", "Running")
        .push("status.conditions", json!({ "type": "PodScheduled", "status": "True" }))
}

/// A ready NodePool without requirements, consolidating at once and without a budget in the way.
pub fn node_pool(name: &str, class: &Value) -> Object {
    let condition = |kind: &str| {
        json!({ "type": kind, "status": "True", "reason": kind, "message": "",
                "lastTransitionTime": "2026-11-15T11:00:00Z", "observedGeneration": 1 })
    };
    Object::new("karpenter.sh/v1", "NodePool", "", name)
        .with("metadata.generation", 1)
        .with("spec.template.metadata.labels", json!({}))
        .with("spec.template.spec.nodeClassRef", class.clone())
        .with("spec.template.spec.requirements", json!([]))
        .with("spec.template.spec.expireAfter", "Never")
        .with(
            "spec.disruption",
            json!({ "consolidateAfter": "0s", "consolidationPolicy": "WhenEmptyOrUnderutilized",
                    "budgets": [{ "nodes": "100%" }] }),
        )
        .with(
            "status.conditions",
            json!([
                condition("ValidationSucceeded"),
                condition("NodeClassReady"),
                condition("Ready")
            ]),
        )
}

/// A requirement as NodePools, node affinities and instance types spell it.
pub fn requirement(key: &str, operator: &str, values: &[&str]) -> Value {
    if values.is_empty() {
        json!({ "key": key, "operator": operator })
    } else {
        json!({ "key": key, "operator": operator, "values": values })
    }
}

/// The node class reference of upstream's own tests.
pub fn test_node_class() -> Value {
    json!({ "group": "karpenter.test.sh", "kind": "TestNodeClass", "name": "default" })
}

/// The node class reference of the kwok provider.
pub fn kwok_node_class() -> Value {
    json!({ "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default" })
}
