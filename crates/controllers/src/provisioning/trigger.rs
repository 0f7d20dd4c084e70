//! Who wants a pass: pods that kube-scheduler found no place for, and nodes whose pods must go.

use std::{sync::Arc, time::Duration};

use api::taints::DISRUPTED;
use async_trait::async_trait;
use model::object::{Node, NodeClaim, ObjectKey, Pod};
use runtime::Settings;
use state::{Change, State};

use super::Batch;
use crate::{Cluster, Controller, Next, Problem};

/// What wants a pass goes on wanting it: a plan may turn out wrong while its nodes come up.
const AGAIN: Duration = Duration::from_secs(10);

/// Pods without a place.
#[derive(Debug)]
pub struct PodTrigger(pub Arc<Batch>);

#[async_trait]
impl Controller for PodTrigger {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        "provisioner.trigger.pod"
    }

    fn workers(&self, settings: &Settings) -> usize {
        settings.workers(10, 1000)
    }

    fn concerns(&self, change: &Change, _: &State) -> Vec<ObjectKey> {
        match change {
            Change::Pod(pod) => {
                let pod = pod.after.iter().filter(|pod| pod.is_provisionable());
                pod.map(|pod| pod.metadata.key()).collect()
            }
            _ => Vec::new(),
        }
    }

    async fn reconcile(&self, cluster: &Cluster, key: &ObjectKey) -> Result<Next, Problem> {
        let Some(pod) = cluster.get::<Pod>(key).filter(|pod| pod.is_provisionable()) else {
            return Ok(Next::Change);
        };
        self.0.trigger(pod.uid());
        cluster.note(|state| state.acknowledge_pod(key, cluster.now()));
        Ok(Next::After(AGAIN))
    }
}

/// Nodes whose pods must go.
#[derive(Debug)]
pub struct NodeTrigger(pub Arc<Batch>);

#[async_trait]
impl Controller for NodeTrigger {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        "provisioner.trigger.node"
    }

    fn workers(&self, settings: &Settings) -> usize {
        settings.workers(10, 1000)
    }

    fn concerns(&self, change: &Change, state: &State) -> Vec<ObjectKey> {
        match change {
            Change::Node(node) => {
                let node = node.after.iter().filter(|node| is_disrupted(node));
                node.map(|node| node.metadata.key()).collect()
            }
            Change::NodeClaim(claim) => {
                let is_deleting = |claim: &Arc<NodeClaim>| claim.metadata.is_deleting();
                let began = !claim.before.as_ref().is_some_and(is_deleting);
                let claim = claim.after.as_ref().filter(|claim| began && is_deleting(claim));
                let id = claim.and_then(|claim| claim.status.provider_id.as_ref());
                let nodes = id.into_iter().flat_map(|id| state.nodes_of_provider_id(id.as_str()));
                nodes.map(|node| node.metadata.key()).collect()
            }
            _ => Vec::new(),
        }
    }

    async fn reconcile(&self, cluster: &Cluster, key: &ObjectKey) -> Result<Next, Problem> {
        let leaving = cluster.look(|state| {
            let node = state.get::<Node>(key)?;
            let id = node.spec.provider_id.as_ref();
            let mut claims = id.into_iter().flat_map(|id| state.claims_of_provider_id(id.as_str()));
            let leaves = is_disrupted(node) || claims.any(|claim| claim.metadata.is_deleting());
            leaves.then(|| node.metadata.uid.clone())
        });
        let Some(uid) = leaving else {
            return Ok(Next::Change);
        };
        self.0.trigger(&uid);
        Ok(Next::After(AGAIN))
    }
}

fn is_disrupted(node: &Node) -> bool {
    let mut taints = node.spec.taints.iter();
    taints.any(|taint| *taint.key == *DISRUPTED && *taint.effect == *"NoSchedule")
}
