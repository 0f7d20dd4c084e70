//! The pods that stand for the room CapacityBuffers keep: how many, and of what shape.

use std::sync::Arc;

use api::annotations::{CAPACITY_BUFFER_FAKE_POD, CAPACITY_BUFFER_NAME, CAPACITY_BUFFER_NAMESPACE};
use jiff::{SignedDuration, Timestamp};
use model::{
    object::{
        BriefCondition, CapacityBuffer, ConditionStatus, Labels, List, Metadata, Pod, PodSpec, PodStatus,
        PodTemplateSpec, ScalableRef, WorkloadSpec,
    },
    resources::ResourceList,
    snapshot::{Objects, Snapshot},
};

/// The stand-ins of all buffers that can be resolved, in the order of the buffers; none while buffers are switched off.
///
/// What a buffer comes to is worked out afresh, not read from its status: a stale status would keep the wrong room.
pub(super) fn pods(snapshot: &Snapshot) -> Vec<Arc<Pod>> {
    let mut pods = Vec::new();
    if !snapshot.settings().feature_gates.capacity_buffer {
        return pods;
    }
    for buffer in snapshot.objects().capacity_buffers.iter() {
        if let Some(resolved) = Resolved::of(buffer, snapshot.objects()) {
            let spec = stand_in_spec(&resolved.template.spec);
            for number in 1..=resolved.replicas(buffer) {
                let created = created(snapshot.taken_at(), pods.len());
                pods.push(Arc::new(stand_in(
                    buffer,
                    &resolved.template.metadata,
                    &spec,
                    number,
                    created,
                )));
            }
        }
    }
    pods
}

/// How many pods a buffer comes to; none when what it names is not there or no workload.
pub fn replicas(buffer: &CapacityBuffer, objects: &Objects) -> Option<i32> {
    Resolved::of(buffer, objects).map(|resolved| resolved.replicas(buffer))
}

/// The shape a buffer names, and how many pods its workload has.
struct Resolved<'a> {
    template: &'a PodTemplateSpec,
    workload_replicas: Option<i32>,
}

impl<'a> Resolved<'a> {
    /// None when what the buffer names is not there or no workload.
    fn of(buffer: &CapacityBuffer, objects: &'a Objects) -> Option<Self> {
        let namespace = &buffer.metadata.namespace;
        if let Some(template) = &buffer.spec.pod_template_ref {
            let template = objects.pod_templates.find(namespace, &template.name)?;
            return Some(Self {
                template: &template.template,
                workload_replicas: None,
            });
        }
        let workload = workload(buffer.spec.scalable_ref.as_ref()?, namespace, objects)?;
        Some(Self {
            template: &workload.template,
            workload_replicas: Some(workload.replicas.unwrap_or(1)),
        })
    }

    /// The larger of the number asked for and the share of the workload; limits keep it down, or stand alone.
    fn replicas(&self, buffer: &CapacityBuffer) -> i32 {
        let spec = &buffer.spec;
        let of_workload = self.workload_replicas.filter(|replicas| *replicas > 0);
        let share = of_workload
            .zip(spec.percentage)
            .map(|(replicas, percent)| share(replicas, percent));
        let wanted = share.max(spec.replicas);
        let fitting = fitting(&spec.limits, &self.template.spec);
        match (wanted, fitting) {
            (Some(wanted), Some(fitting)) => wanted.min(fitting),
            (wanted, fitting) => wanted.or(fitting).unwrap_or(0),
        }
    }
}

fn workload<'a>(named: &ScalableRef, namespace: &str, objects: &'a Objects) -> Option<&'a WorkloadSpec> {
    if !named.api_group.is_empty() && *named.api_group != *"apps" {
        return None;
    }
    match &*named.kind {
        "Deployment" => objects.deployments.find(namespace, &named.name).map(|it| &it.spec),
        "StatefulSet" => objects.stateful_sets.find(namespace, &named.name).map(|it| &it.spec),
        "ReplicaSet" => objects.replica_sets.find(namespace, &named.name).map(|it| &it.spec),
        _ => None,
    }
}

