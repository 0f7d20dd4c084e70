//! What the oracle answers, as a plan of ours.

use std::sync::Arc;

use anyhow::{Context, Result};
use model::{
    object::{InstanceTypeName, Map, Metadata, ObjectKey, Pod, PodSpec, Toleration},
    plan::{Plan, PlannedClaim, PlannedNode, RefusalKind, TypeOptions, Unplaced},
    requirement::RequirementSpec,
    resources::ResourceList,
    snapshot::Snapshot,
};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    claims: Vec<Claim>,
    existing: Vec<Existing>,
    errors: serde_json::Map<String, Value>,
    #[serde(default)]
    ignored: Option<serde_json::Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Claim {
    node_pool: String,
    pods: Vec<String>,
    requirements: Vec<RequirementSpec>,
    instance_types: Vec<InstanceTypeName>,
    requests: ResourceList,
}

#[derive(Deserialize)]
struct Existing {
    node: String,
    pods: Vec<String>,
}

/// The plan in an answer of `reference solve`. What the oracle does not print (labels, annotations, the cheapest launch)
/// stays empty; pods that stand for a buffer's room are known by name only, so they ask for nothing and tolerate all.
pub fn plan(snapshot: &Snapshot, answer: Value) -> Result<Plan> {
    let answer: Answer = serde_json::from_value(answer).context("reading the oracle's plan")?;
    let claims = answer.claims.into_iter().map(|claim| planned_claim(snapshot, claim));
    let existing = answer.existing.into_iter().map(|node| PlannedNode {
        name: node.node.as_str().into(),
        pods: pods(snapshot, &node.pods),
    });
    let refused = answer.errors.iter().map(|it| (it, RefusalKind::Unschedulable));
    let ignored = answer.ignored.iter().flatten().map(|it| (it, RefusalKind::Invalid));
    let unplaced = refused.chain(ignored).map(|((name, message), kind)| Unplaced {
        pod: pod(snapshot, name),
        kind,
        message: message.as_str().unwrap_or_default().into(),
    });
    Ok(Plan {
        claims: claims.collect(),
        existing: existing.collect(),
        unplaced: unplaced.collect(),
        order: Vec::new(),
    })
}

fn planned_claim(snapshot: &Snapshot, claim: Claim) -> PlannedClaim {
    let constraints = claim.requirements.into_iter();
    let constraints = constraints.filter(|spec| spec.key != "node.kubernetes.io/instance-type");
    PlannedClaim {
        min_types: None,
        node_pool: claim.node_pool.as_str().into(),
        pods: pods(snapshot, &claim.pods),
        constraints: constraints.collect(),
        options: TypeOptions::all(claim.instance_types),
        cheapest: None,
        requests: claim.requests,
        labels: Map::default(),
        annotations: Map::default(),
        wave: 0,
        nominated: Vec::new(),
    }
}

fn pods(snapshot: &Snapshot, names: &[String]) -> Vec<Arc<Pod>> {
    names.iter().map(|name| pod(snapshot, name)).collect()
}

fn pod(snapshot: &Snapshot, name: &str) -> Arc<Pod> {
    let (namespace, name) = name.split_once('/').unwrap_or(("", name));
    let known = snapshot.objects().pods.get(&ObjectKey::new(namespace, name));
    known.cloned().unwrap_or_else(|| {
        let tolerant = Toleration {
            operator: "Exists".into(),
            ..Toleration::default()
        };
        let metadata = Metadata {
            namespace: namespace.into(),
            name: name.into(),
            ..Metadata::default()
        };
        let mut spec = PodSpec::default();
        spec.tolerations = vec![tolerant].into();
        Arc::new(Pod {
            metadata,
            spec: Arc::new(spec),
            ..Pod::default()
        })
    })
}
