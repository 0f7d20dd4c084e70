//! What runs in the random cluster, or wants to? Groups of equal pods, as Deployments make them, and buffers for them.

use serde_json::{Value, json};

use super::{NAMESPACES, constraints, storage};
use crate::object::{Object, pod, unschedulable};
use crate::rng::{Rng, uid};
use crate::snapshot::Snapshot;

/// Equal pods of one owner.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub(super) app: String,
    pub(super) namespace: &'static str,
    /// A pod of the group, without name and state.
    pub(super) shape: Object,
    /// Whether each pod has a volume of its own.
    mounts: bool,
    /// How many are pending.
    pending: u64,
}

/// Requests: millicores and MiB.
const SHAPES: [(u64, u64); 9] = [
    (0, 0),
    (100, 128),
    (250, 512),
    (500, 1024),
    (1000, 2048),
    (2000, 4096),
    (1500, 9216),
    (750, 6144),
    (3900, 8192),
];

pub(super) fn groups(rng: &mut Rng) -> Vec<Group> {
    let count = *rng.pick(&[2, 5, 12]);
    let names: Vec<String> = (0..count).map(|index| format!("app-{index}")).collect();
    names.iter().map(|app| group(app, &names, rng)).collect()
}

fn group(app: &str, names: &[String], rng: &mut Rng) -> Group {
    let (namespace, _) = *rng.pick(&[NAMESPACES[0], NAMESPACES[0], NAMESPACES[1], NAMESPACES[2]]);
    let &(cpu, memory) = rng.pick(&SHAPES);
    let shape = pod(namespace, app, cpu, memory)
        .entry("metadata.labels", "app", app)
        .entry("metadata.labels", "revision", "1");
    let shape = decorate(shape, rng);
    let shape = constraints::constrain(shape, app, names, rng);
    Group {
        app: app.to_string(),
        namespace,
        shape,
        mounts: rng.chance(12),
        pending: rng.between(0, 8),
    }
}

/// What a pod may have besides constraints: more containers, overhead, ports, a priority, an owner.
fn decorate(mut shape: Object, rng: &mut Rng) -> Object {
    let request = |cpu: &str, memory: &str| json!({ "requests": { "cpu": cpu, "memory": memory } });
    if rng.chance(40) {
        shape = shape.entry("metadata.labels", "tier", *rng.pick(&["front", "back"]));
    }
    if rng.chance(12) {
        shape = shape.push(
            "spec.initContainers",
            json!({ "name": "init", "resources": request("1500m", "256Mi") }),
        );
    }
    if rng.chance(10) {
        let sidecar = json!({ "name": "sidecar", "restartPolicy": "Always", "resources": request("200m", "128Mi") });
        shape = shape.push("spec.initContainers", sidecar);
    }
    if rng.chance(15) {
        shape = shape.push(
            "spec.containers",
            json!({ "name": "second", "resources": request("50m", "64Mi") }),
        );
    }
    if rng.chance(5) {
        shape = shape.with("spec.overhead", json!({ "cpu": "250m", "memory": "120Mi" }));
    }
    if rng.chance(6) {
        shape = shape.with("spec.resources", request("2500m", "3Gi"));
    }
    if rng.chance(8) {
        let ports = json!([{ "containerPort": 80, "hostPort": rng.between(8080, 8082), "protocol": "TCP" }]);
        shape = shape.push("spec.containers", json!({ "name": "ingress", "ports": ports }));
    }
    if rng.chance(5) {
        shape = shape.push(
            "spec.containers",
            json!({ "name": "disk", "resources": { "requests": { "ephemeral-storage": "12Gi" } } }),
        );
    }
    if rng.chance(4) {
        shape = shape.push("spec.containers", json!({ "name": "device", "resources": { "requests": { "example.com/device": "1" }, "limits": { "example.com/device": "1" } } }));
    }
    if rng.chance(20) {
        shape = shape.with("spec.priority", *rng.pick(&[-10, 100, 2_000_000]));
    }
    if rng.chance(6) {
        shape = shape.entry("metadata.annotations", "karpenter.sh/do-not-disrupt", "true");
    }
    if rng.chance(8) {
        shape = shape.entry(
            "metadata.annotations",
            "controller.kubernetes.io/pod-deletion-cost",
            *rng.pick(&["100", "-5"]),
        );
    }
    shape
}

