//! The plugins of kube-scheduler's default profile, one file each, under upstream's names.
//!
//! A filter answers whether a pod may run on a node; a score how much the scheduler would like it there. What depends on
//! the node alone is a plain function; what depends on the other pods keeps counts that the [`Cluster`](crate::Cluster) feeds.
//!
//! Absent: NodeName (a pod that names its node never gets here), ImageLocality (no snapshot knows images), VolumeRestrictions
//! (access modes are not kept) and DynamicResources (the business of the `devices` crate).

pub mod inter_pod_affinity;
pub mod node_affinity;
pub mod node_ports;
pub mod node_resources_balanced_allocation;
pub mod node_resources_fit;
pub mod node_unschedulable;
pub mod node_volume_limits;
pub mod pod_topology_spread;
pub mod taint_toleration;
pub mod volume_binding;
pub mod volume_zone;

use std::fmt;

/// A plugin, as the one that refused a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Plugin {
    /// The node is cordoned.
    NodeUnschedulable,
    /// A `NoSchedule` or `NoExecute` taint is not tolerated.
    TaintToleration,
    /// The node selector or the required node affinity does not match.
    NodeAffinity,
    /// A host port is taken.
    NodePorts,
    /// There is not enough room.
    NodeResourcesFit,
    /// More volumes than the node attaches.
    NodeVolumeLimits,
    /// A claim is missing, unbound, or bound to a volume the node cannot reach.
    VolumeBinding,
    /// A volume's zone labels name another zone.
    VolumeZone,
    /// A `DoNotSchedule` constraint would be skewed too far.
    PodTopologySpread,
    /// A required (anti-)affinity, of the pod or of a pod that runs, does not hold.
    InterPodAffinity,
}

impl Plugin {
    /// The plugin's name in a scheduler's configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::NodeUnschedulable => "NodeUnschedulable",
            Self::TaintToleration => "TaintToleration",
            Self::NodeAffinity => "NodeAffinity",
            Self::NodePorts => "NodePorts",
            Self::NodeResourcesFit => "NodeResourcesFit",
            Self::NodeVolumeLimits => "NodeVolumeLimits",
            Self::VolumeBinding => "VolumeBinding",
            Self::VolumeZone => "VolumeZone",
            Self::PodTopologySpread => "PodTopologySpread",
            Self::InterPodAffinity => "InterPodAffinity",
        }
    }
}

impl fmt::Display for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The highest score a plugin gives a node.
pub(crate) const MAX_NODE_SCORE: i64 = 100;
