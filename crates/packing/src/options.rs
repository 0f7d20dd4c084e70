//! What a caller may ask of a planning run beyond the cluster's own settings.

use std::collections::BTreeMap;

use model::object::{NodeClaimName, ObjectKey};

/// How to plan. The default is what the provisioner asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Which passes take part.
    pub packing: Packing,
    /// How pods are led to the nodes planned for them.
    pub steering: Steering,
    /// What happens when reserved capacity is held by other claims of the run.
    pub reserved: ReservedMode,
    /// Nodes that may not be consolidated yet take no pods of other nodes.
    pub is_consolidation: bool,
    /// Reservation slots that come free with the nodes this run replaces, by reservation id.
    pub credited_reservations: BTreeMap<String, u32>,
    /// Where an earlier plan has pods that still wait, by NodeClaim: there they stay if they still fit. Upstream's algorithm
    /// knows nothing of it.
    pub promised: BTreeMap<ObjectKey, NodeClaimName>,
    /// How many ways of buying are tried at once; the plan does not depend on it.
    pub threads: usize,
    /// Makes upstream's mistake about devices of the same name (`docs/upstream.md`), to compare plans with its.
    pub is_matching_devices_by_name: bool,
}

/// Which passes take part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Packing {
    /// Upstream's algorithm and the cheaper ones; the cheapest valid plan wins.
    #[default]
    Cheapest,
    /// Upstream's algorithm only.
    Faithful,
}

/// How pods are led to the nodes planned for them: what a plan assumes when it is rehearsed, and then asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Steering {
    /// Not at all.
    Off,
    /// Nodes are released wave by wave.
    #[default]
    Release,
    /// As release, and pods are nominated for their nodes before these are released.
    Nominate,
    /// Pods are bound to their nodes, so that the plan is what comes about.
    Pin,
}

/// What happens when reserved capacity is held by other claims of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReservedMode {
    /// The pod waits for it.
    #[default]
    Strict,
    /// The pod falls back to other capacity.
    Fallback,
}
