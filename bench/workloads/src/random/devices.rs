//! Which devices does the random cluster have, and which pods want them? Dynamic resource allocation: classes, the
//! devices of types and of running nodes, claims that wait and claims that were served.
//!
//! Added to a finished cluster: a group of pods becomes one whose pods have claims. A running pod gets a device of its
//! node while there is one left; the others are of a time before the group wanted any.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::object::{INSTANCE_TYPE, Object};
use crate::rng::Rng;
use crate::snapshot::Snapshot;

const DRIVER: &str = "gpu.example.com";
const API: &str = "resource.k8s.io/v1";
/// What a type calls its pool; on a node it bears the node's name.
const POOL: &str = "node";

/// Makes about a third of the clusters ones with devices.
pub(super) fn add(mut snapshot: Snapshot, rng: &mut Rng) -> Snapshot {
    if !rng.chance(35) {
        return snapshot;
    }
    if rng.chance(75) {
        snapshot = snapshot.setting("ignoreDRARequests", false);
    }
    snapshot.objects.extend(classes());
    for it in &mut snapshot.instance_types {
        if rng.chance(60) {
            it.dynamic_resources = resources(rng);
        }
    }
    let (slices, mut free) = publish(&snapshot);
    snapshot.objects.extend(slices);
    for app in apps(&snapshot) {
        if rng.chance(35) {
            want(&mut snapshot, &app, &mut free, rng);
        }
    }
    snapshot
}

/// Any device of the driver, and the large ones.
fn classes() -> [Object; 2] {
    let class = |name: &str, expression: String| {
        Object::new(API, "DeviceClass", "", name)
            .with("spec.selectors", json!([{ "cel": { "expression": expression } }]))
    };
    [
        class("gpu", format!("device.driver == \"{DRIVER}\"")),
        class("large-gpu", is_model("large")),
    ]
}

fn is_model(model: &str) -> String {
    format!("device.driver == \"{DRIVER}\" && device.attributes[\"{DRIVER}\"].model == \"{model}\"")
}

/// What a type comes with: whole devices, or partitions of one.
fn resources(rng: &mut Rng) -> Value {
    let count = rng.between(1, 4);
    let model = *rng.pick(&["large", "small"]);
    let partitioned = rng.chance(25);
    let devices: Vec<Value> = (0..count).map(|index| device(index, model, partitioned, rng)).collect();
    let mut templates = vec![json!({ "driver": DRIVER, "pool": { "name": POOL }, "devices": devices })];
    if partitioned {
        let counters = json!([{ "name": "board", "counters": { "memory": { "value": "60Gi" } } }]);
        templates.push(json!({ "driver": DRIVER, "pool": { "name": POOL }, "sharedCounters": counters }));
    }
    let mut resources = json!({ "resourceSliceTemplates": templates });
    if count > 1 && rng.chance(50) {
        let first = |index| json!({ "driver": DRIVER, "pool": POOL, "device": format!("gpu-{index}") });
        resources["attributeBindings"] = json!([{ "attribute": "example.com/rack", "devices": [first(0), first(1)] }]);
    }
    resources
}

fn device(index: u64, model: &str, partitioned: bool, rng: &mut Rng) -> Value {
    let mut device = json!({
        "name": format!("gpu-{index}"),
        "attributes": { "model": { "string": model }, "numa": { "int": index / 2 },
                        "driverVersion": { "version": "1.2.3" }, "healthy": { "bool": true } },
        "capacity": { "memory": { "value": if model == "large" { "40Gi" } else { "20Gi" } } },
    });
    if partitioned {
        device["consumesCounters"] = json!([{ "counterSet": "board", "counters": { "memory": { "value": "20Gi" } } }]);
    } else if rng.chance(20) {
        device["allowMultipleAllocations"] = json!(true);
    }
    device
}

/// Names of devices by node.
type Free = BTreeMap<String, Vec<String>>;

/// The slices of running nodes, and their devices; shared and partitioned ones are left to pods that are pending.
fn publish(snapshot: &Snapshot) -> (Vec<Object>, Free) {
    let (mut slices, mut free) = (Vec::new(), Free::new());
    for node in snapshot.of_kind("Node") {
        let labels = node.get("metadata.labels");
        let it = snapshot
            .instance_types
            .iter()
            .find(|it| labels[INSTANCE_TYPE] == it.name);
        let Some(it) = it.filter(|_| labels["karpenter.sh/initialized"] == "true") else {
            continue;
        };
        let templates = it.dynamic_resources["resourceSliceTemplates"].as_array();
        let templates = templates.map(Vec::as_slice).unwrap_or_default();
        for (index, template) in templates.iter().enumerate() {
            slices.push(slice(node, index, templates.len(), template));
            free.entry(node.name().to_string()).or_default().extend(whole(template));
        }
    }
    (slices, free)
}

fn slice(node: &Object, index: usize, count: usize, template: &Value) -> Object {
    let owner = json!({ "apiVersion": "v1", "kind": "Node", "name": node.name(), "controller": true,
                        "uid": node.get("metadata.uid") });
    let mut spec = template.clone();
    spec["pool"] = json!({ "name": node.name(), "generation": 1, "resourceSliceCount": count });
    spec["nodeName"] = json!(node.name());
    Object::new(API, "ResourceSlice", "", &format!("{}-{index}", node.name()))
        .push("metadata.ownerReferences", owner)
        .with("spec", spec)
}

