//! What does a snapshot file hold? The one struct every generator fills.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::catalogue::InstanceType;
use crate::object::Object;

/// The time every generated snapshot was "taken" at.
pub const TAKEN_AT: &str = "2026-11-15T12:00:00Z";

/// A snapshot file, ready to be serialised.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    api_version: &'static str,
    kind: &'static str,
    metadata: Value,
    /// Upstream's options by upstream's names; what is absent has upstream's default.
    pub settings: Map<String, Value>,
    /// Ordinary Kubernetes objects.
    pub objects: Vec<Object>,
    /// The cloud's catalogue.
    pub instance_types: Vec<InstanceType>,
    /// Pools that see only a part of the catalogue.
    pub node_pool_instance_types: Map<String, Value>,
    /// Label keys the cloud adds to the well-known set.
    pub well_known_labels: Vec<String>,
}

impl Snapshot {
    /// An empty snapshot over a catalogue.
    pub fn new(name: &str, origin: &str, instance_types: Vec<InstanceType>, well_known_labels: &[&str]) -> Self {
        Self {
            api_version: "dovetail.dev/v1alpha1",
            kind: "Snapshot",
            metadata: json!({ "name": name, "takenAt": TAKEN_AT, "origin": origin }),
            settings: Map::new(),
            objects: Vec::new(),
            instance_types,
            node_pool_instance_types: Map::new(),
            well_known_labels: well_known_labels.iter().map(ToString::to_string).collect(),
        }
    }

    /// Sets one of upstream's options.
    #[must_use]
    pub fn setting(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.settings.insert(name.to_string(), value.into());
        self
    }

    /// Turns a feature gate on or off.
    #[must_use]
    pub fn gate(mut self, name: &str, on: bool) -> Self {
        let gates = self.settings.entry("featureGates").or_insert_with(|| json!({}));
        if let Some(gates) = gates.as_object_mut() {
            gates.insert(name.to_string(), on.into());
        }
        self
    }

    /// Ten times what upstream's benchmark lets its pool have: its own limit ends at 12,500 nodes.
    pub fn raise_limits(&mut self) {
        for object in self.objects.iter_mut().filter(|object| object.kind() == "NodePool") {
            let limits = json!({ "cpu": "100000000", "memory": "100000000Gi" });
            *object = object.clone().with("spec.limits", limits);
        }
    }

    /// The snapshot's name.
    pub fn name(&self) -> &str {
        self.metadata["name"].as_str().unwrap_or_default()
    }

    /// The objects of one kind, in file order.
    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Object> {
        self.objects.iter().filter(move |object| object.kind() == kind)
    }
}