/// So many percent, rounded up: any share of a running workload is at least one pod.
fn share(replicas: i32, percent: i32) -> i32 {
    let hundredths = i64::from(replicas) * i64::from(percent);
    let rounded = hundredths.div_euclid(100) + i64::from(hundredths.rem_euclid(100) > 0);
    i32::try_from(rounded).unwrap_or(i32::MAX)
}

/// How many pods fit in the limits; none when they limit nothing that the pods ask for.
fn fitting(limits: &ResourceList, spec: &PodSpec) -> Option<i32> {
    let requests = spec.resources().requests();
    let limited = limits.iter().filter_map(|(name, limit)| {
        let request = requests.amount(name.as_str()).milli_value();
        (request != 0).then(|| limit.milli_value().div_euclid(request))
    });
    limited.min().map(|fitting| i32::try_from(fitting).unwrap_or(i32::MAX))
}

/// Claims that will never be made must not hold the stand-ins up, so they have no volumes.
fn stand_in_spec(template: &PodSpec) -> Arc<PodSpec> {
    let mut spec = template.clone();
    spec.volumes = List::default();
    spec.priority = Some(i32::MIN);
    Arc::new(spec)
}

fn stand_in(buffer: &CapacityBuffer, template: &Metadata, spec: &Arc<PodSpec>, number: i32, created: Timestamp) -> Pod {
    let of = &buffer.metadata;
    let metadata = Metadata {
        namespace: of.namespace.clone(),
        name: format!("capacity-buffer-{}-{number}", of.name).into(),
        uid: format!("{}-{number}", of.uid).as_str().into(),
        labels: template.labels.clone(),
        annotations: Labels::from_pairs(vec![
            (CAPACITY_BUFFER_FAKE_POD.into(), "true".into()),
            (CAPACITY_BUFFER_NAME.into(), of.name.clone()),
            (CAPACITY_BUFFER_NAMESPACE.into(), of.namespace.clone()),
        ]),
        creation_timestamp: Some(created),
        ..Metadata::default()
    };
    Pod {
        metadata,
        node_name: None,
        spec: Arc::clone(spec),
        status: unschedulable(),
    }
}

fn unschedulable() -> PodStatus {
    let condition = BriefCondition {
        kind: "PodScheduled".into(),
        status: ConditionStatus::False,
        reason: "Unschedulable".into(),
        last_transition_time: None,
    };
    PodStatus {
        conditions: vec![condition].into(),
        ..PodStatus::default()
    }
}

/// Stand-ins are made one after the other, which is what orders equal ones in the queue.
fn created(now: Timestamp, earlier: usize) -> Timestamp {
    let nanos = i64::try_from(earlier).unwrap_or(i64::MAX);
    now.checked_add(SignedDuration::from_nanos(nanos)).unwrap_or(now)
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "literals read better by value")]
mod tests {
    use model::object::PodPhase;
    use serde_json::{Value, json};

    use super::*;
    use crate::demand::fixture::{NOW, object, snapshot_with};

