//! Which rarer daemons, overlays, buffers, storage and types are there? Daemons without requests or unlike their template,
//! overlays that contradict each other, buffers that cannot be resolved, classes of storage that bind at once.

use serde_json::{Value, json};

use super::super::cloud::RESERVATION_ID;
use super::super::storage::DRIVER;
use super::super::{CUSTOM_LABELS, NAMESPACES};
use super::{Change, change};
use crate::catalogue::{KWOK_FAMILY, KWOK_SIZE, KWOK_ZONES};
use crate::object::{CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, NODE_POOL, OS, Object, ZONE, pod, requirement};
use crate::rng::Rng;
use crate::snapshot::Snapshot;

pub(super) const CHANGES: &[Change] = &[
    daemon,
    daemon_pods,
    overlays,
    buffer,
    classes,
    volumes,
    attachments,
    own_resources,
    crowded_types,
    closed,
];

fn daemon(snapshot: &mut Snapshot, rng: &mut Rng) {
    let name = "rare-daemon";
    if snapshot.of_kind("DaemonSet").any(|daemon| daemon.name() == name) {
        return;
    }
    let mut shape = pod("kube-system", name, 200, 300);
    let required = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    shape = match rng.below(9) {
        0 => shape.with(
            "spec.containers",
            json!([{ "name": "main", "resources": { "limits": { "cpu": "300m", "memory": "400Mi" } } }]),
        ),
        1 => shape.push(
            "spec.initContainers",
            json!({ "name": "init", "resources": { "requests": { "cpu": "2", "memory": "1Gi" } } }),
        ),
        2 => shape.push(
            required,
            json!({ "matchExpressions": [requirement(ZONE, "In", &rng.some(&KWOK_ZONES, 1))] }),
        ),
        3 => {
            let first = json!({ "matchExpressions": [requirement(ZONE, "In", &["no-such-zone"])] });
            let second = json!({ "matchExpressions": [requirement(KWOK_FAMILY, "In", &["m"])] });
            shape.push(required, first).push(required, second)
        }
        4 => shape.push(
            "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution",
            json!({ "weight": 1, "preference": { "matchExpressions": [requirement(KWOK_FAMILY, "In", &["c"])] } }),
        ),
        5 => shape.entry("spec.nodeSelector", CUSTOM_LABELS[0].0, "red"),
        6 => shape.entry("spec.nodeSelector", INSTANCE_TYPE, "s-4x-amd64-linux"),
        7 => shape.with("spec.hostNetwork", true).push(
            "spec.containers",
            json!({ "name": "net", "ports": [{ "containerPort": 8081, "hostPort": 8081 }] }),
        ),
        _ => shape
            .with("spec.overhead", json!({ "cpu": "100m" }))
            .with("spec.resources", json!({ "requests": { "cpu": "1" } })),
    };
    match rng.below(3) {
        0 => shape = shape.push("spec.tolerations", json!({ "operator": "Exists" })),
        1 => {
            let toleration = json!({ "key": "example.com/starting", "operator": "Exists" });
            shape = shape.push("spec.tolerations", toleration);
        }
        _ => {}
    }
    let daemon = Object::new("apps/v1", "DaemonSet", "kube-system", name)
        .with("spec.selector.matchLabels", json!({ "app": name }))
        .with("spec.template.metadata.labels", json!({ "app": name }))
        .with("spec.template.spec", shape.get("spec").clone());
    snapshot.objects.push(daemon);
}

/// Pods of daemons that ask for more than their template says, the newest of them most.
fn daemon_pods(snapshot: &mut Snapshot, rng: &mut Rng) {
    let is_daemons =
        |object: &Object| object.kind() == "Pod" && object.get("metadata.ownerReferences")[0]["kind"] == "DaemonSet";
    let newest = *rng.pick(&["2026-11-15T11:00:00Z", "2026-11-15T10:00:30Z"]);
    change(snapshot, is_daemons, |pod| {
        if !rng.chance(40) {
            return pod;
        }
        let requests = json!({ "cpu": format!("{}m", 100 * rng.between(1, 9)), "memory": "256Mi" });
        pod.push(
            "spec.containers",
            json!({ "name": "grown", "resources": { "requests": requests } }),
        )
        .with("metadata.creationTimestamp", newest)
    });
}

