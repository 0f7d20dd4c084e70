//! Why a cloud did not do what it was asked, by what follows from it.

use std::time::Duration;

use model::object::{InstanceTypeName, Text};

/// One way to have an instance type that is not to be had now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnavailableOffering {
    /// The type.
    pub instance_type: InstanceTypeName,
    /// The zone.
    pub zone: Option<Text>,
    /// `spot`, `on-demand` or `reserved`.
    pub capacity_type: Option<Text>,
    /// The cloud's own code.
    pub reason: Text,
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
