//! A cluster that has been running for a while: nodes, claims and pods that were there before the story began.

use std::sync::Arc;

use cloud::{CloudError, LaunchToken};
use cloud_sim::Machine;
use jiff::Timestamp;
use model::{object::NodeClaim, resources::ResourceList};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Workload, World, ground,
    ground::text,
    objects::{KEEPER, Pool},
};

/// Who runs on the nodes.
const WORKLOAD: &str = "resident";

/// How large the pods are that run on the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fullness {
    /// A quarter of a core and 512Mi: there may be room to spare, and consolidation will make use of it.
    Spare,
    /// As large as their node allows, so that there is nothing to gain.
    Full,
}

/// Fills a pool with nodes, and the nodes evenly with pods of a workload. The pool must be there.
pub fn prefill(world: &World, pool: &Pool, nodes: u64, pods: u64, fullness: Fullness) -> Result<(), CloudError> {
    let source = world.region.market().source();
    let manifest = pool.manifest(source);
    let each = pods.div_ceil(nodes.max(1));
    let workload = Workload {
        name: WORKLOAD.to_owned(),
        replicas: pods,
        cpu: "250m".to_owned(),
        memory: "512Mi".to_owned(),
        ..Workload::default()
    };
    let made = workload.manifests(KEEPER).into_iter().next().unwrap_or_default();
    let mut keeper = world
        .server
        .create(made)
        .map_err(|failure| CloudError::Other(failure.message))?;
    let mut left = pods;
    for number in 0..nodes {
        let on_it = left.min(each);
        left -= on_it;
        let machine = add_node(world, &manifest, number, each)?;
        if number == 0 && fullness == Fullness::Full {
            let share = share(&machine.allocatable, each);
            let size = |set: &mut Value| {
                set["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] = share;
            };
            let key = format!("default/{WORKLOAD}");
            let sized = world.server.update(KEEPER, &key, size);
            keeper = sized.map_err(|failure| other(&failure.message))?;
        }
        for _ in 0..on_it {
            let _ = world
                .server
                .create(pod(&keeper, &machine.node_name, world.server.now()));
        }
    }
    Ok(())
}

/// What each of so many pods may ask for on a machine.
fn share(allocatable: &ResourceList, pods: u64) -> Value {
    let of = |amount: i64| u64::try_from(amount).unwrap_or(0) * 97 / 100 / pods.max(1);
    let (cpu, memory) = (
        allocatable.amount("cpu").milli_value(),
        allocatable.amount("memory").value(),
    );
    json!({"cpu": format!("{}m", of(cpu)), "memory": format!("{}Mi", of(memory) >> 20)})
}

fn other(error: &impl ToString) -> CloudError {
    CloudError::Other(error.to_string())
}

/// A claim, its machine and its node, as they are once all is done.
fn add_node(world: &World, pool: &Value, number: u64, pods: u64) -> Result<Arc<Machine>, CloudError> {
    let now = world.server.now();
    let template = &pool["spec"]["template"]["spec"];
    let name = text(pool, "/metadata/name");
    let requests =
        json!({"cpu": format!("{}m", 250 * pods), "memory": format!("{}Mi", 512 * pods), "pods": pods.to_string()});
    let mut labels = json!({"karpenter.sh/nodepool": name});
    for (key, value) in pool["spec"]["template"]["metadata"]["labels"]
        .as_object()
        .into_iter()
        .flatten()
    {
        labels[key] = value.clone();
    }
    let claim = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": format!("{name}-{number:05}"), "labels": labels, "finalizers": [FINALIZER],
            "annotations": {"dovetail.dev/launch-attempt": "1"}},
        "spec": {"nodeClassRef": template["nodeClassRef"], "requirements": template["requirements"],
            "expireAfter": template["expireAfter"], "resources": {"requests": requests}},
    });
    let created = world.server.create(claim).map_err(|failure| other(&failure.message))?;
    let wanted =
        NodeClaim::deserialize(&fitting(world, Value::clone(&created), pods)).map_err(|error| other(&error))?;
    let token = LaunchToken {
        claim: wanted.metadata.uid.clone(),
        attempt: 1,
    };
    let machine = world.region.adopt(&wanted, &token)?;
    let mut node = ground::node(&machine, now);
    node["spec"]["taints"] = json!([]);
    node["metadata"]["finalizers"] = json!([FINALIZER]);
    for label in ["registered", "initialized"] {
        node["metadata"]["labels"][format!("karpenter.sh/{label}")] = json!("true");
    }
    node["metadata"]["ownerReferences"] = json!([{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "name": created["metadata"]["name"], "uid": created["metadata"]["uid"], "blockOwnerDeletion": true}]);
    world.server.create(node).map_err(|failure| other(&failure.message))?;
    ground::ready(&world.server, &machine.node_name);
    let claim_name = text(&created, "/metadata/name").to_owned();
    let conditions = ["Launched", "Registered", "Initialized", "Ready"].map(|kind| done(kind, now));
    let _ = world.server.update("NodeClaim", &claim_name, |claim| {
        for (key, value) in &machine.launched.labels {
            claim["metadata"]["labels"][&**key] = json!(&**value);
        }
        claim["status"] = json!({
            "providerID": machine.id.as_str(), "nodeName": machine.node_name, "imageID": &*machine.launched.image_id,
            "capacity": machine.launched.capacity, "allocatable": machine.launched.allocatable,
            "conditions": conditions,
        });
    });
    Ok(machine)
}

const FINALIZER: &str = "karpenter.sh/termination";

/// The claim with types that hold so many pods, as a plan would name them.
fn fitting(world: &World, mut claim: Value, pods: u64) -> Value {
    let (cpu, memory) = (250 * pods, 512 * pods);
    let fits = |resources: &ResourceList| {
        u64::try_from(resources.amount("cpu").milli_value()).unwrap_or(0) >= cpu + 200
            && u64::try_from(resources.amount("memory").value()).unwrap_or(0) >= (memory + 1024) << 20
            && u64::try_from(resources.amount("pods").value()).unwrap_or(0) >= pods + 5
    };
    let types = world
        .region
        .market()
        .types()
        .iter()
        .filter(|entry| fits(&entry.capacity));
    let names: Vec<&str> = types.map(|entry| entry.name.as_str()).collect();
    if let Some(requirements) = claim["spec"]["requirements"].as_array_mut() {
        requirements.push(json!({"key": "node.kubernetes.io/instance-type", "operator": "In", "values": names}));
    }
    claim
}

fn done(kind: &str, now: Timestamp) -> Value {
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
    json!({"type": kind, "status": "True", "reason": kind, "message": "", "observedGeneration": 1, "lastTransitionTime": now})
}

/// A pod that runs on a node.
fn pod(keeper: &Value, node: &str, now: Timestamp) -> Value {
    let template = &keeper["spec"]["template"];
    let seconds = Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
    let mut pod =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"], "spec": template["spec"]});
    pod["metadata"]["generateName"] = json!(format!("{WORKLOAD}-"));
    pod["metadata"]["namespace"] = json!("default");
    pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": KEEPER, "name": WORKLOAD,
        "uid": keeper["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true}]);
    pod["spec"]["nodeName"] = json!(node);
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": seconds});
    let conditions = ["PodScheduled", "Initialized", "Ready", "ContainersReady"].map(condition);
    pod["status"] = json!({"phase": "Running", "startTime": seconds,
        "conditions": conditions});
    pod
}
