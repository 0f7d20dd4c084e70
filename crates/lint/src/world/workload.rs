//! What makes pods: Deployments, StatefulSets, DaemonSets, Jobs, CronJobs, ReplicaSets and Pods without an owner.

use std::collections::BTreeMap;

use model::object::{Labels, PodSpec, Text};
use serde_json::Value;

use crate::document::join;

/// Something that makes pods.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) document: usize,
    /// Empty for a fragment: a piece of a pod in a document.
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// Where the pod is in the object: `spec.template`, or nothing for a pod.
    pub(crate) template: String,
    pub(crate) labels: Labels,
    pub(crate) annotations: BTreeMap<String, Value>,
    pub(crate) spec: PodSpec,
    /// How many pods, where that is written.
    pub(crate) replicas: Option<i64>,
    /// Whether some container has a port.
    pub(crate) has_ports: bool,
    /// Containers that ask for no cpu or no memory: their place and name.
    pub(crate) without_requests: Vec<(String, String)>,
}

impl Workload {
    /// What an object makes; none where it makes no pods.
    pub(super) fn read(document: usize, value: &Value) -> Option<Self> {
        let kind = value["kind"].as_str().unwrap_or_default();
        let template = match kind {
            "Deployment" | "StatefulSet" | "DaemonSet" | "Job" | "ReplicationController" => "spec.template",
            // A ReplicaSet that a Deployment owns says what the Deployment says.
            "ReplicaSet" if value["metadata"]["ownerReferences"].is_null() => "spec.template",
            "CronJob" => "spec.jobTemplate.spec.template",
            "Pod" => "",
            "" if is_fragment(value) => "",
            _ => return None,
        };
        let owned = kind == "Job" && value["metadata"]["ownerReferences"].is_array();
        if owned {
            return None;
        }
        let pod = at(value, template);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let labels = pairs(&pod["metadata"]["labels"]).map(|(key, value)| (Text::from(key), Text::from(text(value))));
        let containers = pod["spec"]["containers"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let containers_at = join(template, "spec.containers");
        Some(Self {
            document,
            kind: kind.to_owned(),
            namespace: text(&value["metadata"]["namespace"]),
            name: text(&value["metadata"]["name"]),
            template: template.to_owned(),
            labels: Labels::from_pairs(labels.collect()),
            annotations: pairs(&pod["metadata"]["annotations"])
                .map(|(key, value)| (key.to_owned(), value.clone()))
                .collect(),
            spec: serde_json::from_value(pod["spec"].clone()).unwrap_or_default(),
            replicas: value["spec"]["replicas"].as_i64(),
            has_ports: containers
                .iter()
                .any(|one| one["ports"].as_array().is_some_and(|ports| !ports.is_empty())),
            without_requests: containers
                .iter()
                .enumerate()
                .filter(|(_, one)| !asks_for_something(one, &pod["spec"]["resources"]))
                .map(|(at, one)| (format!("{containers_at}[{at}]"), text(&one["name"])))
                .collect(),
        })
    }

    /// Whether it is only a piece of a pod.
    pub(crate) fn is_fragment(&self) -> bool {
        self.kind.is_empty()
    }

    /// Whether its pods end by themselves.
    pub(crate) fn ends(&self) -> bool {
        matches!(self.kind.as_str(), "Job" | "CronJob")
    }

    /// The path of a field of the pod.
    pub(crate) fn path(&self, field: &str) -> String {
        join(&self.template, field)
    }
}

/// Whether a container asks for cpu and for memory, by itself, by its limits or by those of its pod.
fn asks_for_something(container: &Value, pod: &Value) -> bool {
    let says =
        |resources: &Value, name: &str| !resources["requests"][name].is_null() || !resources["limits"][name].is_null();
    ["cpu", "memory"]
        .iter()
        .all(|name| says(&container["resources"], name) || says(pod, name))
}

/// A piece of a pod: no kind, and annotations as pods have them.
fn is_fragment(value: &Value) -> bool {
    value["apiVersion"].is_null() && value["metadata"]["annotations"].is_object()
}

/// What is at a path of plain fields.
pub(super) fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    let fields = path.split('.').filter(|field| !field.is_empty());
    fields.fold(value, |value, field| &value[field])
}

pub(super) fn pairs(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let pairs = value.as_object().into_iter().flatten();
    pairs.map(|(key, value)| (key.as_str(), value))
}
