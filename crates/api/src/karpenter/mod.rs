//! The kinds of the API group `karpenter.sh`.

mod nodeclaim;
mod nodeoverlay;
mod nodepool;
mod nodepool_hash;
mod requirement;
mod taint;
mod template;
pub mod validation;

pub use self::{
    nodeclaim::{NodeClaim, NodeClaimSpec, NodeClaimStatus, ResourceRequirements},
    nodeoverlay::{NodeOverlay, NodeOverlaySpec, NodeOverlayStatus},
    nodepool::{Budget, ConsolidationPolicy, Disruption, DisruptionReason, NodePool, NodePoolSpec, NodePoolStatus},
    nodepool_hash::NODEPOOL_HASH_VERSION,
    requirement::{NodeSelectorRequirement, NodeSelectorRequirementWithMinValues, Operator},
    taint::{Taint, TaintEffect},
    template::{NodeClaimTemplate, NodeClaimTemplateSpec, NodeClassReference, ObjectMeta},
};

/// The API group.
pub const GROUP: &str = "karpenter.sh";