/// Overlays of one weight, of a pool, of a custom label, of several requirements.
fn overlays(snapshot: &mut Snapshot, rng: &mut Rng) {
    let gates = snapshot.settings.get_mut("featureGates");
    if let Some(gates) = gates.and_then(Value::as_object_mut) {
        gates.insert("NodeOverlay".to_owned(), true.into());
    }
    if snapshot
        .of_kind("NodeOverlay")
        .any(|overlay| overlay.name().starts_with("rare"))
    {
        return;
    }
    for index in 0..rng.between(1, 3) {
        let choices = [
            requirement(NODE_POOL, "In", &[*rng.pick(&["pool-0", "pool-1", "default"])]),
            requirement(KWOK_FAMILY, "NotIn", &["c"]),
            requirement(CAPACITY_TYPE, "In", &["on-demand"]),
            requirement(ZONE, "In", &[*rng.pick(&KWOK_ZONES)]),
            requirement(KWOK_SIZE, "Gt", &["4"]),
            requirement(CUSTOM_LABELS[0].0, "In", &["red"]),
            requirement(OS, "Exists", &[]),
            requirement("example.com/legacy", "DoesNotExist", &[]),
        ];
        let mut overlay = Object::new("karpenter.sh/v1alpha1", "NodeOverlay", "", &format!("rare-{index}"))
            .with("metadata.generation", 1)
            .with("spec.requirements", Value::from(rng.some(&choices, 1)));
        if rng.chance(60) {
            overlay = overlay.with("spec.weight", *rng.pick(&[10, 10, 20]));
        }
        overlay = match rng.below(6) {
            0 => overlay.with("spec.price", *rng.pick(&["0", "0.000001", "12"])),
            1 => overlay.with("spec.priceAdjustment", *rng.pick(&["-100%", "+100%", "-50", "+1.5%"])),
            2 => overlay.with(
                "spec.capacity",
                json!({ "example.com/device": "3", "hugepages-2Mi": "64Mi" }),
            ),
            3 => overlay
                .with("spec.price", "0.2")
                .with("spec.capacity", json!({ "example.com/unknown": "1" })),
            4 => overlay
                .with("spec.priceAdjustment", "-20%")
                .with("spec.capacity", json!({ "example.com/device": "1" })),
            _ => overlay.with("spec.priceAdjustment", "-33.3%"),
        };
        snapshot.objects.push(overlay);
    }
}

/// Buffers of each kind of owner, with several bounds, or of nothing.
fn buffer(snapshot: &mut Snapshot, rng: &mut Rng) {
    let gates = snapshot.settings.get_mut("featureGates");
    if let Some(gates) = gates.and_then(Value::as_object_mut) {
        gates.insert("CapacityBuffer".to_owned(), true.into());
    }
    let owners: Vec<Object> = snapshot
        .objects
        .iter()
        .filter(|object| ["Deployment", "ReplicaSet"].contains(&object.kind()))
        .cloned()
        .collect();
    if owners.is_empty() || snapshot.of_kind("CapacityBuffer").any(|buffer| buffer.name() == "rare") {
        return;
    }
    let owner = rng.pick(&owners);
    let namespace = owner.get("metadata.namespace").as_str().unwrap_or(NAMESPACES[0].0);
    let mut buffer = Object::new("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", namespace, "rare")
        .with("metadata.generation", 1)
        .with("metadata.creationTimestamp", "2026-11-15T11:00:00Z");
    buffer = match rng.below(8) {
        0 => buffer
            .with("spec.podTemplateRef.name", "no-such-template")
            .with("spec.replicas", 2),
        1 => buffer.with("spec.provisioningStrategy", "example.com/other"),
        _ => buffer,
    };
    if buffer.get("spec.podTemplateRef").is_null() {
        let name = if rng.chance(10) { "no-such-owner" } else { owner.name() };
        let scaled = json!({ "apiGroup": "apps", "kind": owner.kind(), "name": name });
        buffer = buffer.with("spec.scalableRef", scaled);
        if rng.chance(60) {
            buffer = buffer.with("spec.percentage", *rng.pick(&[0, 1, 34, 100, 250]));
        }
        if rng.chance(60) {
            buffer = buffer.with("spec.replicas", rng.below(5));
        }
    }
    if rng.chance(50) {
        let limits = [
            json!({ "memory": "5Gi" }),
            json!({ "cpu": "100m" }),
            json!({ "cpu": "4", "memory": "100Gi" }),
            json!({ "example.com/device": "1" }),
        ];
        buffer = buffer.with("spec.limits", rng.pick(&limits).clone());
    }
    snapshot.objects.push(buffer);
}

