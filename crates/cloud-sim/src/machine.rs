//! A machine: what it is, for whom it was launched, and where in its life it stands.

use api::labels::{CAPACITY_TYPE, INSTANCE_TYPE, ZONE};
use cloud::{Instance, LaunchToken, Launched};
use jiff::Timestamp;
use model::{
    object::{NodeClaimName, ProviderId, Uid},
    price::Price,
    resources::ResourceList,
};

/// Where in its life a machine stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It was launched and is not part of the cluster.
    Booting,
    /// Its kubelet has joined the cluster.
    Joined,
    /// It is on its way out, and will be gone at a time.
    Ending(Ending, Timestamp),
}

/// Why a machine goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// The autoscaler asked for it.
    Deleted,
    /// The cloud wanted its spot capacity back.
    Interrupted,
    /// Its zone or its host failed.
    Lost,
}

/// A machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// The cloud's name for it.
    pub id: ProviderId,
    /// What it calls itself in the cluster.
    pub node_name: String,
    /// The claim it was launched for.
    pub claim: NodeClaimName,
    /// The launch it came from.
    pub token: LaunchToken,
    /// What it costs an hour.
    pub price: Price,
    /// When it was launched.
    pub launched_at: Timestamp,
    /// Where in its life it stands.
    pub phase: Phase,
    /// When its kubelet joins; none if it never does.
    pub joins_at: Option<Timestamp>,
    /// When its node is ready; none if it never is.
    pub ready_at: Option<Timestamp>,
    /// Its node has been made ready.
    pub is_ready: bool,
    /// What its kubelet will say that it has, which may be less than was promised.
    pub capacity: ResourceList,
    /// What its kubelet will say that pods may use.
    pub allocatable: ResourceList,
    /// What its launch promised.
    pub launched: Launched,
    /// From when on reads show it.
    pub(crate) visible_from: Timestamp,
}

impl Machine {
    /// The claim it was launched for.
    pub fn claim_uid(&self) -> &Uid {
        &self.token.claim
    }

    /// Whether it is there to stay.
    pub fn is_staying(&self) -> bool {
        !matches!(self.phase, Phase::Ending(..))
    }

    /// Its zone.
    pub fn zone(&self) -> &str {
        self.label(ZONE)
    }

    /// Its type.
    pub fn instance_type(&self) -> &str {
        self.label(INSTANCE_TYPE)
    }

    /// `spot` or `on-demand`.
    pub fn capacity_type(&self) -> &str {
        self.label(CAPACITY_TYPE)
    }

    fn label(&self, key: &str) -> &str {
        self.launched.labels.get(key).map_or("", AsRef::as_ref)
    }

    /// As the cloud lists it.
    pub(crate) fn instance(&self) -> Instance {
        Instance {
            provider_id: self.id.clone(),
            claim: Some(self.claim.clone()),
            claim_uid: Some(self.token.claim.clone()),
            launched_at: Some(self.launched_at),
            is_terminating: !self.is_staying(),
            launched: self.launched.clone(),
        }
    }
}
