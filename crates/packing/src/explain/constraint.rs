//! What can keep a pod off a NodePool's nodes, one condition at a time, with the numbers a change is made from.

use model::{object::Taint, quantity::Quantity, resources::ResourceName};

/// A condition on instance types, of the NodePool or of the pod.
#[derive(Debug, Clone, PartialEq)]
pub enum Constraint {
    /// What the NodePool's node class offers, before any condition.
    Offered,
    /// The NodePool launches nothing at all: it is static, not ready, or being deleted.
    TakesNoPart,
    /// One of the NodePool's own requirements.
    PoolRequirement {
        /// The label.
        key: String,
    },
    /// Labels of the NodePool's template that instance types contradict.
    PoolLabels,
    /// An offering within the NodePool's requirements that can be had now.
    PoolOffering,
    /// As many different values as the NodePool asks for, before any pod.
    PoolMinValues(MinValues),
    /// What the NodePool may use in all.
    Limit {
        /// The resource.
        resource: ResourceName,
        /// `spec.limits`.
        limit: Quantity,
        /// What nodes use of it.
        in_nodes: Quantity,
        /// What nodes and the claims of the plan use of it.
        used: Quantity,
    },
    /// Taints of the NodePool.
    Taints {
        /// Those the pod does not tolerate.
        untolerated: Vec<Taint>,
    },
    /// How many volumes a node attaches.
    VolumeLimit,
    /// A label the pod asks of its node.
    NodeLabel {
        /// The label.
        key: String,
        /// Where the pod asks.
        field: LabelField,
        /// The values asked for; empty when none in particular.
        wanted: Vec<String>,
        /// The values that can be had so far.
        offered: Vec<String>,
        /// Some instance type or NodePool has a value that is asked for: it is no slip of the pen.
        is_known: bool,
    },
    /// Where the pod's volumes are.
    VolumeZone {
        /// The labels, each with the values that would do.
        labels: Vec<(String, Vec<String>)>,
    },
    /// Where other pods are.
    Topology {
        /// Which rule.
        kind: TopologyKind,
        /// The label whose values are the domains.
        key: String,
        /// Its position in the pod's list; none for rules of other pods.
        at: Option<usize>,
        /// The `maxSkew` with which the emptiest domain would be open, for a spread.
        needed_skew: Option<i32>,
        /// The domains the rule leaves, of those that are values of a label.
        open: Vec<String>,
    },
    /// Rules that are fine one by one, but not together.
    TopologyTogether,
    /// Host ports that daemons take on every node.
    HostPorts,
    /// A resource the pod asks for.
    Resource {
        /// Which.
        resource: ResourceName,
        /// How much the pod asks for.
        asked: Quantity,
        /// The most a pod could have of it on the types left.
        most: Quantity,
    },
    /// Zone and capacity type in which a type that fits can be had now.
    Offering,
    /// Devices of the pod's resource claims.
    Devices,
    /// As many different values as the NodePool asks for.
    MinValues(MinValues),
    /// Reserved capacity that other claims hold.
    Reserved,
}

/// A `minValues` and what there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MinValues {
    /// The label; empty when several fall short.
    pub key: String,
    /// How many different values are asked for.
    pub wanted: u32,
    /// How many there are.
    pub achieved: usize,
}

/// Where a pod asks for a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelField {
    /// `spec.nodeSelector`
    Selector,
    /// A term of the required node affinity.
    Affinity {
        /// The term's position.
        term: usize,
    },
}

/// A rule about where other pods are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopologyKind {
    /// `topologySpreadConstraints`
    Spread,
    /// `podAffinity`
    Affinity,
    /// `podAntiAffinity`
    AntiAffinity,
    /// `podAntiAffinity` of other pods.
    Avoided,
}

impl Constraint {
    /// A word or two for tables.
    pub fn name(&self) -> String {
        let fixed = match self {
            Self::Offered => "offered",
            Self::TakesNoPart => "pool state",
            Self::PoolRequirement { key } => return format!("pool {}", short(key)),
            Self::PoolLabels => "pool labels",
            Self::PoolOffering => "available",
            Self::PoolMinValues(_) => "pool minValues",
            Self::Limit { resource, .. } => return format!("limit {resource}"),
            Self::Taints { .. } => "taints",
            Self::VolumeLimit => "volume limit",
            Self::NodeLabel { key, .. } => return short(key).to_owned(),
            Self::VolumeZone { .. } => "volume zone",
            Self::Topology { kind, .. } => kind.name(),
            Self::TopologyTogether => "topology",
            Self::HostPorts => "host ports",
            Self::Resource { resource, .. } => return short(resource.as_str()).to_owned(),
            Self::Offering => "offering",
            Self::Devices => "devices",
            Self::MinValues(_) => "minValues",
            Self::Reserved => "reserved",
        };
        fixed.to_owned()
    }
}

impl Constraint {
    /// Its place in the order of tests.
    pub(super) fn place(&self) -> u8 {
        match self {
            Self::TakesNoPart => 0,
            Self::Offered => 1,
            Self::PoolRequirement { .. } | Self::PoolLabels => 2,
            Self::PoolOffering => 3,
            Self::PoolMinValues(_) => 4,
            Self::Limit { .. } => 5,
            Self::Taints { .. } => 6,
            Self::VolumeLimit => 7,
            Self::NodeLabel { .. } => 8,
            Self::VolumeZone { .. } => 9,
            Self::Topology { .. } | Self::TopologyTogether => 10,
            Self::HostPorts => 11,
            Self::Resource { .. } => 12,
            Self::Offering => 13,
            Self::Devices => 14,
            Self::MinValues(_) => 15,
            Self::Reserved => 16,
        }
    }
}

impl TopologyKind {
    fn name(self) -> &'static str {
        match self {
            Self::Spread => "spread",
            Self::Affinity => "affinity",
            Self::AntiAffinity => "anti-affinity",
            Self::Avoided => "avoided",
        }
    }
}

/// A label without its domain.
fn short(key: &str) -> &str {
    key.rsplit('/').next().unwrap_or(key)
}