/// The devices of a template that one claim takes as a whole.
fn whole(template: &Value) -> Vec<String> {
    let devices = template["devices"].as_array().map(Vec::as_slice).unwrap_or_default();
    let simple = |device: &&Value| device["consumesCounters"].is_null() && device["allowMultipleAllocations"].is_null();
    let names = devices
        .iter()
        .filter(simple)
        .filter_map(|device| device["name"].as_str());
    names.map(ToString::to_string).collect()
}

/// The groups of pods by their label.
fn apps(snapshot: &Snapshot) -> Vec<String> {
    let owned = snapshot.of_kind("ReplicaSet");
    owned.map(|set| set.name().to_string()).collect()
}

/// Gives the group's pods claims: each its own from a template, or all of them the same one.
fn want(snapshot: &mut Snapshot, app: &str, free: &mut Free, rng: &mut Rng) {
    let wish = json!({ "devices": wish(rng) });
    let shared = rng.chance(15);
    let mut made: Vec<Object> = Vec::new();
    for pod in &mut snapshot.objects {
        if pod.kind() != "Pod" || pod.get("metadata.labels.app") != app {
            continue;
        }
        if made.is_empty() {
            made.push(common(pod, app, shared, &wish));
        }
        if !shared {
            made.extend(give_own(pod, app, &wish, free));
        } else if pod.get("spec.nodeName").is_null() {
            *pod = referring(pod.clone(), json!({ "name": "gpu", "resourceClaimName": app }));
        }
    }
    snapshot.objects.extend(made);
}

/// What the group's pods have in common: the one claim, or the template of theirs.
fn common(pod: &Object, app: &str, shared: bool, wish: &Value) -> Object {
    let object = |kind: &str| Object::new(API, kind, namespace(pod), app);
    if shared {
        object("ResourceClaim").with("spec", wish.clone())
    } else {
        object("ResourceClaimTemplate").with("spec.spec", wish.clone())
    }
}

/// Gives the pod its own claim, unless it runs where no device is left.
fn give_own(pod: &mut Object, app: &str, wish: &Value, free: &mut Free) -> Option<Object> {
    let device = match pod.get("spec.nodeName").as_str() {
        Some(node) => Some((node.to_string(), free.get_mut(node)?.pop()?)),
        None => None,
    };
    let claim = own_claim(pod, wish, device);
    let reference = json!({ "name": "gpu", "resourceClaimTemplateName": app });
    let status = json!({ "name": "gpu", "resourceClaimName": claim.name() });
    *pod = referring(pod.clone(), reference).push("status.resourceClaimStatuses", status);
    Some(claim)
}

fn namespace(pod: &Object) -> &str {
    pod.get("metadata.namespace").as_str().unwrap_or_default()
}

/// The pod with a claim that its first container uses.
fn referring(mut pod: Object, reference: Value) -> Object {
    pod.0["spec"]["containers"][0]["resources"]["claims"] = json!([{ "name": "gpu" }]);
    pod.push("spec.resourceClaims", reference)
}

/// The claim Kubernetes made for the pod; with a device when the pod runs.
fn own_claim(pod: &Object, wish: &Value, device: Option<(String, String)>) -> Object {
    let owner = json!({ "apiVersion": "v1", "kind": "Pod", "name": pod.name(), "controller": true,
                        "uid": pod.get("metadata.uid") });
    let claim = Object::new(API, "ResourceClaim", namespace(pod), &format!("{}-gpu", pod.name()))
        .push("metadata.ownerReferences", owner)
        .with("spec", wish.clone());
    let Some((node, device)) = device else { return claim };
    let result = json!({ "request": "gpu", "driver": DRIVER, "pool": node, "device": device });
    let term = json!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": [node] }] });
    claim
        .with("status.allocation.devices.results", json!([result]))
        .with("status.allocation.nodeSelector.nodeSelectorTerms", json!([term]))
        .push(
            "status.reservedFor",
            json!({ "resource": "pods", "name": pod.name(), "uid": pod.get("metadata.uid") }),
        )
}

/// What the pods of a group ask for.
fn wish(rng: &mut Rng) -> Value {
    let exactly = |query: Value| json!({ "requests": [{ "name": "gpu", "exactly": query }] });
    let some = |count: u64| json!({ "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count });
    match rng.below(10) {
        0 => exactly(json!({ "deviceClassName": "gpu", "allocationMode": "All" })),
        1 => {
            let mut query = some(1);
            query["selectors"] = json!([{ "cel": { "expression": is_model("small") } }]);
            exactly(query)
        }
        2 => {
            let alternative = |name: &str, class: &str, count: u64| json!({ "name": name, "deviceClassName": class, "allocationMode": "ExactCount", "count": count });
            let alternatives = [alternative("one", "large-gpu", 1), alternative("two", "gpu", 2)];
            json!({ "requests": [{ "name": "gpu", "firstAvailable": alternatives }] })
        }
        3 => {
            let attribute = *rng.pick(&["gpu.example.com/numa", "example.com/rack"]);
            let mut wish = exactly(some(2));
            wish["constraints"] = json!([{ "matchAttribute": attribute }]);
            wish
        }
        4 => {
            let mut query = some(1);
            query["capacity"] = json!({ "requests": { "memory": "10Gi" } });
            exactly(query)
        }
        5 => exactly(json!({ "deviceClassName": "large-gpu", "allocationMode": "ExactCount", "count": 1 })),
        6 => exactly(json!({ "deviceClassName": "missing", "allocationMode": "ExactCount", "count": 1 })),
        _ => exactly(some(rng.between(1, 2))),
    }
}
