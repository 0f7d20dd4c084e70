//! Finalising: nodes first, then the machine, then the claim may go.

use std::{sync::Arc, time::Duration};

use api::{annotations, condition::names::nodeclaim, finalizers, labels};
use jiff::{SignedDuration, Timestamp};
use model::object::{Node, NodeClaim, ObjectKey, condition};
use runtime::{Event, EventKind};

use super::{Lifecycle, Step, launch, memory::Recall, pass, step::Answer};
use crate::{
    Cluster, Next, Problem,
    mutation::{self, Mutation},
    node_claim::{ending::label, ownership, with_pair},
};

/// How often the cloud is asked whether a machine is gone.
const POLL: Duration = Duration::from_secs(5);

/// What is to be done next about a deleting claim.
#[derive(Debug, PartialEq)]
enum Decision {
    /// Nothing of ours holds it.
    LetGo,
    /// It is to say when the drain must be over.
    AnnotateDeadline(Timestamp),
    /// These nodes are to go; more may be on their way.
    DeleteNodes(Vec<Arc<Node>>),
    /// Its machine is to go.
    DeleteInstance,
    /// All is gone.
    RemoveFinalizer,
}

/// In this order:
/// - without our finalizer there is nothing to do;
/// - with a grace period, the moment it ends is written down once;
/// - nodes that pods may run on go first, and it waits for all of them;
/// - a machine goes until the cloud does not know it any more, also one whose launch was asked for and not recorded.
fn decide(claim: &NodeClaim, nodes: &[Arc<Node>], recall: &Recall) -> Decision {
    let metadata = &claim.metadata;
    if !metadata
        .finalizers
        .iter()
        .any(|finalizer| **finalizer == *finalizers::TERMINATION)
    {
        return Decision::LetGo;
    }
    if let Some(deadline) = deadline(claim) {
        return Decision::AnnotateDeadline(deadline);
    }
    let opened: Vec<&Arc<Node>> = nodes.iter().filter(|node| is_open(claim, node)).collect();
    if !opened.is_empty() {
        let staying = opened.into_iter().filter(|node| !node.metadata.is_deleting());
        return Decision::DeleteNodes(staying.cloned().collect());
    }
    if claim.status.provider_id.is_some() {
        return Decision::DeleteInstance;
    }
    match recall {
        Recall::Launched(_) => Decision::DeleteInstance,
        Recall::Nothing if launch::attempt(claim).is_some() => Decision::DeleteInstance,
        Recall::Nothing | Recall::Failed => Decision::RemoveFinalizer,
    }
}

/// Whether pods may run on a claim's node, so that it is drained before its machine goes: the claim is registered, or the
/// node is and a crash kept the claim from saying so.
fn is_open(claim: &NodeClaim, node: &Node) -> bool {
    condition::holds(&claim.status.conditions, nodeclaim::REGISTERED)
        || node
            .metadata
            .labels
            .get(labels::REGISTERED)
            .is_some_and(|value| **value == *"true")
}

/// When the drain must be over, if that is to be written down.
fn deadline(claim: &NodeClaim) -> Option<Timestamp> {
    let metadata = &claim.metadata;
    if metadata
        .annotations
        .get(annotations::NODECLAIM_TERMINATION_TIMESTAMP)
        .is_some()
    {
        return None;
    }
    let period = SignedDuration::from_nanos(claim.spec.termination_grace_period?.as_nanos());
    metadata.deletion_timestamp?.checked_add(period).ok()
}

fn annotated(claim: &NodeClaim, deadline: &str) -> NodeClaim {
    let key = annotations::NODECLAIM_TERMINATION_TIMESTAMP;
    let mut after = claim.clone();
    after.metadata.annotations = with_pair(&claim.metadata.annotations, key, deadline);
    after
}

fn without_finalizer(claim: &NodeClaim) -> NodeClaim {
    let others = claim
        .metadata
        .finalizers
        .iter()
        .filter(|finalizer| ***finalizer != *finalizers::TERMINATION);
    let mut after = claim.clone();
    after.metadata.finalizers = others.cloned().collect();
    after
}

/// RFC 3339 in whole seconds, as Go writes it.
fn written(time: Timestamp) -> String {
    let whole = Timestamp::from_second(time.as_second()).unwrap_or(time);
    whole.to_string()
}

impl Lifecycle {
    /// One step after the other, each decided from what the one before left.
    pub(super) async fn finalize(&self, cluster: &Cluster, claim: Arc<NodeClaim>) -> Result<Next, Problem> {
        let mut claim = claim;
        if mutation::has(Mutation::NeverFinalizes) {
            return Ok(Next::Change);
        }
        loop {
            let nodes = cluster.look(|state| ownership::nodes_of(&claim, state));
            let recall = self.memory.recall(&claim);
            let answer = match decide(&claim, &nodes, &recall) {
                Decision::LetGo => return Ok(Next::Change),
                Decision::AnnotateDeadline(deadline) => annotate(cluster, Arc::clone(&claim), deadline).await?,
                Decision::DeleteNodes(nodes) => return delete_nodes(cluster, nodes).await,
                Decision::DeleteInstance if mutation::has(Mutation::LetsGoFirst) => {
                    return remove_finalizer(cluster, claim).await;
                }
                Decision::DeleteInstance => return self.delete_instance(cluster, claim, &recall).await,
                Decision::RemoveFinalizer => return remove_finalizer(cluster, claim).await,
            };
            match answer {
                Answer::Claim(next) => claim = next,
                Answer::Conflict => return Ok(Next::Again),
                _ => return Ok(Next::Change),
            }
        }
    }

