//! What does a buffer come to? The shape it names, looked up; how many pods; and the status that says so.

use api::condition::names::capacity_buffer::{
    POD_TEMPLATE_NOT_FOUND, READY_FOR_PROVISIONING, RESOLUTION_FAILED, RESOLVED, SCALABLE_REF_NOT_FOUND,
};
use jiff::Timestamp;
use model::{
    object::{CapacityBuffer, CapacityBufferStatus, Condition, ConditionStatus, LocalObjectRef, ScalableRef},
    snapshot::Objects,
};
use packing::demand::buffer;

use crate::conditions;

/// Why a buffer comes to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unresolved {
    /// It names nothing.
    #[error("Neither podTemplateRef nor scalableRef is set")]
    NoReference,
    /// Its template is not there.
    #[error("podtemplates \"{0}\" not found")]
    NoPodTemplate(String),
    /// Its workload is not there.
    #[error("{resource}.apps \"{name}\" not found")]
    NoWorkload {
        /// What was looked for.
        resource: &'static str,
        /// Its name.
        name: String,
    },
    /// Workloads are of the group `apps`.
    #[error("unsupported scalableRef API group \"{0}\"")]
    Group(String),
    /// Workloads are Deployments, StatefulSets and ReplicaSets.
    #[error("unsupported kind \"{0}\"")]
    Kind(String),
}

impl Unresolved {
    /// Whether only the user can mend it, so that trying again is for nothing.
    pub(crate) fn is_users(&self) -> bool {
        !matches!(self, Self::Group(_) | Self::Kind(_))
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::NoPodTemplate(_) => POD_TEMPLATE_NOT_FOUND,
            Self::NoWorkload { .. } => SCALABLE_REF_NOT_FOUND,
            Self::NoReference | Self::Group(_) | Self::Kind(_) => RESOLUTION_FAILED,
        }
    }
}

/// The status of a buffer, and what is wrong with it.
pub(crate) fn resolve(
    buffer: &CapacityBuffer,
    objects: &Objects,
    now: Timestamp,
) -> (CapacityBufferStatus, Option<Unresolved>) {
    let mut status = buffer.status.clone();
    let resolved = named(buffer, objects);
    let (holds, reason, message) = match &resolved {
        Ok(()) => {
            let message = "Pod template resolved successfully".to_owned();
            (ConditionStatus::True, RESOLVED, message)
        }
        Err(unresolved) => (ConditionStatus::False, unresolved.reason(), unresolved.to_string()),
    };
    if resolved.is_ok() {
        let template = buffer.spec.pod_template_ref.as_ref();
        let found = template.and_then(|it| objects.pod_templates.find(&buffer.metadata.namespace, &it.name));
        status.pod_template_ref = found.map(|it| LocalObjectRef {
            name: it.metadata.name.clone(),
        });
        status.pod_template_generation = found.map(|it| it.metadata.generation);
        status.replicas = Some(buffer::replicas(buffer, objects).unwrap_or(0));
    }
    let condition = Condition {
        kind: READY_FOR_PROVISIONING.into(),
        status: holds,
        reason: reason.into(),
        message: message.into(),
        last_transition_time: None,
        observed_generation: buffer.metadata.generation,
    };
    conditions::put(&mut status.conditions, condition, now);
    status
        .provisioning_strategy
        .clone_from(&buffer.spec.provisioning_strategy);
    (status, resolved.err())
}

/// Whether what a buffer names is there.
fn named(buffer: &CapacityBuffer, objects: &Objects) -> Result<(), Unresolved> {
    let namespace = &buffer.metadata.namespace;
    if let Some(template) = &buffer.spec.pod_template_ref {
        let found = objects.pod_templates.find(namespace, &template.name);
        let missing = || Unresolved::NoPodTemplate(template.name.to_string());
        return found.map(drop).ok_or_else(missing);
    }
    let workload = buffer.spec.scalable_ref.as_ref().ok_or(Unresolved::NoReference)?;
    has_workload(workload, namespace, objects)
}