impl Group {
    /// The index-th pod, named after its group, with the objects its volumes need.
    pub(super) fn pod(&self, name: &str, rng: &mut Rng) -> (Object, Vec<Object>) {
        let identity = Object::new("v1", "Pod", self.namespace, name);
        let pod = self
            .shape
            .clone()
            .with("metadata.name", name)
            .with("metadata.uid", identity.get("metadata.uid").clone())
            .with(
                "metadata.creationTimestamp",
                format!("2026-11-15T11:{:02}:{:02}Z", rng.below(60), rng.below(60)),
            );
        let pod = pod.push("metadata.ownerReferences", self.owner());
        if self.mounts {
            storage::mount(pod, rng)
        } else {
            (pod, Vec::new())
        }
    }

    fn owner(&self) -> Value {
        json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": self.app, "controller": true,
                "uid": uid(&format!("ReplicaSet/{}/{}", self.namespace, self.app)) })
    }

    fn template(&self) -> Value {
        json!({ "metadata": { "labels": self.shape.get("metadata.labels") }, "spec": self.shape.get("spec") })
    }
}

/// The pending pods, their owners, services, and some pods that only look pending.
pub(super) fn add_pending(snapshot: &mut Snapshot, groups: &[Group], rng: &mut Rng) {
    for group in groups {
        add_owners(snapshot, group, rng);
        for index in 0..group.pending {
            let (pod, volumes) = group.pod(&format!("{}-{index}", group.app), rng);
            snapshot.objects.extend(volumes);
            snapshot.objects.push(demanding(pod, rng));
        }
    }
}

/// Almost always demand; now and then gated, or about to take a preempted pod's place.
fn demanding(pod: Object, rng: &mut Rng) -> Object {
    let pod = pod.with("status.phase", "Pending");
    match rng.below(50) {
        0 => pod
            .push("spec.schedulingGates", json!({ "name": "example.com/hold" }))
            .push(
                "status.conditions",
                json!({ "type": "PodScheduled", "status": "False", "reason": "SchedulingGated" }),
            ),
        1 => unschedulable(pod).with("status.nominatedNodeName", "elsewhere"),
        _ => unschedulable(pod),
    }
}

fn add_owners(snapshot: &mut Snapshot, group: &Group, rng: &mut Rng) {
    let selector = json!({ "matchLabels": { "app": group.app } });
    let workload = |kind: &str| {
        Object::new("apps/v1", kind, group.namespace, &group.app)
            .with("spec.replicas", group.pending)
            .with("spec.selector", selector.clone())
            .with("spec.template", group.template())
    };
    snapshot
        .objects
        .extend([workload("ReplicaSet"), workload("Deployment")]);
    if rng.chance(30) {
        let service = Object::new("v1", "Service", group.namespace, &group.app);
        snapshot
            .objects
            .push(service.with("spec.selector", json!({ "app": group.app })));
    }
    if rng.chance(25) {
        let allowed = rng.below(3);
        let budget = Object::new("policy/v1", "PodDisruptionBudget", group.namespace, &group.app)
            .with("metadata.generation", 1)
            .with("spec.selector", selector)
            .with("spec.maxUnavailable", allowed)
            .with(
                "status",
                json!({ "disruptionsAllowed": allowed, "currentHealthy": 3, "desiredHealthy": 3,
                                    "expectedPods": 3, "observedGeneration": 1 }),
            );
        snapshot.objects.push(budget);
    }
}

/// CapacityBuffers, which count only when their gate is on.
pub(super) fn add_buffers(snapshot: &mut Snapshot, groups: &[Group], rng: &mut Rng) {
    if !rng.chance(30) {
        return;
    }
    for index in 0..rng.between(1, 2) {
        let group = rng.pick(groups);
        let name = format!("buffer-{index}");
        let buffer = Object::new("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", group.namespace, &name)
            .with("metadata.generation", 1)
            .with("spec.provisioningStrategy", "buffer.x-k8s.io/active-capacity");
        if rng.chance(50) {
            let template = Object::new("v1", "PodTemplate", group.namespace, &name).with("template", group.template());
            let buffer = buffer
                .with("spec.podTemplateRef.name", name)
                .with("spec.replicas", rng.between(1, 4));
            snapshot.objects.extend([template, buffer]);
        } else {
            let scaled = json!({ "apiGroup": "apps", "kind": "Deployment", "name": group.app });
            let buffer = buffer
                .with("spec.scalableRef", scaled)
                .with("spec.percentage", *rng.pick(&[20, 50]));
            let buffer = if rng.chance(30) {
                buffer.with("spec.limits", json!({ "cpu": "3" }))
            } else {
                buffer
            };
            snapshot.objects.push(buffer);
        }
    }
}