    async fn delete_instance(
        &self,
        cluster: &Cluster,
        claim: Arc<NodeClaim>,
        recall: &Recall,
    ) -> Result<Next, Problem> {
        let mut after = NodeClaim::clone(&claim);
        if let (None, Recall::Launched(launched)) = (&claim.status.provider_id, recall) {
            after.status.provider_id = Some(launched.provider_id.clone().into());
        }
        let answer = Step::DeleteInstance(Box::new(after.clone())).take(cluster).await?;
        let now = cluster.now();
        if matches!(answer, Answer::Gone) {
            observe_instance_end(cluster, &claim, now);
            return remove_finalizer(cluster, claim).await;
        }
        pass::set(&mut after, now, |set| {
            set.set_true(nodeclaim::INSTANCE_TERMINATING);
        });
        match Step::PersistStatus(claim, Box::new(after)).take(cluster).await? {
            Answer::Conflict => Ok(Next::Again),
            Answer::Gone => Ok(Next::Change),
            _ => Ok(Next::After(POLL)),
        }
    }
}

async fn annotate(cluster: &Cluster, claim: Arc<NodeClaim>, deadline: Timestamp) -> Result<Answer, Problem> {
    let text = written(deadline);
    let after = annotated(&claim, &text);
    let answer = Step::AnnotateDeadline(Arc::clone(&claim), Box::new(after))
        .take(cluster)
        .await;
    let answer = answer
        .map_err(|problem| Problem::Other(format!("adding nodeclaim terminationGracePeriod annotation, {problem}")))?;
    if let Answer::Claim(_) = answer {
        let name = &claim.metadata.name;
        tracing::info!("NodeClaim.name" = %name, "karpenter.sh/nodeclaim-termination-timestamp" = text, "annotated nodeclaim");
        let message = format!("All pods will be deleted by {text}");
        let event = Event::new(&*claim, EventKind::Warning, "TerminationGracePeriodExpiring", message);
        cluster.publish(event.deduped_by(vec![name.to_string()]));
    }
    Ok(answer)
}

/// Deletes the nodes that stay, and waits for the last one to go.
async fn delete_nodes(cluster: &Cluster, nodes: Vec<Arc<Node>>) -> Result<Next, Problem> {
    let mut next = Next::Change;
    for node in nodes {
        if let Answer::Conflict = Step::DeleteNode(node).take(cluster).await? {
            next = Next::Again;
        }
    }
    Ok(next)
}

fn observe_instance_end(cluster: &Cluster, claim: &NodeClaim, now: Timestamp) {
    let since = claim
        .condition(nodeclaim::INSTANCE_TERMINATING)
        .and_then(|condition| condition.last_transition_time);
    let seconds = now.duration_since(since.unwrap_or(now)).as_secs_f64();
    let pool = label(claim, labels::NODEPOOL);
    cluster
        .metrics()
        .nodeclaims_instance_termination_duration_seconds
        .observe([pool], seconds);
}

async fn remove_finalizer(cluster: &Cluster, claim: Arc<NodeClaim>) -> Result<Next, Problem> {
    // The version must be the newest we know: a status may have been written since.
    let key = ObjectKey::cluster_scoped(&claim.metadata.name);
    let claim = cluster.get::<NodeClaim>(&key).unwrap_or(claim);
    let after = without_finalizer(&claim);
    match Step::RemoveFinalizer(Arc::clone(&claim), Box::new(after))
        .take(cluster)
        .await
    {
        Ok(Answer::Conflict) => return Ok(Next::Again),
        Ok(Answer::Claim(_)) => {}
        Ok(_) => return Ok(Next::Change),
        Err(problem) => return Err(Problem::Other(format!("removing termination finalizer, {problem}"))),
    }
    let (name, provider_id) = (&claim.metadata.name, claim.status.provider_id.as_ref());
    let id = provider_id.map_or("", |id| id.as_str());
    tracing::info!("NodeClaim.name" = %name, "provider-id" = id, "deleted nodeclaim");
    let now = cluster.now();
    let seconds = now
        .duration_since(claim.metadata.deletion_timestamp.unwrap_or(now))
        .as_secs_f64();
    let (pool, metrics) = (label(&claim, labels::NODEPOOL), cluster.metrics());
    metrics.nodeclaims_termination_duration_seconds.observe([pool], seconds);
    let labels = [pool, label(&claim, labels::CAPACITY_TYPE), label(&claim, labels::ZONE)];
    metrics.nodeclaims_terminated_total.inc(labels);
    Ok(Next::Change)
}

#[cfg(test)]
mod tests;
