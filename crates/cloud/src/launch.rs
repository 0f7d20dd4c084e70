//! A launch: what makes it one and the same when it is asked for twice, and what comes of it.

use std::fmt;

use api::annotations::CAPACITY_OVERLAY_APPLIED;
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

/// What no NodeOverlay can add.
const DESCRIBED: [&str; 4] = ["cpu", "ephemeral-storage", "memory", "pods"];

/// What a claim asks of a type as its cloud describes it. What a NodeOverlay adds is in no description: whoever planned the
/// claim has compared it, and named the types that have it.
pub fn described_requests(claim: &NodeClaim) -> ResourceList {
    let requests = &claim.spec.resources.requests;
    if overlaid_requests(claim).is_empty() {
        return requests.clone();
    }
    let described = requests.iter().filter(|(name, _)| DESCRIBED.contains(&name.as_str()));
    described.map(|(name, amount)| (name.clone(), amount)).collect()
}

fn overlaid_requests(claim: &NodeClaim) -> ResourceList {
    let applied = claim.metadata.annotations.get(CAPACITY_OVERLAY_APPLIED);
    if applied.is_none_or(|it| **it != *"true") {
        return ResourceList::EMPTY;
    }
    let requests = claim.spec.resources.requests.iter();
    let more = requests.filter(|(name, _)| !DESCRIBED.contains(&name.as_str()));
    more.map(|(name, amount)| (name.clone(), amount)).collect()
}

impl Launched {
    /// The same with what a NodeOverlay adds, as far as the claim asks for it: without it the pods that the machine is for
    /// would seem not to fit, and the next plan would launch another one for them.
    #[must_use]
    pub fn overlaid_for(mut self, claim: &NodeClaim) -> Self {
        let more = overlaid_requests(claim);
        self.capacity.raise_to(&more);
        self.allocatable.raise_to(&more);
        self
    }
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
