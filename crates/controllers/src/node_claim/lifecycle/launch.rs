//! Launching: one machine for each claim, whatever is lost on the way.

use std::sync::Arc;

use api::{annotations, condition::names::nodeclaim, finalizers, labels};
use cloud::{CloudError, LaunchToken, Launched};
use jiff::Timestamp;
use model::object::{ConditionStatus, NodeClaim, Pod};
use runtime::{Event, EventKind, event::Bucket};

use super::{Lifecycle, Pass, Step, memory::Recall, pass, step::Answer};
use crate::{
    Cluster, Problem,
    mutation::{self, Mutation},
    node_claim::{Reason, ending::label, overlaid, with_pair},
};

/// The longest message of an event or of a failed launch, in bytes.
const LONGEST_MESSAGE: usize = 1024;

/// What is to be done about a launch.
#[derive(Debug, PartialEq)]
enum Decision {
    /// It is over.
    Settled,
    /// It gave a machine, which is only to be written down.
    Adopt(Launched),
    /// The cloud is to be asked.
    Ask(LaunchToken),
}

/// What a failed launch means for the claim.
#[derive(Debug, PartialEq)]
enum Verdict {
    /// It is given up.
    GiveUp(Reason),
    /// It is tried again.
    Retry,
    /// It stays as it is until somebody changes something or its time is over.
    Wait,
}

fn decide(claim: &NodeClaim, recall: Recall) -> Decision {
    if !is_open(claim) {
        return Decision::Settled;
    }
    match recall {
        Recall::Launched(launched) => Decision::Adopt(launched),
        Recall::Nothing | Recall::Failed => Decision::Ask(LaunchToken {
            claim: claim.metadata.uid.clone(),
            attempt: attempt(claim).unwrap_or(1),
        }),
    }
}

/// Whether it is not known yet how the launch ended.
fn is_open(claim: &NodeClaim) -> bool {
    let launched = claim.condition(nodeclaim::LAUNCHED);
    launched.is_none_or(|condition| condition.status == ConditionStatus::Unknown)
}

/// The attempt on record.
pub(super) fn attempt(claim: &NodeClaim) -> Option<u32> {
    claim
        .metadata
        .annotations
        .get(annotations::LAUNCH_ATTEMPT)
        .and_then(|text| text.parse().ok())
}

/// The claim with what must be on record before a launch; none if it is.
pub(super) fn prepared(claim: &NodeClaim) -> Option<NodeClaim> {
    let metadata = &claim.metadata;
    let is_ours = metadata
        .finalizers
        .iter()
        .any(|finalizer| **finalizer == *finalizers::TERMINATION);
    let is_recorded = !is_open(claim) || attempt(claim).is_some();
    if is_ours && is_recorded {
        return None;
    }
    let mut after = claim.clone();
    if !is_ours {
        let with_ours = metadata
            .finalizers
            .iter()
            .cloned()
            .chain([finalizers::TERMINATION.into()]);
        after.metadata.finalizers = with_ours.collect();
    }
    if !is_recorded {
        record_attempt(&mut after, 1);
    }
    Some(after)
}

fn record_attempt(claim: &mut NodeClaim, attempt: u32) {
    let present = &claim.metadata.annotations;
    claim.metadata.annotations = with_pair(present, annotations::LAUNCH_ATTEMPT, &attempt.to_string());
}

/// The claim takes on what the launch gave. Labels the claim has win; the launch's annotations win.
fn adopt(claim: &mut NodeClaim, launched: &Launched, now: Timestamp) {
    claim.metadata.labels = overlaid(&launched.labels, &claim.metadata.labels);
    claim.metadata.annotations = overlaid(&claim.metadata.annotations, &launched.annotations);
    claim.status.provider_id = Some(launched.provider_id.clone())
        .filter(|id| !id.is_empty())
        .map(Into::into);
    claim.status.image_id = launched.image_id.clone();
    claim.status.allocatable = launched.allocatable.clone();
    claim.status.capacity = launched.capacity.clone();
    pass::set(claim, now, |set| {
        set.set_true(nodeclaim::LAUNCHED);
    });
}

/// What follows from a failed launch, by its class.
fn refuse(claim: &mut NodeClaim, error: &CloudError, now: Timestamp) -> Verdict {
    let (reason, message) = match error {
        CloudError::InsufficientCapacity { .. } => return Verdict::GiveUp(Reason::InsufficientCapacity),
        CloudError::NodeClassNotReady(_) => return Verdict::GiveUp(Reason::NodeClassNotReady),
        CloudError::Create { reason, message } | CloudError::Terminal { reason, message } => {
            (reason.as_str(), message.clone())
        }
        other => (nodeclaim::LAUNCH_FAILED, shortened(&other.to_string())),
    };
    if error.is_not_found() {
        // The machine of this attempt is gone, and the same token would only find it gone again.
        let next = attempt(claim).unwrap_or(1).saturating_add(1);
        record_attempt(claim, next);
    }
    pass::set(claim, now, |set| {
        set.set_unknown_with_reason(nodeclaim::LAUNCHED, reason, &message);
    });
    match error {
        CloudError::Terminal { .. } => Verdict::Wait,
        _ => Verdict::Retry,
    }
}

