//! `node.termination`: what happens between the deletion of a Node and its end.
//!
//! The order is the contract: taint, drain, volumes, machine, finalizer. Nothing is remembered between two looks but what
//! the cluster itself remembers, so a restart goes on where the last one stopped.

mod observe;
mod stage;

use std::{sync::Arc, time::Duration};

use api::{condition::names::nodeclaim::DRAINED, finalizers, labels};
use async_trait::async_trait;
use cloud::{CloudError, NodeClassKind};
use jiff::Timestamp;
use model::object::{Node, NodeClaim, NodeName, ObjectKey, Pod, condition};
use runtime::{ApiError, Delete, Patch, Settings, queue::Backoff, rate::Rate};
use serde_json::json;
use state::{Change, State, Transition};

use self::{
    observe::{Seen, observe},
    stage::Stage,
};
use super::{Evictions, claim_of, events, is_leaving};
use crate::{Cluster, Controller, Next, Problem, patch::Lock};

/// How soon a drain and volumes are looked at again, changes aside.
const POLL: Duration = Duration::from_secs(1);
/// How soon the cloud is asked again whether a machine is gone.
const POLL_INSTANCE: Duration = Duration::from_secs(5);

/// The controller.
pub struct Termination {
    kinds: &'static [NodeClassKind],
    evictions: Arc<Evictions>,
}

impl Termination {
    /// For nodes of these classes, draining through this queue.
    pub fn new(kinds: &'static [NodeClassKind], evictions: Arc<Evictions>) -> Self {
        Self { kinds, evictions }
    }

    fn leaving(&self, state: &State, name: &str) -> Option<NodeName> {
        let node = state.get::<Node>(&ObjectKey::cluster_scoped(name))?;
        is_leaving(node, self.kinds).then(|| node.name())
    }

    /// Everything after the taint.
    async fn advance(&self, cluster: &Cluster, seen: &Seen, deadline: Option<Timestamp>) -> Result<Next, Problem> {
        let now = cluster.now();
        let stage = stage::stage(seen, deadline, now);
        let (next, accepted) = match &stage {
            Stage::Draining(plan) => {
                self.evictions.add(&plan.enqueue, plan.order, now);
                let why = format!("{} pods are waiting to be evicted", plan.waiting);
                cluster.publish(events::failed_draining(&seen.node, &why));
                (Ok(Some(Next::After(POLL))), false)
            }
            Stage::Settling(left) => (Ok(Some(Next::After(*left))), false),
            Stage::Detaching(names) => {
                cluster.publish(events::awaiting_volumes(&seen.node, names));
                (Ok(Some(Next::After(POLL))), false)
            }
            Stage::Ending(_) => end_instance(cluster, seen.claim.as_deref()).await,
        };
        if !record(cluster, seen, &stage, accepted, now).await? {
            return Ok(Next::Again);
        }
        match next? {
            Some(next) => Ok(next),
            None => release(cluster, seen).await,
        }
    }
}

#[async_trait]
impl Controller for Termination {
    type Key = NodeName;