fn has_workload(workload: &ScalableRef, namespace: &str, objects: &Objects) -> Result<(), Unresolved> {
    if !workload.api_group.is_empty() && *workload.api_group != *"apps" {
        return Err(Unresolved::Group(workload.api_group.to_string()));
    }
    let name = &workload.name;
    let (resource, is_there) = match &*workload.kind {
        "Deployment" => ("deployments", objects.deployments.find(namespace, name).is_some()),
        "StatefulSet" => ("statefulsets", objects.stateful_sets.find(namespace, name).is_some()),
        "ReplicaSet" => ("replicasets", objects.replica_sets.find(namespace, name).is_some()),
        other => return Err(Unresolved::Kind(other.to_owned())),
    };
    let missing = || Unresolved::NoWorkload {
        resource,
        name: name.to_string(),
    };
    is_there.then_some(()).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::provisioning::fixture::{NOW, snapshot};

    /// Reason, message and replicas of a buffer's status.
    fn resolved(spec: &Value) -> (String, String, Option<i32>) {
        let shape = json!({ "spec": { "containers": [{ "name": "c", "resources": { "requests": { "cpu": "1" } } }] } });
        let snapshot = snapshot(
            &[],
            vec![
                json!({ "apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer",
                    "metadata": { "name": "b", "namespace": "ns", "generation": 3 }, "spec": spec }),
                json!({ "apiVersion": "v1", "kind": "PodTemplate",
                    "metadata": { "name": "t", "namespace": "ns", "generation": 2 }, "template": shape }),
                json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web", "namespace": "ns" },
                    "spec": { "replicas": 5, "template": shape } }),
            ],
        );
        let buffer = snapshot.objects().capacity_buffers.iter().next().unwrap();
        let (status, _) = resolve(buffer, snapshot.objects(), NOW.parse().unwrap());
        let condition = &status.conditions[0];
        assert_eq!(
            (&*condition.kind, condition.observed_generation),
            ("ReadyForProvisioning", 3)
        );
        (
            condition.reason.to_string(),
            condition.message.to_string(),
            status.replicas,
        )
    }

    #[test]
    fn buffer_is_ready_when_what_it_names_is_there_and_says_what_is_not() {
        let ready = "Pod template resolved successfully";
        let cases = [
            (
                json!({ "podTemplateRef": { "name": "t" }, "replicas": 4 }),
                "Resolved",
                ready,
                Some(4),
            ),
            (
                json!({ "scalableRef": { "kind": "Deployment", "name": "web" }, "percentage": 50 }),
                "Resolved",
                ready,
                Some(3),
            ),
            (
                json!({ "podTemplateRef": { "name": "gone" }, "replicas": 4 }),
                "PodTemplateNotFound",
                "podtemplates \"gone\" not found",
                None,
            ),
            (
                json!({ "scalableRef": { "kind": "StatefulSet", "name": "web" } }),
                "ScalableRefNotFound",
                "statefulsets.apps \"web\" not found",
                None,
            ),
            (
                json!({ "scalableRef": { "kind": "Job", "name": "web" } }),
                "ResolutionFailed",
                "unsupported kind \"Job\"",
                None,
            ),
            (
                json!({ "scalableRef": { "apiGroup": "batch", "kind": "Job", "name": "web" } }),
                "ResolutionFailed",
                "unsupported scalableRef API group \"batch\"",
                None,
            ),
            (
                json!({ "replicas": 4 }),
                "ResolutionFailed",
                "Neither podTemplateRef nor scalableRef is set",
                None,
            ),
        ];
        for (spec, reason, message, replicas) in cases {
            assert_eq!(
                resolved(&spec),
                (reason.to_owned(), message.to_owned(), replicas),
                "{spec}"
            );
        }
    }
}
