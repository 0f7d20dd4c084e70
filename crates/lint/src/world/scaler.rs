//! What changes the number of pods: HorizontalPodAutoscalers and KEDA's ScaledObjects.

use serde_json::Value;

/// A scaler.
#[derive(Debug)]
pub(crate) struct Scaler {
    pub(crate) document: usize,
    pub(crate) namespace: String,
    /// Kind and name of what it scales.
    pub(crate) target: (String, String),
    pub(crate) least: i64,
    pub(crate) most: i64,
    /// The field that says the most.
    pub(crate) most_at: &'static str,
}

impl Scaler {
    pub(super) fn read(document: usize, value: &Value) -> Option<Self> {
        let spec = &value["spec"];
        let target = &spec["scaleTargetRef"];
        let is_keda = value["kind"] == "ScaledObject";
        // What KEDA and Kubernetes take where nothing is said.
        let (least, most, most_at) = if is_keda {
            (
                spec["minReplicaCount"].as_i64().unwrap_or(0),
                spec["maxReplicaCount"].as_i64().unwrap_or(100),
                "spec.maxReplicaCount",
            )
        } else {
            (
                spec["minReplicas"].as_i64().unwrap_or(1),
                spec["maxReplicas"].as_i64()?,
                "spec.maxReplicas",
            )
        };
        Some(Self {
            document,
            namespace: value["metadata"]["namespace"].as_str().unwrap_or_default().to_owned(),
            target: (
                target["kind"].as_str().unwrap_or("Deployment").to_owned(),
                target["name"].as_str()?.to_owned(),
            ),
            least,
            most,
            most_at,
        })
    }
}
