//! Why a cloud did not do what it was asked, by what follows from it.

use std::time::Duration;

use model::object::{InstanceTypeName, Text};
use serde::{Deserialize, Serialize};

/// What is not to be had now. A part that is absent means all: a region without spot names only the capacity type.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnavailableOffering {
    /// The type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<InstanceTypeName>,
    /// The zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<Text>,
    /// `spot`, `on-demand` or `reserved`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_type: Option<Text>,
    /// The cloud's own code.
    pub reason: Text,
    /// For how long to believe it, if the cloud's code says more than the usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
}

/// Why a cloud did not do what it was asked. The texts are upstream's: they reach events and conditions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CloudError {
    /// There is no such machine (any more).
    #[error("nodeclaim not found, {0}")]
    NotFound(String),
    /// The cloud has no such machine to give: the claim is given up and its pods are planned anew.
    #[error("insufficient capacity, {message}")]
    InsufficientCapacity {
        /// The cloud's words.
        message: String,
        /// What is not to be had, so that the next plan avoids it.
        offerings: Vec<UnavailableOffering>,
    },
    /// The node class cannot be launched from yet: the claim is given up.
    #[error("NodeClassRef not ready, {0}")]
    NodeClassNotReady(String),
    /// A launch failed for a reason with a name; it is tried again.
    #[error("creating nodeclaim, {message}")]
    Create {
        /// Reason of the claim's Launched condition.
        reason: String,
        /// Message of the claim's Launched condition.
        message: String,
    },
    /// The cloud asks for patience.
    #[error("{message}")]
    Throttled {
        /// The cloud's words.
        message: String,
        /// How long to wait at least.
        retry_after: Option<Duration>,
    },
    /// A launch failed, and asking again will not help before somebody changes something: a permission, a quota, a
    /// node class. The claim keeps the reason until it times out.
    #[error("creating nodeclaim, {message}")]
    Terminal {
        /// Reason of the claim's Launched condition.
        reason: String,
        /// Message of the claim's Launched condition.
        message: String,
    },
    /// The cloud does not reboot machines.
    #[error("reboot is not implemented by this cloud provider")]
    RebootNotImplemented,
    /// The cloud refused a reboot for good.
    #[error("{0}")]
    RebootFailed(String),
    /// Anything else; it is tried again.
    #[error("{0}")]
    Other(String),
}

impl CloudError {
    /// True when the machine is gone.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound(_))
    }

    /// The `error` label of `karpenter_cloudprovider_errors_total`.
    pub fn label(&self) -> &'static str {
        match self {
            Self::InsufficientCapacity { .. } => "InsufficientCapacityError",
            Self::NotFound(_) => "NodeClaimNotFoundError",
            Self::NodeClassNotReady(_) => "NodeClassNotReadyError",
            _ => "unknown",
        }
    }
}
