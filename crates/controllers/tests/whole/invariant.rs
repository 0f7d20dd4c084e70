//! What must hold at the end, and what must have held all along.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use simulator::{Change, Event};

use crate::world::{World, is_true, text};

/// Why the cluster is not one where this many pods run, each claim has its node and each node its claim.
pub(crate) fn not_running(world: &World, pods: usize) -> Vec<String> {
    let mut wrong = Vec::new();
    let all = world.pods();
    let running = all.iter().filter(|pod| text(pod, "/status/phase") == "Running").count();
    if (running, all.len()) != (pods, pods) {
        wrong.push(format!("{running} of {} pods run, {pods} should", all.len()));
    }
    for claim in world.claims() {
        let name = text(&claim, "/metadata/name");
        if !is_true(&claim, "Initialized") {
            wrong.push(format!(
                "claim {name} is not initialized: {}",
                claim["status"]["conditions"]
            ));
        }
        if !text(&claim, "/metadata/deletionTimestamp").is_empty() {
            wrong.push(format!("claim {name} is being deleted"));
        }
        if claim["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty) {
            wrong.push(format!("claim {name} has no finalizer"));
        }
    }
    for node in world.nodes() {
        let name = text(&node, "/metadata/name");
        if node["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty) {
            wrong.push(format!("node {name} has no finalizer"));
        }
        if node["metadata"]["labels"]["karpenter.sh/initialized"] != "true" {
            wrong.push(format!("node {name} is not labelled as initialized"));
        }
        if !node["spec"]["taints"].is_null() {
            wrong.push(format!("node {name} has taints {}", node["spec"]["taints"]));
        }
    }
    wrong.extend(unpaired(world));
    wrong
}

/// Claims without exactly one node, and nodes without exactly one claim.
fn unpaired(world: &World) -> Vec<String> {
    let ids = |objects: Vec<Value>, pointer: &str| {
        let mut ids: Vec<String> = objects.iter().map(|object| text(object, pointer).to_owned()).collect();
        ids.sort();
        ids
    };
    let claims = ids(world.claims(), "/status/providerID");
    let nodes = ids(world.nodes(), "/spec/providerID");
    if claims == nodes && claims.iter().collect::<BTreeSet<_>>().len() == claims.len() {
        return Vec::new();
    }
    vec![format!("claims have machines {claims:?}, nodes are {nodes:?}")]
}

/// What is left of a fleet that should be gone.
pub(crate) fn left_over(world: &World) -> Vec<String> {
    let name = |kind: &str, object: &Value| {
        let metadata = &object["metadata"];
        let deleting = !metadata["deletionTimestamp"].is_null();
        format!(
            "{kind} {} is left (deleting: {deleting}, finalizers {}, conditions {})",
            metadata["name"], metadata["finalizers"], object["status"]["conditions"]
        )
    };
    let claims = world.claims();
    let nodes = world.nodes();
    let claims = claims.iter().map(|claim| name("claim", claim));
    claims.chain(nodes.iter().map(|node| name("node", node))).collect()
}

/// What should not have happened, whatever came of it in the end.
pub(crate) fn violations(history: &[Change]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut machines: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut alive: BTreeSet<String> = BTreeSet::new();
    for change in history {
        let object = &change.object;
        match (change.resource.plural.as_str(), change.event) {
            ("nodes", Event::Added) => {
                let id = text(object, "/spec/providerID").to_owned();
                let claim = text(object, "/metadata/annotations/karpenter.kwok.sh~1nodeclaim-uid").to_owned();
                machines.entry(claim).or_default().insert(id.clone());
                alive.insert(id);
            }
            ("nodes", Event::Deleted) => {
                alive.remove(text(object, "/spec/providerID"));
            }
            ("nodeclaims", Event::Deleted) => {
                let id = text(object, "/status/providerID");
                if alive.contains(id) {
                    wrong.push(format!(
                        "claim {} went while its machine was there",
                        text(object, "/metadata/name")
                    ));
                }
            }
            _ => {}
        }
    }
    let twice = machines.iter().filter(|(_, machines)| machines.len() > 1);
    wrong.extend(twice.map(|(claim, machines)| format!("claim {claim} was launched twice: {machines:?}")));
    wrong
}

/// How many objects of a kind ever were.
pub(crate) fn ever(history: &[Change], plural: &str) -> usize {
    let is_new = |change: &&Change| change.event == Event::Added && change.resource.plural == plural;
    history.iter().filter(is_new).count()
}