/// Classes that bind at once, for several topologies, by old labels, without a name.
fn classes(snapshot: &mut Snapshot, rng: &mut Rng) {
    let what = rng.below(6);
    let zones = rng.some(&KWOK_ZONES, 1);
    change(
        snapshot,
        |object| object.kind() == "StorageClass",
        |class| match what {
            0 => class.with("volumeBindingMode", "Immediate"),
            1 => class.with(
                "allowedTopologies",
                json!([{ "matchLabelExpressions": [{ "key": ZONE, "values": zones }] },
                   { "matchLabelExpressions": [{ "key": ZONE, "values": [KWOK_ZONES[0]] },
                                               { "key": CAPACITY_TYPE, "values": ["on-demand"] }] }]),
            ),
            2 => class.with(
                "allowedTopologies",
                json!([{ "matchLabelExpressions": [{ "key": "topology.ebs.csi.aws.com/zone", "values": zones }] }]),
            ),
            3 => class.entry(
                "metadata.annotations",
                "storageclass.kubernetes.io/is-default-class",
                "true",
            ),
            4 => class.with("provisioner", "kubernetes.io/no-provisioner"),
            _ => class.with("allowedTopologies", json!([])),
        },
    );
    if rng.chance(50) {
        let is_open =
            |object: &Object| object.kind() == "PersistentVolumeClaim" && object.get("spec.volumeName").is_null();
        let name = rng.pick(&[Value::Null, json!("")]).clone();
        change(snapshot, is_open, |claim| {
            claim.with("spec.storageClassName", name.clone())
        });
    }
}

/// Volumes that may be in several places, by several labels, or of a class that is gone.
fn volumes(snapshot: &mut Snapshot, rng: &mut Rng) {
    change(
        snapshot,
        |object| object.kind() == "PersistentVolume",
        |volume| {
            let path = "spec.nodeAffinity.required.nodeSelectorTerms";
            match rng.below(7) {
            0 => volume.push(
                path,
                json!({ "matchExpressions": [requirement(ZONE, "In", &[KWOK_ZONES[0]]),
                                             requirement(CAPACITY_TYPE, "In", &["on-demand"])] }),
            ),
            1 => volume.with(path, json!([{ "matchExpressions": [requirement(HOSTNAME, "In", &["node-00"])] }])),
            2 => volume.with(
                path,
                json!([{ "matchExpressions": [requirement("topology.ebs.csi.aws.com/zone", "In", &[KWOK_ZONES[1]])] }]),
            ),
            3 => volume.with("spec.nodeAffinity", Value::Null),
            4 => volume.with("status.phase", "Released"),
            5 => volume.with(
                path,
                json!([{ "matchFields": [requirement("metadata.name", "In", &["node-00"])] }]),
            ),
            _ => volume,
        }
        },
    );
}

/// Limits of attachments that are nothing, of another driver, or not said.
fn attachments(snapshot: &mut Snapshot, rng: &mut Rng) {
    change(
        snapshot,
        |object| object.kind() == "CSINode",
        |node| {
            let name = node.name().to_owned();
            let drivers = match rng.below(4) {
                0 => json!([{ "name": DRIVER, "nodeID": name, "allocatable": { "count": 0 } }]),
                1 => json!([{ "name": DRIVER, "nodeID": name }]),
                2 => json!([{ "name": "ebs.csi.aws.com", "nodeID": name, "allocatable": { "count": 1 } },
                        { "name": DRIVER, "nodeID": name, "allocatable": { "count": 1 } }]),
                _ => json!([]),
            };
            node.with("spec.drivers", drivers)
        },
    );
}

/// Types that come with more than the usual.
fn own_resources(snapshot: &mut Snapshot, rng: &mut Rng) {
    for it in &mut snapshot.instance_types {
        if rng.chance(40) {
            let amount = rng.between(1, 4).to_string();
            it.capacity.insert("example.com/device".to_owned(), amount.into());
        }
        if rng.chance(10) {
            it.capacity.insert("hugepages-2Mi".to_owned(), "32Mi".into());
        }
    }
}

/// Types that take few pods.
fn crowded_types(snapshot: &mut Snapshot, rng: &mut Rng) {
    for it in &mut snapshot.instance_types {
        if rng.chance(60) {
            it.capacity
                .insert("pods".to_owned(), rng.between(2, 6).to_string().into());
        }
    }
}

/// Zones and kinds of capacity that are sold out.
fn closed(snapshot: &mut Snapshot, rng: &mut Rng) {
    let (zone, spot) = (*rng.pick(&KWOK_ZONES), rng.chance(50));
    for offering in snapshot.instance_types.iter_mut().flat_map(|it| &mut it.offerings) {
        let is_meant = |one: &Value| {
            if spot {
                one["values"][0] == "spot"
            } else {
                one["values"][0] == zone
            }
        };
        let is_reserved = offering.requirements.iter().any(|one| one["key"] == RESERVATION_ID);
        if !is_reserved && offering.requirements.iter().any(is_meant) {
            offering.available = false;
        }
    }
}
