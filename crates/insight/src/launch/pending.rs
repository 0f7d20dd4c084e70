//! Pods without a place, replicas of one workload with one reason together, and pods alike that nobody made.

use std::collections::BTreeMap;

use model::{
    object::{Pod, Text},
    plan::{RefusalKind, Unplaced},
    snapshot::Snapshot,
};
use serde::{Deserialize, Serialize};

use super::Planned;
use crate::funnel::Funnel;

/// Pods of one workload that have no place for one reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pending {
    /// `Deployment/shop/checkout`, the pod itself, or `Pod/shop/*` for several alike.
    pub workload: String,
    /// Who they are.
    pub pods: Vec<String>,
    /// What one of them asks for.
    pub requests: BTreeMap<String, String>,
    /// What follows from it.
    pub reason: Reason,
    /// In upstream's words.
    pub message: String,
    /// How far the first of them came.
    pub funnel: Option<Funnel>,
}

/// What follows from having no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Reason {
    /// It wants none of ours.
    OptedOut,
    /// It is not valid.
    Invalid,
    /// Nothing fits.
    Unschedulable,
    /// It waits for reserved capacity.
    WaitsForReservation,
    /// It asks for devices, which are ignored.
    DeviceRequestsIgnored,
}

impl From<RefusalKind> for Reason {
    fn from(kind: RefusalKind) -> Self {
        match kind {
            RefusalKind::OptedOut => Self::OptedOut,
            RefusalKind::Invalid => Self::Invalid,
            RefusalKind::Unschedulable => Self::Unschedulable,
            RefusalKind::Deferred => Self::WaitsForReservation,
            RefusalKind::DeviceRequestsIgnored => Self::DeviceRequestsIgnored,
        }
    }
}

/// What pods share that are told of together. A workflow, or a job of Spark's or Ray's, makes pods that differ.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Group<'a> {
    workload: String,
    reason: Reason,
    message: &'a str,
    requests: BTreeMap<String, String>,
    selects: Vec<&'a (Text, Text)>,
}

pub(super) fn groups(planned: &Planned, snapshot: &Snapshot) -> Vec<Pending> {
    let mut groups: BTreeMap<Group<'_>, Vec<&Unplaced>> = BTreeMap::new();
    for unplaced in &planned.plan.unplaced {
        let key = Group {
            workload: maker(&unplaced.pod, snapshot),
            reason: unplaced.kind.into(),
            message: &unplaced.message,
            requests: requests(&unplaced.pod),
            selects: unplaced.pod.spec.node_selector.iter().collect(),
        };
        groups.entry(key).or_default().push(unplaced);
    }
    let group = |(group, members): (Group<'_>, Vec<&Unplaced>)| Pending {
        workload: match &members[..] {
            [alone] => workload(&alone.pod, snapshot),
            _ => group.workload,
        },
        pods: members
            .iter()
            .map(|unplaced| unplaced.pod.metadata.key().to_string())
            .collect(),
        requests: group.requests,
        reason: group.reason,
        message: group.message.to_owned(),
        funnel: members
            .iter()
            .find_map(|unplaced| planned.funnels.get(&unplaced.pod.metadata.key()).cloned()),
    };
    groups.into_iter().map(group).collect()
}

/// What pods told of together have in common: what made them, or else where they are.
fn maker(pod: &Pod, snapshot: &Snapshot) -> String {
    match pod.metadata.controller() {
        Some(_) => workload(pod, snapshot),
        None => format!("Pod/{}/*", pod.metadata.namespace),
    }
}

fn requests(pod: &Pod) -> BTreeMap<String, String> {
    let requests = pod.resources().requests();
    requests
        .iter()
        .map(|(name, amount)| (name.to_string(), amount.to_string()))
        .collect()
}

/// What made the pod: its controller, or for a ReplicaSet the Deployment above it.
pub fn workload(pod: &Pod, snapshot: &Snapshot) -> String {
    let metadata = &pod.metadata;
    let Some(owner) = metadata.controller() else {
        return format!("Pod/{}/{}", metadata.namespace, metadata.name);
    };
    if *owner.kind == *"ReplicaSet" {
        let set = snapshot.objects().replica_sets.find(&metadata.namespace, &owner.name);
        let above = set
            .and_then(|set| set.metadata.controller())
            .map(|above| above.name.to_string());
        if let Some(deployment) = above.or_else(|| without_hash(pod, &owner.name)) {
            return format!("Deployment/{}/{deployment}", metadata.namespace);
        }
    }
    if metadata.namespace.is_empty() {
        return format!("{}/{}", owner.kind, owner.name);
    }
    format!("{}/{}/{}", owner.kind, metadata.namespace, owner.name)
}

/// A Deployment's name from its ReplicaSet's, which ends in the hash that the pod carries as a label.
fn without_hash(pod: &Pod, replica_set: &str) -> Option<String> {
    let hash = pod.metadata.labels.get("pod-template-hash")?;
    let name = replica_set.strip_suffix(&**hash)?.strip_suffix('-')?;
    Some(name.to_owned())
}
