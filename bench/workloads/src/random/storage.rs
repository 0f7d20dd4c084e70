//! Which volumes do random pods mount? Claims that are bound, waiting, zonal, missing, and ephemeral ones.

use serde_json::{Value, json};

use crate::catalogue::KWOK_ZONES;
use crate::object::{Object, ZONE, requirement};
use crate::rng::Rng;

/// The one CSI driver of the random cluster.
pub(super) const DRIVER: &str = "csi.example.com";

/// Two storage classes: one for certain zones, one for any.
pub(super) fn classes(rng: &mut Rng) -> Vec<Object> {
    let class = |name: &str| {
        Object::new("storage.k8s.io/v1", "StorageClass", "", name)
            .with("provisioner", DRIVER)
            .with("volumeBindingMode", "WaitForFirstConsumer")
    };
    let zones = rng.some(&KWOK_ZONES, 1);
    let topologies = json!([{ "matchLabelExpressions": [{ "key": ZONE, "values": zones }] }]);
    vec![class("zonal").with("allowedTopologies", topologies), class("anywhere")]
}

/// Gives the pod a volume and returns the objects behind it.
pub(super) fn mount(pod: Object, rng: &mut Rng) -> (Object, Vec<Object>) {
    let class = *rng.pick(&["zonal", "anywhere"]);
    let namespace = pod.get("metadata.namespace").as_str().unwrap_or("default").to_string();
    if rng.chance(25) {
        // Kubernetes names the claim it makes for an ephemeral volume after the pod and the volume.
        let claim = claim(&namespace, &format!("{}-scratch", pod.name()), class);
        return (pod.push("spec.volumes", ephemeral(class)), vec![claim]);
    }
    let name = format!("{}-data", pod.name());
    let volume = json!({ "name": "data", "persistentVolumeClaim": { "claimName": name } });
    let pod = pod.push("spec.volumes", volume);
    let claim = claim(&namespace, &name, class);
    match rng.below(20) {
        0 => (pod, Vec::new()),
        1..9 => (pod, vec![claim]),
        _ => {
            let volume = persistent_volume(&format!("pv-{namespace}-{name}"), class, rng);
            let bound = claim
                .with("spec.volumeName", volume.name())
                .entry("metadata.annotations", "pv.kubernetes.io/bind-completed", "yes")
                .with("status.phase", "Bound");
            (pod, vec![bound, volume])
        }
    }
}

fn ephemeral(class: &str) -> Value {
    json!({ "name": "scratch", "ephemeral": { "volumeClaimTemplate": { "spec": claim_spec(class) } } })
}

fn claim_spec(class: &str) -> Value {
    json!({ "accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "resources": { "requests": { "storage": "1Gi" } } })
}

fn claim(namespace: &str, name: &str, class: &str) -> Object {
    Object::new("v1", "PersistentVolumeClaim", namespace, name)
        .with("spec", claim_spec(class))
        .with("status.phase", "Pending")
}

fn persistent_volume(name: &str, class: &str, rng: &mut Rng) -> Object {
    let zones = rng.some(&KWOK_ZONES, 1);
    let terms = json!([{ "matchExpressions": [requirement(ZONE, "In", &zones)] }]);
    Object::new("v1", "PersistentVolume", "", name)
        .with("spec.capacity", json!({ "storage": "1Gi" }))
        .with("spec.accessModes", json!(["ReadWriteOnce"]))
        .with("spec.storageClassName", class)
        .with("spec.csi", json!({ "driver": DRIVER, "volumeHandle": name }))
        .with("spec.nodeAffinity.required.nodeSelectorTerms", terms)
}
