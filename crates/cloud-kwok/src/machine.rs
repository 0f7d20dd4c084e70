//! The Node object that stands for a claim's machine, and the machine that a Node object stands for.

use std::collections::BTreeMap;

use api::{
    labels::{HOSTNAME, INSTANCE_TYPE, kwok as labels},
    taints,
};
use cloud::{Instance, LaunchToken, Launched};
use model::{
    object::{Map, Node, NodeClaim, Text, Uid},
    price::Price,
    requirement::{Operator, RequirementSpec},
};
use serde_json::{Value, json};

use crate::choice::Choice;

/// How provider IDs begin.
pub(crate) const PROVIDER_PREFIX: &str = "kwok://";
/// The one group of nodes that the kwok controller of upstream's set-up simulates.
const PARTITION: &str = "a";
/// Names the claim a node was launched for by its identity: two claims may bear one name, one after the other.
pub(crate) const CLAIM_UID: &str = "karpenter.kwok.sh/nodeclaim-uid";

/// A machine: what becomes of a launch, and the identity it was launched for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Machine {
    pub(crate) node_name: String,
    pub(crate) claim_name: Text,
    pub(crate) claim_uid: Uid,
    pub(crate) launched: Launched,
}

/// The name of the node of a launch. The token makes it the same whenever the same launch is asked for.
pub(crate) fn node_name(claim: &NodeClaim, token: &LaunchToken) -> String {
    format!(
        "kwok-{}-{:010}",
        claim.metadata.name,
        fnv(&token.to_string()) % 10_000_000_000
    )
}

impl Machine {
    /// The machine a claim gets.
    pub(crate) fn of_claim(claim: &NodeClaim, node_name: &str, choice: &Choice<'_>) -> Self {
        let requests = &claim.spec.resources.requests;
        Self {
            node_name: node_name.to_owned(),
            claim_name: claim.metadata.name.clone(),
            claim_uid: claim.metadata.uid.clone(),
            launched: Launched {
                provider_id: format!("{PROVIDER_PREFIX}{node_name}").into(),
                image_id: Text::default(),
                // Upstream's quirk: the machine has what the pods asked for, and more than that to allocate.
                capacity: requests.clone(),
                allocatable: requests.overlaid_with(&choice.shape.allocatable()),
                labels: node_labels(claim, choice),
                annotations: with_kwok_annotation(&claim.metadata.annotations),
            },
        }
    }

    /// The Node object to create. The API server keeps the status of a node that is created.
    pub(crate) fn node(&self) -> Value {
        let Launched {
            provider_id,
            capacity,
            allocatable,
            labels,
            annotations,
            ..
        } = &self.launched;
        let mut annotations = pairs(annotations);
        let uid = self.claim_uid.to_string();
        annotations.insert(CLAIM_UID, &uid);
        let taint = taints::unregistered();
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.node_name, "labels": pairs(labels), "annotations": annotations},
            "spec": {"providerID": provider_id, "taints": [taint]},
            "status": {"capacity": capacity, "allocatable": allocatable, "phase": "Pending"},
        })
    }

    /// The machine as the cloud lists it before its node is there.
    pub(crate) fn instance(&self, launched_at: Option<jiff::Timestamp>) -> Instance {
        Instance {
            provider_id: self.launched.provider_id.clone().into(),
            claim: Some(self.claim_name.clone().into()),
            claim_uid: Some(self.claim_uid.clone()),
            launched_at,
            is_terminating: false,
            launched: self.launched.clone(),
        }
    }
}

/// The machine that a node stands for; none when the node is no machine of this cloud.
pub(crate) fn instance_of_node(node: &Node) -> Option<Instance> {
    let provider_id = node.spec.provider_id.clone()?;
    provider_id.as_str().strip_prefix(PROVIDER_PREFIX)?;
    let metadata = &node.metadata;
    let owner = metadata
        .owner_references
        .iter()
        .find(|owner| *owner.kind == *"NodeClaim");
    let tagged = metadata.annotations.get(CLAIM_UID).map(|uid| Uid::from(uid.as_ref()));
    Some(Instance {
        claim: metadata.labels.get(HOSTNAME).cloned().map(Into::into),
        claim_uid: tagged.or_else(|| owner.map(|owner| owner.uid.clone())),
        launched_at: metadata.creation_timestamp,
        is_terminating: metadata.is_deleting(),
        launched: Launched {
            provider_id: provider_id.as_str().into(),
            image_id: Text::default(),
            capacity: node.status.capacity.clone(),
            allocatable: node.status.allocatable.clone(),
            labels: metadata.labels.clone(),
            annotations: with_kwok_annotation(&metadata.annotations),
        },
        provider_id,
    })
}

/// Labels in upstream's order, later ones winning: the claim's, what its requirements leave no choice of, the type's, the
/// offering's, and the simulator's own.
fn node_labels(claim: &NodeClaim, choice: &Choice<'_>) -> Map<Text> {
    let mut all: BTreeMap<&str, &str> = pairs(&claim.metadata.labels);
    for requirement in &claim.spec.requirements {
        if let ("In", [value]) = (&*requirement.operator, &*requirement.values) {
            all.insert(&requirement.key, value);
        }
    }
    all.insert(INSTANCE_TYPE, choice.described.name.as_str());
    all.extend(choice.described.requirements.iter().filter_map(only_value));
    all.extend(choice.offering.requirements.iter().filter_map(only_value));
    let price = price_label(choice.offering.price);
    all.insert(labels::NODE_VIEWER_PRICE, &price);
    all.insert(labels::PARTITION, PARTITION);
    all.insert(HOSTNAME, &claim.metadata.name);
    all.insert(labels::NODE, labels::NODE_FAKE);
    to_map(&all)
}

fn only_value(requirement: &RequirementSpec) -> Option<(&str, &str)> {
    match (requirement.operator, requirement.values.as_slice()) {
        (Operator::In, [value]) => Some((&requirement.key, value)),
        _ => None,
    }
}

/// Go's `%f`: six decimals.
fn price_label(price: Price) -> String {
    let micros = (price.picos() + 500_000) / 1_000_000;
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

fn with_kwok_annotation(annotations: &Map<Text>) -> Map<Text> {
    let mut all = pairs(annotations);
    all.insert(labels::NODE, labels::NODE_FAKE);
    all.remove(CLAIM_UID);
    to_map(&all)
}

fn pairs(map: &Map<Text>) -> BTreeMap<&str, &str> {
    map.iter().map(|(key, value)| (key.as_ref(), value.as_ref())).collect()
}

fn to_map(pairs: &BTreeMap<&str, &str>) -> Map<Text> {
    pairs
        .iter()
        .map(|(key, value)| ((*key).into(), (*value).into()))
        .collect()
}

/// FNV-1a: stable over builds and machines, which the names of nodes must be.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