fn shortened(message: &str) -> String {
    if message.len() <= LONGEST_MESSAGE {
        return message.to_owned();
    }
    let end = message.floor_char_boundary(LONGEST_MESSAGE - 3);
    format!("{}...", &message[..end])
}

impl Lifecycle {
    pub(super) async fn launch(&self, cluster: &Cluster, pass: &mut Pass) {
        match decide(&pass.draft, self.memory.recall(&pass.draft)) {
            Decision::Settled => {
                pass::restamp(&mut pass.draft, nodeclaim::LAUNCHED, pass.now);
                self.memory.forget(&pass.draft.metadata.name);
            }
            Decision::Adopt(launched) => adopt(&mut pass.draft, &launched, pass.now),
            Decision::Ask(token) => self.ask(cluster, pass, token).await,
        }
    }

    async fn ask(&self, cluster: &Cluster, pass: &mut Pass, mut token: LaunchToken) {
        if mutation::has(Mutation::ForgetsToken) {
            token.attempt = u32::try_from(pass.now.as_millisecond() & 0x0fff_ffff).unwrap_or(1);
        }
        match Step::Launch(Box::new(pass.draft.clone()), token).take(cluster).await {
            Ok(Answer::Launched(launched)) => {
                log_launched(&pass.draft, &launched);
                adopt(&mut pass.draft, &launched, pass.now);
                self.memory.remember(&pass.draft, Recall::Launched(*launched));
            }
            Ok(Answer::Refused(error)) => self.refused(cluster, pass, error).await,
            Ok(_) => {}
            Err(problem) => pass.fail(problem),
        }
    }

    async fn refused(&self, cluster: &Cluster, pass: &mut Pass, error: CloudError) {
        match refuse(&mut pass.draft, &error, pass.now) {
            Verdict::Retry => pass.fail(Problem::Other(format!("launching nodeclaim, {error}"))),
            Verdict::Wait => {
                tracing::error!("NodeClaim.name" = %pass.draft.metadata.name, error = %error, "failed launching nodeclaim");
            }
            Verdict::GiveUp(reason) => {
                let claim = &pass.draft;
                tracing::error!("NodeClaim.name" = %claim.metadata.name, error = %error, "failed launching nodeclaim");
                self.memory.remember(claim, Recall::Failed);
                if reason == Reason::InsufficientCapacity {
                    publish_insufficient_capacity(cluster, claim, &error);
                }
                self.give_up(cluster, pass, reason).await;
            }
        }
    }

    /// Deletes the claim, and lets it rest until the watch says so too.
    pub(super) async fn give_up(&self, cluster: &Cluster, pass: &mut Pass, reason: Reason) {
        match Step::GiveUp(Box::new(pass.draft.clone()), reason).take(cluster).await {
            Ok(_) => {
                self.memory.deleted(&pass.draft);
                pass.end();
            }
            Err(problem) => pass.fail(problem),
        }
    }
}

fn log_launched(claim: &NodeClaim, launched: &Launched) {
    let of = |key: &str| launched.labels.get(key).map_or("", |value| value).to_owned();
    tracing::info!(
        "NodeClaim.name" = %claim.metadata.name,
        "NodePool.name" = label(claim, labels::NODEPOOL),
        "provider-id" = %launched.provider_id,
        "instance-type" = of(labels::INSTANCE_TYPE),
        zone = of(labels::ZONE),
        "capacity-type" = of(labels::CAPACITY_TYPE),
        allocatable = %launched.allocatable,
        "launched nodeclaim"
    );
}

fn publish_insufficient_capacity(cluster: &Cluster, claim: &NodeClaim, error: &CloudError) {
    cluster.publish(insufficient_capacity(claim, error));
    let name = claim.name();
    let waiting: Vec<Arc<Pod>> = cluster.look(|state| {
        let pods = state.pods_of_claim(&name).filter_map(|key| state.get::<Pod>(key));
        pods.filter(|pod| pod.node_name.is_none() && pod.is_active())
            .cloned()
            .collect()
    });
    for pod in waiting {
        cluster.publish(insufficient_capacity_for_pod(&pod, claim, error));
    }
}

/// Tells who waits for the machine, since not everybody who runs pods may read claims.
fn insufficient_capacity_for_pod(pod: &Pod, claim: &NodeClaim, error: &CloudError) -> Event {
    let name = &claim.metadata.name;
    let message = shortened(&format!(
        "NodeClaim {name} nominated for this pod failed to launch: {error}"
    ));
    Event::new(pod, EventKind::Warning, "InsufficientCapacityError", message).within(Bucket::InsufficientCapacity)
}

fn insufficient_capacity(claim: &NodeClaim, error: &CloudError) -> Event {
    let message = shortened(&format!("NodeClaim {} event: {error}", claim.metadata.name));
    Event::new(claim, EventKind::Warning, "InsufficientCapacityError", message)
}

#[cfg(test)]
mod tests;
