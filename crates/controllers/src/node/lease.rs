//! Leases of nodes that are gone.
//!
//! A kubelet takes its lease before its Node exists, and only later makes the Node its owner. If the machine ends in
//! between, nobody else collects the lease. Upstream dropped its controller for this before v1.15 and still has the role
//! for it; we keep to what it did, and insist besides that no Node of that name exists and that nobody renews the lease.

use std::time::Duration;

use async_trait::async_trait;
use http::Method;
use jiff::{SignedDuration, Timestamp};
use model::{
    object::{Metadata, Node, Object, ObjectKey, Read},
    sharing::Sharing,
};
use runtime::{Delete, Resource, Settings};
use serde::{Deserialize, Serialize};
use state::{Change, Kind, State};

use crate::{Cluster, Controller, Next, Problem};

/// Where kubelets keep their leases.
const NAMESPACE: &str = "kube-node-lease";
/// How often leases are looked through.
const EVERY: Duration = Duration::from_mins(2);
/// How long a lease must have been left alone. Kubelets renew theirs every ten seconds.
const ABANDONED: SignedDuration = SignedDuration::from_mins(10);

/// A kubelet's sign of life.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Lease {
    metadata: Metadata,
    spec: LeaseSpec,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LeaseSpec {
    renew_time: Option<Timestamp>,
}

impl Read for Lease {
    fn read(json: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(json)
    }
}

impl Object for Lease {
    const API_VERSION: &'static str = "coordination.k8s.io/v1";
    const KIND: &'static str = "Lease";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn share(&mut self, _: &mut Sharing) {}
}

#[derive(Deserialize)]
struct Leases {
    items: Vec<Lease>,
}

impl Lease {
    /// True when nobody will ever renew or collect it. All of:
    /// - it is not being deleted;
    /// - nobody owns it;
    /// - there is no node of its name;
    /// - it has not been renewed for a while.
    fn is_leaked(&self, has_node: bool, now: Timestamp) -> bool {
        let alive = self.spec.renew_time.max(self.metadata.creation_timestamp);
        let abandoned = alive.is_none_or(|alive| now.duration_since(alive) > ABANDONED);
        !self.metadata.is_deleting() && self.metadata.owner_references.is_empty() && !has_node && abandoned
    }
}

/// The controller.
#[derive(Debug, Default)]
pub struct LeaseCollection;

#[async_trait]
impl Controller for LeaseCollection {
    type Key = &'static str;

    fn name(&self) -> &'static str {
        "lease.garbagecollection"
    }

    fn workers(&self, _: &Settings) -> usize {
        1
    }

    fn initial(&self) -> Vec<&'static str> {
        vec![NAMESPACE]
    }

    fn concerns(&self, _: &Change, _: &State) -> Vec<&'static str> {
        Vec::new()
    }

    async fn reconcile(&self, cluster: &Cluster, _: &&'static str) -> Result<Next, Problem> {
        if !cluster.look(|state| state.is_listed(Kind::Node)) {
            return Ok(Next::After(EVERY));
        }
        for lease in leaked(cluster, list(cluster).await?) {
            let options = Delete {
                uid: Some(lease.metadata.uid.clone()),
                ..Delete::default()
            };
            let key = lease.metadata.key();
            match cluster.api().delete::<Lease>(&key, &options).await {
                Ok(()) => tracing::debug!(Lease = %key, "found and deleted leaked lease"),
                Err(error) if error.is_not_found() || error.is_conflict() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Next::After(EVERY))
    }
}

async fn list(cluster: &Cluster) -> Result<Vec<Lease>, Problem> {
    let path = Resource::of::<Lease>().collection(NAMESPACE);
    let answer = cluster.api().call(Method::GET, &path, None, "application/json").await?;
    let unreadable = |error| Problem::Other(format!("leases of {NAMESPACE} cannot be read: {error}"));
    let leases: Leases = serde_json::from_slice(&answer).map_err(unreadable)?;
    Ok(leases.items)
}

fn leaked(cluster: &Cluster, leases: Vec<Lease>) -> Vec<Lease> {
    let now = cluster.now();
    cluster.look(|state| {
        let has_node = |lease: &Lease| {
            let key = ObjectKey::cluster_scoped(&lease.metadata.name);
            state.get::<Node>(&key).is_some()
        };
        leases
            .into_iter()
            .filter(|lease| lease.is_leaked(has_node(lease), now))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn lease_is_leaked_when_nobody_owns_renews_or_backs_it() {
        let now = "2026-11-16T10:00:00Z".parse().unwrap();
        let old = "2026-11-16T09:49:59.000000Z";
        let owner = json!([{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]);
        let cases = [
            (json!({}), json!(old), false, true),
            (json!({}), Value::Null, false, true),
            (json!({}), json!(old), true, false),
            (json!({}), json!("2026-11-16T09:50:00.000000Z"), false, false),
            (
                json!({"creationTimestamp": "2026-11-16T09:55:00Z"}),
                Value::Null,
                false,
                false,
            ),
            (json!({"ownerReferences": owner}), json!(old), false, false),
            (json!({"deletionTimestamp": old}), json!(old), false, false),
        ];
        for (metadata, renewed, has_node, expected) in cases {
            let lease: Lease =
                serde_json::from_value(json!({"metadata": metadata, "spec": {"renewTime": renewed}})).unwrap();
            assert_eq!(
                lease.is_leaked(has_node, now),
                expected,
                "{metadata} {renewed} {has_node}"
            );
        }
    }
}