    fn name(&self) -> &'static str {
        "node.termination"
    }

    fn workers(&self, settings: &Settings) -> usize {
        settings.workers(100, 5000)
    }

    fn retries(&self, settings: &Settings) -> Option<Rate> {
        Some(settings.retries(10, (100, 5000)))
    }

    fn backoff(&self) -> Backoff {
        Backoff {
            least: Duration::from_millis(100),
            most: Duration::from_secs(10),
        }
    }

    /// A node that goes, and what it waits for: its pods until it is drained, its volumes, its claim's deadline.
    fn concerns(&self, change: &Change, state: &State) -> Vec<NodeName> {
        match change {
            Change::Node(node) => {
                let leaving = node.after.iter().filter(|node| is_leaving(node, self.kinds));
                leaving.map(|node| node.name()).collect()
            }
            Change::Pod(pod) => {
                let node = bound_to(pod).and_then(|node| self.leaving(state, node.as_str()));
                node.filter(|node| !is_drained(state, node)).into_iter().collect()
            }
            Change::VolumeAttachment(attachment) => {
                let node = attachment.latest().and_then(|latest| latest.spec.node_name.as_ref());
                let node = node.and_then(|node| self.leaving(state, node.as_str()));
                node.into_iter().collect()
            }
            Change::NodeClaim(claim) if changes_orders(claim) => {
                let id = claim.latest().and_then(|claim| claim.status.provider_id.as_ref());
                let nodes = id.into_iter().flat_map(|id| state.nodes_of_provider_id(id.as_str()));
                let leaving = nodes.filter(|node| is_leaving(node, self.kinds));
                leaving.map(|node| node.name()).collect()
            }
            _ => Vec::new(),
        }
    }

    async fn reconcile(&self, cluster: &Cluster, name: &NodeName) -> Result<Next, Problem> {
        let key = ObjectKey::cluster_scoped(name.as_str());
        let now = cluster.now();
        let seen = match cluster.look(|state| observe(state, &key, self.kinds, now)) {
            Ok(Some(seen)) => seen,
            Ok(None) => return Ok(Next::Change),
            Err(unlisted) => {
                cluster.publish(events::failed_draining(&unlisted.node, &unlisted.to_string()));
                return Ok(Next::After(POLL));
            }
        };
        let deletes_claim = delete_claim(cluster, seen.claim.as_deref()).await?;
        if is_instance_gone(cluster, &seen.node).await? {
            return release(cluster, &seen).await;
        }
        let deadline = deadline(cluster, &seen)?;
        if !taint(cluster, &seen.node).await? || deletes_claim {
            return Ok(Next::Again);
        }
        self.advance(cluster, &seen, deadline).await
    }
}

/// The node a pod is or was bound to.
fn bound_to(pod: &Transition<Pod>) -> Option<&NodeName> {
    pod.latest().and_then(|pod| pod.node_name.as_ref())
}

fn is_drained(state: &State, node: &NodeName) -> bool {
    let node = state.get::<Node>(&ObjectKey::cluster_scoped(node.as_str()));
    let claim = node.and_then(|node| claim_of(state, node));
    claim.is_some_and(|claim| condition::holds(&claim.status.conditions, DRAINED))
}

/// Whether a claim came, went, is to go, or has another deadline. What we write to it ourselves is no news.
fn changes_orders(claim: &Transition<NodeClaim>) -> bool {
    let orders = |claim: &Option<Arc<NodeClaim>>| {
        let metadata = &claim.as_ref()?.metadata;
        Some((metadata.deletion_timestamp, metadata.annotations.clone()))
    };
    orders(&claim.before) != orders(&claim.after)
}

/// A node that goes takes its claim along, so that `kubectl delete node` ends the machine. True when that is news.
async fn delete_claim(cluster: &Cluster, claim: Option<&NodeClaim>) -> Result<bool, Problem> {
    let Some(claim) = claim.filter(|claim| !claim.metadata.is_deleting()) else {
        return Ok(false);
    };
    let options = Delete {
        uid: Some(claim.metadata.uid.clone()),
        ..Delete::default()
    };
    match cluster.delete::<NodeClaim>(&claim.metadata.key(), &options).await {
        Err(error) if !is_overtaken(&error) => Err(error.into()),
        _ => Ok(true),
    }
}