    fn shape() -> Value {
        json!({
            "metadata": { "labels": { "app": "web" } },
            "spec": {
                "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": "data" } }],
                "containers": [{ "name": "c", "resources": { "requests": { "cpu": "500m", "memory": "1Gi" } } }],
            },
        })
    }

    fn buffer(spec: Value) -> Value {
        let parts = json!({ "metadata": { "uid": "u" }, "spec": spec });
        object("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", "ns", "b", parts)
    }

    fn stand_ins(is_on: bool, spec: Value) -> Vec<Arc<Pod>> {
        let gates = json!({ "settings": { "featureGates": { "CapacityBuffer": is_on } } });
        let web = |replicas: Value| json!({ "spec": { "replicas": replicas, "template": shape() } });
        let objects = vec![
            buffer(spec),
            object("v1", "PodTemplate", "ns", "t", json!({ "template": shape() })),
            object("apps/v1", "Deployment", "ns", "five", web(json!(5))),
            object("apps/v1", "StatefulSet", "ns", "default", web(Value::Null)),
            object("apps/v1", "ReplicaSet", "ns", "none", web(json!(0))),
        ];
        pods(&snapshot_with(gates, objects))
    }

    #[test]
    fn buffer_comes_to_its_number_its_share_and_what_its_limits_admit() {
        let five = json!({ "kind": "Deployment", "name": "five" });
        let template = json!({ "name": "t" });
        let cases = [
            (json!({ "podTemplateRef": template, "replicas": 3 }), 3),
            (
                json!({ "podTemplateRef": template, "replicas": 3, "percentage": 100 }),
                3,
            ),
            (
                json!({ "podTemplateRef": template, "replicas": 3, "limits": { "cpu": "1250m" } }),
                2,
            ),
            (
                json!({ "podTemplateRef": template, "limits": { "cpu": "9", "memory": "4Gi" } }),
                4,
            ),
            (
                json!({ "podTemplateRef": template, "replicas": 3, "limits": { "gpu": "1" } }),
                3,
            ),
            (json!({ "podTemplateRef": template }), 0),
            (json!({ "scalableRef": five, "percentage": 50 }), 3),
            (json!({ "scalableRef": five, "percentage": 1 }), 1),
            (json!({ "scalableRef": five, "percentage": 50, "replicas": 4 }), 4),
            (
                json!({ "scalableRef": { "apiGroup": "apps", "kind": "StatefulSet", "name": "default" }, "percentage": 200 }),
                2,
            ),
            (
                json!({ "scalableRef": { "kind": "ReplicaSet", "name": "none" }, "percentage": 50 }),
                0,
            ),
            (
                json!({ "scalableRef": { "apiGroup": "batch", "kind": "Deployment", "name": "five" }, "replicas": 2 }),
                0,
            ),
            (
                json!({ "scalableRef": { "kind": "Job", "name": "five" }, "replicas": 2 }),
                0,
            ),
            (json!({ "podTemplateRef": { "name": "gone" }, "replicas": 2 }), 0),
            (json!({ "replicas": 2 }), 0),
        ];
        for (spec, expected) in cases {
            assert_eq!(stand_ins(true, spec.clone()).len(), expected, "{spec}");
            assert!(stand_ins(false, spec).is_empty());
        }
    }

    #[test]
    fn stand_in_is_a_provisionable_pod_of_the_shape_without_volumes() {
        let pods = stand_ins(true, json!({ "podTemplateRef": { "name": "t" }, "replicas": 2 }));
        let pod = &pods[1];
        let identity = (
            &*pod.metadata.namespace,
            &*pod.metadata.name,
            pod.metadata.uid.to_string(),
        );
        assert_eq!(identity, ("ns", "capacity-buffer-b-2", "u-2".to_owned()));
        assert_eq!(pod.metadata.labels.get("app").map(|label| &**label), Some("web"));
        let annotations: Vec<_> = pod
            .metadata
            .annotations
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let expected = [
            "karpenter.sh/capacity-buffer-fake-pod=true",
            "karpenter.sh/capacity-buffer-name=b",
            "karpenter.sh/capacity-buffer-namespace=ns",
        ];
        assert_eq!(annotations, expected);
        assert!(pod.is_provisionable() && pod.spec.volumes.is_empty());
        assert_eq!((pod.spec.priority, pod.status.phase), (Some(i32::MIN), PodPhase::Unset));
        assert_eq!(pods[0].metadata.creation_timestamp, Some(NOW.parse().unwrap()));
        assert!(pods[0].metadata.creation_timestamp < pod.metadata.creation_timestamp);
    }
}
