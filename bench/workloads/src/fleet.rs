//! What does a running node look like? The Node and NodeClaim of one machine, as a settled cluster holds them.

use serde_json::{Map, Value, json};

use crate::catalogue::{InstanceType, KWOK_FAMILY, KWOK_SIZE};
use crate::object::{
    ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, NODE_POOL, OS, Object, ZONE, kwok_node_class, requirement,
};
use crate::quantity::{cpu, memory};

/// How far a machine has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its instance exists, its node does not.
    Launched,
    /// Its node joined and is not ready for pods.
    Registered,
    /// It runs pods.
    Initialized,
}

/// One machine of a pool.
#[derive(Debug, Clone)]
pub(crate) struct Machine<'a> {
    pub(crate) name: String,
    pub(crate) pool: &'a str,
    pub(crate) it: &'a InstanceType,
    pub(crate) zone: &'a str,
    pub(crate) capacity_type: &'a str,
    pub(crate) stage: Stage,
}

impl Machine<'_> {
    /// Millicores left for pods.
    pub(crate) fn cpu_m(&self) -> u64 {
        1000 * self.it.cpu - 100
    }

    /// MiB left for pods.
    pub(crate) fn memory_mi(&self) -> u64 {
        self.it.memory_mi - 10
    }

    pub(crate) fn node(&self) -> Object {
        let initialized = self.stage == Stage::Initialized;
        let mut node = Object::new("v1", "Node", "", &self.name)
            .with("metadata.labels", self.labels())
            .entry("metadata.labels", HOSTNAME, self.name.as_str())
            .entry("metadata.labels", "karpenter.sh/registered", "true")
            .with("spec.providerID", self.provider_id())
            .with("status.capacity", Value::Object(self.it.capacity.clone()))
            .with("status.allocatable", self.allocatable())
            .push(
                "status.conditions",
                json!({ "type": "Ready", "status": if initialized { "True" } else { "False" },
                        "reason": "Kubelet", "lastTransitionTime": "2026-11-15T10:00:00Z" }),
            );
        if initialized {
            node = node.entry("metadata.labels", "karpenter.sh/initialized", "true");
        }
        node
    }

    pub(crate) fn claim(&self) -> Object {
        let condition = |kind: &str, met: bool| {
            json!({ "type": kind, "status": if met { "True" } else { "Unknown" }, "reason": kind, "message": "",
                    "lastTransitionTime": "2026-11-15T10:00:00Z", "observedGeneration": 1 })
        };
        let (registered, initialized) = (self.stage != Stage::Launched, self.stage == Stage::Initialized);
        let claim = Object::new("karpenter.sh/v1", "NodeClaim", "", &self.name)
            .with("metadata.generation", 1)
            .with("metadata.creationTimestamp", "2026-11-15T10:00:00Z")
            .with("metadata.finalizers", json!(["karpenter.sh/termination"]))
            .with("metadata.labels", self.labels())
            .with("spec.nodeClassRef", kwok_node_class())
            .with(
                "spec.requirements",
                json!([requirement(INSTANCE_TYPE, "In", &[&self.it.name])]),
            )
            .with("spec.expireAfter", "Never")
            .with("status.providerID", self.provider_id())
            .with("status.capacity", Value::Object(self.it.capacity.clone()))
            .with("status.allocatable", self.allocatable())
            .with(
                "status.conditions",
                json!([
                    condition("Launched", true),
                    condition("Registered", registered),
                    condition("Initialized", initialized),
                    condition("Consolidatable", initialized),
                    condition("Ready", initialized),
                ]),
            );
        if registered {
            claim.with("status.nodeName", self.name.as_str())
        } else {
            claim
        }
    }

    fn provider_id(&self) -> String {
        format!("kwok://{}", self.name)
    }

    fn labels(&self) -> Value {
        let mut labels = Map::new();
        for requirement in &self.it.requirements {
            if let (Some(key), Some(value)) = (requirement["key"].as_str(), requirement["values"][0].as_str())
                && [ARCH, OS, INSTANCE_TYPE, KWOK_SIZE, KWOK_FAMILY].contains(&key)
            {
                labels.insert(key.to_string(), value.into());
            }
        }
        for (key, value) in [
            (ZONE, self.zone),
            (CAPACITY_TYPE, self.capacity_type),
            (NODE_POOL, self.pool),
        ] {
            labels.insert(key.to_string(), value.into());
        }
        Value::Object(labels)
    }

    fn allocatable(&self) -> Value {
        let mut allocatable = self.it.capacity.clone();
        allocatable.insert("cpu".to_string(), cpu(self.cpu_m()).into());
        allocatable.insert("memory".to_string(), memory(self.memory_mi()).into());
        Value::Object(allocatable)
    }
}

/// A pod's requests in millicores and MiB, when it has one container as [`crate::object::pod`] makes them.
pub(crate) fn requests(pod: &Object) -> (u64, u64) {
    let requests = &pod.get("spec.containers")[0]["resources"]["requests"];
    let number = |text: &str, suffix: &str| text.strip_suffix(suffix).and_then(|n| n.parse::<u64>().ok());
    let cpu = requests["cpu"].as_str().unwrap_or("0");
    let memory = requests["memory"].as_str().unwrap_or("0");
    let cpu = number(cpu, "m").unwrap_or_else(|| 1000 * cpu.parse::<u64>().unwrap_or_default());
    let memory = number(memory, "Mi")
        .or_else(|| number(memory, "Gi").map(|gi| 1024 * gi))
        .unwrap_or_default();
    (cpu, memory)
}