/// Whether there is nothing left to drain: the kubelet is silent and the cloud does not know the machine.
async fn is_instance_gone(cluster: &Cluster, node: &Node) -> Result<bool, Problem> {
    let Some(id) = node.spec.provider_id.as_ref().filter(|_| !stage::is_ready(node)) else {
        return Ok(false);
    };
    match cluster.cloud().get(id).await {
        Ok(_) => Ok(false),
        Err(CloudError::NotFound(_)) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// When the last pod must be gone. It is announced before it is read, as upstream does.
fn deadline(cluster: &Cluster, seen: &Seen) -> Result<Option<Timestamp>, Problem> {
    let Some(claim) = &seen.claim else {
        return Ok(None);
    };
    let Some(text) = stage::deadline_of(claim) else {
        return Ok(None);
    };
    cluster.publish(events::grace_period_expiring(&seen.node, text));
    stage::parse_deadline(claim, text).map(Some)
}

/// Keeps pods and load balancers off the node. False when somebody else changed it meanwhile.
async fn taint(cluster: &Cluster, node: &Node) -> Result<bool, Problem> {
    match cluster.update(node, &stage::tainted(node), Lock::Version).await {
        Ok(None) => Ok(true),
        Ok(Some(_)) => {
            tracing::info!(
                "Node.name" = %node.metadata.name, "taint.Key" = api::taints::DISRUPTED, "taint.Value" = "",
                "taint.Effect" = "NoSchedule", "tainted node"
            );
            Ok(true)
        }
        Err(error) if is_overtaken(&error) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Asks the cloud to end the machine: when to look again (none when it is gone), and whether the cloud took it on.
async fn end_instance(cluster: &Cluster, claim: Option<&NodeClaim>) -> (Result<Option<Next>, Problem>, bool) {
    let Some(claim) = claim else {
        return (Ok(None), false);
    };
    match cluster.cloud().delete(claim).await {
        Ok(()) => (Ok(Some(Next::After(POLL_INSTANCE))), true),
        Err(CloudError::NotFound(_)) => (Ok(None), true),
        Err(CloudError::Throttled {
            retry_after: Some(wait),
            ..
        }) => (Ok(Some(Next::After(wait))), false),
        Err(error) => (Err(error.into()), false),
    }
}

/// Writes on the claim how far its end has come. False when somebody else changed it meanwhile.
async fn record(
    cluster: &Cluster,
    seen: &Seen,
    stage: &Stage,
    accepted: bool,
    now: Timestamp,
) -> Result<bool, Problem> {
    let Some(claim) = seen.claim.as_deref() else {
        return Ok(true);
    };
    let after = stage::recorded(claim, stage, accepted, now);
    match cluster.update_status(claim, &after, Lock::Version).await {
        Ok(written) => {
            let drained = |claim: &NodeClaim| condition::holds(&claim.status.conditions, DRAINED);
            if written.is_some() && !drained(claim) && drained(&after) {
                cluster
                    .metrics()
                    .nodes_drained_total
                    .inc([&seen.label(labels::NODEPOOL)]);
            }
            Ok(true)
        }
        Err(error) if error.is_not_found() => Ok(true),
        Err(error) if error.is_conflict() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Lets the Node go. The patch names the one finalizer, so that others' are not lost, and the one incarnation.
async fn release(cluster: &Cluster, seen: &Seen) -> Result<Next, Problem> {
    let node = &seen.node.metadata;
    let patch = json!({"metadata": {
        "uid": node.uid.to_string(),
        "$deleteFromPrimitiveList/finalizers": [finalizers::TERMINATION],
    }});
    match cluster.patch::<Node>(&node.key(), &Patch::StrategicMerge(patch)).await {
        Ok(_) => {
            count_end(cluster, seen);
            let claim = seen.claim.as_ref().map(|claim| claim.metadata.name.to_string());
            tracing::info!("Node.name" = %node.name, "NodeClaim.name" = claim.unwrap_or_default(), "deleted node");
            Ok(Next::Change)
        }
        Err(error) if error.is_not_found() => Ok(Next::Change),
        // It may be another node by now, or only not be written yet: nobody else would say so.
        Err(error) if error.is_conflict() => Ok(Next::Again),
        Err(error) => Err(error.into()),
    }
}

fn count_end(cluster: &Cluster, seen: &Seen) {
    let (metrics, metadata) = (cluster.metrics(), &seen.node.metadata);
    let (pool, zone) = (seen.label(labels::NODEPOOL), seen.label(labels::ZONE));
    let since = |start: Option<Timestamp>| start.map(|start| cluster.now().duration_since(start).as_secs_f64());
    metrics.nodes_terminated_total.inc([&pool, &zone]);
    if let Some(seconds) = since(metadata.deletion_timestamp) {
        metrics.nodes_termination_duration_seconds.observe([&pool], seconds);
    }
    if let Some(seconds) = since(metadata.creation_timestamp) {
        metrics.nodes_lifetime_duration_seconds.observe([&pool], seconds);
    }
}

/// The object is gone, or is not what was read: the next look will tell.
fn is_overtaken(error: &ApiError) -> bool {
    error.is_not_found() || error.is_conflict()
}
