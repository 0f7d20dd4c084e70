//! A launch: what makes it one and the same when it is asked for twice, and what comes of it.

use std::fmt;

use jiff::Timestamp;
use model::{
    object::{Map, NodeClaim, NodeClaimName, ProviderId, Text, Uid},
    resources::ResourceList,
};

/// Names one launch: the claim and the attempt. A cloud that is asked twice with one token launches once. The attempt is
/// recorded on the claim before the cloud is asked, and only raised when the earlier one is known to have come to nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LaunchToken {
    /// The claim's identity.
    pub claim: Uid,
    /// Counts from 1.
    pub attempt: u32,
}

impl fmt::Display for LaunchToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.claim, self.attempt)
    }
}

/// What a launch adds to its NodeClaim.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Launched {
    /// The machine.
    pub provider_id: Text,
    /// What it booted from.
    pub image_id: Text,
    /// What it is expected to have.
    pub capacity: ResourceList,
    /// What of it pods may use.
    pub allocatable: ResourceList,
    /// Type, zone, capacity type and the like. Labels the claim has already win over these.
    pub labels: Map<Text>,
    /// Such as the node class's hash. These win over the claim's.
    pub annotations: Map<Text>,
}

/// A machine of this cluster, as the cloud lists it.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// The machine.
    pub provider_id: ProviderId,
    /// The claim it was launched for, as its tags say.
    pub claim: Option<NodeClaimName>,
    /// That claim's identity, as its tags say.
    pub claim_uid: Option<Uid>,
    /// When it was launched.
    pub launched_at: Option<Timestamp>,
    /// The machine is on its way out.
    pub is_terminating: bool,
    /// The same facts a launch gives.
    pub launched: Launched,
}

impl Instance {
    /// A claim that names this machine, for a cloud that is to remove a machine whose claim is gone.
    pub fn to_claim(&self) -> NodeClaim {
        let mut claim = NodeClaim::default();
        claim.metadata.name = self.claim.as_ref().map(|name| name.as_str().into()).unwrap_or_default();
        claim.metadata.uid = self.claim_uid.clone().unwrap_or_default();
        claim.metadata.labels = self.launched.labels.clone();
        claim.metadata.annotations = self.launched.annotations.clone();
        claim.metadata.creation_timestamp = self.launched_at;
        claim.status.provider_id = Some(self.provider_id.clone());
        claim.status.image_id = self.launched.image_id.clone();
        claim.status.capacity = self.launched.capacity.clone();
        claim.status.allocatable = self.launched.allocatable.clone();
        claim
    }
}
