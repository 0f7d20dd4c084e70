//! What the life cycle of a claim does to the outside, one effect each. A crash falls between two of them, never inside
//! one, so each may be taken again: after a restart the pass decides anew from what the cluster and the cloud say.

use std::sync::Arc;

use cloud::{CloudError, LaunchToken, Launched};
use model::object::{Node, NodeClaim};
use runtime::{ApiError, Delete};

use crate::{
    Cluster, Problem,
    node_claim::{Reason, ending},
    patch::Lock,
};

/// One effect.
#[derive(Debug, Clone)]
pub enum Step {
    /// Our finalizer goes onto the claim, with the number of the launch attempt: from now on the cloud may be asked.
    AddFinalizer(Arc<NodeClaim>, Box<NodeClaim>),
    /// The cloud is asked for the machine.
    Launch(Box<NodeClaim>, LaunchToken),
    /// What the claim wants goes onto its node. When nothing holds it back the node is released, and marked as
    /// initialised if it is.
    SyncNode(Arc<Node>, Box<Node>),
    /// The node is marked as initialised.
    MarkInitialized(Arc<Node>, Box<Node>),
    /// Labels and annotations of the claim are written.
    PersistObject(Arc<NodeClaim>, Box<NodeClaim>),
    /// The claim's status is written.
    PersistStatus(Arc<NodeClaim>, Box<NodeClaim>),
    /// The claim is deleted, so that its pods are planned anew.
    GiveUp(Box<NodeClaim>, Reason),
    /// The moment by which the drain must be over goes onto the claim.
    AnnotateDeadline(Arc<NodeClaim>, Box<NodeClaim>),
    /// A node of a deleting claim is deleted, which begins its drain.
    DeleteNode(Arc<Node>),
    /// The cloud is asked to remove the machine, also one that was launched without being recorded.
    DeleteInstance(Box<NodeClaim>),
    /// Our finalizer leaves the claim, which lets it go.
    RemoveFinalizer(Arc<NodeClaim>, Box<NodeClaim>),
}

/// What came of it.
#[derive(Debug)]
pub(super) enum Answer {
    /// The claim as it is now.
    Claim(Arc<NodeClaim>),
    /// It is done.
    Done,
    /// Somebody else changed the object since it was read.
    Conflict,
    /// What it was about is gone.
    Gone,
    /// The machine.
    Launched(Box<Launched>),
    /// No machine.
    Refused(CloudError),
}

impl Step {
    pub(super) async fn take(self, cluster: &Cluster) -> Result<Answer, Problem> {
        match self {
            Self::AddFinalizer(before, after)
            | Self::AnnotateDeadline(before, after)
            | Self::RemoveFinalizer(before, after) => object(cluster, before, &after, Lock::Version).await,
            Self::PersistObject(before, after) => object(cluster, before, &after, Lock::None).await,
            Self::PersistStatus(before, after) => {
                let written = cluster.update_status(&*before, &*after, Lock::Version).await;
                claim(written, before)
            }
            Self::SyncNode(before, after) => node(cluster.update(&*before, &*after, Lock::Version).await),
            Self::MarkInitialized(before, after) => node(cluster.update(&*before, &*after, Lock::None).await),
            Self::Launch(claim, token) => Ok(match cluster.cloud().create(&claim, &token).await {
                Ok(launched) => Answer::Launched(Box::new(launched)),
                Err(error) => Answer::Refused(error),
            }),
            Self::GiveUp(claim, reason) => {
                let was_there = ending::end(cluster, &claim, reason).await?;
                Ok(if was_there { Answer::Done } else { Answer::Gone })
            }
            Self::DeleteNode(node) => {
                let only_this = Delete {
                    uid: Some(node.metadata.uid.clone()),
                    ..Delete::default()
                };
                done(cluster.delete::<Node>(&node.metadata.key(), &only_this).await)
            }
            Self::DeleteInstance(claim) => match cluster.cloud().delete(&claim).await {
                Ok(()) => Ok(Answer::Done),
                Err(error) if error.is_not_found() => Ok(Answer::Gone),
                Err(error) => Err(error.into()),
            },
        }
    }
}

async fn object(cluster: &Cluster, before: Arc<NodeClaim>, after: &NodeClaim, lock: Lock) -> Result<Answer, Problem> {
    let written = cluster.update(&*before, after, lock).await;
    claim(written, before)
}

fn claim(written: Result<Option<NodeClaim>, ApiError>, before: Arc<NodeClaim>) -> Result<Answer, Problem> {
    match written {
        Ok(Some(claim)) => Ok(Answer::Claim(Arc::new(claim))),
        Ok(None) => Ok(Answer::Claim(before)),
        Err(error) => refused(error),
    }
}

fn node(written: Result<Option<Node>, ApiError>) -> Result<Answer, Problem> {
    done(written.map(drop))
}

fn done(result: Result<(), ApiError>) -> Result<Answer, Problem> {
    result.map_or_else(refused, |()| Ok(Answer::Done))
}

fn refused(error: ApiError) -> Result<Answer, Problem> {
    if error.is_conflict() {
        Ok(Answer::Conflict)
    } else if error.is_not_found() {
        Ok(Answer::Gone)
    } else {
        Err(error.into())
    }
}
